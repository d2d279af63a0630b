//! Failures of TLS connections with clients, in words that say what to do.

use std::fmt;
use std::net::IpAddr;

use rustls::{AlertDescription, CertificateError, Error};

use crate::failure::TlsFailure;

#[derive(Debug)]
pub enum ClientFailure {
    Tls(TlsFailure),
    /// The first byte is none of TLS.
    Plaintext,
    /// The client has left without a byte, as one that probes the port does.
    Gone,
    /// Nothing came within the time for it, in milliseconds.
    Silent(u64),
    /// The handshake was not over within the time for it, in milliseconds.
    Slow(u64),
    /// The client's certificate is not for the address from which it connects.
    Address(IpAddr),
}

impl From<TlsFailure> for ClientFailure {
    fn from(failure: TlsFailure) -> ClientFailure {
        ClientFailure::Tls(failure)
    }
}

impl From<Error> for ClientFailure {
    fn from(error: Error) -> ClientFailure {
        ClientFailure::Tls(TlsFailure::Protocol(error))
    }
}

impl fmt::Display for ClientFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientFailure::Tls(TlsFailure::Protocol(error)) => explain(error, f),
            ClientFailure::Tls(TlsFailure::Cut(error)) => {
                write!(f, "the client ended the TLS handshake ({error}): its log may tell why")
            }
            ClientFailure::Tls(failure) => write!(f, "{failure}"),
            ClientFailure::Plaintext => f.write_str(
                "plaintext on a port for TLS: let the client use TLS, or connect to the port for plaintext",
            ),
            ClientFailure::Gone => f.write_str("it left without a byte"),
            ClientFailure::Silent(within_ms) => write!(f, "it sent nothing within {within_ms} ms"),
            ClientFailure::Slow(within_ms) => {
                write!(f, "the TLS handshake was not over within {within_ms} ms")
            }
            ClientFailure::Address(address) => write!(
                f,
                "the client's certificate is not for {address}, from where it connects: have it issued for that address, \
                 or do not verify addresses"
            ),
        }
    }
}

fn explain(error: &Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        Error::InvalidCertificate(error) => explain_certificate(error, f),
        Error::NoCertificatesPresented => {
            f.write_str("it shows no certificate, and one is needed: give it one, or do not insist on it")
        }
        Error::AlertReceived(alert) => explain_alert(*alert, f),
        Error::PeerIncompatible(_) => {
            write!(f, "{error}: allow a version of TLS and a cipher suite that the client has")
        }
        Error::InvalidMessage(_) => write!(f, "what came is not TLS ({error})"),
        error => write!(f, "{error}"),
    }
}

/// A client's certificate that is not taken.
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
        CertificateError::Revoked => "it was revoked by who signed it",
        CertificateError::UnknownRevocationStatus => {
            "add the list of revoked certificates of who signed it to the lists"
        }
        CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
            "fetch the current list of revoked certificates of who signed it"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "have it issued for clients"
        }
        // The library has no name of its own for it.
        error if error.to_string().contains("UnsupportedCertVersion") => {
            "it is of version 1: have it issued with an extension, such as extendedKeyUsage=clientAuth"
        }
        _ => "have another one issued",
    };
    write!(f, "the client's certificate is not taken: {error}: {advice}")
}

/// Explains the alert of a client.
fn explain_alert(alert: AlertDescription, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let meaning = match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it does not trust this member's certificate: put who signed it into the client's trust store"
        }
        // Java says so of both.
        AlertDescription::CertificateUnknown => {
            "it does not trust this member's certificate, or the certificate is not for the host to which it connects"
        }
        AlertDescription::CertificateExpired => "this member's certificate is not valid now, by its clock",
        AlertDescription::BadCertificate => {
            "this member's certificate is not for the host to which the client connects, or is damaged"
        }
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            "the two have no version of TLS or no cipher suite in common"
        }
        _ => "its log may tell why",
    };
    write!(f, "the client refuses ({alert:?}): {meaning}")
}
