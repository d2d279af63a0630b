//! Failures of TLS connections, in words that say what to do.

use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, Error};

#[derive(Debug)]
pub enum TlsFailure {
    Protocol(Error),
    /// The connection ended in the handshake, without a word.
    Cut(io::Error),
    /// The host is not a name that a certificate could have.
    Host(String),
}

impl TlsFailure {
    /// True if an error of a connection is one of TLS.
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<TlsFailure>())
    }
}

impl std::error::Error for TlsFailure {}

impl From<TlsFailure> for io::Error {
    fn from(failure: TlsFailure) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, failure)
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFailure::Protocol(error) => explain(error, f),
            TlsFailure::Cut(error) => write!(
                f,
                "the other side ended the TLS handshake ({error}): turn TLS on at both members, or at none"
            ),
            TlsFailure::Host(host) => write!(f, "{host:?} is not a host that a certificate can be for"),
        }
    }
}

fn explain(error: &Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        Error::InvalidCertificate(error) => explain_certificate(error, f),
        Error::NoCertificatesPresented => f.write_str("it shows no certificate"),
        Error::AlertReceived(alert) => explain_alert(*alert, f),
        Error::PeerIncompatible(_) => {
            write!(f, "{error}: allow a version of TLS and a cipher suite on both sides")
        }
        Error::InvalidMessage(_) => {
            write!(f, "what came is not TLS ({error}): turn TLS on at both members, or at none")
        }
        error => write!(f, "{error}"),
    }
}

/// A certificate that this side does not take.
fn explain_certificate(error: &CertificateError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let advice = match error {
        // Also if the trust store has an authority of the same name with another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "put the certificate of who signed it into the trust store"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => "renew it, or correct the clock",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "have it issued for the host under which the members know each other"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "have it issued for servers and clients: a member is both"
        }
        _ => "have another one issued",
    };
    write!(f, "the certificate is not taken: {error}: {advice}")
}

/// Explains the alert of the other side.
fn explain_alert(alert: AlertDescription, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let meaning = match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "who signed this member's certificate is not in its trust store"
        }
        AlertDescription::CertificateExpired => "this member's certificate is not valid now, by its clock",
        AlertDescription::CertificateRequired => "it wants a certificate",
        AlertDescription::BadCertificate => "this member's certificate is not for its host, or is damaged",
        AlertDescription::UnsupportedCertificate => {
            "this member's certificate is not issued for servers and clients"
        }
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            "the two have no version of TLS or no cipher suite in common"
        }
        _ => "its log may tell why",
    };
    write!(f, "the other side refuses ({alert:?}): {meaning}")
}
