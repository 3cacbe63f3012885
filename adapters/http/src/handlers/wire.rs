//! Core values in the API's spelling, for several resources.

use bronzeward_api::Timestamp;
use bronzeward_api::bodies::common::{Acting, By, Controller, Role as WireRole};
use bronzeward_api::id as wire_id;
use bronzeward_core::id::{Id, Kind};
use bronzeward_core::principal::{Role, Signed};
use bronzeward_core::problem::{Member, Problem};
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::EntryRow;
use bronzeward_engine::request::Refused;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An identifier on the wire. Core's text is the canonical one, so it always parses.
pub fn id<K: Kind, L: wire_id::Kind>(id: Id<K>) -> Result<wire_id::Id<L>, Refused> {
    wire_id::Id::parse(&id.to_string())
        .ok_or_else(|| Problem::internal("An identifier of another kind.").into())
}

/// [`id`] where a value may be missing.
pub fn opt_id<K: Kind, L: wire_id::Kind>(
    value: Option<Id<K>>,
) -> Result<Option<wire_id::Id<L>>, Refused> {
    value.map(id).transpose()
}

/// A record that a body names: its form was checked by the body's own type.
pub fn core_id<K: Kind, L: wire_id::Kind>(value: &wire_id::Id<L>) -> Result<Id<K>, Refused> {
    Id::parse(value.as_str())
        .map_err(|_| Problem::invalid_request("An identifier is malformed.").into())
}

pub fn time(at: DbTime) -> Timestamp {
    Timestamp(at.to_rfc3339())
}

pub const fn role(role: Role) -> WireRole {
    match role {
        Role::Viewer => WireRole::Viewer,
        Role::Author => WireRole::Author,
        Role::Publisher => WireRole::Publisher,
        Role::Approver => WireRole::Approver,
        Role::RecoveryAdmin => WireRole::RecoveryAdmin,
    }
}

pub fn acting(signed: Signed) -> Result<Acting, Refused> {
    Ok(Acting {
        principal: id(signed.principal)?,
        role: role(signed.role),
    })
}

/// Who an entry is by: the identity where one acted, else the controller.
pub fn by(entry: &EntryRow) -> Result<By, Refused> {
    match (entry.actor, &entry.controller) {
        (Some(signed), _) => acting(signed).map(By::Acting),
        (None, Some(controller)) => Ok(By::Controller(Controller {
            controller: controller.owner.instance().to_owned(),
            generation: controller
                .generation
                .map(|generation| generation.unsigned_abs()),
            epoch: id(entry.epoch)?,
        })),
        (None, None) => Err(Problem::internal("An entry by nobody.").into()),
    }
}

/// A counter that is never negative.
pub fn count(number: i64) -> u64 {
    number.unsigned_abs()
}

/// A stored word as its wire enumeration.
pub fn word<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    serde_json::from_value(Value::from(text))
        .map_err(|_| Problem::internal("A stored word is not on the wire.").into())
}

/// An entry's data: an object of its members.
pub fn object(member: &Member) -> Result<Map<String, Value>, Refused> {
    match crate::problem::value(member) {
        Value::Object(members) => Ok(members),
        _ => Err(Problem::internal("An entry without members.").into()),
    }
}
