//! One mutually authenticated connection to one endpoint (facts 1.6, 2.2).
//!
//! Both clients dial here. The node's certificate must lead to the talosconfig's own
//! authority and name the address that was dialled; ALPN is h2. Errors are codes.

use std::net::SocketAddr;
use std::sync::Arc;

use bronzeward_core::inventory::Endpoint;
use bronzeward_engine::ports::node::{NodeCode, NotUsable, TalosAccess};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The TLS side of an access; the same code that reads a talosconfig asks for it, so an
/// access that exists can dial.
pub fn tls_config(access: &TalosAccess) -> Result<ClientConfig, NotUsable> {
    let mut roots = RootCertStore::empty();
    for authority in access.authorities() {
        let authority = CertificateDer::from(authority.as_slice());
        roots.add(authority.into_owned()).map_err(|_| NotUsable {
            member: "ca",
            rule: "is no usable authority",
        })?;
    }
    let chain = access
        .certificates()
        .iter()
        .map(|certificate| CertificateDer::from(certificate.clone()))
        .collect();
    let unusable = NotUsable {
        member: "key",
        rule: "is no usable key of the certificate",
    };
    let key = PrivateKeyDer::try_from(access.expose_key().to_vec()).map_err(|_| unusable)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| unusable)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|_| unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

pub async fn dial(
    access: &TalosAccess,
    endpoint: Endpoint,
) -> Result<TlsStream<TcpStream>, NodeCode> {
    let config = tls_config(access).map_err(|_| NodeCode::TLS_FAILED)?;
    let address = SocketAddr::new(endpoint.address, endpoint.port);
    let tcp = TcpStream::connect(address)
        .await
        .map_err(|_| NodeCode::DIAL_FAILED)?;
    // A call is one small exchange: waiting to fill a segment only delays it.
    tcp.set_nodelay(true).map_err(|_| NodeCode::DIAL_FAILED)?;
    let name = ServerName::IpAddress(endpoint.address.into());
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
        .map_err(|_| NodeCode::TLS_FAILED)?;
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Ok(stream)
    } else {
        Err(NodeCode::TLS_FAILED)
    }
}
