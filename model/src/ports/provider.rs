//! The provider's identities on the simulated provider: each call travels, may be slow, lost
//! before or after its effect, refused for a while, or met by a seal.
//!
//! A failure is the class that `adapters/openbao` gives the answer (facts B 8). Never in this
//! module: what the provider holds.

mod mischief;
mod vault;

use std::sync::Arc;

use bronzeward_core::dependency::{Answer, KvFacts, TransitFacts};
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::ClusterId;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_core::time::{DbTime, Span};
use bronzeward_engine::ports::provider::{
    Ciphertext, CompilerSecrets, Creation, DependencyMetadata, ExecutorSecrets, Failure,
    Generation, GenerationDirectory, IngestionSecrets, KeyedDigest, Listed, OrphanListing,
    TalosAccess, TokenProbe, TokenState,
};

pub use mischief::{seal, spoil};
pub use vault::{Contents, Data, Identity, Key, KvPath, OUTAGE, Vault};

use super::runtime::port;
use super::times;
use crate::faults::Fault;
use crate::planted::Defect;
use crate::sched::{Leaf, ProcessId, Wait};
use crate::sim::{Sim, State};

/// How long a client waits for a whole call, as the adapter's default has it.
const CALL: Span = Span::seconds(5);

/// How long an abandoned call may take to be carried out all the same (B34).
const LATE: Span = Span::seconds(15);

/// A cluster's access as an operator puts it there; the simulated nodes accept it.
pub fn talosconfig(cluster: ClusterId, number: u64) -> Plaintext {
    Plaintext::new(format!("talosconfig {cluster} {number}"))
}

/// What becomes of one call, drawn when it is sent.
enum Fate {
    Prompt,
    Slow(Span),
    Lost(Lost),
}

struct Lost {
    /// When the call is carried out, if it is.
    arrives: Option<Span>,
    /// How long the caller waits, and what it is told.
    waits: Span,
    told: Failure,
}

fn span_below(state: &mut State, most: Span) -> Span {
    Span::micros(state.rng.i64(0..most.as_micros().max(1)))
}

fn fate(state: &mut State, identity: Identity) -> Fate {
    if state.strikes(Fault::ProviderDenied) {
        let until = state.sched.now() + span_below(state, OUTAGE);
        state.outside.vault.deny(identity, until);
    }
    if state.strikes(Fault::ProviderLost) {
        let arrives = match state.rng.u8(0..4) {
            0 | 1 => None,
            2 => Some(Span::ZERO),
            _ => Some(span_below(state, LATE)),
        };
        // An audit device that fails answers at once (B8), a silent server never.
        let (waits, told) = match state.rng.bool() {
            true => (CALL, Failure::Unreachable),
            false => (Span::ZERO, Failure::Unavailable),
        };
        return Fate::Lost(Lost {
            arrives,
            waits,
            told,
        });
    }
    if state.strikes(Fault::ProviderSlow) {
        let length = span_below(state, CALL + Span::seconds(2));
        if length < CALL {
            return Fate::Slow(length);
        }
        return Fate::Lost(Lost {
            arrives: Some(length),
            waits: CALL,
            told: Failure::Unreachable,
        });
    }
    Fate::Prompt
}

fn carry_out<T>(
    state: &mut State,
    identity: Identity,
    effect: impl FnOnce(&mut Vault, DbTime) -> T,
) -> Result<T, Failure> {
    let now = state.sched.now();
    let vault = &mut state.outside.vault;
    vault.admits(identity, now)?;
    Ok(effect(vault, now))
}

/// Who calls the provider.
struct Caller<'s> {
    sim: &'s Arc<Sim>,
    process: ProcessId,
    identity: Identity,
}

impl Caller<'_> {
    /// One call. The effect may be carried out whatever the caller is told.
    async fn call<T: Send>(
        &self,
        what: &'static str,
        effect: impl FnOnce(&mut Vault, DbTime) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        Leaf::new(self.sim, Wait::Point).await;
        let identity = self.identity;
        let fate = {
            let mut state = self.sim.state();
            state.trace(self.process, what);
            fate(&mut state, identity)
        };
        match fate {
            Fate::Prompt => carry_out(&mut self.sim.state(), identity, effect),
            Fate::Slow(length) => {
                self.wait(length).await;
                carry_out(&mut self.sim.state(), identity, effect)
            }
            Fate::Lost(lost) => {
                if let Some(after) = lost.arrives {
                    let mut state = self.sim.state();
                    let at = state.sched.now() + after;
                    let arrive = move |state: &mut State| {
                        if carry_out(state, identity, effect).is_ok() {
                            state.outside.seen.unheard_calls += 1;
                        }
                    };
                    match after == Span::ZERO {
                        true => arrive(&mut state),
                        false => state.sched.at(at, Box::new(arrive)),
                    }
                }
                if lost.waits > Span::ZERO {
                    self.wait(lost.waits).await;
                }
                Err(lost.told)
            }
        }
    }

    async fn wait(&self, length: Span) {
        let until = self.sim.state().sched.now() + length;
        Leaf::new(self.sim, Wait::Until(until)).await;
    }

    /// A question about metadata, answered with its status and the provider's time.
    async fn ask<F: Send + 'static>(
        &self,
        what: &'static str,
        look: impl FnOnce(&Vault) -> Option<F> + Send + 'static,
    ) -> Answer<F> {
        let answered = |status, date, facts| Answer::Answered {
            status,
            date: Some(date),
            facts,
        };
        let asked = self.call(what, |vault, now| (look(vault), times::http_date(now)));
        match asked.await {
            Ok((Some(facts), date)) => answered(200, date, Some(facts)),
            Ok((None, date)) => answered(404, date, None),
            Err(failure) => {
                let date = times::http_date(self.sim.state().sched.now());
                match failure {
                    Failure::Denied => answered(403, date, None),
                    Failure::Unavailable => answered(503, date, None),
                    _ => Answer::Unreachable,
                }
            }
        }
    }

    async fn probe(&self) -> TokenState {
        match self.call("probes its token", |_, _| ()).await {
            Ok(()) => TokenState::Valid,
            Err(Failure::Denied) => TokenState::Dead,
            Err(failure) => TokenState::Undecided(failure),
        }
    }

    async fn talos_access(&self, cluster: ClusterId) -> Result<TalosAccess, Failure> {
        let read = self.call("reads the Talos access", move |vault, now| {
            vault.talos_access(cluster, now)
        });
        read.await.and_then(std::convert::identity)
    }

    async fn encrypt(&self, key: Key, text: &Plaintext) -> Result<Ciphertext, Failure> {
        let text = text.clone();
        let sealed = self.call("encrypts", move |vault, _| vault.encrypt(key, &text));
        sealed.await.and_then(std::convert::identity)
    }

    async fn decrypt(&self, key: Key, ciphertext: &Ciphertext) -> Result<Plaintext, Failure> {
        let ciphertext = ciphertext.clone();
        let opened = self.call("decrypts", move |vault, _| vault.decrypt(key, &ciphertext));
        opened.await.and_then(std::convert::identity)
    }
}

/// An identity's client.
macro_rules! identity {
    ($(#[$doc:meta])* $name:ident, $identity:ident) => {
        port!($(#[$doc])* $name);

        impl $name {
            fn caller(&self) -> Caller<'_> {
                Caller {
                    sim: &self.sim,
                    process: self.process,
                    identity: Identity::$identity,
                }
            }
        }

        impl TokenProbe for $name {
            async fn probe_token(&self) -> TokenState {
                self.caller().probe().await
            }
        }
    };
}

identity!(
    /// Creates, encrypts and digests.
    SimIngestion,
    Ingestion
);
identity!(
    /// Reads pinned generations and encrypts artifacts.
    SimCompiler,
    Compiler
);
identity!(
    /// Opens artifacts and reads accesses.
    SimExecutor,
    Executor
);
identity!(
    /// Looks at states by name.
    SimMetadata,
    Metadata
);
identity!(
    /// Lists generation paths.
    SimOrphans,
    Orphans
);

impl IngestionSecrets for SimIngestion {
    async fn read_talos_access(&self, cluster: ClusterId) -> Result<TalosAccess, Failure> {
        self.caller().talos_access(cluster).await
    }

    async fn create_generation(&self, path: &GenerationPath, value: &Value) -> Creation {
        let (path, value) = (*path, value.clone());
        let caller = self.caller();
        let forgotten = self.sim.state().db.planted == Some(Defect::CreationNotCarriedOut);
        let created = caller.call("creates a generation", move |vault, now| match forgotten {
            true => Creation::Created {
                created: times::created(now, 0),
            },
            false => vault.create(path, value, now),
        });
        match created.await {
            Ok(creation) => creation,
            // The policy refuses an existing path as it does an ungranted one.
            Err(Failure::Denied) => Creation::MayExist,
            Err(failure) => Creation::Unknown(failure),
        }
    }

    async fn encrypt_baseline(&self, input: &Plaintext) -> Result<Ciphertext, Failure> {
        self.caller().encrypt(Key::Baseline, input).await
    }

    async fn encrypt_staging(&self, envelope: &Plaintext) -> Result<Ciphertext, Failure> {
        self.caller().encrypt(Key::Staging, envelope).await
    }

    async fn decrypt_staging(&self, envelope: &Ciphertext) -> Result<Plaintext, Failure> {
        self.caller().decrypt(Key::Staging, envelope).await
    }

    async fn keyed_digests(&self, inputs: &[Plaintext]) -> Result<Vec<KeyedDigest>, Failure> {
        let inputs = inputs.to_vec();
        let caller = self.caller();
        let digests = caller.call("digests", move |vault, _| {
            let digests = inputs.iter().map(|input| vault.digest(None, input));
            digests.collect::<Result<Vec<_>, _>>()
        });
        digests.await.and_then(std::convert::identity)
    }

    async fn recompute_digest(
        &self,
        key: &DigestKey,
        input: &Plaintext,
    ) -> Result<KeyedDigest, Failure> {
        let version = u64::try_from(key.version).ok().filter(|number| *number > 0);
        let (Some(version), true) = (version, key.name == Key::Digest.name()) else {
            return Err(Failure::Refused);
        };
        let input = input.clone();
        let caller = self.caller();
        let digest = caller.call("digests again", move |vault, _| {
            vault.digest(Some(version), &input)
        });
        digest.await.and_then(std::convert::identity)
    }
}

impl CompilerSecrets for SimCompiler {
    async fn read_generation(
        &self,
        path: &GenerationPath,
        version: u64,
    ) -> Result<Generation, Failure> {
        let path = *path;
        let caller = self.caller();
        let read = caller.call("reads a generation", move |vault, now| {
            vault.generation(path, version, now)
        });
        read.await.and_then(std::convert::identity)
    }

    async fn encrypt_artifact(&self, configuration: &Plaintext) -> Result<Ciphertext, Failure> {
        self.caller().encrypt(Key::Artifact, configuration).await
    }
}

impl ExecutorSecrets for SimExecutor {
    async fn read_talos_access(&self, cluster: ClusterId) -> Result<TalosAccess, Failure> {
        self.caller().talos_access(cluster).await
    }

    async fn decrypt_artifact(
        &self,
        artifact: &Ciphertext,
        bound_key_version: u64,
    ) -> Result<Plaintext, Failure> {
        if artifact.key_version() != bound_key_version {
            return Err(Failure::Integrity);
        }
        self.caller().decrypt(Key::Artifact, artifact).await
    }
}

impl DependencyMetadata for SimMetadata {
    async fn kv_metadata(&self, path: &str) -> Answer<KvFacts> {
        let path = path.to_owned();
        let look = move |vault: &Vault| vault.kv_facts(&path);
        self.caller().ask("looks at a secret", look).await
    }

    async fn transit_key(&self, key: &str) -> Answer<TransitFacts> {
        let key = key.to_owned();
        let look = move |vault: &Vault| vault.transit_facts(&key);
        self.caller().ask("looks at a key", look).await
    }
}

impl OrphanListing for SimOrphans {
    async fn list(&self, directory: GenerationDirectory) -> Result<Vec<Listed>, Failure> {
        let caller = self.caller();
        caller
            .call("lists generations", move |vault, _| vault.list(directory))
            .await
    }
}

#[cfg(test)]
mod tests;
