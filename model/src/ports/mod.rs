//! The ports beside the store: providers, nodes, the renderer's stand-in, time, randomness,
//! wake-ups, alerts, humans.

/// What is outside the database: provider, nodes, and what was seen of the run.
#[derive(Default)]
pub struct Outside {
    pub seen: Seen,
}

/// Sometimes-properties: how often something happened that a quiet run would not show.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub deadlocks: u64,
}
