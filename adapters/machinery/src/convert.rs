//! Between `proto/renderer.proto` and the port's types, by hand.
//!
//! The client alone calls this. Texts are moved, not copied, where the generated types
//! allow it. An answer of a shape the protocol does not have is [`Unavailable::Protocol`].

use bronzeward_core::document::{Comments, Content, Node, Stream, Style};
use bronzeward_core::release::{Contract, MachineType};
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::renderer::{
    EmbeddedFormat, KubernetesCheck, LIMITS, Limits, Machinery, Placement, PlatformMode, Refused,
    RefusedClass, RenderError, SecretField, SourceRole, Step, Unavailable, Validation,
};

use crate::wire;

type Answer<T> = Result<T, RenderError>;

const UNFIT: RenderError = RenderError::Unavailable(Unavailable::Protocol);

pub(crate) const fn format(format: EmbeddedFormat) -> wire::Format {
    match format {
        EmbeddedFormat::Yaml => wire::Format::EmbeddedYaml,
        EmbeddedFormat::Json => wire::Format::EmbeddedJson,
    }
}

pub(crate) const fn source(role: SourceRole) -> wire::Source {
    match role {
        SourceRole::Base => wire::Source::Base,
        SourceRole::Fragment => wire::Source::Fragment,
    }
}

pub(crate) const fn mode(mode: PlatformMode) -> wire::Mode {
    match mode {
        PlatformMode::Metal => wire::Mode::Metal,
        PlatformMode::Container => wire::Mode::Container,
        PlatformMode::Cloud => wire::Mode::Cloud,
    }
}

pub(crate) fn machinery(from: wire::Description) -> Option<Machinery> {
    let limits = from.limits?;
    Some(Machinery {
        version: from.machinery_version,
        checksum: Some(from.machinery_checksum).filter(|sum| !sum.is_empty()),
        replaced: from.machinery_replaced,
        contract: Contract::parse(&from.contract)?,
        kubernetes_default: from.kubernetes_default,
        kubernetes_from: from.kubernetes_from,
        kubernetes_below: from.kubernetes_below,
        limits: Limits {
            input_bytes: limits.input_bytes,
            output_bytes: limits.output_bytes,
            depth: limits.depth,
            documents: limits.documents,
            mapping_keys: limits.mapping_keys,
            fragments: limits.patches,
        },
    })
}

pub(crate) fn refused(from: wire::Refusal) -> RenderError {
    let Some(class) = class(from.class()) else {
        return UNFIT;
    };
    RenderError::Refused(Refused {
        class,
        document: from.document.map(|index| index as usize),
        line: Some(from.line).filter(|line| *line > 0),
        fragment: from.fragment.map(|index| index as usize),
        message: Some(from.message)
            .filter(|message| !message.is_empty())
            .map(Plaintext::new),
    })
}

/// `None` for what the server caused itself by a request out of shape.
const fn class(class: wire::Class) -> Option<RefusedClass> {
    Some(match class {
        wire::Class::InputTooLarge => RefusedClass::InputTooLarge,
        wire::Class::OutputTooLarge => RefusedClass::OutputTooLarge,
        wire::Class::TooDeep => RefusedClass::TooDeep,
        wire::Class::TooManyDocuments => RefusedClass::TooManyDocuments,
        wire::Class::TooManyKeys => RefusedClass::TooManyKeys,
        wire::Class::Syntax => RefusedClass::Syntax,
        wire::Class::DuplicateKey => RefusedClass::DuplicateKey,
        wire::Class::KeyNotScalar => RefusedClass::KeyNotScalar,
        wire::Class::Alias => RefusedClass::Alias,
        wire::Class::NotOneDocument => RefusedClass::NotOneDocument,
        wire::Class::Unwritable => RefusedClass::Unwritable,
        wire::Class::NotJson => RefusedClass::NotJson,
        wire::Class::Load => RefusedClass::Load,
        wire::Class::EmptyFragment => RefusedClass::EmptyFragment,
        wire::Class::JsonPatch => RefusedClass::JsonPatch,
        wire::Class::Directive => RefusedClass::Directive,
        wire::Class::LocalTag => RefusedClass::LocalTag,
        wire::Class::SecretUnplaced => RefusedClass::SecretUnplaced,
        wire::Class::Merge => RefusedClass::Merge,
        wire::Class::AbsentDeleteTarget => RefusedClass::AbsentDeleteTarget,
        wire::Class::OutputDoesNotLoad => RefusedClass::OutputDoesNotLoad,
        wire::Class::Panicked => RefusedClass::Panicked,
        wire::Class::Unspecified | wire::Class::Request => return None,
    })
}

pub(crate) fn secret_field(from: wire::SecretField) -> Answer<SecretField> {
    let placement = match from.placement() {
        wire::Placement::Text => Placement::Text,
        wire::Placement::Base64 => Placement::Base64,
        wire::Placement::Url => Placement::Url,
        wire::Placement::Unspecified => return Err(UNFIT),
    };
    let steps = from
        .steps
        .into_iter()
        .map(|step| match step.step {
            Some(wire::step::Step::Key(key)) => Ok(Step::Key(key)),
            Some(wire::step::Step::Index(index)) => Ok(Step::Index(index as usize)),
            None => Err(UNFIT),
        })
        .collect::<Answer<Vec<Step>>>()?;
    Ok(SecretField {
        document: from.document as usize,
        steps,
        placement,
    })
}

pub(crate) fn validation(from: wire::Verdict) -> Validation {
    let machine_type = match from.machine_type() {
        wire::MachineType::ControlPlane => Some(MachineType::ControlPlane),
        wire::MachineType::Worker => Some(MachineType::Worker),
        wire::MachineType::Unspecified => None,
    };
    let kubernetes = match from.kubernetes() {
        wire::KubernetesCheck::Supported => KubernetesCheck::Supported,
        wire::KubernetesCheck::Outside => KubernetesCheck::Outside,
        wire::KubernetesCheck::Unreadable | wire::KubernetesCheck::Unspecified => {
            KubernetesCheck::Unreadable
        }
    };
    Validation {
        warnings: from.warnings.into_iter().map(Plaintext::new).collect(),
        errors: from.errors.into_iter().map(Plaintext::new).collect(),
        machine_type,
        kubelet_image: Plaintext::new(from.kubelet_image),
        kubelet_image_set: from.kubelet_image_set,
        kubernetes_version: Some(from.kubernetes_version).filter(|version| !version.is_empty()),
        kubernetes,
        complete: from.complete,
    }
}

pub(crate) fn stream(from: wire::Tree) -> Answer<Stream> {
    let documents = from
        .documents
        .into_iter()
        .map(|document| {
            let mut nodes = document.nodes.into_iter();
            let root = node(&mut nodes, 0)?;
            match nodes.next() {
                None => Ok(root),
                Some(_) => Err(UNFIT),
            }
        })
        .collect::<Answer<Vec<Node>>>()?;
    Ok(Stream { documents })
}

fn node(nodes: &mut std::vec::IntoIter<wire::Node>, depth: u32) -> Answer<Node> {
    let flat = nodes.next().ok_or(UNFIT)?;
    if depth > LIMITS.depth {
        return Err(UNFIT);
    }
    let style = match flat.style() {
        wire::Style::Plain => Style::Plain,
        wire::Style::SingleQuoted => Style::SingleQuoted,
        wire::Style::DoubleQuoted => Style::DoubleQuoted,
        wire::Style::Literal => Style::Literal,
        wire::Style::Folded => Style::Folded,
        wire::Style::Flow => Style::Flow,
    };
    let content = match flat.kind() {
        wire::Kind::Scalar => Content::Scalar(flat.text),
        wire::Kind::Alias => Content::Alias(flat.text),
        wire::Kind::Sequence => {
            let mut items = Vec::new();
            for _ in 0..flat.children {
                items.push(node(nodes, depth + 1)?);
            }
            Content::Sequence(items)
        }
        wire::Kind::Mapping => {
            let mut entries = Vec::new();
            for _ in 0..flat.children / 2 {
                let key = node(nodes, depth + 1)?;
                entries.push((key, node(nodes, depth + 1)?));
            }
            Content::Mapping(entries)
        }
        wire::Kind::Unspecified => return Err(UNFIT),
    };
    Ok(Node {
        tag: flat.tag,
        tagged: flat.tagged,
        anchor: Some(flat.anchor).filter(|anchor| !anchor.is_empty()),
        style,
        content,
        comments: Comments {
            head: flat.head_comment,
            line: flat.line_comment,
            foot: flat.foot_comment,
        },
        line: flat.line,
        column: flat.column,
    })
}

pub(crate) fn tree<'a>(documents: impl IntoIterator<Item = &'a Node>) -> wire::Tree {
    let documents = documents
        .into_iter()
        .map(|root| {
            let mut nodes = Vec::new();
            flatten(root, &mut nodes);
            wire::Document { nodes }
        })
        .collect();
    wire::Tree { documents }
}

fn flatten(node: &Node, nodes: &mut Vec<wire::Node>) {
    let style = match node.style {
        Style::Plain => wire::Style::Plain,
        Style::SingleQuoted => wire::Style::SingleQuoted,
        Style::DoubleQuoted => wire::Style::DoubleQuoted,
        Style::Literal => wire::Style::Literal,
        Style::Folded => wire::Style::Folded,
        Style::Flow => wire::Style::Flow,
    };
    let (kind, text, children) = match &node.content {
        Content::Scalar(text) => (wire::Kind::Scalar, text.clone(), 0),
        Content::Alias(anchor) => (wire::Kind::Alias, anchor.clone(), 0),
        Content::Sequence(items) => (wire::Kind::Sequence, String::new(), items.len()),
        Content::Mapping(entries) => (wire::Kind::Mapping, String::new(), entries.len() * 2),
    };
    nodes.push(wire::Node {
        kind: kind.into(),
        style: style.into(),
        tag: node.tag.clone(),
        tagged: node.tagged,
        anchor: node.anchor.clone().unwrap_or_default(),
        text,
        children: children as u32,
        head_comment: node.comments.head.clone(),
        line_comment: node.comments.line.clone(),
        foot_comment: node.comments.foot.clone(),
        line: node.line,
        column: node.column,
    });
    match &node.content {
        Content::Sequence(items) => items.iter().for_each(|item| flatten(item, nodes)),
        Content::Mapping(entries) => entries.iter().for_each(|(key, value)| {
            flatten(key, nodes);
            flatten(value, nodes);
        }),
        Content::Scalar(_) | Content::Alias(_) => {}
    }
}
