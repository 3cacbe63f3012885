//! What the machinery's verdicts mean: every pass must give the same one, and what it
//! said is shown through its template or not at all (IC §8.1, §8.3, §10.2).
//!
//! Never in this module: a message that no template went over.

use crate::machinery::{Rejected, Verdict, Window};
use crate::provenance::{Attribution, Pair};
use crate::redact::message::{self, View};
use crate::refusal::{Origin, Refusal, Site, Stage};
use crate::resolve::Pass;
use crate::rules::{Rule, Rules};
use crate::secret::Plaintext;

use super::passes::{Composed, Passes};
use super::{Judged, Known, Kubernetes, Report};

impl<R: Rules> Known<'_, R> {
    /// A rejection is the machinery's right answer when every pass gives it.
    pub(super) fn compare_verdicts(
        &self,
        composed: &Composed,
        passes: &Passes,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let full = self.input.fragments.len();
        let Some(real) = composed.get(&(Pass::Real, full)) else {
            return Ok(());
        };
        let trace = composed.get(&(Pass::Trace, full)).unwrap_or(real);
        let agree = |other: &Result<_, Rejected>| match (real, other) {
            (Ok(_), Ok(_)) => true,
            (Err(real), Err(other)) => real.fragment == other.fragment && real.class == other.class,
            _ => false,
        };
        let flips = passes.flips();
        let flips_agree = flips
            .filter_map(|item| composed.get(&(Pass::Flip(item), full)))
            .all(agree);
        if !self
            .rules
            .holds(Rule::PassesAgree, agree(trace) && flips_agree)
        {
            report.compose = View::Withheld;
            return Err(Refusal::new(Stage::Compose, "passes-disagree", Vec::new()));
        }
        let Err(rejected) = real else {
            return Ok(());
        };
        let traced = trace.as_ref().err().unwrap_or(rejected);
        // The step read the base and the fragments up to the one it refused.
        let read = rejected.fragment.map_or(full, |fragment| fragment + 1) + 1;
        // A panic has no message of its own to show.
        let silent = rejected.message.expose().is_empty();
        report.compose = message::view(
            self.rules,
            rejected.message.expose(),
            traced.message.expose(),
            &self.resolution,
            read,
            &self.forms,
        );
        if silent {
            report.compose = View::Withheld;
        }
        let site = rejected
            .fragment
            .map(|fragment| Site::origin(Origin::Fragment(fragment)));
        let rule = match rejected.fragment {
            Some(_) => "fragment",
            None => "composition",
        };
        Err(Refusal::new(
            Stage::Compose,
            rule,
            site.into_iter().collect(),
        ))
    }

    pub(super) fn validated(&self, judged: &Judged, report: &mut Report) -> Result<(), Refusal> {
        let (real, trace) = (&judged.real, &judged.trace);
        let agree = real.errors.is_empty() == trace.errors.is_empty();
        if !self.rules.holds(Rule::PassesAgree, agree) {
            report.validate = View::Withheld;
            return Err(Refusal::new(Stage::Validate, "passes-disagree", Vec::new()));
        }
        let said = |texts: &[Plaintext]| {
            let texts: Vec<&str> = texts.iter().map(Plaintext::expose).collect();
            zeroize::Zeroizing::new(texts.join("\n"))
        };
        let (real_text, trace_text) = match real.errors.is_empty() {
            true => (said(&real.warnings), said(&trace.warnings)),
            false => (said(&real.errors), said(&trace.errors)),
        };
        report.validate = match real_text.is_empty() && trace_text.is_empty() {
            true => View::None,
            false => message::view(
                self.rules,
                &real_text,
                &trace_text,
                &self.resolution,
                self.input.fragments.len() + 1,
                &self.forms,
            ),
        };
        match real.errors.is_empty() {
            true => Ok(()),
            false => Err(Refusal::new(Stage::Validate, "invalid", Vec::new())),
        }
    }

    pub(super) fn kubernetes(
        &self,
        verdict: &Verdict,
        pairs: &[Pair],
        attribution: &Attribution,
    ) -> Kubernetes {
        let image = verdict.kubelet_image.expose();
        let placed = attribution.items.keys().any(|leaf| {
            let tokens = pairs[*leaf].path.tokens.iter().map(String::as_str);
            tokens.eq(["machine", "kubelet", "image"])
        });
        if placed || self.forms.equals(image) || self.forms.any_in(image) {
            return Kubernetes::Hidden;
        }
        match (verdict.kubernetes, &verdict.kubernetes_version) {
            (Window::Inside, Some(version)) => Kubernetes::Supported(version.clone()),
            (Window::Outside, _) => Kubernetes::Outside,
            (Window::Inside, None) | (Window::Unreadable, _) => Kubernetes::Unreadable,
        }
    }
}
