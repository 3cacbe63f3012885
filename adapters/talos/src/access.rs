//! A talosconfig, read in memory (facts 2.1, 2.2): the selected context's authority,
//! certificate and key, and nothing else of it.
//!
//! Both clients' users come through here, by [`NodeReader::access`]. A refusal names a
//! member and a rule: never a text of the document, of the YAML reader or of rustls. The
//! YAML reader's own buffers are not wiped; what this module copies out of it is.
//!
//! [`NodeReader::access`]: bronzeward_engine::ports::node::NodeReader::access

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bronzeward_engine::ports::node::{NotUsable, TalosAccess};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::{dial, organization};

/// A talosconfig holds a few contexts of a few kilobytes.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct Document {
    context: Option<String>,
    contexts: Option<BTreeMap<String, Option<Context>>>,
}

/// Members that are not named here are skipped, endpoints and nodes among them.
#[derive(Deserialize)]
struct Context {
    ca: Option<Secret>,
    crt: Option<Secret>,
    key: Option<Secret>,
}

struct Secret(Zeroizing<String>);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Secret(Zeroizing::new(text)))
    }
}

fn refused<T>(member: &'static str, rule: &'static str) -> Result<T, NotUsable> {
    Err(NotUsable { member, rule })
}

/// Reads a document. What it returns can build a TLS client: the key is one that can
/// sign, it belongs to the certificate, and the authority is a usable root.
pub fn parse(document: &[u8]) -> Result<TalosAccess, NotUsable> {
    let context = selected(document)?;
    let authorities = certificates("ca", context.ca)?;
    let chain = certificates("crt", context.crt)?;
    let key = private_key(context.key)?;
    match organization::is_impersonator(&chain[0]) {
        Some(false) => {}
        Some(true) => return refused("crt", "has the role os:impersonator"),
        None => return refused("crt", "has a subject that cannot be read"),
    }
    let access = TalosAccess::new(authorities, chain, key.to_vec());
    dial::tls_config(&access)?;
    Ok(access)
}

fn selected(document: &[u8]) -> Result<Context, NotUsable> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return refused("document", "is too large");
    }
    let Ok(parsed) = serde_saphyr::from_slice::<Option<Document>>(document) else {
        return refused("document", "is not a talosconfig");
    };
    let Some(parsed) = parsed else {
        return refused("document", "is empty");
    };
    let Some(name) = parsed.context.filter(|name| !name.is_empty()) else {
        return refused("context", "selects none");
    };
    match parsed.contexts.unwrap_or_default().remove(&name) {
        Some(Some(context)) => Ok(context),
        Some(None) | None => refused("contexts", "lacks the selected context"),
    }
}

/// Base64 as Go's decoder takes it: standard, padded, line ends skipped.
fn decoded(member: &'static str, secret: Option<Secret>) -> Result<Zeroizing<Vec<u8>>, NotUsable> {
    let Some(Secret(text)) = secret else {
        return refused(member, "is absent");
    };
    let joined: Zeroizing<Vec<u8>> = Zeroizing::new(
        text.bytes()
            .filter(|byte| !matches!(byte, b'\r' | b'\n'))
            .collect(),
    );
    if joined.is_empty() {
        return refused(member, "is empty");
    }
    match STANDARD.decode(&*joined) {
        Ok(bytes) => Ok(Zeroizing::new(bytes)),
        Err(_) => refused(member, "is not base64"),
    }
}

fn certificates(member: &'static str, secret: Option<Secret>) -> Result<Vec<Vec<u8>>, NotUsable> {
    let pem = decoded(member, secret)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem)
        .map(|one| one.map(|certificate| certificate.to_vec()))
        .collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => refused(member, "holds no certificate"),
    }
}

/// Talos labels an Ed25519 key `ED25519 PRIVATE KEY`, which no PEM reader of rustls
/// takes for a key; its DER is PKCS#8, whose own label is `PRIVATE KEY` (T21).
fn private_key(secret: Option<Secret>) -> Result<Zeroizing<Vec<u8>>, NotUsable> {
    let pem = decoded("key", secret)?;
    let Ok(text) = std::str::from_utf8(&pem) else {
        return refused("key", "holds no private key");
    };
    let relabelled = Zeroizing::new(text.replace("ED25519 PRIVATE KEY", "PRIVATE KEY"));
    match PrivateKeyDer::from_pem_slice(relabelled.as_bytes()) {
        Ok(key) => Ok(Zeroizing::new(key.secret_der().to_vec())),
        Err(_) => refused("key", "holds no private key"),
    }
}
