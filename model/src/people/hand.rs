//! A person or an automation, and how it asks a server: with its token, under a key, again
//! when the answer is lost.
//!
//! What `http` does between a request and the engine is done here: authenticate, authorise,
//! admit. Never in this module: which act is asked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bronzeward_core::authority::authorise;
use bronzeward_core::id::{EpochId, OperationId, RequestId};
use bronzeward_core::idempotency::{Fingerprint, IdempotencyKey};
use bronzeward_core::installation::StartMode;
use bronzeward_core::principal::{Actor, Role, Roles};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::revision::Etag;
use bronzeward_core::rules::Rules;
use bronzeward_core::time::Span;
use bronzeward_core::token::TokenText;
use bronzeward_engine::authenticate::{Authenticator, NotAuthenticated};
use bronzeward_engine::request::{Admitted, Answer, Refused, Rendered, Requests};

use super::view::View;
use crate::call::{call, send};
use crate::change::{Answered, Outside};
use crate::faults::Fault;
use crate::ports::runtime::human_token;
use crate::sched::{Leaf, ProcessId, Wait};
use crate::server::{Asking, Server};
use crate::sim::Sim;
use crate::world::Model;

/// Who asks: a subject, and the groups that give it roles.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    pub name: &'static str,
    pub groups: &'static [&'static str],
}

/// The route of an act: what `api`'s table says of it.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub name: &'static str,
    pub roles: &'static [Role],
    pub human_only: bool,
    pub served: Served,
    /// The revision that the request names.
    pub if_match: Option<Etag>,
}

/// What a process under the recovery-start flag serves of a route (PA §12.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The entry alone, and only under the flag.
    Entry,
    /// Once its entry has committed.
    AfterEntry,
    /// Never under the flag.
    Normally,
}

impl Served {
    fn by(self, rules: &impl Rules, start: StartMode) -> Result<(), Problem> {
        let served = match self {
            Served::Entry => start != StartMode::Normal,
            Served::AfterEntry => start.serves(rules),
            Served::Normally => start.serves(rules) && start.serves_plans(),
        };
        match (served, self) {
            (true, _) => Ok(()),
            (false, Served::Entry) => Err(Problem::new(ProblemCode::Conflict)),
            (false, _) => Err(Problem::new(ProblemCode::RecoveryModeActive)),
        }
    }
}

/// How a request ended for who asked.
#[derive(Clone, Debug)]
pub enum Ended {
    Answered(Answer),
    Refused(ProblemCode),
    /// No answer came, however often it was asked for.
    Unheard,
}

pub type Acting = Pin<Box<dyn Future<Output = Result<Answer, Refused>> + Send>>;

#[derive(Clone)]
pub struct Hand {
    pub sim: Arc<Sim>,
    pub person: Person,
    /// The key that it asks under, where that is no fresh one.
    pub key: Option<IdempotencyKey>,
    /// The server that a schedule has it ask, again too, as long as that one is up.
    pub prefers: Option<ProcessId>,
    /// Nothing happens to its requests by chance: a schedule's, or the genesis's.
    pub calm: bool,
}

/// The routes that enter and leave recovery mode.
pub const ENTRY: &str = "enter recovery";
pub(super) const EXIT: &str = "leave recovery";

/// How often a request is sent again under its key.
const TRIES: u32 = 4;

impl Person {
    /// The roles that its groups give.
    pub fn roles(&self) -> Roles {
        let groups = self.groups.iter();
        groups.filter_map(|group| Role::parse(group)).collect()
    }
}

impl Hand {
    pub fn new(sim: &Arc<Sim>, person: Person) -> Self {
        Self {
            sim: Arc::clone(sim),
            person,
            key: None,
            prefers: None,
            calm: false,
        }
    }

    /// The same under a key of its own.
    #[must_use]
    pub fn under(self, key: IdempotencyKey) -> Self {
        let key = Some(key);
        Self { key, ..self }
    }

    pub async fn sleep(&self, least: Span, most: Span) {
        let until = {
            let mut state = self.sim.state();
            let length = state.rng.i64(least.as_micros()..=most.as_micros());
            state.sched.now() + Span::micros(length)
        };
        Leaf::new(&self.sim, Wait::Until(until)).await;
    }

    /// A server that is up: the one it prefers, or whichever the seed says.
    pub(super) fn server(&self) -> Option<Arc<Server>> {
        let mut state = self.sim.state();
        let preferred = self.prefers.and_then(|id| state.house.up.get(&id));
        if let Some(server) = preferred {
            return Some(Arc::clone(server));
        }
        let up = state.house.up.len();
        let place = (up > 0).then(|| state.rng.usize(0..up))?;
        state.house.up.values().nth(place).cloned()
    }

    /// Asks for an act under a fresh key. `text` tells two requests apart, as a fingerprint
    /// does.
    pub async fn ask(
        &self,
        route: Route,
        text: &str,
        act: impl Fn(Arc<Server>, Admitted) -> Acting + Clone + Send + 'static,
    ) -> Ended {
        let key = self.key.clone().unwrap_or_else(|| self.fresh_key());
        let expected = self.expected(route);
        for again in 0..TRIES {
            let Some(server) = self.server() else {
                self.sleep(Span::seconds(1), Span::seconds(5)).await;
                continue;
            };
            let asks = |server: Arc<Server>| {
                let credential = self.credential();
                let asked = Asked {
                    route,
                    key: key.clone(),
                    fingerprint: fingerprint(route.name, text),
                    request: self.request(route, expected, &credential),
                    expected,
                    credential,
                };
                let (act, sim) = (act.clone(), Arc::clone(&self.sim));
                async move { asked.serve(&sim, server, act).await }
            };
            if again == 0 && self.by_chance(24) {
                // A proxy sends it twice at once, and nobody waits for the other answer.
                if let Some(other) = self.server() {
                    send(&self.sim, other.id, asks(other));
                }
            }
            let ended = call(&self.sim, server.id, asks(server)).await;
            if let Some(Err(refused)) = &ended {
                let seen = &mut self.sim.state().outside.seen;
                match refused.problem.code {
                    ProblemCode::EpochSuperseded => {
                        seen.show("a stale instance of an earlier epoch refused");
                    }
                    ProblemCode::Conflict if route.name == EXIT => {
                        seen.show("a recovery exit blocked");
                    }
                    _ => {}
                }
            }
            let lost = self.sim.state().strikes(Fault::AnswerLost);
            match ended {
                Some(Ok(answer)) if !lost => {
                    self.say(route, again, "done");
                    if again == 0 && self.by_chance(16) {
                        // A proxy sends it once more, and nobody waits for that answer.
                        self.sleep(Span::millis(1), Span::seconds(12)).await;
                        continue;
                    }
                    return Ended::Answered(answer);
                }
                Some(Err(refused)) if !lost && refused.problem.code.is_final() => {
                    self.say(route, again, refused.problem.code.as_str());
                    return Ended::Refused(refused.problem.code);
                }
                _ => self.sleep(Span::millis(500), Span::seconds(8)).await,
            }
        }
        Ended::Unheard
    }

    /// What happens once in so many times.
    fn by_chance(&self, times: u32) -> bool {
        !self.calm && self.sim.state().rng.u32(0..times) == 0
    }

    /// A fresh key; now and then, by mistake, the one of the request before.
    fn fresh_key(&self) -> IdempotencyKey {
        if let Some(key) = self.sim.state().house.insisted.key.take() {
            return key;
        }
        let fresh = key_of(self.sim.state().rng.u128(..));
        let mistaken = self.by_chance(60);
        let mut state = self.sim.state();
        let state = &mut *state;
        let last = state.house.keys.insert(self.person.name, fresh.clone());
        match last.filter(|_| mistaken) {
            None => fresh,
            Some(last) => {
                state.house.keys.insert(self.person.name, last.clone());
                last
            }
        }
    }

    /// The epoch that the request is meant for, where it says one.
    fn expected(&self, route: Route) -> Option<EpochId> {
        let mut state = self.sim.state();
        if let Some(epoch) = state.house.insisted.expected.take() {
            return Some(epoch);
        }
        let says = state.rng.u32(0..3) == 0 && route.served != Served::Entry;
        let installation = View(&state.db.tables).installation();
        installation.map(|(epoch, _)| epoch).filter(|_| says)
    }

    /// An automation's token, or a fresh one of the identity provider's.
    fn credential(&self) -> String {
        if let Some(token) = self.sim.state().outside.credentials.get(self.person.name) {
            return token.clone();
        }
        let now = self.sim.state().sched.now();
        human_token(self.person.name, self.person.groups, now)
    }

    fn request(&self, route: Route, epoch: Option<EpochId>, credential: &str) -> RequestId {
        let mut state = self.sim.state();
        let request = RequestId::from_bits(state.rng.u128(..));
        let asking = Asking {
            name: self.person.name,
            roles: self.person.roles(),
            epoch,
            token: TokenText::parse(credential).map(|token| token.id()),
            at: state.sched.now(),
        };
        state.house.asked.insert(request, asking);
        if let Some(etag) = route.if_match {
            state.house.expected.insert(request, etag);
        }
        request
    }

    fn say(&self, route: Route, again: u32, how: &str) {
        let mut state = self.sim.state();
        if state.trace.kept() {
            let now = state.sched.now();
            let name = self.person.name;
            let route = route.name;
            state
                .trace
                .say(now, format_args!("{name}: {route}, try {again}: {how}"));
        }
    }
}

/// Whether asking again under the key can give another answer.
trait Final {
    fn is_final(&self) -> bool;
}

impl Final for ProblemCode {
    fn is_final(&self) -> bool {
        !matches!(
            self,
            ProblemCode::DependencyUnavailable
                | ProblemCode::TransientConflict
                | ProblemCode::InternalError
        )
    }
}

/// A key by 128 bits.
pub fn key_of(bits: u128) -> IdempotencyKey {
    IdempotencyKey::parse(&format!("{bits:032x}")).expect("a legal key")
}

fn fingerprint(route: &str, text: &str) -> Fingerprint {
    // Two requests of a world that differ have other names or texts: the digest's strength
    // is not what is tested.
    let mut digest = [0; 32];
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for (place, byte) in route.bytes().chain([0]).chain(text.bytes()).enumerate() {
        sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        digest[place % 24] ^= byte;
    }
    digest[24..].copy_from_slice(&sum.to_be_bytes());
    Fingerprint { digest, key: None }
}

/// One request as it arrives at a server.
struct Asked {
    route: Route,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
    request: RequestId,
    expected: Option<EpochId>,
    credential: String,
}

impl Asked {
    async fn serve(
        self,
        sim: &Sim,
        server: Arc<Server>,
        act: impl Fn(Arc<Server>, Admitted) -> Acting + Send,
    ) -> Result<Answer, Refused> {
        let rules = server.db.rules();
        let authenticator = Authenticator::<Model> {
            db: &server.db,
            humans: &server.humans,
            access: &server.access,
        };
        let who = authenticator.authenticate(&self.credential).await;
        let who = who.map_err(|refusal| match refusal {
            NotAuthenticated::Refused => Refused::from(Problem::new(ProblemCode::Unauthenticated)),
            NotAuthenticated::Revoked => Problem::new(ProblemCode::IdentityRevoked).into(),
            NotAuthenticated::Unavailable(problem) => problem.into(),
        })?;
        let route = self.route;
        let role = authorise(&rules, who.kind, &who.roles, route.roles, route.human_only)
            .map_err(|_| Refused::from(Problem::new(ProblemCode::Forbidden)))?;
        route.served.by(&rules, server.db.start_mode())?;
        let principal = authenticator.principal(&who).await?;
        let admitted = Admitted {
            actor: Actor {
                principal,
                role,
                kind: who.kind,
            },
            key: self.key,
            fingerprint: self.fingerprint,
            recomputed: None,
            expected_epoch: self.expected,
            request: self.request,
            method: "POST",
            route: route.name,
        };
        let (key, fingerprint) = (admitted.key.clone(), admitted.fingerprint.clone());
        let answer = act(Arc::clone(&server), admitted).await?;
        let answered = Answered {
            process: server.id,
            route: route.name,
            principal,
            key,
            fingerprint,
            status: answer.rendered.status,
            body: answer.rendered.body.clone(),
            replayed: answer.replayed,
            epoch: answer.read.epoch,
        };
        let event = Outside::Answered(Box::new(answered));
        sim.state().journal.outside(event);
        Ok(answer)
    }
}

/// An answer that says one thing: what was made.
pub fn said(what: impl std::fmt::Display) -> Rendered {
    Rendered {
        status: 201,
        location: None,
        etag: None,
        body: what.to_string(),
        operation: None,
    }
}

/// The same for an accepted operation.
pub fn accepted(operation: OperationId) -> Rendered {
    Rendered {
        operation: Some(operation),
        ..said(operation)
    }
}

/// A server's requests.
pub fn requests(server: &Server) -> Requests<'_, Model> {
    Requests { db: &server.db }
}
