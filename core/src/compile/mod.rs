//! Publication's decision over one machine: from pinned sources to the configuration the
//! machinery composed and accepted, and everything that may be shown of it (IC §6 to §9).
//!
//! The engine runs a [`Job`] per covered machine against the renderer, encrypts the
//! [`Compiled`] configuration and hands the [`Report`] to the commit. A refusal carries
//! its report too: what was composed by then, redacted. Never in this module: a merge, a
//! provider, or a value in what is shown.

mod passes;
pub mod records;
mod report;
mod review;
mod trace;
mod verdicts;

use crate::authoring;
use crate::canonical::Digest;
use crate::digest::ConfigDigest;
use crate::forms::Forms;
use crate::id::ClusterId;
use crate::machinery::{
    Answer, Decision, Dialogue, Mode, Pause, Progress, Request, Role, SecretField, Transcript,
    Verdict,
};
use crate::output_check;
use crate::path::{Path, ShownPath};
use crate::provenance::{Attribution, Composition, Infidelity, Pair};
use crate::redact::message::View;
use crate::redact::paths;
use crate::reference::Declarations;
use crate::refusal::{Origin, Refusal, Site, Stage};
use crate::resolve::{self, Pass, Pins, Resolution, origin};
use crate::rules::{Rule, Rules};
use crate::secret::Plaintext;
use crate::source::{self, Parsed};

use passes::{Composed, Passes};
pub use records::{Fate, Record, Report, Reproduction, Review};

/// One source: the sanitized text as it is stored.
pub struct Source {
    pub text: Plaintext,
    /// SHA-256 of the stored text.
    pub digest: Digest,
    pub declarations: Declarations,
}

/// What one machine is compiled from. Fragments stand in composition order, a revision
/// selected twice once, at its first position (choice §16.31).
pub struct Input {
    pub cluster: ClusterId,
    pub mode: Mode,
    pub base: Source,
    pub fragments: Vec<Source>,
    pub pins: Pins,
}

/// A configuration that Talos's machinery composed and accepted.
pub struct Compiled {
    pub configuration: Plaintext,
    pub digest: ConfigDigest,
    pub kubernetes: Kubernetes,
    /// Whether a v1alpha1 document is there: without one no node boots.
    pub complete: bool,
}

/// The Kubernetes version of a configuration: its kubelet image's tag (choice §16.32).
/// A release covers machines of one supported version and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kubernetes {
    Supported(String),
    /// Read, and outside the machinery's window.
    Outside,
    /// The tag is no plain release.
    Unreadable,
    /// A reference placed the image or a value stands in it: it cannot be recorded.
    Hidden,
}

/// The end of a compilation.
pub struct Output {
    pub outcome: Result<Compiled, Refusal>,
    pub report: Report,
}

/// A compilation on its way.
pub struct Job<R: Rules> {
    rules: R,
    input: Input,
    transcript: Transcript,
}

impl<R: Rules> Job<R> {
    pub fn new(rules: R, input: Input) -> Job<R> {
        Job {
            rules,
            input,
            transcript: Transcript::default(),
        }
    }
}

impl<R: Rules> Decision for Job<R> {
    type Output = Output;

    fn advance(&self) -> Progress<Self::Output> {
        let mut report = Report::default();
        match run(self.rules, &self.input, &self.transcript, &mut report) {
            Err(Pause::Refuse(refusal)) => Progress::Done(Output {
                outcome: Err(*refusal),
                report,
            }),
            Ok(compiled) => Progress::Done(Output {
                outcome: Ok(compiled),
                report,
            }),
            Err(Pause::Ask(requests)) => Progress::Ask(requests),
            Err(Pause::Misanswered) => Progress::Misanswered,
        }
    }

    fn answer(&mut self, answers: Vec<Answer>) {
        self.transcript.answer(answers);
    }
}

/// What a run knows once every reference is resolved.
struct Known<'a, R> {
    rules: R,
    input: &'a Input,
    resolution: Resolution,
    forms: Forms,
}

fn run<R: Rules>(
    rules: R,
    input: &Input,
    transcript: &Transcript,
    report: &mut Report,
) -> Result<Compiled, Pause> {
    let mut dialogue = Dialogue::new(transcript);
    let sources = read(&mut dialogue, rules, input)?;
    let known = resolved(rules, input, &sources)?;
    known.report_sources(report);
    known.distinct()?;
    let passes = passes::write(&mut dialogue, &known.resolution, &sources)?;
    let full = input.fragments.len();
    let composed = passes::compose(&mut dialogue, &passes, &known.wanted(&passes))?;
    known.compare_verdicts(&composed, &passes, report)?;
    report.compose = View::None;
    let Some(Ok((configuration, real))) = composed.get(&(Pass::Real, full)) else {
        return Err(Pause::Misanswered);
    };
    let (pairs, attribution) = known.attributed(&composed, &passes, report)?;
    let overrides = trace::overrides(&mut dialogue, &known, &passes, &composed, &attribution)
        .map_err(|pause| known.unfaithful_pause(pause))?;
    known.report_outcomes(report, &pairs, &attribution, &overrides);
    let judged = judge(&mut dialogue, &known, &passes, &composed, configuration)?;
    let schema = &judged.schema;
    report.review = review::render(&mut dialogue, &known, real, &pairs, &attribution, schema)?;
    known.check_output(real, &pairs, &attribution, &overrides)?;
    known.validated(&judged, report)?;
    Ok(Compiled {
        configuration: configuration.clone(),
        digest: ConfigDigest::of(configuration.expose().as_bytes()),
        kubernetes: known.kubernetes(&judged.real, &pairs, &attribution),
        complete: judged.real.complete,
    })
}

fn read<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    rules: R,
    input: &Input,
) -> Result<Vec<(Parsed, Plaintext)>, Pause> {
    let all: Vec<&Source> = std::iter::once(&input.base)
        .chain(&input.fragments)
        .collect();
    let unread: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(index, source)| {
            let embedded = source.declarations.embedded.clone();
            (Some(origin(index)), source.text.clone(), embedded)
        })
        .collect();
    let parsed = source::read_all(dialogue, rules, &unread)?;
    for (index, (parsed, source)) in parsed.iter().zip(&all).enumerate() {
        let role = match index {
            0 => Role::Base,
            _ => Role::Fragment,
        };
        let fault = authoring::text_fault(rules, parsed, role)
            .or_else(|| authoring::declaration_fault(rules, parsed, &source.declarations));
        if let Some(fault) = fault {
            let sites = fault
                .paths
                .iter()
                .map(|path| Site::path(Some(origin(index)), paths::unredacted(path)));
            return Err(Refusal::new(Stage::Authoring, fault.rule, sites.collect()).into());
        }
    }
    let texts = all.iter().map(|source| source.text.clone());
    Ok(parsed.into_iter().zip(texts).collect())
}

fn resolved<'a, R: Rules>(
    rules: R,
    input: &'a Input,
    sources: &[(Parsed, Plaintext)],
) -> Result<Known<'a, R>, Refusal> {
    let declarations = std::iter::once(&input.base).chain(&input.fragments);
    let declarations = declarations.map(|source| &source.declarations);
    let sources: Vec<(&Parsed, &Declarations)> = sources
        .iter()
        .map(|(parsed, _)| parsed)
        .zip(declarations)
        .collect();
    let pinned = input.pins.values();
    let opaque = pinned.clone().any(|pinned| pinned.value.is_none());
    let forms = Forms::of(pinned.filter_map(|pinned| pinned.value.as_ref()));
    let resolution =
        resolve::resolve(rules, input.cluster, &sources, &input.pins).map_err(|unresolved| {
            let path = match opaque || unresolved.opaque {
                true => paths::withheld(),
                false => paths::shown(rules, &unresolved.path, &forms),
            };
            unresolved.refusal(path)
        })?;
    Ok(Known {
        rules,
        input,
        resolution,
        forms,
    })
}

/// What the machinery says of the composed configuration.
struct Judged {
    real: Verdict,
    trace: Verdict,
    schema: Vec<SecretField>,
}

fn judge<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    known: &Known<'_, R>,
    passes: &Passes,
    composed: &Composed,
    configuration: &Plaintext,
) -> Result<Judged, Pause> {
    let full = known.input.fragments.len();
    let traced = match composed.get(&(Pass::Trace, full)) {
        Some(Ok((text, _))) if passes.traced() => text,
        _ => configuration,
    };
    let validate = |text: &Plaintext| Request::Validate {
        configuration: text.clone(),
        mode: known.input.mode,
    };
    let fields = Request::SecretFields {
        role: Role::Base,
        text: configuration.clone(),
    };
    let answers = dialogue.ask(vec![validate(configuration), validate(traced), fields])?;
    let Ok([real, trace, fields]) = <[Answer; 3]>::try_from(answers) else {
        return Err(Pause::Misanswered);
    };
    let (real, trace, fields) = (real.verdict()?, trace.verdict()?, fields.secret_fields()?);
    match (real, trace, fields) {
        (Ok(real), Ok(trace), Ok(schema)) => Ok(Judged {
            real,
            trace,
            schema,
        }),
        // A configuration that the machinery composed and does not load again.
        _ => Err(Refusal::new(Stage::Validate, "load", Vec::new()).into()),
    }
}

impl<R: Rules> Known<'_, R> {
    fn shown(&self, path: &Path) -> ShownPath {
        paths::shown(self.rules, path, &self.forms)
    }

    fn digest(&self, origin: Origin) -> Digest {
        match origin {
            Origin::Base => self.input.base.digest,
            Origin::Fragment(index) => self.input.fragments[index].digest,
        }
    }

    /// Two occurrences that no trace could tell apart refuse, both named.
    fn distinct(&self) -> Result<(), Refusal> {
        let indistinct = self.resolution.indistinct();
        if self.rules.holds(Rule::TraceDistinct, indistinct.is_none()) {
            return Ok(());
        }
        let (first, second) = indistinct.unwrap_or_default();
        let mut named = vec![first, second];
        named.dedup();
        let sites = named.into_iter().map(|index| {
            let occurrence = &self.resolution.occurrences[index];
            Site::path(
                Some(origin(occurrence.source)),
                self.shown(&occurrence.path),
            )
        });
        Err(Refusal::new(
            Stage::Resolution,
            "trace-indistinct",
            sites.collect(),
        ))
    }

    fn wanted(&self, passes: &Passes) -> std::collections::BTreeSet<passes::Wanted> {
        let full = self.input.fragments.len();
        let mut wanted = std::collections::BTreeSet::from([(Pass::Real, full)]);
        let mut add = |fragments: usize| {
            wanted.insert((Pass::Real, fragments));
            if passes.traced() {
                wanted.insert((Pass::Trace, fragments));
            }
        };
        add(full);
        // The base alone tells how many leaves each of its references reaches.
        let base_holds = self
            .resolution
            .occurrences
            .iter()
            .any(|one| one.source == 0);
        if base_holds && full > 0 {
            add(0);
        }
        for item in passes.flips() {
            wanted.insert((Pass::Flip(item), full));
            if self.resolution.source_of(item) == 0 && full > 0 {
                wanted.insert((Pass::Flip(item), 0));
            }
        }
        wanted
    }

    fn attributed(
        &self,
        composed: &Composed,
        passes: &Passes,
        report: &mut Report,
    ) -> Result<(Vec<Pair>, Attribution), Refusal> {
        trace::attribute(self, composed, passes).map_err(|infidelity| {
            report.compose = View::Withheld;
            self.unfaithful(&infidelity)
        })
    }

    fn unfaithful(&self, infidelity: &Infidelity) -> Refusal {
        let site = Site::path(None, self.shown(&infidelity.path));
        Refusal::new(Stage::Compose, infidelity.rule, vec![site])
    }

    fn unfaithful_pause(&self, stopped: trace::Stopped) -> Pause {
        match stopped {
            trace::Stopped::Paused(pause) => pause,
            trace::Stopped::Unfaithful(infidelity) => self.unfaithful(&infidelity).into(),
        }
    }

    /// Reserved text, copies and overrides, in that order, before validation.
    fn check_output(
        &self,
        real: &Composition,
        pairs: &[Pair],
        attribution: &Attribution,
        overrides: &trace::Overrides,
    ) -> Result<(), Refusal> {
        let findings = output_check::search(
            self.rules,
            &self.resolution,
            real,
            pairs,
            attribution,
            &self.forms,
        );
        let sites = |paths: &[Path]| {
            let sites = paths.iter().map(|path| Site::path(None, self.shown(path)));
            sites.collect::<Vec<_>>()
        };
        if !findings.reserved.is_empty() {
            let sites = sites(&findings.reserved);
            return Err(Refusal::new(Stage::Output, "reserved-text", sites));
        }
        if !findings.copies.is_empty() {
            let sites = sites(&findings.copies);
            return Err(Refusal::new(Stage::Output, "exact-copy", sites));
        }
        let base = overrides
            .iter()
            .filter(|(item, _)| self.resolution.source_of(**item) == 0);
        let first = base.clone().map(|(_, fragment)| *fragment).min();
        if self.rules.holds(Rule::BaseOverride, first.is_none()) {
            return Ok(());
        }
        let fragment = first.unwrap_or_default();
        let mut sites: Vec<Site> = base
            .filter(|(_, by)| **by == fragment)
            .map(|(item, _)| {
                let item = &self.resolution.items[*item];
                let path = self.shown(&self.resolution.occurrences[item.occurrence].path);
                Site::path(Some(Origin::Fragment(fragment)), path)
            })
            .collect();
        sites.dedup();
        Err(Refusal::new(Stage::Output, "base-override", sites))
    }
}

#[cfg(test)]
mod tests;
