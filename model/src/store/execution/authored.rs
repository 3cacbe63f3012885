//! What this family reads and writes of the authored tables.
//!
//! Never in here: a table of its own.

use bronzeward_core::id::{ClusterId, DraftId, HeadId, MachineId, PrincipalId, TokenId};
use bronzeward_core::principal::Principal;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{ClusterRow, HeadKind};
use bronzeward_engine::rows::{DraftRow, HeadRow, SourceRevisionId};

use super::statement::kept;
use crate::pg::{Eye, Tables};
use crate::store::authoring::{Head, TokenOf};

kept!(
    Head, HeadId => authoring.heads;
    ClusterRow, ClusterId => authoring.clusters;
    DraftRow, DraftId => authoring.drafts;
    Principal, PrincipalId => authoring.principals;
    DbTime, PrincipalId => authoring.identity_revocations;
    TokenOf, TokenId => authoring.tokens;
);

/// A machine's assignment head, where it ever had one.
pub(super) fn assignment_head(tables: &Tables, eye: Eye, of: MachineId) -> Option<&HeadRow> {
    let subject = of.to_string();
    let mut heads = tables.authoring.heads.values(eye);
    let head = heads.find(|head| head.kind == HeadKind::Assignment && head.row.subject == subject);
    head.map(|head| &head.row)
}

/// The revision of the machine's latest endpoint change.
pub(super) fn endpoint_changed(tables: &Tables, eye: Eye, of: MachineId) -> Option<i64> {
    let changes = &tables.authoring.endpoint_changes;
    let mut changes = changes.range(eye, (of, i64::MIN)..=(of, i64::MAX));
    changes.next_back().map(|((_, revision), _)| *revision)
}

/// Who wrote a revision, where it is there.
pub(super) fn author(tables: &Tables, eye: Eye, of: SourceRevisionId) -> Option<PrincipalId> {
    let authored = &tables.authoring;
    let signed = match of {
        SourceRevisionId::Assignment(id) => authored.assignments.get(eye, &id)?.author,
        SourceRevisionId::Fragment(id) => authored.fragments.get(eye, &id)?.row.author,
        SourceRevisionId::ImportBase(id) => authored.import_bases.get(eye, &id)?.author,
        SourceRevisionId::Profile(id) => authored.profiles.get(eye, &id)?.author,
    };
    Some(signed.principal)
}

/// The service identity's token that is not revoked.
pub(super) fn unrevoked_token(tables: &Tables, eye: Eye, of: PrincipalId) -> Option<TokenId> {
    let mut tokens = tables.authoring.tokens.iter(eye);
    let unrevoked = tokens.find(|(_, row)| row.token.owner == of && row.token.revoked_at.is_none());
    unrevoked.map(|(id, _)| *id)
}
