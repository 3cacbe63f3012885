//! Every safety rule of the product has a name here.
//!
//! Code asks `rules.holds(Rule::X, condition)` where it would otherwise test the
//! condition. Production names [`Enforced`], which answers the condition and cannot
//! be configured; tests and the model name a set that lets one rule go, and
//! something must then fail. A rule's comment says what goes wrong without it; a
//! rule that another one hides is listed with `masked by`, and its control drops
//! both. Never in this module: a decision.

/// What carries a rule out: where dropping it changes behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// A pure decision asks for it.
    Decision,
    /// A condition inside the statement that writes.
    Guard,
    /// A row or advisory lock, or its mode.
    Lock,
    /// The named object of the schema (index, trigger, check).
    Schema(&'static str),
    /// The types: shown by a test that must not compile, and its twin that does.
    Type,
}

/// Answers whether a named condition holds.
pub trait Rules: Copy + Send + Sync + 'static {
    fn holds(&self, rule: Rule, condition: bool) -> bool;

    /// Whether the rule is in force at all: a guard's condition or a lock of a dropped
    /// rule is left out, and this is how its builder knows.
    fn enforced(&self, rule: Rule) -> bool {
        !self.holds(rule, false)
    }
}

/// The only rules production knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enforced;

impl Rules for Enforced {
    fn holds(&self, _rule: Rule, condition: bool) -> bool {
        condition
    }
}

/// Writes the enum, its list and its table of carriers from one list, so that a rule
/// cannot be added to one and forgotten in another.
macro_rules! rules {
    ($($(#[$doc:meta])+ $name:ident: $carrier:expr $(, masked by $($mask:ident)+)?;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])+ $name,)+
        }

        impl Rule {
            /// Every rule, in the order of this file.
            pub const fn all() -> &'static [Rule] {
                &[$(Rule::$name,)+]
            }

            pub const fn carrier(self) -> Carrier {
                match self {
                    $(Rule::$name => $carrier,)+
                }
            }

            /// The rules that hide this one: a control drops them with it.
            pub const fn masked_by(self) -> &'static [Rule] {
                match self {
                    $(Rule::$name => &[$($(Rule::$mask,)+)?],)+
                }
            }

            pub const fn name(self) -> &'static str {
                match self {
                    $(Rule::$name => stringify!($name),)+
                }
            }
        }
    };
}

use Carrier::{Decision, Guard, Lock, Schema};

rules! {
    // ---- fences and epochs (PA §5.1, §12.1) ----

    /// Without it a superseded owner's write lands on the row of the new owner, where
    /// the generation happens to be equal (two starts of one instance).
    FenceOwner: Guard, masked by FenceGeneration;
    /// Without it an owner that was taken over, and took over again, is admitted with
    /// its first token.
    FenceGeneration: Guard, masked by FenceOwner;
    /// Without it a token issued before a recovery entry passes once the restored row
    /// reaches its generation again.
    FenceEpoch: Guard, masked by ProcessEpoch;
    /// Without it an owner whose lease lapsed extends it, or completes, although the
    /// next claim is due.
    LeaseLive: Guard;
    /// Without it a takeover that read an older generation replaces an owner it never
    /// saw.
    TakeoverGeneration: Guard;
    /// Without it a pass takes an operation from a live owner that is about to send.
    TakeoverLapsed: Guard;
    /// Without it a takeover moves a terminal operation back to `unresolved`.
    TakeoverState: Guard;
    /// Without it an owner works on a record whose state left its hands (paused,
    /// released, terminal).
    FenceState: Guard;
    /// Without it a process started before a recovery entry claims, takes over,
    /// commits or starts an ingestion after it.
    ProcessEpoch: Decision;
    /// Without it a job that another worker claimed meanwhile, or still runs, is claimed.
    JobEligible: Guard;
    /// Without it a deadline that passes while a statement waits for the row goes
    /// unseen.
    FencedRowLockedFirst: Lock;

    // ---- revisions and requests (PA §4, §7, §9) ----

    /// Without it one of two writers that read the same revision is lost.
    RevisionUnchanged: Guard;
    /// Without it an ETag given after a backup matches the revision number that the
    /// restored database issues again.
    EtagToken: Decision;
    /// Without it an edit that became stale during its ingestion is written over the
    /// newer one.
    SecondIfMatch: Decision, masked by RevisionUnchanged;
    /// Without it two requests with one key in flight both execute, and the second
    /// ends in a unique violation.
    IdempotencyKeyLock: Lock, masked by OneRecordPerKey;
    /// The index behind it.
    OneRecordPerKey: Schema("idempotency_record_pkey"), masked by IdempotencyKeyLock;
    /// Without it an answer stored in an earlier epoch is replayed, although what it
    /// describes was fenced.
    IdempotencyEpoch: Decision;
    /// Without it one key answers for two different requests.
    IdempotencyFingerprint: Decision;
    /// Without it a client that expects a lost epoch acts on a restored state.
    ExpectedEpoch: Decision;
    /// Without it a replay of an earlier recovery entry answers 201 with no epoch
    /// minted and no scope closed.
    EntryRecordOfThisStart: Decision;
    /// Without it acts become visible out of order, and a reader of `GET /acts` misses
    /// one for good.
    ActOrderLock: Lock;
    /// Without it a plan's expiry, a revocation's time or a claim's lease is the
    /// transaction's begin, before a lock wait.
    TimeAfterLastLock: Lock;

    // ---- locks of acts (PA §5) ----

    /// Without it a source used unchanged moves between snapshot and commit, and the
    /// release holds superseded text.
    UnchangedHeadsShared: Lock, masked by MachineStatesOfCluster;
    /// Without it two publications each hold a head the other waits for.
    HeadsInOnePass: Lock, masked by MachineStatesOfCluster;
    /// Without it a machine gains an import base while the release that should cover it
    /// commits.
    MachineStatesOfCluster: Lock, masked by PublicationMachinesShared;
    /// Without it a machine is readdressed while a release for its old address commits.
    PublicationMachinesShared: Lock, masked by MachineStatesOfCluster;
    /// Without it machine revisions repeat or commit out of order.
    MachineRowLock: Lock;
    /// Without it a machine inventoried during an identity revocation or an exit is
    /// missed by it.
    InstallationExclusive: Lock;
    /// Without it two rotations leave two valid tokens, or one survives a revocation.
    TokenPrincipalLock: Lock, masked by OneTokenPerIdentity;
    /// Without it a request waits for its own principal under the act-order lock, which a
    /// rotation of its token waits for.
    ActorHeld: Lock;
    /// Without it an approval is revoked between a commitment's look and its commit.
    ApprovalShared: Lock, masked by MachineRowLock PlanStateLock;
    /// Without it an approver is revoked between a commitment's look and its commit.
    ApproverShared: Lock, masked by MachineRowLock;
    /// Without it a publication changes the assignment between a commitment's look and
    /// its commit.
    AssignmentHeadShared: Lock, masked by MachineRowLock;
    /// Without it a plan's state moves between an act's look at it and its commit.
    PlanStateLock: Lock, masked by MachineRowLock RevisionUnchanged;
    /// Without it two commitments of one cluster both find the rollout free.
    RolloutLock: Lock, masked by OneHolderPerRollout;

    // ---- dispatch (EaR 3) ----

    /// Comparison 0. Without it a plan is carried out twice.
    NoOperationForPlan: Decision, masked by OneOperationPerPlan;
    /// The index behind comparison 0.
    OneOperationPerPlan: Schema("operation_plan_key"), masked by NoOperationForPlan;
    /// Comparison 1. Without it a plan that nobody stands behind any more is sent.
    PlanAuthorises: Decision;
    /// Without it a plan past its expiry is sent.
    PlanUnexpired: Decision;
    /// Without it a cancelled plan is sent.
    PlanNotCancelled: Decision;
    /// Without it a plan whose approval was revoked is sent.
    ApprovalNotRevoked: Decision;
    /// Without it a revoked identity's approval is acted upon.
    ApproverNotRevoked: Decision;
    /// Without it an approval given before a recovery entry authorises after it.
    ApprovalOfThisEpoch: Decision;
    /// Comparison 2. Without it bytes compiled for another assignment or baseline are
    /// applied.
    BindingUnchanged: Decision;
    /// Without it a plan made before an assignment change is carried out.
    AssignmentUnchanged: Decision;
    /// Without it a plan is carried out on a configuration other than the one it was
    /// compared with.
    BaselineUnchanged: Decision;
    /// Without it a release that is no longer selected is applied.
    DesiredUnchanged: Decision;
    /// Comparison 3. Without it the request goes to a node nobody has looked at.
    EvidenceHolds: Decision;
    /// Without it one plan's evidence admits another, or another controller's does.
    EvidenceIsOwn: Decision;
    /// Without it an old observation counts as fresh.
    EvidenceFresh: Decision;
    /// Without it an old decryption check counts as fresh.
    CheckValid: Decision;
    /// Without it the credential that was checked is not the one that is used.
    AccessVersionUsed: Decision;
    /// Without it a credential that was written anew passes for the one that was checked,
    /// where its version number is the same.
    AccessVersionIdentity: Decision;
    /// Without it the evidence is of another address than the one the request dials.
    RouteBound: Decision;
    /// Without it a changed endpoint changes where an approved plan is carried out.
    BoundRouteDialled: Decision, masked by RouteBound;
    /// Without it a publication after the commitment stops what was approved and committed.
    AttemptKeepsDesired: Decision;
    /// Without it a request reaches a node that is not the recorded machine.
    IdentityMatches: Decision;
    /// Without it a configuration is sent to a node of another Talos minor.
    RunningMinor: Decision;
    /// Without it a configuration that nobody compared is overwritten.
    PreDispatchDigest: Decision;
    /// Without it a newer reading that says otherwise is passed over.
    NotContradicted: Decision;
    /// Comparison 4. Without it two requests for one machine are under way.
    ScopeFree: Decision, masked by OneHolderPerScope;
    /// The index behind comparison 4.
    OneHolderPerScope: Schema("operation_scope_holder"), masked by ScopeFree;
    /// Comparison 5. Without it more machines of a cluster change at once than the
    /// rollout limit allows.
    RolloutFree: Decision, masked by OneHolderPerRollout;
    /// The index behind comparison 5.
    OneHolderPerRollout: Schema("operation_rollout_holder"), masked by RolloutFree;
    /// Comparison 6. Without it a request passes a closed gate.
    GateOpen: Decision;
    /// Without it a freeze stops nothing.
    NotFrozen: Decision;
    /// Without it a drifted configuration is overwritten by a plan that never saw it.
    DriftBound: Decision;
    /// Without it a revert is sent after its drift ended.
    BoundDriftOpen: Decision;
    /// Without it a request passes in recovery mode on a scope whose lost attempts may
    /// still land.
    ScopeReleased: Decision;
    /// Comparison 7. Without it a superseded owner records an attempt and sends.
    AttemptByOwner: Guard;
    /// Without it an operation whose last request is unanswered sends another.
    SafeToRetryRecorded: Decision;
    /// Comparison 8. Without it a late acceptance recorded after the classification is
    /// passed over.
    NothingSinceClassified: Decision;
    /// Comparison 9. Without it a machine is asked without end.
    AttemptsLeft: Decision;
    /// Without it a first attempt after a takeover takes an artifact it never sent as
    /// its own work.
    ArtifactDigestOnRetryOnly: Decision;
    /// Without it a request is sent that no committed transaction knows of.
    SentFromCommittedAttempt: Carrier::Type;

    // ---- operations (EaR 3.5, 4, 5) ----

    /// Without it an operation ends while a request may still land.
    EveryAttemptAccounted: Decision;
    /// Without it an operation that never sent anything completes or is rejected by
    /// what somebody else did.
    AtLeastOneAttempt: Decision;
    /// Without it a reading begun before the last answer ends an operation.
    ObservedAfterAccounting: Decision;
    /// Without it a reading taken for another purpose ends an operation.
    CompletionPurpose: Decision;
    /// Without it an operation completes on a node that is not the recorded machine.
    CompletionIdentity: Decision;
    /// Without it an operation completes on another configuration.
    CompletionDigest: Decision;
    /// Without it an operation completes under another assignment.
    CompletionAssignment: Decision;
    /// Without it an operation completes on a node that does not run.
    CompletionHealth: Decision;
    /// Without it a reading with a higher basis that says otherwise does not stop a
    /// completion.
    CompletionNotContradicted: Decision;
    /// Without it health that is still settling fails an operation before its deadline.
    HealthFailsAtDeadlineOnly: Decision;
    /// Without it an operation is called rejected although one request was not.
    EveryAttemptRefused: Decision;
    /// Without it a request that was accepted is sent again.
    NoneAccepted: Decision, masked by RetryAtPreDispatchDigest;
    /// Without it a request that was refused for good is sent again.
    NoneDefinitivelyRefused: Decision;
    /// Without it a retry overwrites a configuration that is neither before nor after.
    RetryAtPreDispatchDigest: Decision;
    /// Without it an operation is classified safe although its plan lost its authority.
    RetryAuthorised: Decision, masked by PlanAuthorises;
    /// Without it an operation is classified safe although the gate is closed.
    RetryGateOpen: Decision, masked by GateOpen;
    /// Without it an operation is classified safe although no attempt is left.
    RetryAttemptsLeft: Decision, masked by AttemptsLeft;
    /// Without it an operation that sent something is recorded as never having sent.
    CancelledWithoutAttempt: Decision;
    /// Without it a freeze cancels what it should only hold.
    CancelledForGoodOnly: Decision;
    /// Without it an answer of a superseded owner is recorded as the operation's.
    ResponseByOwner: Guard;
    /// Without it a superseded owner ends an operation, or classifies it, on its own word.
    VerdictByOwner: Guard;
    /// Without it a second answer replaces the first.
    OneResponsePerAttempt: Schema("response_attempt_key");

    // ---- accounting of a lost answer (EaR 5.2) ----

    /// Without it an attempt is accounted for while its executor may still send.
    ExecutorStopped: Decision;
    /// Without it a request is declared lost while it is still on its way. The second reading
    /// begins the floor after the first, which began after everything that is waited for, and
    /// so hides it.
    SettleFloor: Decision, masked by EndAfterFloor;
    /// Without it the first reading says nothing of the time after the deadline.
    StartAfterDeadline: Decision;
    /// Without it the two readings do not bracket the settle.
    EndAfterFloor: Decision;
    /// Without it a reading that read no configuration or identity brackets the settle.
    BracketsRead: Decision;
    /// Without it a change between the two readings passes unexplained.
    VersionChangeExplained: Decision;
    /// Without it an attempt is accounted for twice.
    AccountedOnce: Decision;

    // ---- observations, drift, adoption (EaR 4.1, 6) ----

    /// Without it a reading counts as later than what happened during it.
    BasisIsReadStart: Decision;
    /// Without it a drift record is opened against a configuration that was current
    /// only later.
    DriftBaselineUnmoved: Decision;
    /// Without it an old reading opens or closes a record that a newer one decided.
    DriftNotSuperseded: Decision;
    /// Without it the work of an operation under way is reported as drift.
    DriftScopeFree: Decision;
    /// Without it a machine has two open drift records.
    OneOpenDrift: Schema("drift_open"), masked by DriftOpensOnce;
    /// Without it a second differing reading opens a second record.
    DriftOpensOnce: Decision, masked by OneOpenDrift;
    /// Without it a drift record stays open on a machine that is as it should be.
    DriftReturns: Decision;
    /// Without it a landing after an accounting is reported as a stranger's change.
    LateLandingLinked: Decision;
    /// Without it an adoption is recorded on a reading older than its approval.
    AdoptionAfterApproval: Decision;
    /// Without it an old reading admits an adoption.
    AdoptionFresh: Decision;
    /// Without it a configuration other than the imported one is adopted.
    AdoptionDigest: Decision;
    /// Without it a newer reading is passed over in an adoption.
    AdoptionHighestBasis: Decision;
    /// Without it a machine's adoption passes under another assignment.
    AdoptionAssignment: Decision;
    /// Without it an adoption overtakes one that came first.
    AdoptionBaseline: Decision;
    /// Without it an adoption confirms a release that is no longer selected.
    AdoptionDesired: Decision;
    /// Without it an adoption closes a record it never named.
    AdoptionDriftOpen: Decision;

    // ---- plans and authority (EaR 2, PA §9.3, §10) ----

    /// Without it a plan is made for a release that is not selected.
    PlanReleaseIsDesired: Decision;
    /// Without it an apply plan has nothing to compare the node with.
    PlanNeedsApplied: Decision;
    /// Without it an adoption is planned over a known configuration.
    AdoptNeedsReason: Decision;
    /// Without it a plan binds an assignment its release was not compiled from.
    PlanAssignmentCurrent: Decision;
    /// Without it a control-plane machine is planned for, which is not supported.
    PlanWorkersOnly: Decision;
    /// Without it a plan's lengths of time are out of their bounds.
    PlanDurationsInRange: Decision;
    /// Without it a plan's transport deadline is longer than recovery counts on.
    PlanTransportBounded: Decision;
    /// Without it a plan, approval or unfreeze passes on a scope whose lost attempts
    /// may still land.
    ScopeAccountedFor: Decision;
    /// Without it a plan is approved after its expiry.
    ApprovedUnexpired: Decision;
    /// Without it a revoked identity approves.
    ActorNotRevoked: Decision;
    /// Without it one plan has two approvals in an epoch.
    OneApprovalPerEpoch: Decision, masked by OneApprovalPerEpochKey;
    /// The index behind it.
    OneApprovalPerEpochKey: Schema("approval_plan_epoch_key"), masked by OneApprovalPerEpoch;
    /// Without it revoking a replaced approval revokes the plan of its replacement.
    RevokesCurrentApproval: Decision;
    /// Without it a publisher cancels a plan somebody else made.
    CancelledByCreator: Decision;
    /// Without it a principal acts under a role it does not hold.
    RoleQualifies: Decision;
    /// Without it automation acts where only a human may.
    HumanOnly: Decision;
    /// Without it a self-approval is not marked as one.
    SelfApprovalMarked: Decision;
    /// Without it automation holds the right to approve or to recover.
    AutomationRoles: Decision, masked by AutomationRolesCheck;
    /// The check behind it.
    AutomationRolesCheck: Schema("automation_token_roles_check"), masked by AutomationRoles;
    /// Without it a token lives on for good.
    TokenExpires: Decision;
    /// Without it a token of an earlier epoch, revived by a restore, is accepted.
    TokenEpoch: Decision;
    /// Without it a token replaced by a rotation is accepted.
    TokenNotRevoked: Decision;
    /// Without it an identity has two valid tokens.
    OneTokenPerIdentity: Schema("automation_token_unrevoked"), masked by TokenPrincipalLock;
    /// Without it an identity revoked after a backup is admitted by the restored rows.
    DeniedSubjects: Decision;

    // ---- access tokens of humans (PA §10.1) ----

    /// Without it a token names `none`, or a shared-secret algorithm whose secret is
    /// then the published key. The signature check knows neither and hides it.
    JwtAlgorithm: Decision, masked by JwtSignature;
    /// Without it anybody writes a token.
    JwtSignature: Decision;
    /// Without it another issuer's subject of the same name is taken for ours.
    JwtIssuer: Decision;
    /// Without it a token given to another service is used here.
    JwtAudience: Decision;
    /// Without it a token lives on for good.
    JwtExpiry: Decision;
    /// Without it a token is used before its time.
    JwtNotBefore: Decision;
    /// Without it a token's lifetime cannot be told.
    JwtIssuedAtPresent: Decision;
    /// Without it a token issued ahead outlives the maximum lifetime.
    JwtIssuedAtPast: Decision;
    /// Without it a removed group or a disabled account works on as long as the
    /// provider pleases.
    JwtLifetime: Decision;
    /// Without it a token names nobody.
    JwtSubject: Decision;
    /// Without it an ID token, which every client of the provider holds, gives access.
    JwtNotIdToken: Decision;
    /// Without it an ID token that carries neither mark gives access.
    JwtIdentifier: Decision;
    /// Without it keys are taken over a network nobody said is protected.
    PlainHttpHost: Decision;
    /// Without it a proxy stands on the protected path and can change the keys.
    PlainHttpDirect: Decision;

    // ---- drafts and publication (PA §3.1, §6) ----

    /// Without it a draft takes edits after it was published or discarded.
    DraftOpen: Decision;
    /// Without it the revision a publication is bound to moves under it.
    DraftNotPublishing: Decision;
    /// Without it a profile pins a revision its fragment has left behind.
    PinIsCurrent: Decision;
    /// Without it an assignment selects a name nothing stands behind.
    SelectionExists: Decision;
    /// Without it a fragment is composed in another layer than its own.
    SelectionLayer: Decision;
    /// Without it a release leaves out a machine it should hold.
    ReleaseCoversCluster: Decision, masked by NotCoveredSince;
    /// Without it an assignment is changed for a machine nothing can be compiled for.
    AssignmentNeedsBase: Decision;
    /// Without it a release is committed on a head that moved after the draft's base.
    ChangedHeadUnmoved: Decision, masked by ChangedHeadGuard;
    /// The same inside the statement that advances the head.
    ChangedHeadGuard: Guard, masked by ChangedHeadUnmoved;
    /// Without it a release is committed on a head it uses and that moved.
    UnchangedHeadUnmoved: Decision;
    /// Without it two publications introduce one name.
    IntroducedNameFree: Schema("head_name_key");
    /// Without it a release is compiled on a base the machine no longer has.
    ImportBaseUnmoved: Decision;
    /// Without it a machine covered since the snapshot is left out.
    NotCoveredSince: Decision;
    /// Without it an assignment changes under an operation.
    AssignmentScopeFree: Decision;
    /// Without it an assignment changes while an erased attempt may still land.
    AssignmentScopeReleased: Decision;
    /// Without it one draft revision has two releases.
    OneReleasePerRevision: Decision, masked by OneReleasePerRevisionKey;
    /// The index behind it.
    OneReleasePerRevisionKey: Schema("release_draft_revision_key"), masked by OneReleasePerRevision;
    /// Without it a publication rests on another job's reading.
    PublicationEvidenceOwn: Decision, masked by PublicationIdentity PublicationVersion;
    /// Without it a release is compiled for a machine that is another one.
    PublicationIdentity: Decision;
    /// Without it a release is compiled for a minor its nodes do not run.
    PublicationVersion: Decision;
    /// Without it a release rests on a node at an address the machine has left.
    PublicationEndpoint: Decision;
    /// Without it a newer reading is passed over at the commit.
    PublicationNotContradicted: Decision;
    /// Without it a value lost while the release was compiled is published.
    DependencyRecheck: Decision;
    /// Without it a second request to publish a draft queues a publication of its own.
    ActivePublicationAnswers: Decision, masked by OneActivePublication;
    /// The index behind it.
    OneActivePublication: Schema("operation_active_publish"), masked by ActivePublicationAnswers;

    // ---- staging claims (IC §3) ----

    /// Without it a paused, released or abandoned claim is written by its last owner.
    ClaimOwned: Guard;
    /// Without it an abandonment counts only once a sweep has written it.
    ClaimReadsAbandoned: Decision;
    /// Without it a claim lives past its absolute expiry.
    ClaimUnexpired: Guard;
    /// Without it a claim is taken from a live owner.
    ClaimTakeoverLapsed: Decision;
    /// Without it a transient change, which nobody can decrypt, is taken over.
    ClaimTakeoverEncrypted: Decision, masked by ClaimReadsAbandoned;
    /// Without it a claim of an earlier epoch is resumed.
    ClaimOfThisEpoch: Decision;
    /// Without it a change nobody has reviewed is written.
    ClaimPausesForReview: Decision;
    /// Without it a pause leaves a live lease behind.
    PauseEndsLease: Decision;
    /// Without it an ingestion keeps what another machine runs (PA §3.3).
    IngestionIdentity: Decision;
    /// Without it two ingestions write one draft revision.
    OneIngestionPerRevision: Schema("operation_active_ingest");
    /// Without it two draft entries with one key both ingest.
    OneClaimPerKey: Schema("staging_claim_live_key"), masked by IdempotencyKeyLock;

    // ---- recovery (EaR 7, PA §12) ----

    /// Without it two entry requests of one start mint two epochs.
    EntryOncePerStart: Decision;
    /// Without it a process in its recovery start serves more than the entry.
    RecoveryStartGate: Decision;
    /// Without it a scope is marked ready on a reading from before its accounting.
    MarkEvidence: Decision;
    /// Without it a scope is released that nobody marked ready.
    ReleaseNeedsReady: Decision;
    /// Without it a scope is released on a check for another release.
    ReleaseDesiredUnchanged: Decision;
    /// Without it recovery mode ends while a scope is not released.
    ExitNeedsEveryScope: Decision;
    /// Without it a machine that answers is written off.
    DecommissionUnobservable: Decision;

    // ---- ingestion and authoring (IC §2, §4, §5, §7) ----

    /// Without it a path names two nodes or none: repeated, nested, binary and `|` keys.
    KeysAddressable: Decision;
    /// Without it the database refuses half of a change, or somebody strips the byte.
    TextStorable: Decision;
    /// Without it a tag that no typed decoder knows reaches the machinery.
    KnownTagsOnly: Decision;
    /// Without it a directive drops content that was stored and never loaded.
    DirectiveAlone: Decision;
    /// Without it a reference stands where none can be resolved: a key, a list, a root.
    TagPlace: Decision;
    /// Without it a reference names something no declaration can name.
    NameGrammar: Decision, masked by NameDeclared;
    /// Without it a name is resolved that nobody gave a kind and a version.
    NameDeclared: Decision;
    /// Without it a declaration pins, and needs for ever, what nothing refers to.
    DeclarationUsed: Decision;
    /// Without it an identified document is none, and its references stay text.
    EmbeddedIsText: Decision;
    /// Without it a tag inside opaque text reaches the node and validates.
    ReservedText: Decision, masked by OutputReservedText;
    /// Without it a mistyped mark leaves its value in clear.
    MarkAddressed: Decision;
    /// Without it a marked value changes its type or spelling on its way back.
    MarkKind: Decision;
    /// Without it an alias names a node that its extraction dropped.
    MarkedMappingWhole: Decision;
    /// Without it a mark during a review adds text that no guard has searched.
    MarkRewritesNothing: Decision;
    /// Without it a change is stored that can never be ingested again.
    LoadsAsNull: Decision;
    /// Without it a copy of an extracted value stays in clear at another scalar.
    GuardValue: Decision;
    /// Without it an extracted value stays in clear inside a longer text.
    GuardSubstring: Decision;
    /// Without it a key the provider stores as a value stays in clear elsewhere.
    GuardKeys: Decision;
    /// Without it an extracted value stays in clear in a comment.
    GuardComments: Decision;
    /// Without it an escaped or re-indented copy inside a text stays in clear.
    GuardEscaped: Decision;

    // ---- resolution and composition (IC §6, §8.1) ----

    /// Without it a value of another kind is coerced into a configuration.
    KindMatches: Decision;
    /// Without it an encoding is applied to what has no bytes.
    EncodingOnString: Decision;
    /// Without it a reference to nothing is composed as nothing.
    ReferenceKnown: Decision, masked by OwnPrefixCarries;
    /// Without it a machine is given the secret of another cluster.
    ReferenceScope: Decision;
    /// Without it a value that nobody could read is left out of every search.
    EveryPinDecodes: Decision, masked by OwnPrefixCarries;
    /// Without it one value's leaf is attributed to another reference.
    TraceDistinct: Decision;
    /// Without it a composition is attributed by a pass that went another way.
    PassesAgree: Decision;
    /// Without it a leaf that exists in one pass only is never attributed.
    ShapeFaithful: Decision;
    /// Without it a leaf that changed without a stand-in is shown in clear.
    LeafFaithful: Decision;
    /// Without it an embedded document met in one pass only is shown as literal text.
    EmbeddedFaithful: Decision;
    /// Without it an override is laid to the wrong fragment.
    OwnPrefixCarries: Decision;
    /// Without it an unresolved tag reaches the node inside a string.
    OutputReservedText: Decision;
    /// Without it a literal copy of a secret is published as ordinary text.
    OutputCopies: Decision;
    /// Without it a literal copy of a mapping's key is published as ordinary text.
    OutputKeyCopies: Decision;
    /// Without it a fragment replaces the machine's own key material.
    BaseOverride: Decision;

    // ---- redaction (IC §8.3) ----

    /// Without it every referenced value is shown.
    RedactByPath: Decision;
    /// Without it the cluster's own secrets are shown.
    RedactBySchema: Decision;
    /// Without it a short copy of a value is shown.
    RedactByValue: Decision;
    /// Without it a path spells a value that is hidden everywhere else.
    RedactPathTokens: Decision;
    /// Without it a rendering that still holds a value is shown.
    RenderingChecked: Decision;
    /// Without it a message quotes a value that nobody recognised.
    MessageExplained: Decision;
    /// Without it a message quotes a boolean or a key that nothing marks.
    MessageUnmarkedInput: Decision;
    /// Without it a value survives in a message beside its tokens.
    MessageSurvivors: Decision;
    /// Without it a value is read off the base side of a diff by elimination.
    PairedBase: Decision;
}

/// Lets named rules go; for the tests of this crate alone. The harness has its own.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without(pub &'static [Rule]);

#[cfg(test)]
impl Rules for Without {
    fn holds(&self, rule: Rule, condition: bool) -> bool {
        condition || self.0.contains(&rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enforced_answers_the_condition_whatever_the_rule() {
        for rule in Rule::all() {
            assert!(Enforced.holds(*rule, true));
            assert!(!Enforced.holds(*rule, false));
            assert!(Enforced.enforced(*rule));
        }
    }

    #[test]
    fn a_dropped_rule_lets_its_condition_go_and_no_other() {
        let without = Without(&[Rule::LeaseLive]);
        assert!(without.holds(Rule::LeaseLive, false));
        assert!(!without.enforced(Rule::LeaseLive));
        assert!(!without.holds(Rule::FenceOwner, false));
    }

    #[test]
    fn a_rule_does_not_mask_itself_and_names_are_distinct() {
        let mut names = std::collections::BTreeSet::new();
        for rule in Rule::all() {
            assert!(!rule.masked_by().contains(rule), "{}", rule.name());
            assert!(names.insert(rule.name()));
        }
    }
}
