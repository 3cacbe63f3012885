//! Values whose form the wire fixes: bounded texts, whole numbers, input text.
//!
//! Bodies are made of these, so that a malformed value is refused where it is read
//! (400 `invalid-request`) and the OpenAPI document states the same form. Never in
//! this module: a rule that needs a record or a decision.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// Every rule a form refuses by. A message that is not listed is not passed on.
pub(crate) const RULES: &[&str] = &[
    "cluster-endpoint-form",
    "cluster-name-form",
    "facts-count",
    "identifier-form",
    "list-length",
    "number-range",
    "reason-form",
    "serial-form",
    "smbios-uuid-form",
    "source-name-form",
    "subject-form",
    "talos-cluster-id-form",
    "talos-endpoint-form",
    "talos-node-id-form",
    "title-form",
];

/// One form of text: its rule, its schema, and the canonical text of an input.
pub trait TextForm: 'static {
    const RULE: &'static str;
    const NAME: &'static str;
    fn canonical(text: &str) -> Option<String>;
    /// Keywords beside `type: string`.
    fn keywords() -> Value;
}

/// A text of form `F`, in canonical spelling.
pub struct Text<F> {
    text: String,
    form: PhantomData<fn() -> F>,
}

impl<F: TextForm> Text<F> {
    pub fn new(text: &str) -> Option<Self> {
        F::canonical(text).map(|text| Self {
            text,
            form: PhantomData,
        })
    }
}

impl<F> Text<F> {
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<F> Clone for Text<F> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            form: PhantomData,
        }
    }
}

impl<F> PartialEq for Text<F> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<F> Eq for Text<F> {}

impl<F> fmt::Debug for Text<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl<F> Serialize for Text<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, F: TextForm> Deserialize<'de> for Text<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| D::Error::custom(F::RULE))
    }
}

impl<F: TextForm> JsonSchema for Text<F> {
    fn schema_name() -> Cow<'static, str> {
        F::NAME.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": "string" });
        if let Value::Object(keywords) = F::keywords() {
            for (keyword, value) in keywords {
                schema.insert(keyword, value);
            }
        }
        schema
    }
}

/// The forms of PA §9.3 and §3.3.
pub mod form {
    use super::*;

    fn within(text: &str, least: usize, most: usize) -> bool {
        (least..=most).contains(&text.len())
    }

    /// 1 to 128 bytes without control characters.
    pub struct ClusterName;
    impl TextForm for ClusterName {
        const RULE: &'static str = "cluster-name-form";
        const NAME: &'static str = "ClusterName";

        fn canonical(text: &str) -> Option<String> {
            let plain = !text.chars().any(char::is_control);
            (within(text, 1, 128) && plain).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"minLength": 1, "maxLength": 128, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"})
        }
    }

    /// 1 to 256 bytes.
    pub struct Title;
    impl TextForm for Title {
        const RULE: &'static str = "title-form";
        const NAME: &'static str = "Title";

        fn canonical(text: &str) -> Option<String> {
            within(text, 1, 256).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"minLength": 1, "maxLength": 256})
        }
    }

    /// Not blank, at most 1024 bytes.
    pub struct Reason;
    impl TextForm for Reason {
        const RULE: &'static str = "reason-form";
        const NAME: &'static str = "Reason";

        fn canonical(text: &str) -> Option<String> {
            (within(text, 1, 1024) && !text.trim().is_empty()).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"minLength": 1, "maxLength": 1024, "pattern": "\\S"})
        }
    }

    /// The name of a fragment or profile.
    pub struct SourceName;
    impl TextForm for SourceName {
        const RULE: &'static str = "source-name-form";
        const NAME: &'static str = "SourceName";

        fn canonical(text: &str) -> Option<String> {
            let bytes = text.as_bytes();
            let inner = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
            let ends = bytes.first() != Some(&b'-') && bytes.last() != Some(&b'-');
            (within(text, 1, 63) && bytes.iter().all(inner) && ends).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"})
        }
    }

    /// A SMBIOS UUID, in any case on the way in and lower case after.
    pub struct SmbiosUuid;
    impl TextForm for SmbiosUuid {
        const RULE: &'static str = "smbios-uuid-form";
        const NAME: &'static str = "SmbiosUuid";

        fn canonical(text: &str) -> Option<String> {
            let hyphens = [8, 13, 18, 23];
            let spelled = text.bytes().enumerate().all(|(at, byte)| {
                if hyphens.contains(&at) {
                    byte == b'-'
                } else {
                    byte.is_ascii_hexdigit()
                }
            });
            (text.len() == 36 && spelled).then(|| text.to_ascii_lowercase())
        }

        fn keywords() -> Value {
            json!({"pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"})
        }
    }

    fn printable(text: &str) -> bool {
        within(text, 1, 128) && text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
    }

    /// A Talos node ID as Talos prints it; compared byte for byte (PA §7.3).
    pub struct TalosNodeId;
    impl TextForm for TalosNodeId {
        const RULE: &'static str = "talos-node-id-form";
        const NAME: &'static str = "TalosNodeId";

        fn canonical(text: &str) -> Option<String> {
            printable(text).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"pattern": "^[ -~]{1,128}$"})
        }
    }

    /// A machine's serial number, hardware evidence only.
    pub struct Serial;
    impl TextForm for Serial {
        const RULE: &'static str = "serial-form";
        const NAME: &'static str = "Serial";

        fn canonical(text: &str) -> Option<String> {
            printable(text).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"pattern": "^[ -~]{1,128}$"})
        }
    }

    /// URL-safe, padded base64 of 32 bytes, in the one spelling that encoding gives.
    pub struct TalosClusterId;
    impl TextForm for TalosClusterId {
        const RULE: &'static str = "talos-cluster-id-form";
        const NAME: &'static str = "TalosClusterId";

        fn canonical(text: &str) -> Option<String> {
            let (symbols, padding) = text.split_at_checked(43)?;
            let alphabet =
                |byte: u8| matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
            // 32 bytes leave two spare bits in the last symbol, which are zero.
            let last = symbols.bytes().last()?;
            let canonical = b"AEIMQUYcgkosw048".contains(&last);
            (padding == "=" && symbols.bytes().all(alphabet) && canonical).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"pattern": "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]=$"})
        }
    }

    /// The port a Talos endpoint has when none is written (PA §3.3).
    pub const TALOS_PORT: u16 = 50_000;

    /// An IP literal with an optional port; no name, scheme, path or user (PA §3.3).
    pub struct TalosEndpoint;
    impl TextForm for TalosEndpoint {
        const RULE: &'static str = "talos-endpoint-form";
        const NAME: &'static str = "TalosEndpoint";

        fn canonical(text: &str) -> Option<String> {
            let (host, port) = host_and_port(text)?;
            let address: IpAddr = host.parse().ok()?;
            if address.is_ipv6() != text.starts_with('[') {
                return None;
            }
            Some(SocketAddr::new(address, port.unwrap_or(TALOS_PORT)).to_string())
        }

        fn keywords() -> Value {
            json!({"pattern": "^([0-9.]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$"})
        }
    }

    /// `https://host[:port]` of a cluster's Kubernetes API; stored with its port.
    pub struct ClusterEndpoint;
    impl TextForm for ClusterEndpoint {
        const RULE: &'static str = "cluster-endpoint-form";
        const NAME: &'static str = "ClusterEndpoint";

        fn canonical(text: &str) -> Option<String> {
            let authority = text.strip_prefix("https://")?;
            let (host, port) = host_and_port(authority)?;
            let port = port.unwrap_or(443);
            if authority.starts_with('[') {
                let address: std::net::Ipv6Addr = host.parse().ok()?;
                return Some(format!("https://[{address}]:{port}"));
            }
            host_name(host).then(|| format!("https://{}:{port}", host.to_ascii_lowercase()))
        }

        fn keywords() -> Value {
            json!({
                "maxLength": 300,
                "pattern": "^https://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$"
            })
        }
    }

    /// An issuer or a subject named in an identity revocation.
    pub struct Subject;
    impl TextForm for Subject {
        const RULE: &'static str = "subject-form";
        const NAME: &'static str = "Subject";

        fn canonical(text: &str) -> Option<String> {
            within(text, 1, 1024).then(|| text.to_owned())
        }

        fn keywords() -> Value {
            json!({"minLength": 1, "maxLength": 1024})
        }
    }

    /// Splits `host[:port]`, a bracketed host without its brackets.
    fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(after) => after.split_once(']')?,
            None => match text.find(':') {
                Some(at) => text.split_at(at),
                None => (text, ""),
            },
        };
        if rest.is_empty() {
            return Some((host, None));
        }
        let digits = rest.strip_prefix(':')?;
        // A leading zero would give one port two spellings; port 0 is no port.
        if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some((host, Some(digits.parse().ok()?)))
    }

    fn host_name(host: &str) -> bool {
        within(host, 1, 253)
            && host.split('.').all(|label| {
                let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                within(label, 1, 63)
                    && label.bytes().all(inner)
                    && !label.starts_with('-')
                    && !label.ends_with('-')
            })
    }
}

/// A whole number from `LEAST` to `MOST`, in any JSON spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    pub fn new(value: u64) -> Option<Self> {
        (LEAST..=MOST).contains(&value).then_some(Self(value))
    }

    pub fn value(self) -> u64 {
        self.0
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Whole<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        u64::try_from(value)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| D::Error::custom("number-range"))
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        format!("Whole{LEAST}To{MOST}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

/// Text that has not been through extraction: a source document, or a mark, whose
/// path can name a secret mapping key (PA §7.1). It prints nothing of itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputText(String);

impl InputText {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for ingestion and for sending; nothing else reads it.
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl fmt::Debug for InputText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputText(..)")
    }
}

impl JsonSchema for InputText {
    fn schema_name() -> Cow<'static, str> {
        "InputText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// An RFC 3339 time. Bodies carry it for reading; `http` converts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub String);

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
