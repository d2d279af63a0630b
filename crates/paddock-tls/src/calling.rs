//! Connections to a server, from files of keys and certificates.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;

use crate::error::TlsError;
use crate::key_entry::KeyEntry;
use crate::settings::{CallerIdentity, TlsVersions, Trust};
use crate::unverified::Unverified;
use crate::verifier::Verifier;
use crate::versions::protocol_versions;
use crate::{cipher_suites, store};

/// Keys, certificates and rules with which servers are called. `protocols` are those behind TLS, by the names that both sides agree on; if
/// there are none, nothing is said of them. TLS sessions are not resumed.
pub fn calling_config(
    trust: Trust<'_>,
    identity: Option<&CallerIdentity>,
    protocols: &[&[u8]],
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(cipher_suites::provider(None));
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Authorities(authorities) => {
            Arc::new(Verifier::new(store::read_trusted(authorities)?, Vec::new(), &provider)?)
        }
        Trust::Anybody => Arc::new(Unverified(provider.signature_verification_algorithms)),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(protocol_versions(TlsVersions::Both))
        .map_err(|error| TlsError::Versions(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(CallerIdentity { key: store, certificates }) => {
            let KeyEntry { key, chain } = store::read_key_entry(store, certificates.as_deref())?;
            let unsuitable =
                |error: rustls::Error| TlsError::Key { path: store.path.clone(), reason: error.to_string() };
            builder.with_client_auth_cert(chain, key).map_err(unsuitable)?
        }
    };
    config.resumption = Resumption::disabled();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}
