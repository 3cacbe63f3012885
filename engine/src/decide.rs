//! Drives a pure decision of `core` against the renderer.
//!
//! Ingestion and publication call it: the decision says what to ask of the machinery,
//! the renderer answers, and the decision runs again until it ends (core `machinery`).
//! Never in this module: a judgement of an answer, a retry, or a text of the machinery
//! outside an answer.

use bronzeward_core::document::Stream;
use bronzeward_core::machinery::{
    Answer, Class, Decision, Mode, Progress, Rejected, Request, Role, SecretField, TextFormat,
    Verdict, Window,
};
use bronzeward_core::path::Format;
use bronzeward_core::refusal::Refusal;
use bronzeward_core::secret::Plaintext;

use crate::ports::renderer::{
    EmbeddedFormat, KubernetesCheck, PlatformMode, Refused, RefusedClass, RenderError, Renderer,
    SourceRole, Step, Unavailable, Validation,
};

/// Why a decision did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The decision refused.
    Refused(Box<Refusal>),
    /// The renderer gave no answer; the decision can be begun again.
    Unavailable(Unavailable),
    /// An answer did not fit its question: a fault of ours.
    Misanswered,
}

/// Runs a decision to its end. `mint` gives 128 bits of the entropy port.
pub async fn decide<D, R>(
    decision: &mut D,
    renderer: &R,
    mut mint: impl FnMut() -> [u8; 16] + Send,
) -> Result<D::Output, Undecided>
where
    D: Decision + Send,
    R: Renderer,
{
    loop {
        let requests = match decision.advance() {
            Progress::Done(output) => return Ok(output),
            Progress::Refused(refusal) => return Err(Undecided::Refused(refusal)),
            Progress::Misanswered => return Err(Undecided::Misanswered),
            Progress::Ask(requests) => requests,
        };
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let answer = match request {
                Request::Mint => Answer::Minted(mint()),
                request => ask(renderer, request).await?,
            };
            answers.push(answer);
        }
        decision.answer(answers);
    }
}

async fn ask<R: Renderer>(renderer: &R, request: Request) -> Result<Answer, Undecided> {
    let answer = match request {
        Request::Parse { format, text } => match embedded(format) {
            None => renderer
                .parse(&text)
                .await
                .map(|stream| Answer::Parsed(stream.into())),
            Some(format) => renderer.parse_embedded(format, &text).await.map(|root| {
                let documents = vec![root];
                Answer::Parsed(Stream { documents }.into())
            }),
        },
        Request::Encode { format, stream } => match (embedded(format), stream.documents.first()) {
            (None, _) => renderer.encode(&stream).await.map(Answer::Text),
            (Some(format), Some(root)) => renderer
                .encode_embedded(format, root)
                .await
                .map(Answer::Text),
            (Some(_), None) => return Err(Undecided::Misanswered),
        },
        Request::SecretFields { role, text } => renderer
            .secret_fields(source_role(role), &text)
            .await
            .map(|fields| Answer::SecretFields(fields.into_iter().map(secret_field).collect())),
        Request::Check { role, text } => renderer
            .check(source_role(role), &text)
            .await
            .map(|()| Answer::Accepted),
        Request::Compose { base, fragments } => {
            renderer.compose(&base, &fragments).await.map(Answer::Text)
        }
        Request::Validate {
            configuration,
            mode,
        } => renderer
            .validate(&configuration, platform(mode))
            .await
            .map(|validation| Answer::Verdict(verdict(validation))),
        Request::Mint => return Err(Undecided::Misanswered),
    };
    match answer {
        Ok(answer) => Ok(answer),
        Err(RenderError::Refused(refused)) => Ok(Answer::Rejected(rejected(refused))),
        Err(RenderError::Unavailable(why)) => Err(Undecided::Unavailable(why)),
    }
}

fn embedded(format: TextFormat) -> Option<EmbeddedFormat> {
    match format {
        TextFormat::Stream => None,
        TextFormat::Embedded(Format::Json) => Some(EmbeddedFormat::Json),
        // A sanitized embedded document is YAML whatever its format (IC §5.4).
        TextFormat::Embedded(Format::Yaml) | TextFormat::Authored => Some(EmbeddedFormat::Yaml),
    }
}

fn source_role(role: Role) -> SourceRole {
    match role {
        Role::Base => SourceRole::Base,
        Role::Fragment => SourceRole::Fragment,
    }
}

fn platform(mode: Mode) -> PlatformMode {
    match mode {
        Mode::Metal => PlatformMode::Metal,
        Mode::Container => PlatformMode::Container,
        Mode::Cloud => PlatformMode::Cloud,
    }
}

fn secret_field(field: crate::ports::renderer::SecretField) -> SecretField {
    let tokens = field.steps.into_iter().map(|step| match step {
        Step::Key(key) => key,
        Step::Index(index) => index.to_string(),
    });
    SecretField {
        document: field.document,
        tokens: tokens.collect(),
    }
}

fn verdict(validation: Validation) -> Verdict {
    Verdict {
        warnings: validation.warnings,
        errors: validation.errors,
        kubelet_image: validation.kubelet_image,
        kubernetes_version: validation.kubernetes_version,
        kubernetes: match validation.kubernetes {
            KubernetesCheck::Supported => Window::Inside,
            KubernetesCheck::Outside => Window::Outside,
            KubernetesCheck::Unreadable => Window::Unreadable,
        },
        complete: validation.complete,
    }
}

fn rejected(refused: Refused) -> Rejected {
    Rejected {
        class: class(refused.class),
        document: refused.document,
        line: refused.line.unwrap_or(0),
        fragment: refused.fragment,
        message: refused
            .message
            .unwrap_or_else(|| Plaintext::new(String::new())),
    }
}

fn class(class: RefusedClass) -> Class {
    match class {
        RefusedClass::InputTooLarge
        | RefusedClass::OutputTooLarge
        | RefusedClass::TooDeep
        | RefusedClass::TooManyDocuments
        | RefusedClass::TooManyKeys => Class::Limit,
        RefusedClass::Syntax | RefusedClass::Alias | RefusedClass::NotOneDocument => Class::Syntax,
        RefusedClass::DuplicateKey => Class::DuplicateKey,
        RefusedClass::KeyNotScalar => Class::KeyNotScalar,
        RefusedClass::Unwritable | RefusedClass::NotJson => Class::Unwritable,
        RefusedClass::Load
        | RefusedClass::Merge
        | RefusedClass::OutputDoesNotLoad
        | RefusedClass::SecretUnplaced => Class::Load,
        RefusedClass::EmptyFragment => Class::EmptyFragment,
        RefusedClass::JsonPatch => Class::JsonPatch,
        RefusedClass::Directive | RefusedClass::AbsentDeleteTarget => Class::Directive,
        RefusedClass::LocalTag => Class::LocalTag,
        RefusedClass::Panicked => Class::Panicked,
    }
}
