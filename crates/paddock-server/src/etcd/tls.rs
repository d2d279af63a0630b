//! TLS towards etcd: what a connection to a member of the cluster begins with, and its failures in words that say what to do.
//!
//! The files are read for each connection, so a certificate that was renewed is used by the next one.

use std::fmt;
use std::io;
use std::sync::Arc;

use paddock_tls::{TlsError, Trust, calling_config};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error};

use crate::config::EtcdTls;

/// The protocol behind TLS, by the name that both sides agree on.
const HTTP2: &[u8] = b"h2";

/// Keys, certificates and rules with which members of an etcd cluster are called.
pub(super) fn etcd_client(settings: &EtcdTls) -> Result<Arc<ClientConfig>, TlsError> {
    calling_config(Trust::Authorities(&settings.authorities), settings.identity.as_ref(), &[HTTP2])
}

/// An error of a connection to etcd. One of TLS says what to do.
#[derive(Debug)]
pub(super) struct EtcdTlsFailure<'a>(pub(super) &'a io::Error);

impl fmt::Display for EtcdTlsFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(Error::InvalidCertificate(error)) => explain_certificate(error, f),
            Some(Error::AlertReceived(alert)) => explain_alert(*alert, f),
            Some(Error::InvalidMessage(_)) => {
                f.write_str("what came is not TLS: its endpoint may be one of http://")
            }
            Some(error) => write!(f, "TLS: {error}"),
            None => write!(f, "{}", self.0),
        }
    }
}

fn explain_certificate(error: &CertificateError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let advice = match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "put the certificate of who signed it into the file of --etcd-ca"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => "renew it, or correct the clock",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "have it issued for the host of the endpoint, or name the endpoint by a host that it is for"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "have it issued for servers"
        }
        _ => "have another one issued",
    };
    write!(f, "etcd's certificate is not taken: {error}: {advice}")
}

/// Explains the alert of etcd.
fn explain_alert(alert: AlertDescription, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let meaning = match alert {
        AlertDescription::CertificateRequired => {
            "it wants a certificate: give this front end one by --etcd-cert and --etcd-key"
        }
        // Go says so of a certificate that is missing, and of one that it does not take.
        AlertDescription::BadCertificate => {
            "it wants a certificate that its --trusted-ca-file vouches for, by --etcd-cert and --etcd-key"
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "who signed this front end's certificate is not in its --trusted-ca-file"
        }
        AlertDescription::CertificateExpired => "this front end's certificate is not valid now, by its clock",
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            "the two have no version of TLS or no cipher suite in common"
        }
        _ => "its log may tell why",
    };
    write!(f, "etcd refuses ({alert:?}): {meaning}")
}
