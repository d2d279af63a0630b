//! Hosts as certificates name them.

use rustls::pki_types::ServerName;

use crate::failure::TlsFailure;

/// The host that is called, if a certificate can be for it.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsFailure> {
    ServerName::try_from(host.to_owned()).map_err(|_| TlsFailure::Host(host.to_owned()))
}
