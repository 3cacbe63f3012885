//! What people do, and how often each role does it before a seed's habits change it.
//!
//! Never in this module: how an act is done.

/// What somebody may do, with how often in this seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    OpenDraft,
    PutFragment,
    PutProfile,
    PutAssignment,
    DiscardDraft,
    Import,
    AbandonIngestion,
    TakeOverIngestion,
    ChangeEndpoint,
    Publish,
    PlanApply,
    PlanAdopt,
    Approve,
    TakeOverOperation,
    Account,
    RevokeIdentity,
    RevokeApproval,
    Cancel,
    Freeze,
    Unfreeze,
    Resolve,
    ReportOrphans,
}

impl Doing {
    pub const ALL: [Doing; 22] = [
        Doing::OpenDraft,
        Doing::PutFragment,
        Doing::PutProfile,
        Doing::PutAssignment,
        Doing::DiscardDraft,
        Doing::Import,
        Doing::AbandonIngestion,
        Doing::TakeOverIngestion,
        Doing::ChangeEndpoint,
        Doing::Publish,
        Doing::PlanApply,
        Doing::PlanAdopt,
        Doing::Approve,
        Doing::TakeOverOperation,
        Doing::Account,
        Doing::RevokeIdentity,
        Doing::RevokeApproval,
        Doing::Cancel,
        Doing::Freeze,
        Doing::Unfreeze,
        Doing::Resolve,
        Doing::ReportOrphans,
    ];
    pub(super) const AUTHOR: &[(Doing, u32)] = &[
        (Doing::OpenDraft, 10),
        (Doing::PutFragment, 20),
        (Doing::PutProfile, 8),
        (Doing::PutAssignment, 8),
        (Doing::DiscardDraft, 3),
        (Doing::Import, 8),
        (Doing::AbandonIngestion, 3),
        (Doing::TakeOverIngestion, 4),
        (Doing::ChangeEndpoint, 2),
        (Doing::Freeze, 1),
    ];
    pub(super) const PUBLISHER: &[(Doing, u32)] = &[
        (Doing::Publish, 20),
        (Doing::PlanApply, 30),
        (Doing::PlanAdopt, 10),
        (Doing::Cancel, 2),
        (Doing::Freeze, 1),
    ];
    pub(super) const APPROVER: &[(Doing, u32)] = &[
        (Doing::Approve, 30),
        (Doing::RevokeApproval, 2),
        (Doing::Cancel, 1),
        (Doing::Freeze, 1),
        (Doing::Unfreeze, 6),
    ];
    pub(super) const ADMIN: &[(Doing, u32)] = &[
        (Doing::TakeOverOperation, 8),
        (Doing::Account, 16),
        (Doing::RevokeIdentity, 1),
        (Doing::RevokeApproval, 1),
        (Doing::Cancel, 1),
        (Doing::Freeze, 1),
        (Doing::Resolve, 6),
        (Doing::ReportOrphans, 2),
    ];
}
