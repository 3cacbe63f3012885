//! The real world: which adapter stands behind which port.

use std::sync::Arc;
use std::time::Duration;

use bronzeward_core::rules::{Enforced, Rules};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::renderer::Renderer;
use bronzeward_engine::ports::{
    Alert, AlertSink, Entropy, HumanClaims, HumanTokenRefusal, HumanTokens, Notifier, Tasks, Timer,
    Wake,
};
use bronzeward_engine::world::{Permit, World};
use bronzeward_machinery::MachineryRenderer;
use bronzeward_wake::Bell;

/// The world of a running server, under rules it cannot change. A test may put a gate
/// before the renderer, which no test could see from outside the process.
#[derive(Debug)]
pub struct Real<R: Rules = Enforced, D = MachineryRenderer>(
    std::marker::PhantomData<fn() -> (R, D)>,
);

impl<R: Rules, D: Renderer + 'static> World for Real<R, D> {
    type Rules = R;
    type Store = bronzeward_postgres::store::PgStore;
    type Entropy = SystemEntropy;
    type Timer = SystemTimer;
    type Tasks = SystemTasks;
    type Notifier = Bells;
    type Alerts = LoggedAlerts;
    type Humans = Humans<R>;
    type Ingestion = bronzeward_openbao::Ingestion;
    type Compiler = bronzeward_openbao::Compiler;
    type Executor = bronzeward_openbao::Executor;
    type Metadata = bronzeward_openbao::Metadata;
    type Reader = bronzeward_talos::ReadOnlyTalos;
    type Writer = bronzeward_talos::MutatingTalos<Permit>;
    type Renderer = D;
}

/// The operating system's random source.
#[derive(Clone, Copy, Debug)]
pub struct SystemEntropy;

impl SystemEntropy {
    /// 256 random bits. A system without randomness cannot mint an identifier that is never
    /// issued again, so the process ends rather than go on.
    pub fn bytes() -> [u8; 32] {
        let mut bytes = [0; 32];
        if getrandom::fill(&mut bytes).is_err() {
            tracing::error!("the operating system gives no random bits");
            std::process::abort();
        }
        bytes
    }
}

impl Entropy for SystemEntropy {
    fn bits(&self) -> u128 {
        let [bytes, _] = split(Self::bytes());
        u128::from_le_bytes(bytes)
    }
}

fn split(bytes: [u8; 32]) -> [[u8; 16]; 2] {
    let mut halves = [[0; 16]; 2];
    halves[0].copy_from_slice(&bytes[..16]);
    halves[1].copy_from_slice(&bytes[16..]);
    halves
}

/// Tasks of this runtime: they end with the process.
#[derive(Clone, Copy, Debug)]
pub struct SystemTasks;

impl Tasks for SystemTasks {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(work);
    }
}

/// tokio's timer.
#[derive(Clone, Copy, Debug)]
pub struct SystemTimer;

impl Timer for SystemTimer {
    async fn sleep(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }
}

/// One bell per kind of work.
#[derive(Clone, Debug, Default)]
pub struct Bells {
    publication: Arc<Bell>,
    dispatch: Arc<Bell>,
}

impl Bells {
    fn bell(&self, what: Wake) -> &Bell {
        match what {
            Wake::Publication => &self.publication,
            Wake::Dispatch => &self.dispatch,
        }
    }
}

impl Notifier for Bells {
    fn wake(&self, what: Wake) {
        self.bell(what).ring();
    }

    async fn wait(&self, what: Wake, at_most: Duration) {
        self.bell(what).wait(at_most).await;
    }
}

/// Alerts as structured log lines.
#[derive(Clone, Copy, Debug)]
pub struct LoggedAlerts;

impl AlertSink for LoggedAlerts {
    fn raise(&self, alert: Alert) {
        match alert {
            Alert::DigestMismatch {
                machine,
                observation,
                late_landing,
            } => tracing::warn!(
                event = "digest-mismatch",
                %machine,
                %observation,
                late_landing = late_landing.map(|operation| operation.to_string()),
                "a machine holds a configuration that Applied does not describe"
            ),
        }
    }
}

/// The identity provider behind the engine's port.
pub struct Humans<R: Rules>(pub bronzeward_oidc::Provider<R>);

impl<R: Rules> HumanTokens for Humans<R> {
    async fn verify(&self, token: &str, now: DbTime) -> Result<HumanClaims, HumanTokenRefusal> {
        match self.0.verify(token, now).await {
            Ok(claims) => Ok(HumanClaims {
                issuer: claims.iss,
                subject: claims.sub,
                groups: claims.groups,
                display: claims.display,
                expires_at: claims.exp,
            }),
            Err(bronzeward_oidc::Refusal::Token(_)) => Err(HumanTokenRefusal::Refused),
            Err(bronzeward_oidc::Refusal::Unavailable(_)) => Err(HumanTokenRefusal::Unavailable),
        }
    }
}
