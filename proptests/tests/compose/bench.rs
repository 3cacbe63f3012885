//! The real renderer and the two standard bases.
//!
//! Every cell runs through the worker that ships. Bases are generated anew by each run,
//! so that no secret is ever in the repository. Never in this module: a stand-in.

use std::collections::BTreeMap;
use std::process::Command;

use bronzeward_core::compile;
use bronzeward_core::document::{Node, Stream};
use bronzeward_core::extract;
use bronzeward_core::id::ClusterId;
use bronzeward_core::machinery::{Answer, Decision, Mode, Progress, Request};
use bronzeward_core::path::{Format, Path};
use bronzeward_core::reference::{Declarations, Version};
use bronzeward_core::refusal::Refusal;
use bronzeward_core::resolve::Pinned;
use bronzeward_core::rules::{Enforced, Rules};
use bronzeward_core::secret::{Plaintext, Value};
use bronzeward_engine::decide::{Undecided, decide};
use bronzeward_engine::ports::renderer::{
    EmbeddedFormat, PlatformMode, RenderError, Renderer, SecretField, SourceRole, Validation,
};
use bronzeward_harness::tool;
use bronzeward_machinery::{Confinement, MachineryRenderer, Settings};

pub struct Bench {
    pub renderer: MachineryRenderer,
}

/// One of the two standard bases.
pub struct Base {
    pub name: &'static str,
    pub mode: Mode,
    pub text: Plaintext,
}

/// A source that went through ingestion.
pub struct Ingested {
    pub text: String,
    pub declarations: Declarations,
    pub values: BTreeMap<Version, Value>,
}

pub fn cluster() -> ClusterId {
    ClusterId::from_bits(0x5bd1_e995)
}

pub fn random() -> [u8; 16] {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("randomness");
    bits
}

impl Bench {
    pub async fn start() -> Bench {
        let worker = tool::program("renderer-worker").expect("the renderer worker");
        let mut settings = Settings::new(worker);
        settings.confinement = Confinement::BestEffort;
        let renderer = MachineryRenderer::start(settings).await;
        Bench {
            renderer: renderer.expect("the renderer starts"),
        }
    }

    /// Both bases, each encoded once by the machinery, so that every compared output
    /// comes from the same encoder.
    pub async fn bases(&self) -> Vec<Base> {
        let mut bases = Vec::new();
        for (name, mode) in [("fixture", Mode::Container), ("generated", Mode::Metal)] {
            let program = tool::program("talosgen").expect("the generator");
            let output = Command::new(program).args(["-base", name]).output();
            let output = output.expect("a generated configuration");
            assert!(output.status.success(), "talosgen -base {name}");
            let text = String::from_utf8(output.stdout).expect("text");
            let patch = Plaintext::new("machine: {}\n".into());
            let text = self.compose(&Plaintext::new(text), &[patch]).await;
            bases.push(Base {
                name,
                mode,
                text: text.unwrap_or_else(|_| panic!("the base {name} composes")),
            });
        }
        bases
    }

    pub async fn compose(
        &self,
        base: &Plaintext,
        fragments: &[Plaintext],
    ) -> Result<Plaintext, RenderError> {
        self.renderer.compose(base, fragments).await
    }

    pub async fn validate(&self, text: &Plaintext, mode: Mode) -> Validation {
        let mode = match mode {
            Mode::Metal => PlatformMode::Metal,
            Mode::Container => PlatformMode::Container,
            Mode::Cloud => PlatformMode::Cloud,
        };
        self.renderer.validate(text, mode).await.expect("a verdict")
    }

    pub async fn parse(&self, text: &str) -> Stream {
        let stream = self.renderer.parse(&Plaintext::new(text.to_string())).await;
        stream.expect("a stream").without_empty()
    }

    pub async fn embedded(&self, format: Format, text: &str) -> Option<Node> {
        let format = match format {
            Format::Yaml => EmbeddedFormat::Yaml,
            Format::Json => EmbeddedFormat::Json,
        };
        let text = Plaintext::new(text.to_string());
        self.renderer.parse_embedded(format, &text).await.ok()
    }

    pub async fn secret_fields(&self, text: &Plaintext) -> Vec<SecretField> {
        let fields = self.renderer.secret_fields(SourceRole::Base, text).await;
        fields.expect("the secret fields")
    }

    pub async fn ingest<R: Rules>(
        &self,
        rules: R,
        purpose: extract::Purpose,
        text: &str,
        declarations: &Declarations,
        marks: &[String],
    ) -> Result<Ingested, Refusal> {
        let paths = marks.iter().map(|mark| Path::parse(mark));
        let marks = paths
            .collect::<Result<Vec<_>, _>>()
            .expect("marks are paths");
        let input = extract::Input {
            purpose,
            text: Plaintext::new(text.to_string()),
            declarations: declarations.clone(),
            marks,
        };
        let mut job = extract::Job::new(rules, input);
        let done = match decide(&mut job, &self.renderer, random).await {
            Ok(done) => done,
            Err(Undecided::Refused(refusal)) => return Err(*refusal),
            Err(other) => panic!("ingestion did not end: {other:?}"),
        };
        let values = done.generations.into_iter().map(|generation| {
            let version = Version {
                name: generation.name,
                version: 1,
            };
            (version, generation.value)
        });
        Ok(Ingested {
            text: done.sanitized.document().to_string(),
            declarations: done.sanitized.declarations().clone(),
            values: values.collect(),
        })
    }

    pub async fn compile<R: Rules>(&self, rules: R, input: compile::Input) -> compile::Output {
        let mut job = compile::Job::new(rules, input);
        match decide(&mut job, &self.renderer, random).await {
            Ok(output) => output,
            Err(other) => panic!("compilation did not end: {other:?}"),
        }
    }

    /// Compiles with every question seen and every answer changed by `tamper`.
    pub async fn tampered(
        &self,
        input: compile::Input,
        tamper: &mut (dyn FnMut(&Request, &mut Answer) + Send),
    ) -> compile::Output {
        let mut job = Tampered {
            job: compile::Job::new(Enforced, input),
            asked: std::cell::RefCell::new(Vec::new()),
            tamper,
        };
        match decide(&mut job, &self.renderer, random).await {
            Ok(output) => output,
            Err(other) => panic!("compilation did not end: {other:?}"),
        }
    }
}

struct Tampered<'a> {
    job: compile::Job<Enforced>,
    asked: std::cell::RefCell<Vec<Request>>,
    tamper: &'a mut (dyn FnMut(&Request, &mut Answer) + Send),
}

impl Decision for Tampered<'_> {
    type Output = compile::Output;

    fn advance(&self) -> Progress<compile::Output> {
        let progress = self.job.advance();
        if let Progress::Ask(requests) = &progress {
            *self.asked.borrow_mut() = requests.clone();
        }
        progress
    }

    fn answer(&mut self, mut answers: Vec<Answer>) {
        for (request, answer) in self.asked.borrow().iter().zip(&mut answers) {
            (self.tamper)(request, answer);
        }
        self.job.answer(answers);
    }
}

/// A compilation's input from ingested sources and what the provider holds.
pub fn input(
    base: &Ingested,
    fragments: &[Ingested],
    provider: &BTreeMap<(String, u64), Value>,
    mode: Mode,
) -> compile::Input {
    let source = |ingested: &Ingested| compile::Source {
        text: Plaintext::new(ingested.text.clone()),
        digest: bronzeward_core::canonical::Digest::of(ingested.text.as_bytes()),
        declarations: ingested.declarations.clone(),
    };
    let pinned = |value: &Value| Pinned {
        cluster: cluster(),
        value: Some(value.clone()),
    };
    let mut pins = BTreeMap::new();
    let all = std::iter::once(base).chain(fragments);
    for (version, value) in all.clone().flat_map(|ingested| &ingested.values) {
        pins.insert(version.clone(), pinned(value));
    }
    for version in
        all.flat_map(|one| bronzeward_core::resolve::declared_versions(&one.declarations))
    {
        let held = provider.get(&(version.name.as_str().to_string(), version.version));
        if let Some(value) = held {
            pins.insert(version, pinned(value));
        }
    }
    compile::Input {
        cluster: cluster(),
        mode,
        base: source(base),
        fragments: fragments.iter().map(source).collect(),
        pins,
    }
}
