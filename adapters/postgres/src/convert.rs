//! The database's spelling of core's types, both ways. Called by every family here.
//!
//! A value that the schema's checks would have refused reads as a fault: it means that
//! schema and program disagree.

use bronzeward_core::fence::{Fence, Generation, Owner};
use bronzeward_core::id::{Id, Kind};
use bronzeward_core::principal::Role;
use bronzeward_core::problem::Member;
use bronzeward_core::revision::{Etag, EtagToken, Revision};
use bronzeward_engine::ports::store::StoreError;
use bronzeward_engine::rows::{HeadId, Signed, SourceRevisionId};

pub(crate) type Out<T> = Result<T, StoreError>;

/// A stored value outside its schema.
pub(crate) fn fault() -> StoreError {
    crate::session::error::fault("a stored value is outside its schema")
}

pub(crate) fn id<K: Kind>(text: &str) -> Out<Id<K>> {
    Id::parse(text).map_err(|_| fault())
}

pub(crate) fn opt_id<K: Kind>(text: Option<&str>) -> Out<Option<Id<K>>> {
    text.map(id).transpose()
}

pub(crate) fn digest(bytes: &[u8]) -> Out<[u8; 32]> {
    bytes.try_into().map_err(|_| fault())
}

pub(crate) fn role(text: &str) -> Out<Role> {
    Role::parse(text).ok_or_else(fault)
}

pub(crate) fn signed(principal: &str, role_text: &str) -> Out<Signed> {
    Ok(Signed {
        principal: id(principal)?,
        role: role(role_text)?,
    })
}

pub(crate) fn opt_signed(principal: Option<&str>, role_text: Option<&str>) -> Out<Option<Signed>> {
    match (principal, role_text) {
        (Some(principal), Some(role_text)) => signed(principal, role_text).map(Some),
        (None, None) => Ok(None),
        _ => Err(fault()),
    }
}

pub(crate) fn etag(revision: i64, token: &str) -> Out<Etag> {
    let token = EtagToken::parse(token).ok_or_else(fault)?;
    Ok(Etag::new(Revision(revision), token))
}

pub(crate) fn fence(owner: &str, generation: i64, epoch: &str) -> Out<Fence> {
    Ok(Fence {
        owner: Owner::parse(owner).map_err(|_| fault())?,
        generation: Generation(generation),
        epoch: id(epoch)?,
    })
}

pub(crate) fn head_id(text: &str) -> Out<HeadId> {
    match text.get(..3) {
        Some("asg") => id(text).map(HeadId::Assignment),
        Some("frg") => id(text).map(HeadId::Fragment),
        Some("prf") => id(text).map(HeadId::Profile),
        _ => Err(fault()),
    }
}

pub(crate) fn source_revision(text: &str) -> Out<SourceRevisionId> {
    match text.get(..3) {
        Some("asr") => id(text).map(SourceRevisionId::Assignment),
        Some("frv") => id(text).map(SourceRevisionId::Fragment),
        Some("ibr") => id(text).map(SourceRevisionId::ImportBase),
        Some("prv") => id(text).map(SourceRevisionId::Profile),
        _ => Err(fault()),
    }
}

/// A member tree as JSON, for `data` and `error` columns.
pub(crate) fn json(member: &Member) -> serde_json::Value {
    use serde_json::Value;
    match member {
        Member::Null => Value::Null,
        Member::Bool(value) => Value::Bool(*value),
        Member::Number(value) => Value::from(*value),
        Member::Text(text) => Value::String(text.clone()),
        Member::List(items) => Value::Array(items.iter().map(json).collect()),
        Member::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| (name.clone(), json(member)))
                .collect(),
        ),
    }
}

pub(crate) fn member(value: &serde_json::Value) -> Out<Member> {
    use serde_json::Value;
    Ok(match value {
        Value::Null => Member::Null,
        Value::Bool(value) => Member::Bool(*value),
        Value::Number(number) => Member::Number(number.as_i64().ok_or_else(fault)?),
        Value::String(text) => Member::Text(text.clone()),
        Value::Array(items) => Member::List(items.iter().map(member).collect::<Out<_>>()?),
        Value::Object(members) => Member::Object(
            members
                .iter()
                .map(|(name, value)| Ok((name.clone(), member(value)?)))
                .collect::<Out<_>>()?,
        ),
    })
}
