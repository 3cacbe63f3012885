//! The simulator: the workflows of the server, unmodified, over a simulated world.
//!
//! One seed makes one run: a scheduler chooses whose await goes on, faults strike, people and
//! automation act, and judges outside the code under test look at every step. Imported by
//! nothing that ships. Never in this crate: a rule of the product, or an adapter.

pub mod call;
pub mod change;
pub mod faults;
pub mod furniture;
pub mod genesis;
pub mod hazard;
pub mod journal;
pub mod judges;
pub mod mutate;
pub mod nemesis;
pub mod people;
pub mod pg;
pub mod planted;
pub mod ports;
pub mod run;
pub mod sched;
pub mod seed;
pub mod server;
pub mod shrink;
pub mod sim;
pub mod store;
pub mod sweep;
pub mod trace;
pub mod witness;
pub mod world;
