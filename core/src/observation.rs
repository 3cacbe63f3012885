//! Observations: what was read from a node, when the read began, and what could not
//! be read (EaR 4.1, PA §6.1.1).
//!
//! What we want, what we last saw and what we do not know are three types: an
//! observation never fills an unread value with an older one. Never in this module:
//! text a node or a client sent. A cause is one of our own words.

use crate::digest::ConfigDigest;
use crate::fence::Generation;
use crate::head::AssignmentAt;
use crate::id::{EpochId, MachineId, ObservationId, OperationId, PlanId};
use crate::inventory::{
    Endpoint, IdentityKey, MachineIdentity, SmbiosUuid, TalosClusterId, TalosNodeId,
};
use crate::principal::Controller;
use crate::release::Contract;
use crate::revision::{BaselineRevision, TimelineRevision};
use crate::rules::{Rule, Rules};
use crate::time::DbTime;

/// Why an observation was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    Publication,
    Evidence,
    Completion,
    Recovery,
    Drift,
    Restoration,
}

impl Purpose {
    pub const ALL: [Purpose; 6] = [
        Purpose::Publication,
        Purpose::Evidence,
        Purpose::Completion,
        Purpose::Recovery,
        Purpose::Drift,
        Purpose::Restoration,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Purpose::Publication => "publication",
            Purpose::Evidence => "evidence",
            Purpose::Completion => "completion",
            Purpose::Recovery => "recovery",
            Purpose::Drift => "drift",
            Purpose::Restoration => "restoration",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.as_str() == text)
    }
}

/// Why a value was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// This purpose does not ask for it.
    NotAsked,
    /// The cluster's access, or the endpoint, did not admit a read (PA §3.3).
    TalosAccessUnavailable,
    /// The node answered this one read with an error.
    Refused,
    /// The answer was not of its form.
    Malformed,
    /// The node has no such resource.
    Absent,
    /// The observation ended before its turn.
    Interrupted,
}

impl Unread {
    pub const ALL: [Unread; 6] = [
        Unread::NotAsked,
        Unread::TalosAccessUnavailable,
        Unread::Refused,
        Unread::Malformed,
        Unread::Absent,
        Unread::Interrupted,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Unread::NotAsked => "not-asked",
            Unread::TalosAccessUnavailable => "talos-access-unavailable",
            Unread::Refused => "refused",
            Unread::Malformed => "malformed",
            Unread::Absent => "absent",
            Unread::Interrupted => "interrupted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == text)
    }
}

/// A value as it was read, or why it was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read<T> {
    Value(T),
    Unread(Unread),
}

impl<T> Read<T> {
    pub const fn value(&self) -> Option<&T> {
        match self {
            Read::Value(value) => Some(value),
            Read::Unread(_) => None,
        }
    }

    pub const fn cause(&self) -> Option<Unread> {
        match self {
            Read::Value(_) => None,
            Read::Unread(cause) => Some(*cause),
        }
    }
}

/// The version of a cluster's Talos access that was read: never its value (PA §3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessVersion {
    pub path: String,
    pub version: i64,
    /// The provider's own text; a rewritten path gives the number again, not this.
    pub created: String,
}

impl AccessVersion {
    /// Whether both are one version: a path whose metadata was written anew gives out its
    /// version numbers again.
    pub fn is<R: Rules>(&self, rules: &R, other: &Self) -> bool {
        self.version == other.version && rules.holds(Rule::AccessVersionIdentity, self == other)
    }
}

/// Who a node says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// None for a node that reports no such resource.
    pub smbios_uuid: Option<SmbiosUuid>,
    pub node_id: TalosNodeId,
    pub talos_cluster: TalosClusterId,
}

/// How a node's identity differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdentityMismatch {
    SmbiosUuidDiffers,
    SmbiosUuidAbsent,
    /// A machine recorded by node ID reports a UUID.
    SmbiosUuidReported,
    NodeIdDiffers,
    TalosClusterDiffers,
}

impl NodeIdentity {
    /// Compares with the recorded identity (PA §3.3, §7.3): by the recorded key alone, and
    /// always by the Talos cluster.
    pub fn mismatch(&self, recorded: &MachineIdentity) -> Option<IdentityMismatch> {
        let by_key = match (&recorded.key, &self.smbios_uuid) {
            (IdentityKey::SmbiosUuid(_), None) => Some(IdentityMismatch::SmbiosUuidAbsent),
            (IdentityKey::SmbiosUuid(uuid), Some(seen)) => {
                (uuid != seen).then_some(IdentityMismatch::SmbiosUuidDiffers)
            }
            (IdentityKey::TalosNodeId(_), Some(_)) => Some(IdentityMismatch::SmbiosUuidReported),
            (IdentityKey::TalosNodeId(node), None) => {
                (*node != self.node_id).then_some(IdentityMismatch::NodeIdDiffers)
            }
        };
        by_key.or_else(|| {
            (self.talos_cluster != recorded.talos_cluster)
                .then_some(IdentityMismatch::TalosClusterDiffers)
        })
    }
}

/// The configuration a node runs: its digest and the resource it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationRead {
    pub digest: ConfigDigest,
    /// Starts at 1 again when the node reboots.
    pub resource_version: String,
    pub resource_created: String,
}

/// A node's MachineStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Stage `running`.
    pub running: bool,
    pub ready: bool,
}

impl Health {
    /// The bound health of apply-config (EaR 4).
    pub const fn is_bound(self) -> bool {
        self.running && self.ready
    }
}

/// A Talos version as a node prints it, with its minor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningVersion {
    pub text: String,
    pub contract: Contract,
}

impl RunningVersion {
    pub fn parse(text: &str) -> Option<Self> {
        Contract::of_version(text).map(|contract| Self {
            text: text.to_owned(),
            contract,
        })
    }
}

/// What an observation is made for, fixed by its *started* entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub id: ObservationId,
    pub machine: MachineId,
    pub purpose: Purpose,
    /// The revision of the *started* entry, recorded before the remote read.
    pub basis: TimelineRevision,
    pub started_at: DbTime,
    /// The endpoint it dialled.
    pub endpoint: Endpoint,
    pub controller: Controller,
    pub plan: Option<PlanId>,
    pub operation: Option<OperationId>,
    /// A publish job's owner generation.
    pub publication_generation: Option<Generation>,
    /// The machine's assignment head when the read began.
    pub assignment: Option<AssignmentAt>,
    /// The machine's baseline revision when the read began.
    pub baseline: Option<BaselineRevision>,
}

/// What the node answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    pub access: Read<AccessVersion>,
    pub identity: Read<NodeIdentity>,
    pub running_version: Read<RunningVersion>,
    pub configuration: Read<ConfigurationRead>,
    pub health: Read<Health>,
}

impl Values {
    /// An observation whose access read failed holds none of the node's values.
    pub fn none(cause: Unread) -> Self {
        Self {
            access: Read::Unread(cause),
            identity: Read::Unread(cause),
            running_version: Read::Unread(cause),
            configuration: Read::Unread(cause),
            health: Read::Unread(cause),
        }
    }
}

/// A recorded observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub started: Started,
    /// The revision of its own entry, and when it was recorded.
    pub revision: TimelineRevision,
    pub at: DbTime,
    pub values: Values,
}

impl Observation {
    /// Where it stands among observations: the revision of its *started* entry, so a read
    /// counts as of its beginning (EaR 4.1).
    pub fn basis<R: Rules>(&self, rules: &R) -> TimelineRevision {
        if rules.enforced(Rule::BasisIsReadStart) {
            self.started.basis
        } else {
            self.revision
        }
    }

    /// Whether its read began after an entry.
    pub fn began_after<R: Rules>(&self, rules: &R, revision: TimelineRevision) -> bool {
        self.basis(rules) > revision
    }

    pub const fn digest(&self) -> Option<ConfigDigest> {
        match &self.values.configuration {
            Read::Value(read) => Some(read.digest),
            Read::Unread(_) => None,
        }
    }

    /// The identity mismatch it shows: none for a match, an error where it read none.
    pub fn identity_mismatch(
        &self,
        recorded: &MachineIdentity,
    ) -> Result<Option<IdentityMismatch>, Unread> {
        match &self.values.identity {
            Read::Value(seen) => Ok(seen.mismatch(recorded)),
            Read::Unread(cause) => Err(*cause),
        }
    }
}

/// What a machine must show for a statement about it to stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postconditions {
    pub identity: MachineIdentity,
    pub assignment: Option<AssignmentAt>,
    pub digest: ConfigDigest,
}

impl Postconditions {
    /// Whether a value that `other` did read differs. An unread value says nothing.
    pub fn differs_from(&self, other: &Observation) -> bool {
        let identity = other
            .values
            .identity
            .value()
            .is_some_and(|seen| seen.mismatch(&self.identity).is_some());
        let digest = other.digest().is_some_and(|digest| digest != self.digest);
        identity || digest || other.started.assignment != self.assignment
    }

    /// Whether a recorded observation with a higher basis than `chosen` says otherwise.
    pub fn contradicted<R: Rules>(
        &self,
        rules: &R,
        chosen: &Observation,
        recorded: &[Observation],
    ) -> bool {
        recorded.iter().any(|other| {
            other.started.machine == chosen.started.machine
                && other.basis(rules) > chosen.basis(rules)
                && self.differs_from(other)
        })
    }
}

/// Why a publication does not go on with a machine's reading (PA §6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicationRefusal {
    /// 422 `validation-failed`, rule `publication-identity`.
    Identity(IdentityMismatch),
    /// 422 `validation-failed`, rule `publication-version`.
    Version { seen: Contract },
    /// 503 `dependency-unavailable`, rule `publication-evidence`.
    Unread(Unread),
}

impl PublicationRefusal {
    pub const fn rule(self) -> &'static str {
        match self {
            PublicationRefusal::Identity(_) => "publication-identity",
            PublicationRefusal::Version { .. } => "publication-version",
            PublicationRefusal::Unread(_) => "publication-evidence",
        }
    }
}

/// Judges a machine's reading before anything is compiled: identity and running minor
/// must be known and right. Configuration and health are not asked for.
pub fn publication_reading<R: Rules>(
    rules: &R,
    recorded: &MachineIdentity,
    contract: Contract,
    values: &Values,
) -> Result<(), PublicationRefusal> {
    // A known mismatch is told before an unread value: it cannot become right by a
    // second look.
    if let Some(seen) = values.identity.value()
        && let Some(mismatch) = seen.mismatch(recorded)
        && !rules.holds(Rule::PublicationIdentity, false)
    {
        return Err(PublicationRefusal::Identity(mismatch));
    }
    if let Some(running) = values.running_version.value()
        && !rules.holds(Rule::PublicationVersion, running.contract == contract)
    {
        return Err(PublicationRefusal::Version {
            seen: running.contract,
        });
    }
    let unread = [
        (values.access.cause(), Rule::PublicationEvidenceOwn),
        (values.identity.cause(), Rule::PublicationIdentity),
        (values.running_version.cause(), Rule::PublicationVersion),
    ];
    for (cause, rule) in unread {
        if let Some(cause) = cause
            && !rules.holds(rule, false)
        {
            return Err(PublicationRefusal::Unread(cause));
        }
    }
    Ok(())
}

/// The job a publication's evidence must belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationContext<'a> {
    pub machine: MachineId,
    pub operation: OperationId,
    pub controller: &'a Controller,
    pub epoch: EpochId,
    pub generation: Generation,
    pub identity: &'a MachineIdentity,
    pub contract: Contract,
    pub access_path: &'a str,
    /// The machine's endpoint now, and the revision of its latest change.
    pub endpoint: Endpoint,
    pub endpoint_changed: Option<TimelineRevision>,
}

/// Whether a publication's chosen observation still carries it at its commit; all that
/// fails here is `stale-input` naming the machine (PA §6.1.1). `recorded` holds the
/// machine's observations recorded until then.
pub fn publication_evidence<R: Rules>(
    rules: &R,
    context: &PublicationContext<'_>,
    chosen: &Observation,
    recorded: &[Observation],
) -> bool {
    let started = &chosen.started;
    let own = started.machine == context.machine
        && started.purpose == Purpose::Publication
        && started.operation == Some(context.operation)
        && started.publication_generation == Some(context.generation)
        && started.controller.owner == context.controller.owner
        && started.controller.epoch == context.epoch
        && chosen
            .values
            .access
            .value()
            .is_some_and(|access| access.path == context.access_path);
    let kept = started.endpoint == context.endpoint
        && context
            .endpoint_changed
            .is_none_or(|changed| changed < started.basis);
    let good = |values: &Values| {
        publication_reading(rules, context.identity, context.contract, values).is_ok()
    };
    let contradicted = recorded.iter().any(|other| {
        other.started.machine == context.machine
            && other.basis(rules) > chosen.basis(rules)
            && !good(&other.values)
    });
    rules.holds(Rule::PublicationEvidenceOwn, own)
        && rules.holds(Rule::PublicationEndpoint, kept)
        && good(&chosen.values)
        && rules.holds(Rule::PublicationNotContradicted, !contradicted)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fence::Owner;
    use crate::rules::{Enforced, Without};

    pub(crate) fn identity() -> MachineIdentity {
        MachineIdentity {
            key: IdentityKey::TalosNodeId(TalosNodeId::parse("node-a").unwrap()),
            talos_cluster: talos_cluster(1),
        }
    }

    pub(crate) fn talos_cluster(byte: u8) -> TalosClusterId {
        TalosClusterId::parse(&data_encoding::BASE64URL.encode(&[byte; 32])).unwrap()
    }

    pub(crate) fn seen(node: &str) -> NodeIdentity {
        NodeIdentity {
            smbios_uuid: None,
            node_id: TalosNodeId::parse(node).unwrap(),
            talos_cluster: talos_cluster(1),
        }
    }

    pub(crate) fn endpoint() -> Endpoint {
        Endpoint::parse("10.55.0.3").unwrap()
    }

    pub(crate) fn access(version: i64) -> AccessVersion {
        AccessVersion {
            path: "secret/data/access/talos/cl".into(),
            version,
            created: format!("2026-09-26T09:14:0{version}Z"),
        }
    }

    pub(crate) fn controller() -> Controller {
        Controller {
            owner: Owner::new("a", 1, 1).unwrap(),
            generation: None,
            epoch: EpochId::from_bits(1),
        }
    }

    /// A complete reading of `configuration`, begun at `basis`.
    pub(crate) fn observation(purpose: Purpose, basis: i64, configuration: &[u8]) -> Observation {
        Observation {
            started: Started {
                id: ObservationId::from_bits(basis as u128),
                machine: MachineId::from_bits(1),
                purpose,
                basis: TimelineRevision(basis),
                started_at: DbTime::from_seconds(basis),
                endpoint: endpoint(),
                controller: controller(),
                plan: None,
                operation: None,
                publication_generation: None,
                assignment: None,
                baseline: Some(BaselineRevision(1)),
            },
            revision: TimelineRevision(basis + 1),
            at: DbTime::from_seconds(basis + 1),
            values: Values {
                access: Read::Value(access(1)),
                identity: Read::Value(seen("node-a")),
                running_version: Read::Value(RunningVersion::parse("v1.13.6").unwrap()),
                configuration: Read::Value(ConfigurationRead {
                    digest: ConfigDigest::of(configuration),
                    resource_version: "1".into(),
                    resource_created: "2026-09-26T09:00:00Z".into(),
                }),
                health: Read::Value(Health {
                    running: true,
                    ready: true,
                }),
            },
        }
    }

    fn contract() -> Contract {
        Contract {
            major: 1,
            minor: 13,
        }
    }

    #[test]
    fn a_node_is_compared_by_its_recorded_key_and_its_cluster() {
        let uuid = SmbiosUuid::parse("12345678-abcd-ef01-2345-6789abcdef01").unwrap();
        let other = SmbiosUuid::parse("12345678-abcd-ef01-2345-6789abcdef02").unwrap();
        let by_uuid = MachineIdentity {
            key: IdentityKey::SmbiosUuid(uuid.clone()),
            ..identity()
        };
        let with = |smbios_uuid, node| NodeIdentity {
            smbios_uuid,
            ..seen(node)
        };
        assert_eq!(with(Some(uuid.clone()), "any").mismatch(&by_uuid), None);
        assert_eq!(
            with(Some(other), "node-a").mismatch(&by_uuid),
            Some(IdentityMismatch::SmbiosUuidDiffers)
        );
        assert_eq!(
            with(None, "node-a").mismatch(&by_uuid),
            Some(IdentityMismatch::SmbiosUuidAbsent)
        );
        assert_eq!(with(None, "node-a").mismatch(&identity()), None);
        assert_eq!(
            with(None, "node-b").mismatch(&identity()),
            Some(IdentityMismatch::NodeIdDiffers)
        );
        assert_eq!(
            with(Some(uuid), "node-a").mismatch(&identity()),
            Some(IdentityMismatch::SmbiosUuidReported)
        );
        let elsewhere = NodeIdentity {
            talos_cluster: talos_cluster(2),
            ..seen("node-a")
        };
        assert_eq!(
            elsewhere.mismatch(&identity()),
            Some(IdentityMismatch::TalosClusterDiffers)
        );
    }

    #[test]
    fn a_contradiction_needs_a_higher_basis_and_a_value_that_was_read() {
        let bound = Postconditions {
            identity: identity(),
            assignment: None,
            digest: ConfigDigest::of(b"a"),
        };
        let chosen = observation(Purpose::Completion, 10, b"a");
        let contradicted = |other| bound.contradicted(&Enforced, &chosen, &[other]);
        assert!(contradicted(observation(Purpose::Drift, 11, b"b")));
        assert!(!contradicted(observation(Purpose::Drift, 9, b"b")));
        assert!(!contradicted(observation(Purpose::Drift, 11, b"a")));
        let mut unread = observation(Purpose::Drift, 11, b"b");
        unread.values = Values::none(Unread::TalosAccessUnavailable);
        assert!(!contradicted(unread));
    }

    // covers-part: EaR-OBS-1 (a read begun earlier and recorded later does not count)
    #[test]
    fn a_read_that_began_earlier_and_was_recorded_later_is_the_earlier_one() {
        let mut slow = observation(Purpose::Drift, 9, b"b");
        slow.revision = TimelineRevision(20);
        let chosen = observation(Purpose::Completion, 10, b"a");
        let bound = Postconditions {
            identity: identity(),
            assignment: None,
            digest: ConfigDigest::of(b"a"),
        };
        let recorded = [slow];
        assert!(!bound.contradicted(&Enforced, &chosen, &recorded));
        let control = Without(&[Rule::BasisIsReadStart]);
        assert!(bound.contradicted(&control, &chosen, &recorded));
    }

    #[test]
    fn a_publication_tells_a_mismatch_from_a_value_it_could_not_read() {
        let judge =
            |values: &Values| publication_reading(&Enforced, &identity(), contract(), values);
        let good = observation(Purpose::Publication, 1, b"a").values;
        assert_eq!(judge(&good), Ok(()));
        let stranger = Values {
            identity: Read::Value(seen("node-b")),
            running_version: Read::Unread(Unread::Refused),
            ..good.clone()
        };
        assert_eq!(
            judge(&stranger).map_err(PublicationRefusal::rule),
            Err("publication-identity")
        );
        let newer = Values {
            running_version: Read::Value(RunningVersion::parse("v1.14.0").unwrap()),
            ..good.clone()
        };
        assert_eq!(
            judge(&newer).map_err(PublicationRefusal::rule),
            Err("publication-version")
        );
        assert_eq!(
            judge(&Values::none(Unread::TalosAccessUnavailable)),
            Err(PublicationRefusal::Unread(Unread::TalosAccessUnavailable))
        );
        let blind = Values {
            configuration: Read::Unread(Unread::NotAsked),
            health: Read::Unread(Unread::NotAsked),
            ..good
        };
        assert_eq!(judge(&blind), Ok(()));
    }

    #[test]
    fn a_publications_evidence_is_its_own_and_still_stands_at_the_commit() {
        let controller = controller();
        let recorded_identity = identity();
        let context = PublicationContext {
            machine: MachineId::from_bits(1),
            operation: OperationId::from_bits(1),
            controller: &controller,
            epoch: EpochId::from_bits(1),
            generation: Generation(2),
            identity: &recorded_identity,
            contract: contract(),
            access_path: "secret/data/access/talos/cl",
            endpoint: endpoint(),
            endpoint_changed: Some(TimelineRevision(3)),
        };
        let mut chosen = observation(Purpose::Publication, 5, b"a");
        chosen.started.operation = Some(OperationId::from_bits(1));
        chosen.started.publication_generation = Some(Generation(2));
        assert!(publication_evidence(&Enforced, &context, &chosen, &[]));
        let mut foreign = chosen.clone();
        foreign.started.publication_generation = Some(Generation(1));
        let mut later = observation(Purpose::Drift, 6, b"a");
        later.values = Values::none(Unread::TalosAccessUnavailable);
        let mut agreeing = observation(Purpose::Drift, 6, b"other");
        agreeing.started.id = ObservationId::from_bits(99);
        let moved_back = PublicationContext {
            endpoint_changed: Some(TimelineRevision(8)),
            ..context.clone()
        };
        assert!(publication_evidence(
            &Enforced,
            &context,
            &chosen,
            &[agreeing]
        ));
        for (context, chosen, recorded, rule) in [
            (&context, &foreign, vec![], Rule::PublicationEvidenceOwn),
            (&moved_back, &chosen, vec![], Rule::PublicationEndpoint),
            (
                &context,
                &chosen,
                vec![later],
                Rule::PublicationNotContradicted,
            ),
        ] {
            assert!(!publication_evidence(&Enforced, context, chosen, &recorded));
            let rules: &'static [Rule] = vec![rule].leak();
            assert!(publication_evidence(
                &Without(rules),
                context,
                chosen,
                &recorded
            ));
        }
    }
}
