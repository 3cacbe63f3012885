//! T3's second look at the versions a release depends on (PA §6.2, DM §5.2).
//!
//! Publication classified each version afresh before it compiled; a transition that was
//! recorded meanwhile refuses the release here, under the status rows' FOR SHARE locks.

use crate::dependency::Class;
use crate::id::DependencyId;
use crate::rules::{Rule, Rules};
use crate::time::DbTime;

/// A version the release names, as publication classified it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The provider's object: a path below its mount, or a key's name.
    pub object: String,
    pub version: i64,
    /// As the status row spells it.
    pub created: String,
    /// A KV version holds one creation time; a Transit key's row of another one stands
    /// beside this one's.
    pub kv: bool,
    /// A database time read just before its classification began.
    pub classified_from: DbTime,
}

/// A status row, a concurrent publication's included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRow {
    pub id: DependencyId,
    pub object: String,
    pub version: i64,
    pub created: String,
    pub class: Class,
    pub recorded_at: DbTime,
}

/// Why a publication is refused 422 naming the dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecheckRefusal {
    /// The KV version's row has another creation time.
    IdentityChanged { dependency: DependencyId },
    /// Recorded not before publication began to classify it: equal counts as after.
    NotRetained { dependency: DependencyId },
}

/// Compares every named version with the rows as they are under their locks. Rows come in
/// identifier order, so that the first refusal is one refusal.
pub fn recheck<R: Rules>(
    rules: &R,
    named: &[Named],
    rows: &[StatusRow],
) -> Result<(), RecheckRefusal> {
    for row in rows {
        let versions = named
            .iter()
            .filter(|it| it.object == row.object && it.version == row.version);
        for version in versions {
            let same = version.created == row.created;
            let dependency = row.id;
            if version.kv && !rules.holds(Rule::DependencyRecheck, same) {
                return Err(RecheckRefusal::IdentityChanged { dependency });
            }
            let retained = match row.class {
                Class::Retained => true,
                Class::Blocked | Class::Lost | Class::Unknown => false,
            };
            let earlier = row.recorded_at < version.classified_from;
            if same && !rules.holds(Rule::DependencyRecheck, retained || earlier) {
                return Err(RecheckRefusal::NotRetained { dependency });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn named(kv: bool) -> Named {
        Named {
            object: "gen/cl/ing/value".into(),
            version: 1,
            created: "t1".into(),
            kv,
            classified_from: DbTime::from_seconds(10),
        }
    }

    fn row(created: &str, class: Class, recorded_at: i64) -> StatusRow {
        StatusRow {
            id: DependencyId::from_bits(1),
            object: "gen/cl/ing/value".into(),
            version: 1,
            created: created.into(),
            class,
            recorded_at: DbTime::from_seconds(recorded_at),
        }
    }

    #[test]
    fn a_transition_recorded_since_the_classification_began_refuses_and_equal_is_since() {
        let check = |row: StatusRow| recheck(&Enforced, &[named(true)], &[row]);
        let dependency = DependencyId::from_bits(1);
        assert_eq!(check(row("t1", Class::Retained, 20)), Ok(()));
        assert_eq!(check(row("t1", Class::Lost, 9)), Ok(()));
        for class in [Class::Blocked, Class::Lost, Class::Unknown] {
            let refused = check(row("t1", class, 10));
            assert_eq!(refused, Err(RecheckRefusal::NotRetained { dependency }));
        }
        let control = Without(&[Rule::DependencyRecheck]);
        let lost = row("t1", Class::Lost, 10);
        assert_eq!(recheck(&control, &[named(true)], &[lost]), Ok(()));
    }

    #[test]
    fn another_creation_time_is_another_kv_version_and_an_elder_key_of_the_same_name() {
        let elder = || row("t0", Class::Lost, 20);
        let dependency = DependencyId::from_bits(1);
        assert_eq!(
            recheck(&Enforced, &[named(true)], &[elder()]),
            Err(RecheckRefusal::IdentityChanged { dependency })
        );
        assert_eq!(recheck(&Enforced, &[named(false)], &[elder()]), Ok(()));
    }
}
