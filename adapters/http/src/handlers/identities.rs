//! Identity revocation (PA §10.4).

use bronzeward_api::bodies::identity::{IdentityRevocation, RevokeIdentity};
use bronzeward_core::principal::Subject;
use bronzeward_core::problem::Problem;
use bronzeward_engine::request::Refused;
use bronzeward_engine::tx::{IdentityRevoked, Named};
use bronzeward_engine::world::World;
use http::StatusCode;

use super::wire;
use crate::call::{Call, Handled, rendered};

/// What an operator has to see to, since the database alone cannot keep it.
const NOTE: &str = "A database restore can remove this revocation. The deniedSubjects list of \
    the deployment's configuration survives one: list the identity there first, a human by \
    issuer and subject, a service identity by identifier and name in one entry.";

fn body(revoked: &IdentityRevoked) -> Result<IdentityRevocation, Refused> {
    let row = &revoked.revocation;
    Ok(IdentityRevocation {
        identity: wire::id(row.identity)?,
        revoked_by: wire::id(row.by.principal)?,
        role: wire::role(row.by.role),
        reason: row.reason.clone(),
        act: wire::id(row.act)?,
        epoch: wire::id(row.epoch)?,
        at: wire::time(row.at),
        denied_subjects_listed: revoked.denied_listed,
        note: NOTE.to_owned(),
    })
}

pub async fn revoke<W: World>(mut call: Call<'_, W>) -> Handled {
    let write = call.write::<RevokeIdentity>().await?;
    let sent = &write.body;
    let named = match (&sent.identity, &sent.iss, &sent.sub) {
        (Some(identity), None, None) => Named::Identity(wire::core_id(identity)?),
        (None, Some(issuer), Some(subject)) => Named::Human {
            issuer: issuer.as_str().to_owned(),
            subject: subject.as_str().to_owned(),
        },
        _ => return Err(Problem::invalid_request("It names exactly one identity.").into()),
    };
    let access = &call.app.access;
    let request = call.request();
    let answer = call
        .requests()
        .revoke_identity(
            &write.admitted,
            &named,
            sent.reason.as_str(),
            |principal| match &principal.subject {
                Subject::Human { issuer, subject } => access.denies_human(issuer, subject),
                Subject::Service { name, .. } => access.lists_service_fully(principal.id, name),
            },
            |revoked| {
                super::render(request, body(revoked), |body| {
                    rendered(StatusCode::CREATED, body)
                })
            },
        )
        .await?;
    Ok(call.answer(answer))
}
