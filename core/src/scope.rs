//! A machine's coordination scope: its gate, its freeze and its recovery state
//! (EaR 3.2 comparison 6, 6.2, 7).
//!
//! The engine asks here under the machine's row lock. Never in this module: what an
//! operation or a plan is.

use crate::id::{DependencyId, EpochId, MachineId, ObservationId, ReleaseId};
use crate::revision::TimelineRevision;
use crate::rules::{Rule, Rules};

/// EaR 7.1. `Normal` is every scope outside recovery mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeState {
    Normal,
    /// A request sent before the restore may still land.
    PreRestoreUnaccounted,
    /// A restored operation is unresolved.
    Unresolved,
    /// Something a mark needs is missing.
    Blocked,
    Ready,
    /// Released in the named epoch; another epoch's release authorises nothing.
    Released {
        epoch: EpochId,
    },
    /// Decommissioned: skipped for good (EaR 7.3).
    Retired,
}

impl ScopeState {
    pub const fn as_str(self) -> &'static str {
        match self {
            ScopeState::Normal => "normal",
            ScopeState::PreRestoreUnaccounted => "pre-restore-unaccounted",
            ScopeState::Unresolved => "unresolved",
            ScopeState::Blocked => "blocked",
            ScopeState::Ready => "ready",
            ScopeState::Released { .. } => "released",
            ScopeState::Retired => "retired",
        }
    }

    /// A row's state; `released_in` is the epoch of the scope's latest release.
    pub fn from_row(state: &str, released_in: Option<EpochId>) -> Option<Self> {
        match state {
            "normal" => Some(ScopeState::Normal),
            "pre-restore-unaccounted" => Some(ScopeState::PreRestoreUnaccounted),
            "unresolved" => Some(ScopeState::Unresolved),
            "blocked" => Some(ScopeState::Blocked),
            "ready" => Some(ScopeState::Ready),
            "released" => released_in.map(|epoch| ScopeState::Released { epoch }),
            "retired" => Some(ScopeState::Retired),
            _ => None,
        }
    }

    /// The state a machine inventoried now starts in.
    pub const fn at_inventory(recovery_mode: bool) -> Self {
        if recovery_mode {
            ScopeState::PreRestoreUnaccounted
        } else {
            ScopeState::Normal
        }
    }

    /// What a recovery entry leaves of it.
    #[must_use]
    pub const fn entered(self) -> Self {
        match self {
            ScopeState::Retired => ScopeState::Retired,
            ScopeState::Normal
            | ScopeState::PreRestoreUnaccounted
            | ScopeState::Unresolved
            | ScopeState::Blocked
            | ScopeState::Ready
            | ScopeState::Released { .. } => ScopeState::PreRestoreUnaccounted,
        }
    }

    pub fn lets_exit(self, current: EpochId) -> bool {
        match self {
            ScopeState::Released { epoch } => epoch == current,
            ScopeState::Retired => true,
            ScopeState::Normal
            | ScopeState::PreRestoreUnaccounted
            | ScopeState::Unresolved
            | ScopeState::Blocked
            | ScopeState::Ready => false,
        }
    }
}

/// What the gate is made of, read under the machine's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    pub machine: MachineId,
    pub state: ScopeState,
    pub frozen: bool,
    /// The open drift record, by its opening entry's revision.
    pub open_drift: Option<TimelineRevision>,
}

/// Why the gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateClosed {
    Frozen,
    /// An open drift record the plan does not bind.
    Drift,
    /// The bound drift record has been closed.
    BoundDriftClosed,
    /// Recovery mode, and the scope is not released in the current epoch.
    NotReleased,
    Retired,
}

impl Scope {
    /// Whether requests for this machine may pass (comparison 6). `bound` is the drift
    /// record the plan binds; an adoption is let through a freeze (EaR 6.2).
    pub fn gate<R: Rules>(
        &self,
        rules: &R,
        recovery_mode: bool,
        current: EpochId,
        bound: Option<TimelineRevision>,
        adoption: bool,
    ) -> Result<(), GateClosed> {
        if self.state == ScopeState::Retired {
            return Err(GateClosed::Retired);
        }
        if !rules.holds(Rule::NotFrozen, adoption || !self.frozen) {
            return Err(GateClosed::Frozen);
        }
        let foreign = self.open_drift.is_some() && self.open_drift != bound;
        if !rules.holds(Rule::DriftBound, !foreign) {
            return Err(GateClosed::Drift);
        }
        if !rules.holds(
            Rule::BoundDriftOpen,
            bound.is_none() || self.open_drift == bound,
        ) {
            return Err(GateClosed::BoundDriftClosed);
        }
        let released = !recovery_mode || self.released_in(current);
        if !rules.holds(Rule::ScopeReleased, released) {
            return Err(GateClosed::NotReleased);
        }
        Ok(())
    }

    fn released_in(&self, current: EpochId) -> bool {
        match self.state {
            ScopeState::Released { epoch } => epoch == current,
            ScopeState::Normal
            | ScopeState::PreRestoreUnaccounted
            | ScopeState::Unresolved
            | ScopeState::Blocked
            | ScopeState::Ready
            | ScopeState::Retired => false,
        }
    }

    /// Whether a publication may change this machine's assignment as far as recovery is
    /// concerned (PA §6.2).
    pub fn assignment_may_change<R: Rules>(
        &self,
        rules: &R,
        recovery_mode: bool,
        current: EpochId,
    ) -> bool {
        rules.holds(
            Rule::AssignmentScopeReleased,
            !recovery_mode || self.released_in(current),
        )
    }

    /// Whether plans, approvals, adoption plans and unfreezes are taken for this machine
    /// (PA §12.2).
    pub fn accounted_for<R: Rules>(&self, rules: &R) -> Result<(), Unaccounted> {
        let accounted = self.state != ScopeState::PreRestoreUnaccounted;
        if rules.holds(Rule::ScopeAccountedFor, accounted) {
            Ok(())
        } else {
            Err(Unaccounted {
                machine: self.machine,
            })
        }
    }

    pub fn freeze(self) -> Result<Scope, ScopeRefusal> {
        match self.frozen {
            false => Ok(Scope {
                frozen: true,
                ..self
            }),
            true => Err(ScopeRefusal::AlreadyFrozen),
        }
    }

    pub fn unfreeze<R: Rules>(self, rules: &R) -> Result<Scope, ScopeRefusal> {
        self.accounted_for(rules)
            .map_err(|_| ScopeRefusal::Unaccounted)?;
        match self.frozen {
            true => Ok(Scope {
                frozen: false,
                ..self
            }),
            false => Err(ScopeRefusal::NotFrozen),
        }
    }

    /// The state an accounting decision moves a scope to: the observation is what is
    /// missing then (EaR 7.1).
    pub const fn account(self, operation_open: bool) -> Result<ScopeState, ScopeRefusal> {
        match self.state {
            ScopeState::PreRestoreUnaccounted if operation_open => Ok(ScopeState::Unresolved),
            ScopeState::PreRestoreUnaccounted => Ok(ScopeState::Blocked),
            ScopeState::Normal
            | ScopeState::Unresolved
            | ScopeState::Blocked
            | ScopeState::Ready
            | ScopeState::Released { .. }
            | ScopeState::Retired => Err(ScopeRefusal::NotUnaccounted),
        }
    }

    /// Marks a scope by its evidence: the state it is in next and what is missing.
    pub fn mark<R: Rules>(
        self,
        rules: &R,
        evidence: &MarkEvidence,
    ) -> Result<Marked, ScopeRefusal> {
        match self.state {
            ScopeState::Blocked | ScopeState::Unresolved | ScopeState::Ready => {}
            ScopeState::PreRestoreUnaccounted => return Err(ScopeRefusal::Unaccounted),
            ScopeState::Normal | ScopeState::Released { .. } | ScopeState::Retired => {
                return Err(ScopeRefusal::NotMarkable);
            }
        }
        let mut missing = Vec::new();
        let usable = evidence.identity_read
            && evidence.after_accounting
            && !evidence.operation_moved_since
            && evidence.access_as_checked;
        if !rules.holds(Rule::MarkEvidence, usable) {
            missing.push(Missing::Observation(evidence.observation));
        }
        let identified = !evidence.identity_read || evidence.identity_matches;
        if !rules.holds(Rule::IdentityMatches, identified) {
            missing.push(Missing::Identity);
        }
        missing.extend(
            evidence
                .failed_dependencies
                .iter()
                .copied()
                .map(Missing::Dependency),
        );
        if !evidence.access_checked {
            missing.push(Missing::TalosAccess);
        }
        let to = match (evidence.operation_open, missing.is_empty()) {
            // Nothing is missing but the operation's end, and its own states say that.
            (true, _) => {
                missing.clear();
                ScopeState::Unresolved
            }
            (false, false) => ScopeState::Blocked,
            (false, true) => ScopeState::Ready,
        };
        Ok(Marked {
            from: self.state,
            to,
            missing,
        })
    }

    /// Releases a ready scope in the current epoch. `marked_for` is the Desired release
    /// its latest mark checked.
    pub fn release<R: Rules>(
        self,
        rules: &R,
        current: EpochId,
        marked_for: Option<ReleaseId>,
        desired: Option<ReleaseId>,
    ) -> Result<ScopeState, ScopeRefusal> {
        if self.state == ScopeState::PreRestoreUnaccounted
            && rules.enforced(Rule::ReleaseNeedsReady)
        {
            return Err(ScopeRefusal::Unaccounted);
        }
        if !rules.holds(Rule::ReleaseNeedsReady, self.state == ScopeState::Ready) {
            return Err(ScopeRefusal::NotReady);
        }
        if !rules.holds(Rule::ReleaseDesiredUnchanged, marked_for == desired) {
            return Err(ScopeRefusal::DesiredChanged);
        }
        Ok(ScopeState::Released { epoch: current })
    }
}

/// A decommission is refused: the machine's identity was read, or it is retired already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecommissionRefusal {
    Observable(ObservationId),
    AlreadyRetired,
}

impl Scope {
    /// Writes a machine off that can never be observed again (EaR 7.3). `observation` is
    /// the recovery observation taken before the transaction.
    pub fn decommission<R: Rules>(
        self,
        rules: &R,
        observation: &crate::observation::Observation,
    ) -> Result<ScopeState, DecommissionRefusal> {
        if self.state == ScopeState::Retired {
            return Err(DecommissionRefusal::AlreadyRetired);
        }
        let read = observation.values.identity.value().is_some();
        if !rules.holds(Rule::DecommissionUnobservable, !read) {
            return Err(DecommissionRefusal::Observable(observation.started.id));
        }
        Ok(ScopeState::Retired)
    }
}

/// The scope is still pre-restore unaccounted: 409 `recovery-mode-active` naming it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unaccounted {
    pub machine: MachineId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeRefusal {
    AlreadyFrozen,
    NotFrozen,
    /// 409 `recovery-mode-active`.
    Unaccounted,
    NotUnaccounted,
    NotMarkable,
    NotReady,
    /// A new mark is needed.
    DesiredChanged,
}

/// What a mark's restoration observation and dependency check showed (PA §9.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkEvidence {
    pub observation: ObservationId,
    pub identity_read: bool,
    /// Whether the identity is the machine record's, and no later observation, another
    /// mark's included, read another.
    pub identity_matches: bool,
    /// Whether its read began after the scope's accounting.
    pub after_accounting: bool,
    /// Whether a commitment or an operation's state change follows its start.
    pub operation_moved_since: bool,
    /// Whether it used the Talos access version that the check passed.
    pub access_as_checked: bool,
    pub access_checked: bool,
    pub failed_dependencies: Vec<DependencyId>,
    /// Whether a non-terminal operation holds the scope.
    pub operation_open: bool,
}

/// What a mark found missing, each named in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Observation(ObservationId),
    Identity,
    TalosAccess,
    Dependency(DependencyId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    pub from: ScopeState,
    pub to: ScopeState,
    pub missing: Vec<Missing>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    const NOW: fn() -> EpochId = || EpochId::from_bits(2);

    fn scope(state: ScopeState) -> Scope {
        Scope {
            machine: MachineId::from_bits(1),
            state,
            frozen: false,
            open_drift: None,
        }
    }

    fn evidence() -> MarkEvidence {
        MarkEvidence {
            observation: ObservationId::from_bits(1),
            identity_read: true,
            identity_matches: true,
            after_accounting: true,
            operation_moved_since: false,
            access_as_checked: true,
            access_checked: true,
            failed_dependencies: Vec::new(),
            operation_open: false,
        }
    }

    #[test]
    fn the_gate_names_what_closes_it_and_each_rule_alone_opens_it() {
        let drift = |revision| Some(TimelineRevision(revision));
        let normal = scope(ScopeState::Normal);
        let cases = [
            (
                Scope {
                    frozen: true,
                    ..normal
                },
                false,
                None,
                GateClosed::Frozen,
                Rule::NotFrozen,
            ),
            (
                Scope {
                    open_drift: drift(4),
                    ..normal
                },
                false,
                None,
                GateClosed::Drift,
                Rule::DriftBound,
            ),
            (
                normal,
                false,
                drift(4),
                GateClosed::BoundDriftClosed,
                Rule::BoundDriftOpen,
            ),
            (
                normal,
                true,
                None,
                GateClosed::NotReleased,
                Rule::ScopeReleased,
            ),
            (
                scope(ScopeState::Released {
                    epoch: EpochId::from_bits(1),
                }),
                true,
                None,
                GateClosed::NotReleased,
                Rule::ScopeReleased,
            ),
        ];
        for (scope, recovery, bound, closed, rule) in cases {
            assert_eq!(
                scope.gate(&Enforced, recovery, NOW(), bound, false),
                Err(closed)
            );
            let rules: &'static [Rule] = vec![rule].leak();
            assert_eq!(
                scope.gate(&Without(rules), recovery, NOW(), bound, false),
                Ok(())
            );
        }
        assert_eq!(normal.gate(&Enforced, false, NOW(), None, false), Ok(()));
        let bound = Scope {
            open_drift: drift(4),
            ..normal
        };
        assert_eq!(bound.gate(&Enforced, false, NOW(), drift(4), false), Ok(()));
        let released = scope(ScopeState::Released { epoch: NOW() });
        assert_eq!(released.gate(&Enforced, true, NOW(), None, false), Ok(()));
    }

    #[test]
    fn an_adoption_passes_a_freeze_and_nothing_else() {
        let frozen = Scope {
            frozen: true,
            ..scope(ScopeState::Normal)
        };
        assert_eq!(frozen.gate(&Enforced, false, NOW(), None, true), Ok(()));
        assert_eq!(
            frozen.gate(&Enforced, true, NOW(), None, true),
            Err(GateClosed::NotReleased)
        );
    }

    #[test]
    fn only_a_machine_that_answers_nothing_is_written_off() {
        use crate::observation::tests::observation;
        use crate::observation::{Purpose, Unread, Values};
        let answers = observation(Purpose::Recovery, 5, b"a");
        let mut silent = answers.clone();
        silent.values = Values::none(Unread::TalosAccessUnavailable);
        let blocked = scope(ScopeState::Blocked);
        assert_eq!(
            blocked.decommission(&Enforced, &silent),
            Ok(ScopeState::Retired)
        );
        assert_eq!(
            blocked.decommission(&Enforced, &answers),
            Err(DecommissionRefusal::Observable(answers.started.id))
        );
        let control = Without(&[Rule::DecommissionUnobservable]);
        assert!(blocked.decommission(&control, &answers).is_ok());
        assert_eq!(
            scope(ScopeState::Retired).decommission(&Enforced, &silent),
            Err(DecommissionRefusal::AlreadyRetired)
        );
    }

    #[test]
    fn a_freeze_is_taken_once_and_undone_once() {
        let frozen = scope(ScopeState::Normal).freeze().unwrap();
        assert_eq!(frozen.freeze(), Err(ScopeRefusal::AlreadyFrozen));
        let thawed = frozen.unfreeze(&Enforced).unwrap();
        assert_eq!(thawed.unfreeze(&Enforced), Err(ScopeRefusal::NotFrozen));
        let unaccounted = Scope {
            frozen: true,
            ..scope(ScopeState::PreRestoreUnaccounted)
        };
        assert_eq!(
            unaccounted.unfreeze(&Enforced),
            Err(ScopeRefusal::Unaccounted)
        );
        assert!(
            unaccounted
                .unfreeze(&Without(&[Rule::ScopeAccountedFor]))
                .is_ok()
        );
    }

    #[test]
    fn a_mark_goes_where_its_evidence_points() {
        let blocked = scope(ScopeState::Blocked);
        let mark = |evidence: &MarkEvidence| blocked.mark(&Enforced, evidence).unwrap();
        assert_eq!(mark(&evidence()).to, ScopeState::Ready);
        let open = MarkEvidence {
            operation_open: true,
            ..evidence()
        };
        assert_eq!(mark(&open).to, ScopeState::Unresolved);
        let observation = Missing::Observation(ObservationId::from_bits(1));
        for (unusable, missing) in [
            (
                MarkEvidence {
                    identity_read: false,
                    ..evidence()
                },
                observation,
            ),
            (
                MarkEvidence {
                    after_accounting: false,
                    ..evidence()
                },
                observation,
            ),
            (
                MarkEvidence {
                    operation_moved_since: true,
                    ..evidence()
                },
                observation,
            ),
            (
                MarkEvidence {
                    access_as_checked: false,
                    ..evidence()
                },
                observation,
            ),
            (
                MarkEvidence {
                    identity_matches: false,
                    ..evidence()
                },
                Missing::Identity,
            ),
            (
                MarkEvidence {
                    access_checked: false,
                    ..evidence()
                },
                Missing::TalosAccess,
            ),
            (
                MarkEvidence {
                    failed_dependencies: vec![DependencyId::from_bits(3)],
                    ..evidence()
                },
                Missing::Dependency(DependencyId::from_bits(3)),
            ),
        ] {
            let marked = mark(&unusable);
            assert_eq!(marked.to, ScopeState::Blocked);
            assert_eq!(marked.missing, vec![missing]);
        }
        let late = MarkEvidence {
            after_accounting: false,
            ..evidence()
        };
        let control = blocked
            .mark(&Without(&[Rule::MarkEvidence]), &late)
            .unwrap();
        assert_eq!(control.to, ScopeState::Ready);
    }

    #[test]
    fn a_scope_is_marked_between_its_accounting_and_its_release_only() {
        for (state, refusal) in [
            (ScopeState::Normal, ScopeRefusal::NotMarkable),
            (
                ScopeState::Released { epoch: NOW() },
                ScopeRefusal::NotMarkable,
            ),
            (ScopeState::PreRestoreUnaccounted, ScopeRefusal::Unaccounted),
        ] {
            assert_eq!(scope(state).mark(&Enforced, &evidence()), Err(refusal));
        }
    }

    #[test]
    fn only_a_ready_scope_is_released_and_for_the_release_its_mark_checked() {
        let release =
            |state, marked, desired| scope(state).release(&Enforced, NOW(), marked, desired);
        let rel = |bits| Some(ReleaseId::from_bits(bits));
        let released = ScopeState::Released { epoch: NOW() };
        assert_eq!(release(ScopeState::Ready, rel(1), rel(1)), Ok(released));
        assert_eq!(release(ScopeState::Ready, None, None), Ok(released));
        assert_eq!(
            release(ScopeState::Ready, rel(1), rel(2)),
            Err(ScopeRefusal::DesiredChanged)
        );
        assert_eq!(
            release(ScopeState::Blocked, None, None),
            Err(ScopeRefusal::NotReady)
        );
        assert_eq!(
            release(ScopeState::PreRestoreUnaccounted, None, None),
            Err(ScopeRefusal::Unaccounted)
        );
        let control = Without(&[Rule::ReleaseNeedsReady]);
        assert!(
            scope(ScopeState::Blocked)
                .release(&control, NOW(), None, None)
                .is_ok()
        );
    }

    #[test]
    fn an_entry_puts_every_scope_back_but_a_retired_one() {
        assert_eq!(
            ScopeState::Released { epoch: NOW() }.entered(),
            ScopeState::PreRestoreUnaccounted
        );
        assert_eq!(ScopeState::Retired.entered(), ScopeState::Retired);
        assert_eq!(
            scope(ScopeState::PreRestoreUnaccounted).account(true),
            Ok(ScopeState::Unresolved)
        );
        assert_eq!(
            scope(ScopeState::PreRestoreUnaccounted).account(false),
            Ok(ScopeState::Blocked)
        );
        assert_eq!(
            scope(ScopeState::Blocked).account(false),
            Err(ScopeRefusal::NotUnaccounted)
        );
    }
}
