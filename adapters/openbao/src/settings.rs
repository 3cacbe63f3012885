//! Where the provider is, and by which way it may be reached.
//!
//! Called by the composition root once; every client is made from an [`Endpoint`]. Never in
//! this module: a token, or a way around the rule that a plain connection needs a host the
//! deployment named.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{Certificate, Client, Url, redirect};

/// Under the provider's own 300 s, after which it closes an idle connection.
const IDLE: Duration = Duration::from_secs(60);

/// The provider part of the server's configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `https://host[:port]`, or `http://` to loopback or a listed host.
    pub address: String,
    /// Bare host names, compared exactly. Listing one states that the network to it is
    /// protected.
    pub plain_http_hosts: Vec<String>,
    /// The certificate authority (PEM) that signs the provider's certificate; without one
    /// the public authorities.
    pub ca: Option<Vec<u8>>,
    /// For one whole call, connection and body included.
    pub timeout: Duration,
}

impl Settings {
    /// Ten seconds per call, no plain hosts but loopback, public authorities.
    pub fn new(address: impl Into<String>) -> Settings {
        Settings {
            address: address.into(),
            plain_http_hosts: Vec::new(),
            ca: None,
            timeout: Duration::from_secs(10),
        }
    }
}

/// What is wrong with the settings. It does not repeat them: an address may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("the provider's address is no http or https URL of a host and a port alone")]
    Address,
    #[error("the provider's address is plain http to a host that plainHTTPHosts does not list")]
    PlainHttp,
    #[error("the provider's certificate authority is not a PEM certificate")]
    Authority,
    #[error("a client for the provider cannot be made")]
    Client,
}

/// The provider, as every identity reaches it.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) http: Client,
    pub(crate) base: Url,
}

impl Endpoint {
    pub fn new(settings: &Settings) -> Result<Endpoint, SettingsError> {
        let base = checked_address(&settings.address, &settings.plain_http_hosts)?;
        // The HTTP library has no cryptography of its own and takes the process's; the first
        // to name one wins, and every part of the server names this one.
        let _already_named = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .http1_only()
            .referer(false)
            .pool_idle_timeout(IDLE)
            .timeout(settings.timeout);
        if let Some(pem) = &settings.ca {
            let authorities =
                Certificate::from_pem_bundle(pem).map_err(|_| SettingsError::Authority)?;
            if authorities.is_empty() {
                return Err(SettingsError::Authority);
            }
            builder = builder.tls_built_in_root_certs(false);
            for authority in authorities {
                builder = builder.add_root_certificate(authority);
            }
        }
        let http = builder.build().map_err(|_| SettingsError::Client)?;
        Ok(Endpoint { http, base })
    }
}

fn checked_address(address: &str, plain_hosts: &[String]) -> Result<Url, SettingsError> {
    let url = Url::parse(address).map_err(|_| SettingsError::Address)?;
    let host = url.host_str().ok_or(SettingsError::Address)?;
    let bare = url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    if !bare {
        return Err(SettingsError::Address);
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(host) || plain_hosts.iter().any(|listed| listed == host) => Ok(url),
        "http" => Err(SettingsError::PlainHttp),
        _ => Err(SettingsError::Address),
    }
}

fn is_loopback(host: &str) -> bool {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(address: &str, hosts: &[&str]) -> Result<(), SettingsError> {
        let mut settings = Settings::new(address);
        settings.plain_http_hosts = hosts.iter().map(|h| (*h).to_owned()).collect();
        Endpoint::new(&settings).map(drop)
    }

    #[test]
    fn plain_http_reaches_loopback_and_listed_hosts_only() {
        for address in [
            "http://127.0.0.1:8200",
            "http://[::1]:8200/",
            "http://localhost:1",
        ] {
            assert_eq!(made(address, &[]), Ok(()), "{address}");
        }
        assert_eq!(made("https://bao.example", &[]), Ok(()));
        assert_eq!(made("http://bao.internal:8200", &["bao.internal"]), Ok(()));
        for (address, hosts) in [
            ("http://bao.internal", &[][..]),
            ("http://bao.internal", &["internal"]),
            ("http://x.bao.internal", &["bao.internal"]),
            ("http://127.0.0.1.example", &[]),
            ("http://10.0.0.1:8200", &["10.0.0.2"]),
        ] {
            assert_eq!(
                made(address, hosts),
                Err(SettingsError::PlainHttp),
                "{address}"
            );
        }
    }

    #[test]
    fn an_address_is_a_host_and_a_port_alone() {
        for address in [
            "",
            "127.0.0.1:8200",
            "ftp://127.0.0.1",
            "unix:///run/bao",
            "https://user:secret@bao.example",
            "https://bao.example/v1",
            "https://bao.example?x",
            "https://bao.example#x",
        ] {
            let refused = made(address, &[]);
            assert_eq!(refused, Err(SettingsError::Address), "{address}");
            assert!(!refused.unwrap_err().to_string().contains("secret"));
        }
    }

    #[test]
    fn an_authority_that_is_no_certificate_is_refused() {
        for pem in [
            "",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            let mut settings = Settings::new("https://bao.example");
            settings.ca = Some(pem.into());
            assert_eq!(
                Endpoint::new(&settings).err(),
                Some(SettingsError::Authority)
            );
        }
    }
}
