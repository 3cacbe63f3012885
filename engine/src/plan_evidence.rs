//! A plan's evidence (PA §9.3): what a reviewer is shown before approving.
//!
//! Made outside the plan's transaction, because reading configurations is the
//! renderer's; the transaction then checks that Applied is still what the diff starts
//! from. Never in this module: an unredacted configuration, or a digest in the result.

use bronzeward_core::document::{Content, Stream, walk};
use bronzeward_core::id::{ImportBaseRevisionId, ReleaseId};
use bronzeward_core::problem::Member;
use bronzeward_core::redact::paired;
use bronzeward_core::rules::Rules;
use bronzeward_core::secret::Plaintext;

use crate::ports::renderer::{RenderError, Renderer};
use crate::ports::store::{PlannedMachine, PlannedRelease};

/// Why there is no evidence to show now; a retry may find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRenderer;

/// The difference a plan makes, as a reviewer may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Unified(String),
    /// A side has no redacted form, or the machine holds something else than its Applied
    /// release's artifact, so that a diff from that release would mislead.
    Withheld,
}

/// The two sides of a diff: the release of Applied, and the plan's.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    pub from: ReleaseId,
    pub base: &'a str,
    pub to: ReleaseId,
    pub output: &'a str,
}

/// The unified line diff of two redacted configurations, the base side paired (IC §8.3).
pub async fn difference<R: Rules, N: Renderer>(
    rules: R,
    renderer: &N,
    sides: Sides<'_>,
) -> Result<Difference, NoRenderer> {
    let Some(base) = tree(renderer, sides.base).await? else {
        return Ok(Difference::Withheld);
    };
    let Some(output) = tree(renderer, sides.output).await? else {
        return Ok(Difference::Withheld);
    };
    let shown = paired::base_side(rules, &base, &output);
    let written;
    let before = if shown == base {
        sides.base
    } else {
        written = match renderer.encode(&shown).await {
            Ok(text) => text,
            Err(RenderError::Refused(_)) => return Ok(Difference::Withheld),
            Err(RenderError::Unavailable(_)) => return Err(NoRenderer),
        };
        written.expose()
    };
    Ok(Difference::Unified(unified(&sides, before)))
}

fn unified(sides: &Sides<'_>, before: &str) -> String {
    similar::TextDiff::from_lines(before, sides.output)
        .unified_diff()
        .context_radius(3)
        .header(&sides.from.to_string(), &sides.to.to_string())
        .to_string()
}

/// A redacted configuration as a tree; none where it does not parse free of aliases.
async fn tree<N: Renderer>(renderer: &N, text: &str) -> Result<Option<Stream>, NoRenderer> {
    let stream = match renderer.parse(&Plaintext::new(text.to_owned())).await {
        Ok(stream) => stream,
        Err(RenderError::Refused(_)) => return Ok(None),
        Err(RenderError::Unavailable(_)) => return Err(NoRenderer),
    };
    let mut aliased = false;
    for root in &stream.documents {
        walk::every(root, &mut |visit| {
            aliased |= matches!(visit.node.content, Content::Alias(_));
        });
    }
    Ok((!aliased).then_some(stream))
}

/// The evidence of an apply-config plan.
pub fn of_application(
    from: ReleaseId,
    release: &PlannedRelease,
    machine: &PlannedMachine,
    difference: &Difference,
) -> Member {
    let (member, shown) = match difference {
        Difference::Unified(text) => ("unified", Member::Text(text.clone())),
        Difference::Withheld => ("withheld", Member::Bool(true)),
    };
    let diff = Member::object([
        ("from", Member::text(from)),
        ("to", Member::text(release.id)),
        (member, shown),
    ]);
    with_validation("diff", diff, release, machine)
}

/// The evidence of an adopt plan.
pub fn of_adoption(
    import_base: ImportBaseRevisionId,
    release: &PlannedRelease,
    machine: &PlannedMachine,
) -> Member {
    let pending = machine.facts.artifact_digest != machine.facts.import_base_digest;
    let baseline = Member::object([
        ("importBaseRevision", Member::text(import_base)),
        ("pendingConvergence", Member::Bool(pending)),
    ]);
    with_validation("baseline", baseline, release, machine)
}

fn with_validation(
    name: &str,
    shown: Member,
    release: &PlannedRelease,
    machine: &PlannedMachine,
) -> Member {
    let renderer = &release.renderer;
    let validation = Member::object([
        ("result", Member::text(&machine.validation)),
        ("at", Member::text(machine.validated_at.to_rfc3339())),
        ("contract", Member::text(renderer.contract)),
        (
            "kubernetesVersion",
            Member::text(&renderer.kubernetes_version),
        ),
        (
            "machineryVersion",
            Member::text(&renderer.machinery_version),
        ),
        ("platformMode", Member::text(&machine.platform)),
    ]);
    let dry_run = Member::object([
        ("available", Member::Bool(false)),
        (
            "reason",
            Member::text("The API holds no Talos credential, so nothing is tried on a node."),
        ),
    ]);
    Member::object([
        (name, shown),
        ("validation", validation),
        ("dryRun", dry_run),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bits: u128) -> ReleaseId {
        ReleaseId::from_bits(bits)
    }

    #[test]
    fn a_diff_names_both_releases_and_shows_only_changed_lines_with_context() {
        let sides = Sides {
            from: id(1),
            base: "a: 1\nb: 2\n",
            to: id(2),
            output: "a: 1\nb: 3\n",
        };
        let text = unified(&sides, sides.base);
        assert_eq!(
            text,
            format!(
                "--- {}\n+++ {}\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n",
                id(1),
                id(2)
            )
        );
    }

    #[test]
    fn two_equal_configurations_have_an_empty_diff() {
        let sides = Sides {
            from: id(1),
            base: "a: 1\n",
            to: id(2),
            output: "a: 1\n",
        };
        assert_eq!(unified(&sides, sides.base), "");
    }
}
