//! The stand-in for Talos's machinery: small documents, composed and judged by structure.
//!
//! The engine's own ingestion and publication run on it unmodified. Its answers are a
//! function of the question but where a fault strikes. Never in this module: a decision of
//! the product.

mod machine;
mod text;

use bronzeward_core::document::{Node, Stream};
use bronzeward_core::release::Contract;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::renderer::{
    EmbeddedFormat, LIMITS, Machinery, PlatformMode, Refused, RefusedClass, RenderError, Renderer,
    SecretField, SourceRole, Unavailable, Validation,
};

use super::runtime::port;
use crate::faults::Fault;
use crate::sched::{Leaf, Wait};

port!(
    /// The renderer of one process.
    SimRenderer
);

/// A pass of a compilation asks some twenty questions: one in this many is a scheduling
/// point, drawn by the seed, so that each can be and a publication stays a few steps.
const POINT_OF: u8 = 8;

impl SimRenderer {
    /// The way there: a worker may be missing, or die over the question.
    async fn asked(&self, what: &'static str) -> Result<(), RenderError> {
        let point = self.sim.state().rng.u8(0..POINT_OF) == 0;
        if point {
            Leaf::new(&self.sim, Wait::Point).await;
        }
        let mut state = self.sim.state();
        state.trace(self.process, what);
        if state.strikes(Fault::RendererUnavailable) {
            let why = match state.rng.u8(0..3) {
                0 => Unavailable::Busy,
                1 => Unavailable::Deadline,
                _ => Unavailable::Crashed,
            };
            return Err(why.into());
        }
        match state.strikes(Fault::RendererRefuses) {
            true => Err(refused(RefusedClass::Panicked)),
            false => Ok(()),
        }
    }
}

fn refused(class: RefusedClass) -> RenderError {
    RenderError::Refused(Refused {
        class,
        document: None,
        line: None,
        fragment: None,
        message: None,
    })
}

fn in_fragment(error: RenderError, fragment: usize) -> RenderError {
    match error {
        RenderError::Refused(refused) => RenderError::Refused(Refused {
            fragment: Some(fragment),
            ..refused
        }),
        unavailable => unavailable,
    }
}

fn read(text: &Plaintext) -> Result<Stream, RenderError> {
    text::parse(text.expose()).map_err(|fault| {
        RenderError::Refused(Refused {
            class: fault.class,
            document: None,
            line: u32::try_from(fault.line).ok(),
            fragment: None,
            message: None,
        })
    })
}

fn written(stream: &Stream) -> Result<Plaintext, RenderError> {
    text::encode(stream).map(Plaintext::new).map_err(refused)
}

/// A text that composition loads: no reference may stand in it.
fn loaded(text: &Plaintext, role: SourceRole) -> Result<Stream, RenderError> {
    let stream = read(text)?;
    if stream.documents.iter().any(machine::holds_reference) {
        return Err(refused(RefusedClass::LocalTag));
    }
    machine::load(&stream, role).map_err(refused)?;
    Ok(stream)
}

/// The text as somebody leaves it who edits a node by hand.
pub(crate) fn edited(configuration: &Plaintext, number: u64) -> Plaintext {
    let touched = text::parse(configuration.expose()).ok().and_then(|stream| {
        let mut stream = stream;
        let root = stream.documents.first_mut()?;
        let note = Node::string(format!("hand-{number}"));
        machine::set(root, &["machine", "nodeAnnotations", "edited"], note);
        text::encode(&stream).ok()
    });
    let text = touched.unwrap_or_else(|| format!("{} {number}", configuration.expose()));
    Plaintext::new(text)
}

impl Renderer for SimRenderer {
    async fn describe(&self) -> Result<Machinery, RenderError> {
        self.asked("asks which machinery it is").await?;
        let version = super::node::RUNNING;
        let contract = Contract::of_version(version).ok_or(Unavailable::Protocol)?;
        Ok(Machinery {
            version: version.to_owned(),
            checksum: Some("h1:model".to_owned()),
            replaced: false,
            contract,
            kubernetes_default: machine::KUBERNETES_DEFAULT.to_owned(),
            kubernetes_from: machine::KUBERNETES_FROM.to_owned(),
            kubernetes_below: machine::KUBERNETES_BELOW.to_owned(),
            limits: LIMITS,
        })
    }

    async fn parse(&self, text: &Plaintext) -> Result<Stream, RenderError> {
        self.asked("parses").await?;
        read(text)
    }

    async fn encode(&self, stream: &Stream) -> Result<Plaintext, RenderError> {
        self.asked("encodes").await?;
        written(stream)
    }

    async fn parse_embedded(
        &self,
        _format: EmbeddedFormat,
        text: &Plaintext,
    ) -> Result<Node, RenderError> {
        self.asked("parses an embedded document").await?;
        let mut documents = read(text)?.documents;
        match (documents.pop(), documents.is_empty()) {
            (Some(root), true) => Ok(root),
            _ => Err(refused(RefusedClass::NotOneDocument)),
        }
    }

    async fn encode_embedded(
        &self,
        format: EmbeddedFormat,
        root: &Node,
    ) -> Result<Plaintext, RenderError> {
        self.asked("encodes an embedded document").await?;
        let json = format == EmbeddedFormat::Json;
        if json && machine::holds_reference(root) {
            return Err(refused(RefusedClass::NotJson));
        }
        let text = text::encode_one(root, json);
        text.map(Plaintext::new).map_err(refused)
    }

    async fn secret_fields(
        &self,
        role: SourceRole,
        text: &Plaintext,
    ) -> Result<Vec<SecretField>, RenderError> {
        self.asked("lists secret fields").await?;
        let stream = read(text)?;
        machine::load(&stream, role).map_err(refused)?;
        Ok(machine::secret_fields(&stream))
    }

    async fn check(&self, role: SourceRole, text: &Plaintext) -> Result<(), RenderError> {
        self.asked("checks").await?;
        machine::load(&read(text)?, role).map_err(refused)
    }

    async fn compose(
        &self,
        base: &Plaintext,
        fragments: &[Plaintext],
    ) -> Result<Plaintext, RenderError> {
        self.asked("composes").await?;
        let mut stream = loaded(base, SourceRole::Base)?.without_empty();
        for (index, fragment) in fragments.iter().enumerate() {
            let patch = loaded(fragment, SourceRole::Fragment);
            let merged =
                patch.and_then(|patch| machine::apply(&mut stream, &patch).map_err(refused));
            merged.map_err(|error| in_fragment(error, index))?;
        }
        written(&stream)
    }

    async fn validate(
        &self,
        configuration: &Plaintext,
        _mode: PlatformMode,
    ) -> Result<Validation, RenderError> {
        self.asked("validates").await?;
        loaded(configuration, SourceRole::Base).map(|stream| machine::validate(&stream))
    }
}

#[cfg(test)]
mod tests;
