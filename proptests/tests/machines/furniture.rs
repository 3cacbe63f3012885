//! Values that a decision needs and no property is about.

use std::collections::BTreeMap;

use bronzeward_core::attempt::{Accounting, Attempt};
use bronzeward_core::comparison::{
    Admission, ArtifactCheck, Current, Evidence, Facts, NotAdmitted, Stage, Standing, UseTimeCheck,
    compare,
};
use bronzeward_core::digest::ConfigDigest;
use bronzeward_core::epoch::ProcessEpoch;
use bronzeward_core::fence::{Fence, Generation, Owner};
use bronzeward_core::id::{
    AttemptId, ClusterId, EpochId, MachineId, ObservationId, OperationId, PlanId, PrincipalId,
    ReleaseId,
};
use bronzeward_core::inventory::{
    Endpoint, IdentityKey, MachineIdentity, TalosClusterId, TalosNodeId,
};
use bronzeward_core::observation::{
    AccessVersion, ConfigurationRead, Health, NodeIdentity, Observation, Purpose, Read,
    RunningVersion, Started, Unread, Values,
};
use bronzeward_core::plan::{AnyPlan, Binding, Deadlines, PlanOperation};
use bronzeward_core::principal::{Controller, Role, Signed};
use bronzeward_core::release::{Contract, RendererRecord, TransitKey};
use bronzeward_core::revision::{BaselineRevision, TimelineRevision};
use bronzeward_core::rules::Rules;
use bronzeward_core::scope::{Scope, ScopeState};
use bronzeward_core::time::{DbTime, Span};

pub const ARTIFACT: &[u8] = b"after";
pub const BEFORE: &[u8] = b"before";

pub fn at(seconds: i64) -> DbTime {
    DbTime::from_seconds(seconds)
}

pub fn epoch(number: u128) -> EpochId {
    EpochId::from_bits(number)
}

pub fn owner(number: u128) -> Owner {
    Owner::new("host", 1, number).expect("an owner")
}

pub fn fence(number: u128, generation: i64, epoch: EpochId) -> Fence {
    Fence {
        owner: owner(number),
        generation: Generation(generation),
        epoch,
    }
}

pub fn signed(principal: u128, role: Role) -> Signed {
    Signed {
        principal: PrincipalId::from_bits(principal),
        role,
    }
}

fn talos_cluster() -> TalosClusterId {
    TalosClusterId::parse("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=").expect("an identity")
}

fn node() -> TalosNodeId {
    TalosNodeId::parse("node-a").expect("an identity")
}

pub fn route() -> Endpoint {
    Endpoint::parse("10.55.0.3").expect("an endpoint")
}

pub fn access() -> AccessVersion {
    AccessVersion {
        path: "secret/data/access".into(),
        version: 1,
        created: "2026-01-01T00:00:00Z".into(),
    }
}

pub const EXPIRY: i64 = 1_000;
pub const TRANSPORT: i64 = 60;
pub const VERIFICATION: i64 = 200;
pub const MAX_ATTEMPTS: usize = 2;

/// An apply-config plan from `BEFORE` to `ARTIFACT`, made at 0 and expiring at `EXPIRY`.
pub fn binding() -> Binding {
    Binding {
        id: PlanId::from_bits(1),
        cluster: ClusterId::from_bits(1),
        machine: MachineId::from_bits(1),
        release: ReleaseId::from_bits(1),
        operation: PlanOperation::ApplyConfig(Deadlines {
            transport: Span::seconds(TRANSPORT),
            verification: Span::seconds(VERIFICATION),
            max_attempts: MAX_ATTEMPTS as u8,
        }),
        artifact_digest: ConfigDigest::of(ARTIFACT),
        renderer: RendererRecord {
            contract: Contract {
                major: 1,
                minor: 13,
            },
            machinery_version: "v1.13.6".into(),
            machinery_checksum: "h1:x".into(),
            kubernetes_version: "v1.36.0".into(),
        },
        key: TransitKey {
            name: "artifacts".into(),
            version: 1,
            created: 1,
        },
        identity: MachineIdentity {
            key: IdentityKey::TalosNodeId(node()),
            talos_cluster: talos_cluster(),
        },
        assignment: None,
        assignment_revision: None,
        baseline: Some(BaselineRevision(1)),
        desired: Some(ReleaseId::from_bits(1)),
        applied_release: Some(ReleaseId::from_bits(9)),
        pre_dispatch_digest: ConfigDigest::of(BEFORE),
        drift: None,
        route: route(),
        max_observation_age: Span::seconds(300),
        check_validity: Span::seconds(300),
        created_by: signed(9, Role::Publisher),
        epoch: epoch(1),
        timeline_revision: TimelineRevision(1),
        created_at: at(0),
        expires_at: at(EXPIRY),
    }
}

/// A reading that began at `basis`, at that second; none where nothing was read.
pub fn observation(
    purpose: Purpose,
    basis: i64,
    started_at: i64,
    configuration: Option<&[u8]>,
    health: Option<bool>,
) -> Observation {
    let configuration = configuration.map(|bytes| ConfigurationRead {
        digest: ConfigDigest::of(bytes),
        resource_version: "1".into(),
        resource_created: "2026-01-01T00:00:00Z".into(),
    });
    let health = health.map(|well| Health {
        running: true,
        ready: well,
    });
    Observation {
        started: Started {
            id: ObservationId::from_bits(basis.unsigned_abs().into()),
            machine: MachineId::from_bits(1),
            purpose,
            basis: TimelineRevision(basis),
            started_at: at(started_at),
            endpoint: route(),
            controller: controller(epoch(1)),
            plan: None,
            operation: None,
            publication_generation: None,
            assignment: None,
            baseline: Some(BaselineRevision(1)),
        },
        revision: TimelineRevision(basis + 1),
        at: at(started_at),
        values: Values {
            access: Read::Value(access()),
            identity: Read::Value(NodeIdentity {
                smbios_uuid: None,
                node_id: node(),
                talos_cluster: talos_cluster(),
            }),
            running_version: Read::Value(RunningVersion::parse("v1.13.6").expect("a version")),
            configuration: configuration.map_or(Read::Unread(Unread::Refused), Read::Value),
            health: health.map_or(Read::Unread(Unread::Refused), Read::Value),
        },
    }
}

pub fn controller(epoch: EpochId) -> Controller {
    Controller {
        owner: owner(1),
        generation: None,
        epoch,
    }
}

/// What a commitment or an attempt is asked about; all else is as it should be.
pub struct Asked<'a> {
    pub plan: &'a AnyPlan,
    pub approval_revoked: bool,
    pub approver_revoked: bool,
    pub now: i64,
    pub epoch: EpochId,
    pub scope: &'a Scope,
    /// What the node shows.
    pub shows: &'a [u8],
    pub stage: Stage<'a>,
}

/// Asks the comparisons of EaR 3 on evidence gathered just now, newer than everything.
pub fn admitted<R: Rules>(rules: &R, asked: &Asked<'_>) -> Result<Admission, NotAdmitted> {
    let controller = controller(asked.epoch);
    let mut reading = observation(
        Purpose::Evidence,
        i64::MAX - 1,
        asked.now,
        Some(asked.shows),
        Some(true),
    );
    reading.started.plan = Some(asked.plan.binding().id);
    reading.started.controller = controller.clone();
    let check = UseTimeCheck {
        plan: asked.plan.binding().id,
        controller: controller.clone(),
        revision: TimelineRevision(i64::MAX),
        at: at(asked.now),
        access: Read::Value(access()),
        artifact: ArtifactCheck::Matches,
    };
    let facts = Facts {
        binding: asked.plan.binding(),
        now: at(asked.now),
        epoch: asked.epoch,
        recovery_mode: false,
        process: ProcessEpoch(asked.epoch),
        controller: &controller,
        standing: Standing {
            plan: asked.plan,
            approval_revoked: asked.approval_revoked,
            approver_revoked: asked.approver_revoked,
        },
        current: Current {
            assignment: None,
            desired: Some(ReleaseId::from_bits(1)),
            baseline: Some(BaselineRevision(1)),
        },
        evidence: Some(Evidence {
            observation: &reading,
            check: &check,
            access_used: &access(),
            recorded: &[],
        }),
        scope: asked.scope,
        stage: asked.stage,
    };
    compare(rules, &facts)
}

pub fn normal_scope() -> Scope {
    Scope {
        machine: MachineId::from_bits(1),
        state: ScopeState::Normal,
        frozen: false,
        open_drift: None,
    }
}

pub fn attempt(number: usize, fence: Fence, revision: TimelineRevision, now: i64) -> Attempt {
    Attempt {
        id: AttemptId::from_bits(number as u128),
        operation: OperationId::from_bits(1),
        machine: MachineId::from_bits(1),
        number: number as u8,
        fence,
        route: route(),
        evidence: ObservationId::from_bits(1),
        access: access(),
        revision,
        at: at(now),
        transport_deadline: at(now + TRANSPORT),
        verification_deadline: at(now + VERIFICATION),
        response: None,
        accounting: None,
    }
}

/// A decision that a lost answer's request can no longer land.
pub fn accounting(revision: TimelineRevision, now: i64) -> Accounting {
    Accounting {
        by: signed(1, Role::RecoveryAdmin),
        start: ObservationId::from_bits(1),
        end: ObservationId::from_bits(2),
        facts: BTreeMap::new(),
        revision,
        at: at(now),
    }
}
