//! Heads and what stands behind them: fragments, profiles, assignments (PA §3.1).
//!
//! http parses names and layers; the draft update and the publication check pins and
//! selections with the values given here. Never in this module: sanitized text.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{
    AssignmentId, FragmentRevisionId, HeadId, MachineId, PrincipalId, ProfileRevisionId,
};
use crate::inventory::Malformed;
use crate::revision::{EtagToken, Revision};
use crate::rules::{Rule, Rules};

/// A fragment's layer; the order is the order of composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    Global,
    Site,
    Cluster,
    Role,
    Workload,
    Override,
}

impl Layer {
    pub const ALL: [Layer; 6] = [
        Layer::Global,
        Layer::Site,
        Layer::Cluster,
        Layer::Role,
        Layer::Workload,
        Layer::Override,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Layer::Global => "global",
            Layer::Site => "site",
            Layer::Cluster => "cluster",
            Layer::Role => "role",
            Layer::Workload => "workload",
            Layer::Override => "override",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.as_str() == text)
    }
}

/// A fragment's or profile's name: `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let spelled = text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let ends = !text.starts_with('-') && !text.ends_with('-');
        if spelled && ends && (1..=63).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Malformed {
                member: "name",
                rule: "must be 1 to 63 of a-z, 0-9 and inner hyphens",
            })
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A machine's assignment head as something was made on it; none is a machine that never
/// had one. The head revision is compared, so that a change away and back is a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssignmentAt {
    pub head: AssignmentId,
    pub revision: Revision,
}

/// What a head is the head of. The order is that of a draft's entries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Fragment(Name),
    Profile(Name),
    Assignment(MachineId),
}

/// A head's row. `R` is its kind of revision; none after a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<R> {
    pub id: HeadId,
    pub subject: Subject,
    pub current: Option<R>,
    pub revision: Revision,
    pub etag: EtagToken,
}

/// A profile revision: the fragment revisions it pins, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileContent {
    pub fragments: Vec<FragmentRevisionId>,
}

/// An assignment revision: profiles by name, then fragments by layer and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssignmentContent {
    pub profiles: Vec<Name>,
    pub fragments: BTreeMap<Layer, Vec<Name>>,
}

/// Who wrote a revision, for self-approval and reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authored<R> {
    pub revision: R,
    pub author: PrincipalId,
}

/// A fragment revision as a pin finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinTarget {
    pub name: Name,
    pub layer: Layer,
}

/// A fragment or profile name as the draft and the heads together have it: the draft's
/// own entry decides over the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<R> {
    Proposed(R),
    /// The draft removes it.
    Removed,
    /// No entry; the head's revision.
    Published(R),
    /// No entry, and no head with a revision.
    Absent,
}

impl<R: Copy> Standing<R> {
    pub const fn of(entry: Option<Option<R>>, head: Option<R>) -> Self {
        match (entry, head) {
            (Some(Some(revision)), _) => Standing::Proposed(revision),
            (Some(None), _) => Standing::Removed,
            (None, Some(revision)) => Standing::Published(revision),
            (None, None) => Standing::Absent,
        }
    }

    pub const fn revision(self) -> Option<R> {
        match self {
            Standing::Proposed(revision) | Standing::Published(revision) => Some(revision),
            Standing::Removed | Standing::Absent => None,
        }
    }
}

/// What a pin or a selection is checked against, read under the heads' locks.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub fragments: BTreeMap<Name, (Standing<FragmentRevisionId>, Option<Layer>)>,
    pub profiles: BTreeMap<Name, Standing<ProfileRevisionId>>,
    /// Every pinned revision that exists in this cluster.
    pub pins: BTreeMap<FragmentRevisionId, PinTarget>,
}

/// A pin or selection that does not stand; `path` is the body's JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unselectable {
    pub path: String,
    pub rule: &'static str,
}

/// Checks a profile's pins (PA §3.1): each the revision this draft proposes for its
/// fragment or, without an entry, the head's.
pub fn check_profile<R: Rules>(
    rules: &R,
    profile: &ProfileContent,
    names: &Names,
) -> Result<(), Unselectable> {
    for (position, pin) in profile.fragments.iter().enumerate() {
        let path = || format!("/fragments/{position}");
        let Some(target) = names.pins.get(pin) else {
            return Err(Unselectable {
                path: path(),
                rule: "pin-unknown",
            });
        };
        let standing = names
            .fragments
            .get(&target.name)
            .map_or(Standing::Absent, |(standing, _)| *standing);
        let rule = match standing {
            Standing::Removed | Standing::Absent => "pin-removed",
            Standing::Proposed(_) | Standing::Published(_) => "pin-stale",
        };
        if !rules.holds(Rule::PinIsCurrent, standing.revision() == Some(*pin)) {
            return Err(Unselectable { path: path(), rule });
        }
    }
    Ok(())
}

/// Checks an assignment's selections (PA §3.1).
pub fn check_assignment<R: Rules>(
    rules: &R,
    assignment: &AssignmentContent,
    names: &Names,
) -> Result<(), Unselectable> {
    for (position, name) in assignment.profiles.iter().enumerate() {
        let standing = names.profiles.get(name).copied();
        let stands = standing.and_then(Standing::revision).is_some();
        if !rules.holds(Rule::SelectionExists, stands) {
            return Err(Unselectable {
                path: format!("/profiles/{position}"),
                rule: missing_or_removed(standing.is_some_and(is_removed)),
            });
        }
    }
    for (layer, selected) in &assignment.fragments {
        for (position, name) in selected.iter().enumerate() {
            let path = || format!("/fragments/{}/{position}", layer.as_str());
            let found = names.fragments.get(name);
            let stands = found.is_some_and(|(standing, _)| standing.revision().is_some());
            if !rules.holds(Rule::SelectionExists, stands) {
                let removed = found.is_some_and(|(standing, _)| is_removed(*standing));
                return Err(Unselectable {
                    path: path(),
                    rule: missing_or_removed(removed),
                });
            }
            let carried = found.and_then(|(_, layer)| *layer);
            if !rules.holds(
                Rule::SelectionLayer,
                carried.is_none() || carried == Some(*layer),
            ) {
                return Err(Unselectable {
                    path: path(),
                    rule: "selection-layer",
                });
            }
        }
    }
    Ok(())
}

fn is_removed<R>(standing: Standing<R>) -> bool {
    matches!(standing, Standing::Removed)
}

const fn missing_or_removed(removed: bool) -> &'static str {
    if removed {
        "selection-removed"
    } else {
        "selection-missing"
    }
}

/// A fragment in a machine's composition, with the layer it is composed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    pub layer: Layer,
    pub revision: FragmentRevisionId,
}

/// The order a machine's fragments are composed in (PA §6.1): by layer, and within one
/// the profiles' pins by the assignment's profile position and then the pin's, then the
/// assignment's own fragments by position.
pub fn composition_order(
    profile_pins: &[Vec<(Layer, FragmentRevisionId)>],
    selected: &BTreeMap<Layer, Vec<FragmentRevisionId>>,
) -> Vec<Placed> {
    let mut order = Vec::new();
    for layer in Layer::ALL {
        let pinned = profile_pins.iter().flatten().filter(|(of, _)| *of == layer);
        order.extend(pinned.map(|(_, revision)| Placed {
            layer,
            revision: *revision,
        }));
        let own = selected.get(&layer).into_iter().flatten();
        order.extend(own.map(|revision| Placed {
            layer,
            revision: *revision,
        }));
    }
    order
}

/// The names an update's checks read heads for, so that they are locked in id order
/// before the draft.
pub fn names_of(assignment: &AssignmentContent) -> (BTreeSet<Name>, BTreeSet<Name>) {
    let profiles = assignment.profiles.iter().cloned().collect();
    let fragments = assignment.fragments.values().flatten().cloned().collect();
    (profiles, fragments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Enforced, Without};

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn frv(bits: u128) -> FragmentRevisionId {
        FragmentRevisionId::from_bits(bits)
    }

    fn names() -> Names {
        let prv = ProfileRevisionId::from_bits(1);
        Names {
            fragments: BTreeMap::from([
                (
                    name("kept"),
                    (Standing::Published(frv(1)), Some(Layer::Cluster)),
                ),
                (
                    name("changed"),
                    (Standing::Proposed(frv(3)), Some(Layer::Role)),
                ),
                (name("gone"), (Standing::Removed, None)),
            ]),
            profiles: BTreeMap::from([
                (name("workers"), Standing::Published(prv)),
                (name("old"), Standing::Removed),
            ]),
            pins: [(1, "kept"), (2, "changed"), (3, "changed"), (4, "gone")]
                .into_iter()
                .map(|(bits, text)| {
                    let target = PinTarget {
                        name: name(text),
                        layer: Layer::Cluster,
                    };
                    (frv(bits), target)
                })
                .collect(),
        }
    }

    #[test]
    fn a_name_has_its_grammar() {
        let longest = "a".repeat(63);
        for text in ["a", "0", "a-b", longest.as_str()] {
            assert!(Name::parse(text).is_ok(), "{text}");
        }
        let too_long = "a".repeat(64);
        for text in ["", "-a", "a-", "A", "a_b", "a.b", too_long.as_str()] {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }

    // covers-part: PA-DRF-1 (the checks themselves; where they run is the engine's)
    #[test]
    fn a_pin_is_what_the_draft_proposes_or_else_what_the_head_has() {
        let check = |pins: &[u128]| {
            let profile = ProfileContent {
                fragments: pins.iter().copied().map(frv).collect(),
            };
            check_profile(&Enforced, &profile, &names())
        };
        assert_eq!(check(&[1, 3]), Ok(()));
        for (pins, path, rule) in [
            (vec![1, 2], "/fragments/1", "pin-stale"),
            (vec![4], "/fragments/0", "pin-removed"),
            (vec![9], "/fragments/0", "pin-unknown"),
        ] {
            assert_eq!(
                check(&pins),
                Err(Unselectable {
                    path: path.into(),
                    rule
                })
            );
        }
        let stale = ProfileContent {
            fragments: vec![frv(2)],
        };
        assert!(check_profile(&Without(&[Rule::PinIsCurrent]), &stale, &names()).is_ok());
    }

    // covers-part: PA-DRF-1 (selections)
    #[test]
    fn a_selected_name_stands_and_carries_its_layer() {
        let select = |profiles: &[&str], layer, fragments: &[&str]| AssignmentContent {
            profiles: profiles.iter().map(|text| name(text)).collect(),
            fragments: BTreeMap::from([(layer, fragments.iter().map(|text| name(text)).collect())]),
        };
        let check = |assignment: &AssignmentContent| {
            check_assignment(&Enforced, assignment, &names()).map_err(|it| (it.path, it.rule))
        };
        assert_eq!(
            check(&select(&["workers"], Layer::Cluster, &["kept"])),
            Ok(())
        );
        let cases = [
            (
                select(&["old"], Layer::Role, &[]),
                "/profiles/0",
                "selection-removed",
                Rule::SelectionExists,
            ),
            (
                select(&["none"], Layer::Role, &[]),
                "/profiles/0",
                "selection-missing",
                Rule::SelectionExists,
            ),
            (
                select(&[], Layer::Role, &["gone"]),
                "/fragments/role/0",
                "selection-removed",
                Rule::SelectionExists,
            ),
            (
                select(&[], Layer::Role, &["none"]),
                "/fragments/role/0",
                "selection-missing",
                Rule::SelectionExists,
            ),
            (
                select(&[], Layer::Role, &["changed", "kept"]),
                "/fragments/role/1",
                "selection-layer",
                Rule::SelectionLayer,
            ),
        ];
        for (assignment, path, refused, rule) in cases {
            assert_eq!(check(&assignment), Err((path.to_owned(), refused)));
            let rules: &'static [Rule] = vec![rule].leak();
            assert!(check_assignment(&Without(rules), &assignment, &names()).is_ok());
        }
    }

    #[test]
    fn composition_goes_by_layer_then_profiles_then_the_assignments_own() {
        let pins = vec![
            vec![(Layer::Override, frv(1)), (Layer::Global, frv(2))],
            vec![(Layer::Global, frv(3))],
        ];
        let own = BTreeMap::from([
            (Layer::Global, vec![frv(4)]),
            (Layer::Cluster, vec![frv(5)]),
        ]);
        let order: Vec<_> = composition_order(&pins, &own)
            .into_iter()
            .map(|placed| placed.revision)
            .collect();
        assert_eq!(order, [frv(2), frv(3), frv(4), frv(5), frv(1)]);
    }
}
