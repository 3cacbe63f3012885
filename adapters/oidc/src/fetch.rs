//! HTTP to the identity provider under the host rule of PA §10.1.
//!
//! `keys` alone uses it. Every address is checked, the one of a redirect like the
//! first, so redirects are followed here and not by the client library. Never in this
//! module: an address or the provider's text in an error.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use bronzeward_core::rules::{Rule, Rules};
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde_json::Value;
use url::{Host, Url};

use crate::Outage;

/// Longest wait for one answer; authentication of a request waits for it.
const DEADLINE: Duration = Duration::from_secs(5);
const CONNECT_DEADLINE: Duration = Duration::from_secs(3);
/// A key set or discovery document is a few kilobytes.
const MAX_BYTES: usize = 1024 * 1024;
const MAX_REDIRECTS: usize = 5;

pub(crate) struct Fetcher<R> {
    /// May go through a proxy of the environment: it only tunnels the TLS.
    tls: Client,
    /// Goes to its host alone: a proxy would stand on the protected path.
    plain: Client,
    hosts: BTreeSet<String>,
    rules: R,
}

impl<R: Rules> Fetcher<R> {
    pub(crate) fn new(hosts: BTreeSet<String>, rules: R) -> Result<Self, Outage> {
        // reqwest is compiled without a TLS provider of its own; another caller of this
        // process may have installed this one before.
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT_DEADLINE)
                .timeout(DEADLINE)
                .user_agent("bronzeward")
        };
        let plain = if rules.enforced(Rule::PlainHttpDirect) {
            builder().no_proxy()
        } else {
            builder()
        };
        Ok(Self {
            tls: builder().build().map_err(|_| Outage::Unreachable)?,
            plain: plain.build().map_err(|_| Outage::Unreachable)?,
            hosts,
            rules,
        })
    }

    /// An address that may be reached, or a refusal.
    pub(crate) fn admit(&self, address: &str) -> Result<Url, Outage> {
        let url = Url::parse(address).map_err(|_| Outage::HostRefused)?;
        self.admit_url(&url).map(|()| url)
    }

    fn admit_url(&self, url: &Url) -> Result<(), Outage> {
        let named = !url.username().is_empty() || url.password().is_some();
        let (Some(host), false) = (url.host(), named) else {
            return Err(Outage::HostRefused);
        };
        let admitted = match url.scheme() {
            "https" => true,
            "http" => {
                let listed = own_host(&host) || self.hosts.contains(&host.to_string());
                self.rules.holds(Rule::PlainHttpHost, listed)
            }
            _ => false,
        };
        if admitted {
            Ok(())
        } else {
            Err(Outage::HostRefused)
        }
    }

    /// The JSON at an address, redirects followed within the rule.
    pub(crate) async fn json(&self, address: &str) -> Result<Value, Outage> {
        let mut url = self.admit(address)?;
        for _ in 0..=MAX_REDIRECTS {
            let client = if url.scheme() == "https" {
                &self.tls
            } else {
                &self.plain
            };
            let answer = client.get(url.clone()).send().await.map_err(outage)?;
            let status = answer.status();
            if status.is_success() {
                return read(answer).await;
            }
            let target = answer
                .headers()
                .get(LOCATION)
                .and_then(|to| to.to_str().ok());
            match target {
                Some(target) if status.is_redirection() => {
                    let next = url.join(target).map_err(|_| Outage::NotUnderstood)?;
                    self.admit_url(&next)?;
                    url = next;
                }
                _ => return Err(Outage::Status),
            }
        }
        Err(Outage::TooManyRedirects)
    }
}

/// The server's own host: what never leaves the machine.
fn own_host(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => IpAddr::V4(*address).is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).is_loopback(),
    }
}

async fn read(mut answer: Response) -> Result<Value, Outage> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(outage)? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(Outage::NotUnderstood);
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|_| Outage::NotUnderstood)
}

fn outage(error: reqwest::Error) -> Outage {
    if error.is_timeout() {
        Outage::TimedOut
    } else {
        Outage::Unreachable
    }
}
