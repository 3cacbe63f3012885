//! Marks and declarations beside a submitted text, and declarations as they are served.
//! A malformed one is named by its place in the body, never by its text: it can hold a
//! value (PA §9.3).

use std::collections::BTreeMap;

use bronzeward_api::InputText;
use bronzeward_api::Whole;
use bronzeward_api::bodies::source::{
    Declaration as WireDeclaration, Declarations as WireDeclarations, Embedded, EmbeddedFormat,
    Encoding as WireEncoding, ReferenceKind, ServedDeclarations,
};
use bronzeward_core::path::{Format, Path};
use bronzeward_core::problem::Problem;
use bronzeward_core::reference::{Declaration, Declarations, Encoding, Name};
use bronzeward_core::secret::Kind;
use bronzeward_engine::ingest::Said;
use bronzeward_engine::request::Refused;

fn malformed(path: String) -> Problem {
    Problem::invalid_request("A member is malformed.").naming("path", path)
}

/// What a body says beside its document.
pub fn said(
    marks: Option<Vec<InputText>>,
    declarations: Option<WireDeclarations>,
) -> Result<Said, Problem> {
    let mut paths = Vec::new();
    for (position, mark) in marks.unwrap_or_default().into_iter().enumerate() {
        let path = Path::parse(&mark.into_inner());
        paths.push(path.map_err(|_| malformed(format!("/marks/{position}")))?);
    }
    Ok(Said {
        marks: paths,
        declarations: declared(declarations.unwrap_or_default())?,
    })
}

fn declared(sent: WireDeclarations) -> Result<Declarations, Problem> {
    let mut declarations = Declarations::default();
    let references = sent.references.unwrap_or_default();
    for (position, (name, one)) in references.into_iter().enumerate() {
        let parsed = Name::parse(&name);
        let name =
            parsed.ok_or_else(|| malformed(format!("/declarations/references/{position}")))?;
        let declaration = Declaration {
            kind: match one.kind {
                ReferenceKind::String => Kind::String,
                ReferenceKind::Integer => Kind::Integer,
                ReferenceKind::Boolean => Kind::Boolean,
                ReferenceKind::Mapping => Kind::Mapping,
            },
            version: one.version.value(),
            encoding: one.encoding.map(|WireEncoding::Base64| Encoding::Base64),
        };
        declarations.references.insert(name, declaration);
    }
    for (position, one) in sent.embedded.unwrap_or_default().into_iter().enumerate() {
        let place = || malformed(format!("/declarations/embedded/{position}"));
        let path = Path::parse(&one.path.into_inner()).map_err(|_| place())?;
        let format = match one.format {
            EmbeddedFormat::Yaml => Format::Yaml,
            EmbeddedFormat::Json => Format::Json,
        };
        if declarations.embedded.insert(path, format).is_some() {
            return Err(place());
        }
    }
    Ok(declarations)
}

/// A revision's declarations.
pub fn served(declarations: &Declarations) -> Result<ServedDeclarations, Refused> {
    let unservable = || Refused::from(Problem::internal("A stored version is out of range."));
    let mut references = BTreeMap::new();
    for (name, one) in &declarations.references {
        let declaration = WireDeclaration {
            kind: match one.kind {
                Kind::String => ReferenceKind::String,
                Kind::Integer => ReferenceKind::Integer,
                Kind::Boolean => ReferenceKind::Boolean,
                Kind::Mapping => ReferenceKind::Mapping,
            },
            version: Whole::new(one.version).ok_or_else(unservable)?,
            encoding: one.encoding.map(|Encoding::Base64| WireEncoding::Base64),
        };
        references.insert(name.as_str().to_owned(), declaration);
    }
    let embedded = declarations.embedded.iter().map(|(path, format)| Embedded {
        path: InputText::new(path.written()),
        format: match format {
            Format::Yaml => EmbeddedFormat::Yaml,
            Format::Json => EmbeddedFormat::Json,
        },
    });
    Ok(ServedDeclarations {
        references,
        embedded: embedded.collect(),
    })
}
