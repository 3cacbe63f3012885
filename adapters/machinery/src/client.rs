//! The port's methods: each is one request to a worker and one answer of its kind.

use bronzeward_core::document::{Node, Stream};
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::renderer::{
    EmbeddedFormat, Machinery, PlatformMode, RenderError, Renderer, SecretField, SourceRole,
    Unavailable, Validation,
};

use crate::confine::Confined;
use crate::pool::{Pool, millis};
use crate::settings::Settings;
use crate::wire::{self, request::Act, response::Outcome};
use crate::{StartError, convert};

const UNFIT: RenderError = RenderError::Unavailable(Unavailable::Protocol);

/// Talos's machinery in a pool of worker processes.
pub struct MachineryRenderer {
    pool: Pool,
    machinery: Machinery,
}

impl MachineryRenderer {
    /// Starts the workers. Must be called within a tokio runtime; the workers end with
    /// [`stop`](Self::stop), or when the renderer is dropped.
    pub async fn start(settings: Settings) -> Result<MachineryRenderer, StartError> {
        let (pool, description) = Pool::start(settings).await?;
        let machinery = convert::machinery(description).ok_or(StartError::Undescribed)?;
        Ok(MachineryRenderer { pool, machinery })
    }

    /// The machinery's build record, as the workers gave it at start.
    pub fn machinery(&self) -> &Machinery {
        &self.machinery
    }

    /// What the kernel holds the workers to.
    pub fn confined(&self) -> Confined {
        self.pool.confined()
    }

    /// Workers that overran or ended and were replaced, since the start.
    pub fn workers_ended(&self) -> u64 {
        self.pool.ended()
    }

    /// Bytes the workers printed. Their content was dropped.
    pub fn stderr_bytes(&self) -> u64 {
        self.pool.printed().bytes()
    }

    #[cfg(test)]
    pub(crate) fn printed(&self) -> Vec<u8> {
        self.pool.printed().kept()
    }

    /// The process numbers of the workers that answer nothing at the moment.
    pub fn idle_workers(&self) -> Vec<u32> {
        self.pool.idle()
    }

    /// Waits for the requests under way and ends the workers. Later requests are
    /// [`Unavailable::Stopped`].
    pub async fn stop(&self) {
        self.pool.stop().await;
    }

    async fn ask(&self, act: Act) -> Result<Outcome, RenderError> {
        let request = wire::Request {
            deadline_ms: millis(self.pool.deadline()),
            act: Some(act),
        };
        match self.pool.ask(request).await?.outcome {
            Some(Outcome::Refusal(refusal)) => Err(convert::refused(refusal)),
            Some(outcome) => Ok(outcome),
            None => Err(UNFIT),
        }
    }

    async fn ask_tree(
        &self,
        format: wire::Format,
        text: &Plaintext,
    ) -> Result<Stream, RenderError> {
        let act = Act::Parse(wire::Parse {
            format: format.into(),
            text: text.expose().to_owned(),
        });
        match self.ask(act).await? {
            Outcome::Tree(tree) => convert::stream(tree),
            _ => Err(UNFIT),
        }
    }

    async fn ask_encoded(
        &self,
        format: wire::Format,
        tree: wire::Tree,
    ) -> Result<Plaintext, RenderError> {
        self.ask_text(Act::Encode(wire::Encode {
            format: format.into(),
            tree: Some(tree),
        }))
        .await
    }

    async fn ask_text(&self, act: Act) -> Result<Plaintext, RenderError> {
        match self.ask(act).await? {
            Outcome::Text(text) => Ok(Plaintext::new(text)),
            _ => Err(UNFIT),
        }
    }
}

impl Renderer for MachineryRenderer {
    async fn describe(&self) -> Result<Machinery, RenderError> {
        Ok(self.machinery.clone())
    }

    async fn parse(&self, text: &Plaintext) -> Result<Stream, RenderError> {
        self.ask_tree(wire::Format::Stream, text).await
    }

    async fn encode(&self, stream: &Stream) -> Result<Plaintext, RenderError> {
        let tree = convert::tree(&stream.documents);
        self.ask_encoded(wire::Format::Stream, tree).await
    }

    async fn parse_embedded(
        &self,
        format: EmbeddedFormat,
        text: &Plaintext,
    ) -> Result<Node, RenderError> {
        let mut stream = self.ask_tree(convert::format(format), text).await?;
        match (stream.documents.pop(), stream.documents.len()) {
            (Some(root), 0) => Ok(root),
            _ => Err(UNFIT),
        }
    }

    async fn encode_embedded(
        &self,
        format: EmbeddedFormat,
        root: &Node,
    ) -> Result<Plaintext, RenderError> {
        let tree = convert::tree([root]);
        self.ask_encoded(convert::format(format), tree).await
    }

    async fn secret_fields(
        &self,
        role: SourceRole,
        text: &Plaintext,
    ) -> Result<Vec<SecretField>, RenderError> {
        let act = Act::ListSecretFields(wire::ListSecretFields {
            source: convert::source(role).into(),
            text: text.expose().to_owned(),
        });
        match self.ask(act).await? {
            Outcome::SecretFields(list) => {
                list.fields.into_iter().map(convert::secret_field).collect()
            }
            _ => Err(UNFIT),
        }
    }

    async fn check(&self, role: SourceRole, text: &Plaintext) -> Result<(), RenderError> {
        let act = Act::Check(wire::Check {
            source: convert::source(role).into(),
            text: text.expose().to_owned(),
        });
        match self.ask(act).await? {
            Outcome::Accepted(_) => Ok(()),
            _ => Err(UNFIT),
        }
    }

    async fn compose(
        &self,
        base: &Plaintext,
        fragments: &[Plaintext],
    ) -> Result<Plaintext, RenderError> {
        self.ask_text(Act::Compose(wire::Compose {
            base: base.expose().to_owned(),
            patches: fragments
                .iter()
                .map(|fragment| fragment.expose().to_owned())
                .collect(),
        }))
        .await
    }

    async fn validate(
        &self,
        configuration: &Plaintext,
        mode: PlatformMode,
    ) -> Result<Validation, RenderError> {
        let act = Act::Validate(wire::Validate {
            config: configuration.expose().to_owned(),
            mode: convert::mode(mode).into(),
        });
        match self.ask(act).await? {
            Outcome::Verdict(verdict) => Ok(convert::validation(verdict)),
            _ => Err(UNFIT),
        }
    }
}
