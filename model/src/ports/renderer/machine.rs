//! What the model's machinery does with documents: loads, merges, lists secrets, validates.
//!
//! A structural stand-in: mappings merge, lists append, scalars replace, and `$patch: delete`
//! takes away (facts T 5.4, 5.5). Never in this module: a text, or a value in a refusal.

use bronzeward_core::document::{Content, NULL, Node, STRING, Stream};
use bronzeward_core::release::MachineType;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::renderer::{
    KubernetesCheck, Placement, RefusedClass, SecretField, SourceRole, Step, Validation,
};

/// The kubelet that a configuration gets which names none, and the window around it.
pub const KUBELET: &str = "registry.sim.test/kubelet:v1.36.2";
pub const KUBERNETES_DEFAULT: &str = "v1.36.2";
pub const KUBERNETES_FROM: &str = "v1.31.0";
pub const KUBERNETES_BELOW: &str = "v1.37.0";
const MINORS: std::ops::Range<u32> = 31..37;

/// The fields of the machine configuration that are secret.
const SECRETS: [&[&str]; 5] = [
    &["machine", "token"],
    &["machine", "ca", "key"],
    &["cluster", "secret"],
    &["cluster", "token"],
    &["cluster", "ca", "key"],
];

const DIRECTIVE: &str = "$patch";

fn entries(node: &Node) -> Option<&[(Node, Node)]> {
    match &node.content {
        Content::Mapping(entries) => Some(entries),
        Content::Scalar(_) | Content::Sequence(_) | Content::Alias(_) => None,
    }
}

fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let mut members = entries(node)?.iter();
    let found = members.find(|(own, _)| own.text() == Some(key));
    found.map(|(_, value)| value)
}

fn at<'n>(root: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, key| member(node, key))
}

fn text_at<'n>(root: &'n Node, path: &[&str]) -> Option<&'n str> {
    at(root, path).filter(|node| node.tag == STRING)?.text()
}

/// The machine configuration: the document without a kind.
fn is_machine(root: &Node) -> bool {
    member(root, "kind").is_none()
        && (member(root, "machine").is_some() || member(root, "cluster").is_some())
}

/// What two documents are the same by: kind and name, nothing for the machine's.
fn same_document(one: &Node, other: &Node) -> bool {
    let text = |root, key| member(root, key).and_then(Node::text);
    text(one, "kind") == text(other, "kind") && text(one, "name") == text(other, "name")
}

/// Whether a stream loads, references read as nulls.
pub fn load(stream: &Stream, role: SourceRole) -> Result<(), RefusedClass> {
    let mut roots: Vec<&Node> = Vec::new();
    for root in stream.documents.iter().filter(|root| !root.is_null()) {
        if matches!(root.content, Content::Sequence(_)) && role == SourceRole::Fragment {
            return Err(RefusedClass::JsonPatch);
        }
        entries(root).ok_or(RefusedClass::Load)?;
        let kind = member(root, "kind");
        let named = kind.is_none_or(|kind| kind.tag == STRING);
        let known = kind.is_some() || is_machine(root) || role == SourceRole::Fragment;
        let twice = roots.iter().any(|other| same_document(root, other));
        if !named || !known || twice {
            return Err(RefusedClass::Load);
        }
        if role == SourceRole::Base && holds_directive(root) {
            return Err(RefusedClass::Directive);
        }
        roots.push(root);
    }
    match (roots.is_empty(), role) {
        (false, _) => Ok(()),
        (true, SourceRole::Fragment) => Err(RefusedClass::EmptyFragment),
        (true, SourceRole::Base) => Err(RefusedClass::Load),
    }
}

fn holds_directive(node: &Node) -> bool {
    let mut members = entries(node).unwrap_or_default().iter();
    members.any(|(key, value)| key.text() == Some(DIRECTIVE) || holds_directive(value))
}

/// Whether a reference stands anywhere: composition and validation read none.
pub fn holds_reference(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(_) | Content::Alias(_) => node.is_reference(),
        Content::Sequence(items) => items.iter().any(holds_reference),
        Content::Mapping(entries) => entries.iter().any(|(_, value)| holds_reference(value)),
    }
}

pub fn secret_fields(stream: &Stream) -> Vec<SecretField> {
    let mut fields = Vec::new();
    for (document, root) in stream.documents.iter().enumerate() {
        if !is_machine(root) {
            continue;
        }
        for path in SECRETS {
            let found = at(root, path).filter(|node| !node.is_reference() && node.tag != NULL);
            if found
                .and_then(Node::text)
                .is_some_and(|text| !text.is_empty())
            {
                let steps = path.iter().map(|key| Step::Key((*key).to_owned()));
                fields.push(SecretField {
                    document,
                    steps: steps.collect(),
                    placement: Placement::Text,
                });
            }
        }
    }
    fields
}

/// Merges a fragment's documents into a stream.
pub fn apply(stream: &mut Stream, fragment: &Stream) -> Result<(), RefusedClass> {
    for patch in fragment.documents.iter().filter(|root| !root.is_null()) {
        let whole = is_delete(patch);
        let mut roots = stream.documents.iter();
        let own = roots.position(|root| same_document(root, patch));
        match (own, whole) {
            (Some(place), true) => {
                stream.documents.remove(place);
            }
            (None, true) => return Err(RefusedClass::AbsentDeleteTarget),
            (Some(place), false) => merge(&mut stream.documents[place], patch)?,
            (None, false) => stream.documents.push(patch.clone()),
        }
    }
    Ok(())
}

fn is_delete(node: &Node) -> bool {
    member(node, DIRECTIVE).and_then(Node::text) == Some("delete")
}

fn merge(base: &mut Node, patch: &Node) -> Result<(), RefusedClass> {
    match (&mut base.content, &patch.content) {
        (Content::Mapping(own), Content::Mapping(patches)) => {
            for (key, value) in patches {
                let place = own.iter().position(|(known, _)| known.text() == key.text());
                match (place, is_delete(value)) {
                    (Some(place), true) => {
                        own.remove(place);
                    }
                    (None, true) => return Err(RefusedClass::AbsentDeleteTarget),
                    (Some(place), false) => merge(&mut own[place].1, value)?,
                    (None, false) => own.push((key.clone(), value.clone())),
                }
            }
            Ok(())
        }
        (Content::Sequence(items), Content::Sequence(more)) => {
            items.extend(more.iter().cloned());
            Ok(())
        }
        (Content::Scalar(_), Content::Scalar(_)) => {
            base.replace(patch.clone());
            Ok(())
        }
        _ => Err(RefusedClass::Merge),
    }
}

pub fn validate(stream: &Stream) -> Validation {
    let machine = stream.documents.iter().find(|root| is_machine(root));
    let text = |path: &[&str]| machine.and_then(|root| text_at(root, path));
    let mut errors = Vec::new();
    let kind = text(&["machine", "type"]);
    let machine_type = kind.and_then(MachineType::parse);
    if let (Some(kind), None) = (kind, machine_type) {
        errors.push(Plaintext::new(format!("\"{kind}\" is not a machine type")));
    }
    let name = text(&["machine", "network", "hostname"]);
    if let Some(name) = name.filter(|name| name.contains(' ')) {
        errors.push(Plaintext::new(format!("\"{name}\" is not a host name")));
    }
    let image = text(&["machine", "kubelet", "image"]);
    let written = image.unwrap_or(KUBELET);
    let version = written.rsplit_once(':').map(|(_, tag)| tag);
    let minor = version.and_then(minor);
    Validation {
        warnings: Vec::new(),
        errors,
        machine_type,
        kubelet_image: Plaintext::new(written.to_owned()),
        kubelet_image_set: image.is_some(),
        kubernetes_version: minor.and(version).map(str::to_owned),
        kubernetes: match minor {
            Some(minor) if MINORS.contains(&minor) => KubernetesCheck::Supported,
            Some(_) => KubernetesCheck::Outside,
            None => KubernetesCheck::Unreadable,
        },
        complete: machine.is_some(),
    }
}

/// The minor of a plain release, as `v1.36.2`.
fn minor(tag: &str) -> Option<u32> {
    let mut parts = tag.strip_prefix("v1.")?.split('.');
    let (minor, patch) = (parts.next()?.parse().ok()?, parts.next()?);
    let plain = parts.next().is_none() && patch.parse::<u32>().is_ok();
    plain.then_some(minor)
}

/// Sets a member of a mapping that a hand touches, making the mappings on the way.
pub fn set(root: &mut Node, path: &[&str], value: Node) {
    let Content::Mapping(own) = &mut root.content else {
        return;
    };
    let [key, rest @ ..] = path else {
        return;
    };
    let place = own.iter().position(|(known, _)| known.text() == Some(*key));
    let place = place.unwrap_or_else(|| {
        own.push((Node::string(*key), Node::mapping(Vec::new())));
        own.len() - 1
    });
    match rest.is_empty() {
        true => own[place].1 = value,
        false => set(&mut own[place].1, rest, value),
    }
}
