//! The roles in a client certificate, as far as this client must know them (facts 2.3).
//!
//! A certificate with os:impersonator may state other roles in a header, and is refused.
//! Called when a talosconfig is read. An organization that cannot be read is not taken
//! for one that is harmless.

use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Any, Decode as _};

const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const IMPERSONATOR: &str = "os:impersonator";

/// `None` where the certificate or one of its organizations cannot be read. Talos trims
/// blanks around a role.
pub fn is_impersonator(certificate: &[u8]) -> Option<bool> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let subject = certificate.tbs_certificate.subject;
    let mut found = false;
    for name in subject.0.iter().flat_map(|relative| relative.0.iter()) {
        if name.oid == ORGANIZATION {
            found |= text(&name.value)?.trim() == IMPERSONATOR;
        }
    }
    Some(found)
}

fn text(value: &Any) -> Option<String> {
    let utf8 = value
        .decode_as::<Utf8StringRef<'_>>()
        .map(|text| text.as_str().to_owned());
    let printable = || {
        value
            .decode_as::<PrintableStringRef<'_>>()
            .map(|text| text.as_str().to_owned())
    };
    let ascii = || {
        value
            .decode_as::<Ia5StringRef<'_>>()
            .map(|text| text.as_str().to_owned())
    };
    utf8.or_else(|_| printable()).or_else(|_| ascii()).ok()
}
