//! Inventory: the grammars of PA §3.3 and §7.3, and the identity a machine is
//! recorded under.
//!
//! http parses bodies with these; the engine compares what a node reports with
//! them. A refusal names the member and the rule, never the text. Never in this
//! module: name resolution (a name can move between two connections).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A member that does not follow its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member} {rule}")]
pub struct Malformed {
    pub member: &'static str,
    pub rule: &'static str,
}

const fn malformed<T>(member: &'static str, rule: &'static str) -> Result<T, Malformed> {
    Err(Malformed { member, rule })
}

/// Where a node is dialled: an address literal and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

/// The port of Talos's API, when an endpoint names none.
pub const TALOS_PORT: u16 = 50_000;

impl Endpoint {
    /// `10.55.0.3`, `10.55.0.3:50000`, `[fd00::3]`, `[fd00::3]:50000` (PA §3.3).
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        const MEMBER: &str = "talosEndpoint";
        const LITERAL: &str = "must be an IPv4 literal or an IPv6 literal in brackets";
        let (address, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let Some((inner, port)) = rest.split_once(']') else {
                    return malformed(MEMBER, LITERAL);
                };
                let Ok(address) = inner.parse::<Ipv6Addr>() else {
                    return malformed(MEMBER, LITERAL);
                };
                (IpAddr::V6(address), port)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (literal, port) = text.split_at(end);
                let Ok(address) = literal.parse::<Ipv4Addr>() else {
                    return malformed(MEMBER, LITERAL);
                };
                (IpAddr::V4(address), port)
            }
        };
        match parse_port(port) {
            Some(port) => Ok(Self { address, port }),
            None => malformed(MEMBER, "must have a port from 1 to 65535, or none"),
        }
    }
}

fn parse_port(text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(TALOS_PORT);
    }
    let digits = text.strip_prefix(':')?;
    if digits.is_empty() || digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|port| *port != 0)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// An SMBIOS UUID in lower case. Nil and all-ones are accepted: the index keeps a
/// second machine from using them (PA §7.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SmbiosUuid(String);

impl SmbiosUuid {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let groups = [8, 13, 18, 23];
        let shaped = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| {
                if groups.contains(&at) {
                    byte == b'-'
                } else {
                    byte.is_ascii_hexdigit()
                }
            });
        if !shaped {
            return malformed("smbiosUuid", "must be a UUID of 36 characters");
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A Talos node ID, compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TalosNodeId(String);

impl TalosNodeId {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !(1..=128).contains(&text.len()) || !printable {
            return malformed("talosNodeId", "must be 1 to 128 printable ASCII characters");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A Talos cluster ID: URL-safe, padded base64 of 32 bytes, compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TalosClusterId(String);

impl TalosClusterId {
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        // The encoding's own decoder refuses non-zero trailing bits, so a text that
        // decodes is the canonical one.
        match data_encoding::BASE64URL.decode(text.as_bytes()) {
            Ok(bytes) if bytes.len() == 32 => Ok(Self(text.to_owned())),
            _ => malformed(
                "talosClusterId",
                "must be URL-safe padded base64 of 32 bytes",
            ),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a machine is recorded by: exactly one of the two, fixed at inventory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdentityKey {
    SmbiosUuid(SmbiosUuid),
    TalosNodeId(TalosNodeId),
}

impl IdentityKey {
    /// From a body's two members.
    pub fn from_members(
        smbios_uuid: Option<&str>,
        talos_node_id: Option<&str>,
    ) -> Result<Self, Malformed> {
        match (smbios_uuid, talos_node_id) {
            (Some(uuid), None) => SmbiosUuid::parse(uuid).map(IdentityKey::SmbiosUuid),
            (None, Some(node)) => TalosNodeId::parse(node).map(IdentityKey::TalosNodeId),
            (Some(_), Some(_)) | (None, None) => malformed(
                "hardware",
                "must name exactly one of smbiosUuid and talosNodeId",
            ),
        }
    }
}

/// A machine's recorded identity: its key and its cluster's Talos cluster ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineIdentity {
    pub key: IdentityKey,
    pub talos_cluster: TalosClusterId,
}

/// The mode a machine's configuration is validated in, fixed at inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Platform {
    Metal,
    Container,
    Cloud,
}

impl Platform {
    pub const fn as_str(self) -> &'static str {
        match self {
            Platform::Metal => "metal",
            Platform::Container => "container",
            Platform::Cloud => "cloud",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        match text {
            "metal" => Ok(Platform::Metal),
            "container" => Ok(Platform::Container),
            "cloud" => Ok(Platform::Cloud),
            _ => malformed("platform", "must be metal, container or cloud"),
        }
    }
}

/// A display text: 1 to `limit` bytes without control characters.
pub fn parse_text(member: &'static str, text: &str, limit: usize) -> Result<String, Malformed> {
    if text.is_empty() || text.len() > limit {
        return malformed(member, "is empty or too long");
    }
    if text.chars().any(char::is_control) {
        return malformed(member, "holds a control character");
    }
    Ok(text.to_owned())
}

/// A cluster's name: 1 to 128 bytes without control characters.
pub fn parse_cluster_name(text: &str) -> Result<String, Malformed> {
    parse_text("name", text, 128)
}

/// A reason: given, not blank, at most 1,024 bytes (PA §9.3).
pub fn parse_reason(text: &str) -> Result<String, Malformed> {
    if text.trim().is_empty() || text.len() > 1_024 || text.contains('\0') {
        return malformed("reason", "must be 1 to 1024 bytes and not blank");
    }
    Ok(text.to_owned())
}

/// A cluster's Kubernetes endpoint: `https://host[:port]` and nothing after it.
pub fn parse_cluster_endpoint(text: &str) -> Result<String, Malformed> {
    const MEMBER: &str = "endpoint";
    const RULE: &str = "must be https://host[:port] without a path";
    let Some(authority) = text.strip_prefix("https://") else {
        return malformed(MEMBER, RULE);
    };
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((inner, port)) if inner.parse::<Ipv6Addr>().is_ok() => ("v6", port),
            _ => return malformed(MEMBER, RULE),
        },
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let named = (1..=253).contains(&host.len())
        && host.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        });
    if !named || parse_port(port).is_none() {
        return malformed(MEMBER, RULE);
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers-part: PA-INV-2 (the grammar; the routes are http's)
    #[test]
    fn an_endpoint_is_an_address_literal_with_an_optional_port() {
        for (text, stored) in [
            ("10.55.0.3", "10.55.0.3:50000"),
            ("10.55.0.3:1", "10.55.0.3:1"),
            ("10.55.0.3:65535", "10.55.0.3:65535"),
            ("[fd00::3]", "[fd00::3]:50000"),
            ("[FD00:0::3]:6443", "[fd00::3]:6443"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().to_string(), stored);
        }
        for text in [
            "",
            "https://10.55.0.3",
            "10.55.0.3/path",
            "10.55.0.3:50000/",
            "user@10.55.0.3",
            " 10.55.0.3",
            "10.55.0.3 ",
            "10.55.0.3:50000\n",
            "node.example.test",
            "localhost",
            "fd00::3",
            "fd00::3:50000",
            "[fd00::3",
            "[fd00::3%eth0]",
            "[10.55.0.3]",
            "[fd00::3]50000",
            "10.55.0.3:",
            "10.55.0.3:0",
            "10.55.0.3:65536",
            "10.55.0.3:+80",
            "10.55.0.3:080000",
            "010.55.0.3",
            "10.55.3",
        ] {
            assert_eq!(
                Endpoint::parse(text).map_err(|refused| refused.member),
                Err("talosEndpoint"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_machine_is_recorded_by_exactly_one_key() {
        let uuid = "12345678-ABCD-ef01-2345-6789abcdef01";
        let key = IdentityKey::from_members(Some(uuid), None).unwrap();
        assert_eq!(
            key,
            IdentityKey::SmbiosUuid(SmbiosUuid::parse(&uuid.to_lowercase()).unwrap())
        );
        assert!(IdentityKey::from_members(None, Some("abc")).is_ok());
        assert!(IdentityKey::from_members(Some(uuid), Some("abc")).is_err());
        assert!(IdentityKey::from_members(None, None).is_err());
        assert!(SmbiosUuid::parse("12345678ABCDef0123456789abcdef01").is_err());
        assert!(TalosNodeId::parse("").is_err());
        assert!(TalosNodeId::parse("with space").is_err());
        assert!(TalosNodeId::parse(&"x".repeat(129)).is_err());
    }

    #[test]
    fn a_cluster_id_is_the_canonical_base64_of_32_bytes() {
        let good = data_encoding::BASE64URL.encode(&[0xfb; 32]);
        assert!(TalosClusterId::parse(&good).is_ok());
        let unpadded = good.trim_end_matches('=').to_owned();
        let standard = data_encoding::BASE64.encode(&[0xfb; 32]);
        let short = data_encoding::BASE64URL.encode(&[0xfb; 31]);
        let mut trailing = good.clone();
        trailing.replace_range(42..43, "t");
        for text in [unpadded, standard, short, trailing, String::new()] {
            assert!(TalosClusterId::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_reasons_and_cluster_endpoints_keep_their_bounds() {
        assert!(parse_cluster_name("prod").is_ok());
        assert!(parse_cluster_name("a\nb").is_err());
        assert!(parse_cluster_name(&"x".repeat(129)).is_err());
        assert!(parse_reason("  ").is_err());
        assert!(parse_reason(&"x".repeat(1_024)).is_ok());
        assert!(parse_reason(&"x".repeat(1_025)).is_err());
        for text in [
            "https://k8s.example.test",
            "https://10.0.0.1:6443",
            "https://[fd00::1]:6443",
        ] {
            assert!(parse_cluster_endpoint(text).is_ok(), "{text}");
        }
        for text in [
            "http://k8s.example.test",
            "https://k8s.example.test/",
            "https://u@k8s.example.test",
            "https://",
            "https://k8s..test",
            "https://k8s.example.test:0",
            "https://-a.test",
        ] {
            assert!(parse_cluster_endpoint(text).is_err(), "{text}");
        }
    }
}
