//! What stands before a case begins, and rows by their numbers.
//!
//! Both sides are furnished through the store port. Plans are the exception: a plan needs a
//! release, which no step looks at, so PostgreSQL gets bare rows (its foreign keys off) and
//! the simulated store, which keeps no foreign key to a plan, only their states. Never in this
//! module: a step.

use bronzeward_core::act::{ActEntry, Action};
use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::dependency::{Class, Classification};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::drift::OpenDrift;
use bronzeward_core::fence::{Fence, Generation, Owner};
use bronzeward_core::head::{Name, ProfileContent};
use bronzeward_core::id::{
    ActId, ClusterId, EpochId, Id, ImportBaseRevisionId, Kind, MachineId, PlanId, PrincipalId,
    ReleaseId,
};
use bronzeward_core::idempotency::{Fingerprint, IdempotencyKey};
use bronzeward_core::inventory::{Endpoint, IdentityKey, Platform, SmbiosUuid, TalosClusterId};
use bronzeward_core::observation::{Observation, Purpose, Started, Unread, Values};
use bronzeward_core::operation::Common;
use bronzeward_core::principal::{Actor, Controller, PrincipalKind, Role, Roles};
use bronzeward_core::problem::Member;
use bronzeward_core::release::BoundDraft;
use bronzeward_core::revision::{Etag, EtagToken, Revision, TimelineRevision};
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_core::token::{Token, TokenDigest};
use bronzeward_engine::ports::store::{
    Authorship, ClaimSource, Dependency, HeadKind, IdempotencyRecord, NewClaim, NewCluster,
    NewDraft, NewEntry, NewHead, NewJob, NewMachine, NewProfile, NewWork, Seed, StoreError,
    StoreTx,
};
use bronzeward_engine::rows::{HeadId, PlanStateRow, SourceRevisionId};

/// How many of each kind of row a case finds.
pub const STANDING: u8 = 3;

/// Before every case, and after every case.
pub const PAST: DbTime = DbTime::from_seconds(1_577_836_800);
pub const FUTURE: DbTime = DbTime::from_seconds(4_102_444_800);
/// How long a short lease is good: longer than a few steps take.
pub const SOON: Span = Span::seconds(2);

pub fn id<K: Kind>(number: u8) -> Id<K> {
    Id::from_bits(u128::from(number))
}

pub fn epoch() -> EpochId {
    id(1)
}

pub fn actor(number: u8) -> Actor {
    Actor {
        principal: id(number),
        role: Role::Author,
        kind: PrincipalKind::Human,
    }
}

pub fn fence(generation: i64) -> Fence {
    Fence {
        owner: Owner::parse("one/1/a").expect("an owner"),
        generation: Generation(generation),
        epoch: epoch(),
    }
}

pub fn key(number: u8) -> IdempotencyKey {
    IdempotencyKey::parse(&format!("key-key-key-key-{number}")).expect("a key")
}

pub fn cluster(number: u8, talos: char) -> NewCluster {
    let talos = format!("{talos}{}=", "A".repeat(42));
    NewCluster {
        id: id(number),
        name: format!("cluster-{number}"),
        endpoint: "https://10.0.0.1:6443".into(),
        contract: "v1.13".into(),
        talos_cluster: TalosClusterId::parse(&talos).expect("an identifier"),
        by: actor(1),
        epoch: epoch(),
    }
}

pub fn endpoint(number: u8) -> Endpoint {
    Endpoint::parse(&format!("10.0.0.{number}:50000")).expect("an endpoint")
}

pub fn machine(number: u8, uuid: u8) -> NewMachine {
    let uuid = format!("00000000-0000-0000-0000-0000000000{uuid:02x}");
    NewMachine {
        id: id(number),
        cluster: id(1),
        key: IdentityKey::SmbiosUuid(SmbiosUuid::parse(&uuid).expect("a UUID")),
        serial: None,
        platform: Platform::Metal,
        endpoint: endpoint(number),
        scope: ScopeState::Normal,
        by: actor(1),
        epoch: epoch(),
    }
}

pub fn token_of(number: u8) -> EtagToken {
    EtagToken::from_bits(u128::from(number))
}

pub fn draft(number: u8, by: u8) -> NewDraft {
    NewDraft {
        id: id(number),
        cluster: id(1),
        title: format!("draft {number}"),
        etag: Etag::new(Revision::FIRST, token_of(number)),
        by: actor(by),
        epoch: epoch(),
    }
}

pub fn claim(number: u8, of: u8, under: u8) -> NewClaim {
    NewClaim {
        id: id(number),
        kind: ClaimKind::DraftUpdate,
        mode: StagingMode::Transient,
        source: ClaimSource::Document,
        review: None,
        cluster: id(1),
        draft: id(of),
        machine: None,
        drift: None,
        by: actor(1).into(),
        key: Some(key(under)),
        fence: fence(1),
        lease_until: FUTURE,
        expires_at: FUTURE,
        created_at: PAST,
    }
}

pub fn job(number: u8, of: u8, revision: i64) -> NewJob {
    NewJob {
        id: id(number),
        cluster: id(1),
        bound: BoundDraft {
            draft: id(of),
            revision: Revision(revision),
        },
        work: NewWork::Publish,
        by: actor(1).into(),
        epoch: epoch(),
    }
}

/// A plan's operation, of the plan's machine: plans 1 and 11 are of machine 1.
pub fn commitment(number: u8, plan: u8, cluster: u8) -> Common {
    Common {
        id: id(number),
        plan: id(plan),
        machine: id(plan % 10),
        cluster: id(cluster),
        fence: fence(1),
        lease_until: FUTURE,
        attempts: Vec::new(),
        since: TimelineRevision(1),
        created_at: PAST,
    }
}

pub fn observation(machine: u8) -> Observation {
    Observation {
        started: Started {
            id: id(machine),
            machine: id(machine),
            purpose: Purpose::Drift,
            basis: TimelineRevision(1),
            started_at: PAST,
            endpoint: endpoint(machine),
            controller: Controller {
                owner: fence(1).owner,
                generation: None,
                epoch: epoch(),
            },
            plan: None,
            operation: None,
            publication_generation: None,
            assignment: None,
            baseline: None,
        },
        revision: TimelineRevision(2),
        at: PAST,
        values: Values::none(Unread::Refused),
    }
}

pub fn drift(machine: u8, revision: i64) -> OpenDrift {
    OpenDrift {
        machine: id(machine),
        revision: TimelineRevision(revision),
        applied_digest: ConfigDigest::from_bytes([1; 32]),
        observed_digest: ConfigDigest::from_bytes([2; 32]),
        observation: id(machine),
        last_observation: id(machine),
        late_landing: None,
    }
}

pub fn token(number: u8, owner: u8) -> Token {
    Token {
        id: id(number),
        owner: id(owner),
        digest: TokenDigest::from_bytes([number; 32]),
        roles: Roles::from([Role::Author]),
        expires_at: PAST + Span::seconds(60),
        epoch: epoch(),
        revoked_at: None,
    }
}

pub fn authorship() -> Authorship {
    Authorship {
        cluster: id(1),
        draft: id(1),
        by: actor(1).into(),
        epoch: epoch(),
        at: PAST,
    }
}

pub fn name(number: u8) -> Name {
    Name::parse(&format!("profile-{number}")).expect("a name")
}

/// A profile that pins nothing.
pub fn profile(number: u8) -> NewProfile {
    NewProfile {
        id: id(number),
        name: name(number),
        content: ProfileContent {
            fragments: Vec::new(),
        },
        written: authorship(),
    }
}

pub fn head(number: u8) -> HeadId {
    HeadId::Profile(id(number))
}

pub fn new_head(number: u8, named: u8) -> NewHead {
    NewHead {
        id: head(number),
        cluster: id(1),
        kind: HeadKind::Profile,
        subject: name(named).as_str().to_owned(),
        layer: None,
        revision: SourceRevisionId::Profile(id(1)),
        etag: Etag::new(Revision::FIRST, token_of(number)),
    }
}

pub fn plan_state(number: u8) -> PlanStateRow {
    PlanStateRow {
        plan: id(number),
        state: "proposed".into(),
        reason: None,
        approval: None,
        operation: None,
        revision: Revision::FIRST,
    }
}

pub fn act(number: u8) -> ActEntry {
    ActEntry {
        id: id(number),
        actor: actor(1),
        action: Action::DRAFT_CREATED,
        subjects: Vec::new(),
        key: Some(key(number)),
        request: Some(id(number)),
        epoch: epoch(),
    }
}

pub fn record(act: u8) -> IdempotencyRecord {
    IdempotencyRecord {
        fingerprint: Fingerprint {
            digest: [act; 32],
            key: None,
        },
        method: "POST".into(),
        route: "/drafts".into(),
        epoch: epoch(),
        request: id(act),
        act: id(act),
        status: 201,
        location: None,
        etag: None,
        body: "{}".into(),
        operation: None,
    }
}

pub fn entry(kind: &'static str, act: Option<u8>) -> NewEntry {
    NewEntry {
        kind,
        operation: None,
        plan: None,
        actor: Some(actor(1).into()),
        controller: None,
        epoch: epoch(),
        act: act.map(id),
        at: PAST,
        data: Member::object([]),
    }
}

pub fn seed(number: u8, version: i64) -> Seed {
    Seed {
        id: id(number),
        kv: true,
        dependency: Dependency {
            object: "gen/one".into(),
            version,
            created: "2020-01-01T00:00:00Z".into(),
        },
        classification: Classification {
            class: Class::Retained,
            reason: None,
            scheduled: None,
        },
        classified_from: PAST,
    }
}

/// Three of each: humans, machines with an observation, drafts, claims under keys 1 to 3,
/// publications of the drafts; a service identity (4) with a token; two clusters.
pub async fn furnish<T: StoreTx>(tx: &mut T) -> Result<(), StoreError> {
    for number in 1..=STANDING {
        let subject = format!("human-{number}");
        tx.ensure_human(id(number), "https://issuer", &subject)
            .await?;
    }
    tx.insert_service(id(4), "service", id(1)).await?;
    tx.insert_token(&token(1, 4), PAST).await?;
    tx.insert_cluster(&cluster(1, 'A'), PAST).await?;
    tx.insert_cluster(&cluster(2, 'B'), PAST).await?;
    for number in 1..=STANDING {
        tx.insert_machine(&machine(number, number), PAST).await?;
        let observed = observation(number);
        tx.insert_observation_start(&observed.started).await?;
        tx.insert_observation(&observed).await?;
        tx.insert_draft(&draft(number, 1), PAST).await?;
        tx.insert_claim(&claim(number, number, number)).await?;
        tx.insert_job(&job(number, number, 1), PAST).await?;
        tx.insert_profile(&profile(number)).await?;
        tx.insert_head(&new_head(number, number), PAST).await?;
    }
    Ok(())
}

/// Bare plans, one a machine, for PostgreSQL: a superuser's session, no foreign key checked.
pub fn plans() -> String {
    let mut sql = String::from("SET session_replication_role = replica;");
    for number in 1..=STANDING {
        for (plan, machine) in [(number, number), (number + 10, number)] {
            sql += &format!(
                "INSERT INTO plan (id, cluster_id, machine_id, release_id, operation,
                     configuration_digest, contract, machinery_version, machinery_checksum,
                     kubernetes_version, key_name, key_version, key_created, smbios_uuid,
                     talos_cluster_id, import_base_revision_id, route, max_observation_age_s,
                     check_validity_s, evidence, timeline_revision, principal_id, role, epoch,
                     act_id, created_at, expires_at)
                 VALUES ('{plan}', '{cluster}', '{machine}', '{release}', 'adopt',
                     sha256(''), 'v1.13', 'v', 'c', 'k', 'key', 1, 't', 'u', 't', '{base}', 'r',
                     60, 60, '{{}}', 1, '{who}', 'author', '{epoch}', '{act}', now(),
                     now() + interval '1 hour');
                 INSERT INTO plan_state (plan_id, state) VALUES ('{plan}', 'proposed');",
                plan = PlanId::from_bits(u128::from(plan)),
                cluster = ClusterId::from_bits(1),
                machine = MachineId::from_bits(u128::from(machine)),
                release = ReleaseId::from_bits(1),
                base = ImportBaseRevisionId::from_bits(1),
                who = PrincipalId::from_bits(1),
                epoch = epoch(),
                act = ActId::from_bits(1),
            );
        }
    }
    sql
}
