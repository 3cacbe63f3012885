//! Ingestion's decision: from an unresolved text to a sanitized one and the values to
//! create (IC §2.3 steps 2 to 6, §3.6 item 3).
//!
//! The engine runs a [`Job`] against the renderer, creates a generation per value and
//! only then persists the [`Extraction`]'s sanitized text. Never in this module: a
//! provider path, a claim, or a value in a refusal.

mod substitute;
mod targets;

use crate::authoring;
use crate::forms::Forms;
use crate::guard::{self, Extracted, Hit};
use crate::machinery::{
    Answer, Decision, Dialogue, Pause, Progress, Rejected, Request, Role, Transcript,
};
use crate::path::Path;
use crate::redact::paths;
use crate::reference::{Declaration, Declarations, Name};
use crate::refusal::{Refusal, Site, Stage};
use crate::rules::{Rule, Rules};
use crate::sanitized::Sanitized;
use crate::secret::{Plaintext, Value};
use crate::source::{self, Parsed};

use targets::{Marked, Target};

/// What is ingested, and by which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A machine's configuration, at import or drift adoption.
    Base,
    /// A fragment, at a draft update.
    Fragment,
    /// Further marks on a staged change (IC §3.6): refusals name marks by position, and
    /// nothing but the marked nodes may change.
    Review(Role),
}

impl Purpose {
    fn role(self) -> Role {
        match self {
            Purpose::Base => Role::Base,
            Purpose::Fragment => Role::Fragment,
            Purpose::Review(role) => role,
        }
    }

    fn is_review(self) -> bool {
        matches!(self, Purpose::Review(_))
    }
}

/// One ingestion's input.
pub struct Input {
    pub purpose: Purpose,
    pub text: Plaintext,
    /// The references the text already carries, and its embedded documents.
    pub declarations: Declarations,
    pub marks: Vec<Path>,
}

/// A value to create at a path of its own, create-only, before anything is persisted.
pub struct Generation {
    pub name: Name,
    pub value: Value,
}

/// The end of an ingestion's decision.
pub struct Extraction {
    pub sanitized: Sanitized,
    pub generations: Vec<Generation>,
}

/// An ingestion on its way.
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
    type Output = Extraction;

    fn advance(&self) -> Progress<Self::Output> {
        run(self.rules, &self.input, &self.transcript).into()
    }

    fn answer(&mut self, answers: Vec<Answer>) {
        self.transcript.answer(answers);
    }
}

fn run<R: Rules>(rules: R, input: &Input, transcript: &Transcript) -> Result<Extraction, Pause> {
    let mut dialogue = Dialogue::new(transcript);
    let declarations = &input.declarations;
    let parsed = source::read(
        &mut dialogue,
        rules,
        None,
        &input.text,
        &declarations.embedded,
    )
    .map_err(|pause| positionless(input, pause))?;
    well_formed(rules, input, &parsed, declarations, &Forms::default())?;
    let schema = schema_fields(&mut dialogue, input)?;
    let marks = addressed(rules, input, &parsed)?;
    let found = targets::identify(rules, &parsed, &schema, &marks)
        .map_err(|refused| refused.refusal(input))?;
    let minted = dialogue.ask(vec![Request::Mint; found.len()])?;
    let mut named = Vec::new();
    for (target, answer) in found.into_iter().zip(minted) {
        named.push((Name::minted(answer.minted()?), target));
    }
    let forms = Forms::of(named.iter().map(|(_, target)| &target.value));
    let declared = declared(&parsed, declarations, &named);
    let text = substitute::write(&mut dialogue, rules, input, &parsed, &named)?;
    let candidate = source::read(&mut dialogue, rules, None, &text, &declared.embedded)
        .map_err(|pause| positionless(input, pause))?;
    well_formed(rules, input, &candidate, &declared, &forms)?;
    if input.purpose.is_review() {
        substitute::rewrites_nothing(rules, input, &parsed, &candidate, &named)?;
    }
    loads(&mut dialogue, rules, input, &parsed, &named, &text)?;
    guarded(rules, input, &candidate, &named, &forms)?;
    Ok(Extraction {
        sanitized: Sanitized::new(text.expose().to_string(), declared),
        generations: named
            .into_iter()
            .map(|(name, target)| Generation {
                name,
                value: target.value,
            })
            .collect(),
    })
}

/// A review's refusal names no path: a staged path can spell a value this run no longer
/// holds (IC §3.6 item 4).
fn positionless(input: &Input, pause: Pause) -> Pause {
    match pause {
        Pause::Refuse(mut refusal) if input.purpose.is_review() => {
            for site in &mut refusal.sites {
                site.path = None;
            }
            Pause::Refuse(refusal)
        }
        other => other,
    }
}

/// A site by its path, or in a review by the mark's position alone.
fn site<R: Rules>(
    rules: R,
    input: &Input,
    path: Option<&Path>,
    mark: Option<usize>,
    forms: &Forms,
) -> Site {
    let review = input.purpose.is_review();
    Site {
        origin: None,
        path: path
            .filter(|_| !review)
            .map(|path| paths::shown(rules, path, forms)),
        mark,
        line: 0,
    }
}

fn well_formed<R: Rules>(
    rules: R,
    input: &Input,
    parsed: &Parsed,
    declarations: &Declarations,
    forms: &Forms,
) -> Result<(), Refusal> {
    let role = input.purpose.role();
    let fault = authoring::text_fault(rules, parsed, role)
        .or_else(|| authoring::declaration_fault(rules, parsed, declarations));
    let Some(fault) = fault else {
        return Ok(());
    };
    let stage = match fault.parse {
        true => Stage::Ingestion,
        false => Stage::Authoring,
    };
    let sites = fault
        .paths
        .iter()
        .map(|path| site(rules, input, Some(path), None, forms));
    Err(Refusal::new(stage, fault.rule, sites.collect()))
}

/// The machinery's own list of secret fields, as paths of the parsed stream.
fn schema_fields(
    dialogue: &mut Dialogue<'_>,
    input: &Input,
) -> Result<Vec<(usize, Vec<String>)>, Pause> {
    let request = Request::SecretFields {
        role: input.purpose.role(),
        text: input.text.clone(),
    };
    let mut answers = dialogue.ask(vec![request])?;
    let answer = answers.pop().ok_or(Pause::Misanswered)?;
    match answer.secret_fields()? {
        Ok(fields) => Ok(fields
            .into_iter()
            .map(|field| (field.document, field.tokens))
            .collect()),
        Err(rejected) => Err(positionless(
            input,
            source::unread(None, &rejected, None).into(),
        )),
    }
}

/// Each mark with the node it names.
fn addressed<R: Rules>(rules: R, input: &Input, parsed: &Parsed) -> Result<Vec<Marked>, Refusal> {
    let mut marks = Vec::new();
    let mut sites = Vec::new();
    for (position, path) in input.marks.iter().enumerate() {
        let spot = parsed.find(path);
        if !rules.holds(Rule::MarkAddressed, spot.is_some()) {
            sites.push(site(
                rules,
                input,
                Some(path),
                Some(position),
                &Forms::default(),
            ));
        }
        marks.extend(spot.map(|spot| Marked {
            spot,
            position,
            path: path.clone(),
        }));
    }
    if sites.is_empty() {
        return Ok(marks);
    }
    Err(Refusal::new(Stage::Ingestion, "mark-unaddressed", sites))
}

/// The declarations of the candidate: the carried ones, one per extracted value, and the
/// embedded documents that still stand.
fn declared(parsed: &Parsed, carried: &Declarations, named: &[(Name, Target)]) -> Declarations {
    let mut declared = carried.clone();
    for (name, target) in named {
        let declaration = Declaration {
            kind: target.value.kind(),
            version: 1,
            encoding: None,
        };
        declared.references.insert(name.clone(), declaration);
    }
    declared.embedded.retain(|path, _| {
        let holder = parsed.find(path);
        !named
            .iter()
            .any(|(_, target)| holder.as_ref().is_some_and(|holder| target.covers(holder)))
    });
    declared
}

/// The candidate must load with its references as nulls, or it could never be ingested
/// again (IC §2.3 step 4). A review names the mark that stops it, found by bisection.
fn loads<R: Rules>(
    dialogue: &mut Dialogue<'_>,
    rules: R,
    input: &Input,
    parsed: &Parsed,
    named: &[(Name, Target)],
    text: &Plaintext,
) -> Result<(), Pause> {
    let role = input.purpose.role();
    let loaded = check(dialogue, role, text)?;
    if rules.holds(Rule::LoadsAsNull, loaded.is_ok()) {
        return Ok(());
    }
    let mut sites: Vec<Site> = named
        .iter()
        .filter(|(_, target)| target.mark.is_some())
        .map(|(_, target)| {
            site(
                rules,
                input,
                Some(&target.path),
                target.mark,
                &Forms::default(),
            )
        })
        .collect();
    if input.purpose.is_review() && sites.len() > 1 {
        // The shortest run of targets that does not load ends with a mark at fault.
        let (mut loads, mut fails) = (0, named.len());
        while fails - loads > 1 {
            let middle = loads + (fails - loads) / 2;
            let text = substitute::write(dialogue, rules, input, parsed, &named[..middle])?;
            match check(dialogue, role, &text)? {
                Ok(()) => loads = middle,
                Err(_) => fails = middle,
            }
        }
        let mark = named[fails - 1].1.mark;
        sites = vec![site(rules, input, None, mark, &Forms::default())];
    }
    Err(Refusal::new(Stage::Ingestion, "load-as-null", sites).into())
}

fn check(
    dialogue: &mut Dialogue<'_>,
    role: Role,
    text: &Plaintext,
) -> Result<Result<(), Rejected>, Pause> {
    let request = Request::Check {
        role,
        text: text.clone(),
    };
    let mut answers = dialogue.ask(vec![request])?;
    answers.pop().ok_or(Pause::Misanswered)?.accepted()
}

fn guarded<R: Rules>(
    rules: R,
    input: &Input,
    candidate: &Parsed,
    named: &[(Name, Target)],
    forms: &Forms,
) -> Result<(), Refusal> {
    let extracted: Vec<Extracted<'_>> = named
        .iter()
        .map(|(name, target)| Extracted {
            name,
            value: &target.value,
            mark: target.mark,
        })
        .collect();
    let findings = guard::search(rules, candidate, &extracted);
    let refuse = |rule: &'static str, hits: &[Hit]| {
        let mut sites: Vec<Site> = hits
            .iter()
            .map(|hit| {
                let mark = hit.mark.filter(|_| input.purpose.is_review());
                site(rules, input, Some(&hit.path), mark, forms)
            })
            .collect();
        sites.sort();
        sites.dedup();
        Refusal::new(Stage::Ingestion, rule, sites)
    };
    if !findings.guard_value.is_empty() {
        return Err(refuse("guard-value", &findings.guard_value));
    }
    if !findings.substring.is_empty() {
        return Err(refuse("substring", &findings.substring));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
