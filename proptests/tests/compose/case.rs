//! One case of `fixtures/compose`, read from its file (fixtures/compose/README.md).
//!
//! The files are parsed by the renderer's own parser, so that a fragment in a case means
//! what the product reads. Never in this module: what a case expects of the product in
//! code; a case's expectations are its own.

use bronzeward_core::document::{Content, Node};
use bronzeward_core::path::{Format, Path};
use bronzeward_core::reference::{Declaration, Declarations, Encoding, Name};
use bronzeward_core::secret::{Kind, Scalar, Value};
use std::collections::BTreeMap;

/// A node of a case file.
#[derive(Clone, Copy)]
pub struct Field<'a>(pub Option<&'a Node>);

impl<'a> Field<'a> {
    pub fn get(self, key: &str) -> Field<'a> {
        let Some(Content::Mapping(entries)) = self.0.map(|node| &node.content) else {
            return Field(None);
        };
        let found = entries.iter().find(|(name, _)| name.text() == Some(key));
        Field(found.map(|(_, value)| value))
    }

    pub fn text(self) -> Option<&'a str> {
        self.0.filter(|node| !node.is_null()).and_then(Node::text)
    }

    pub fn string(self) -> String {
        self.text().unwrap_or_default().to_string()
    }

    pub fn is(self, text: &str) -> bool {
        self.text() == Some(text)
    }

    pub fn list(self) -> Vec<Field<'a>> {
        match self.0.map(|node| &node.content) {
            Some(Content::Sequence(items)) => items.iter().map(|item| Field(Some(item))).collect(),
            _ => Vec::new(),
        }
    }

    pub fn texts(self) -> Vec<String> {
        self.list().into_iter().map(Field::string).collect()
    }

    pub fn entries(self) -> Vec<(String, Field<'a>)> {
        match self.0.map(|node| &node.content) {
            Some(Content::Mapping(entries)) => entries
                .iter()
                .map(|(key, value)| (Field(Some(key)).string(), Field(Some(value))))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub fn present(self) -> bool {
        self.0.is_some_and(|node| !node.is_null())
    }

    pub fn number(self) -> Option<usize> {
        self.text().and_then(|text| text.parse().ok())
    }
}

pub struct Fragment {
    pub name: String,
    pub document: String,
    pub declarations: Declarations,
}

pub struct Case {
    pub id: String,
    pub root: Node,
    pub base_additions: String,
    pub fragments: Vec<Fragment>,
    /// What the provider holds, by name and version.
    pub provider: BTreeMap<(String, u64), Value>,
}

impl Case {
    pub fn read(root: Node) -> Result<Case, String> {
        let file = Field(Some(&root));
        let mut fragments = Vec::new();
        for fragment in file.get("fragments").list() {
            fragments.push(Fragment {
                name: fragment.get("name").string(),
                document: fragment.get("document").string(),
                declarations: declarations(fragment.get("declarations"))?,
            });
        }
        let mut provider = BTreeMap::new();
        for (name, secret) in file.get("provider").entries() {
            let kind = secret.get("kind").string();
            for (version, value) in secret.get("versions").entries() {
                let version = version.parse().map_err(|_| "a version is a number")?;
                let value = value_of(&kind, value)?;
                provider.insert((name.clone(), version), value);
            }
        }
        let id = file.get("id").string();
        let base_additions = file.get("base_additions").string();
        if id.is_empty() || !file.get("expected").present() {
            return Err("a case has an id and says what it expects".into());
        }
        Ok(Case {
            id,
            base_additions,
            fragments,
            provider,
            root: root.clone(),
        })
    }

    pub fn field(&self, name: &str) -> Field<'_> {
        Field(Some(&self.root)).get(name)
    }

    pub fn expected(&self) -> Field<'_> {
        self.field("expected")
    }
}

fn declarations(field: Field<'_>) -> Result<Declarations, String> {
    let mut declarations = Declarations::default();
    for (name, declared) in field.get("references").entries() {
        let name = Name::parse(&name).ok_or("a reference's name")?;
        let encoding = declared.get("encoding").text();
        let encoding = match encoding {
            None => None,
            Some(text) => Some(Encoding::parse(text).ok_or("an encoding")?),
        };
        let declaration = Declaration {
            kind: Kind::parse(&declared.get("kind").string()).ok_or("a kind")?,
            version: declared.get("version").number().ok_or("a version")? as u64,
            encoding,
        };
        declarations.references.insert(name, declaration);
    }
    declarations.embedded = embedded(field.get("embedded"))?;
    Ok(declarations)
}

pub fn embedded(field: Field<'_>) -> Result<BTreeMap<Path, Format>, String> {
    let mut found = BTreeMap::new();
    for one in field.list() {
        let path = Path::parse(&one.get("path").string()).map_err(|_| "an embedded path")?;
        let format = Format::parse(&one.get("format").string()).ok_or("a format")?;
        found.insert(path, format);
    }
    Ok(found)
}

fn value_of(kind: &str, field: Field<'_>) -> Result<Value, String> {
    let scalar = |kind: Kind, text: &str| match kind {
        Kind::String => Ok(Scalar::string(text)),
        Kind::Integer => text
            .parse()
            .map(Scalar::Integer)
            .map_err(|_| "an integer".to_string()),
        Kind::Boolean => match text {
            "true" => Ok(Scalar::Boolean(true)),
            "false" => Ok(Scalar::Boolean(false)),
            _ => Err("a boolean".to_string()),
        },
        Kind::Mapping => Err("a scalar".to_string()),
    };
    match Kind::parse(kind).ok_or("a kind")? {
        Kind::Mapping => {
            let mut members = BTreeMap::new();
            for (key, member) in field.entries() {
                let tag = member.0.map(|node| node.tag.as_str());
                let kind = match tag {
                    Some("!!int") => Kind::Integer,
                    Some("!!bool") => Kind::Boolean,
                    _ => Kind::String,
                };
                members.insert(key, scalar(kind, &member.string())?);
            }
            Ok(Value::Mapping(members))
        }
        kind => Ok(Value::Scalar(scalar(kind, &field.string())?)),
    }
}
