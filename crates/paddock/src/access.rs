//! Options of every command that connects to servers as a client: TLS, and the identities that it shows.

use std::path::{Path, PathBuf};

use paddock_bench::{Access, Identity, Tls, TlsFiles};
use paddock_client::TlsError;

/// The options, for a command's own to be followed by.
#[derive(Debug, clap::Args)]
pub(crate) struct AccessArgs {
    /// Connect with TLS, and believe servers whose certificates are in this file or signed by one that is (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "tls_skip_verify")]
    tls_ca: Option<PathBuf>,
    /// Own certificate to show, with those between it and its authority (PEM)
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, without a password (PEM) [default: in the certificate's file]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Connect with TLS, and believe every server: only to try something
    #[arg(long)]
    tls_skip_verify: bool,
    /// Identity to show to servers; may be repeated
    #[arg(long, value_name = "SCHEME:AUTH", value_parser = parse_identity)]
    auth: Vec<Identity>,
}

/// A command cannot connect as it was told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("--tls-cert is for TLS: say --tls-ca FILE with whom to believe, too")]
    CertificateAlone,
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl AccessArgs {
    /// Reads the files of TLS.
    pub(crate) fn read(&self) -> Result<Access, AccessError> {
        let is_wanted = self.tls_ca.is_some() || self.tls_skip_verify;
        if self.tls_cert.is_some() && !is_wanted {
            return Err(AccessError::CertificateAlone);
        }
        let files = TlsFiles {
            authorities: self.tls_ca.clone(),
            certificate: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            skip_verification: self.tls_skip_verify,
        };
        let tls = if is_wanted { Some(Tls::load(&files)?) } else { None };
        Ok(Access { tls, identities: self.auth.clone() })
    }
}

/// TLS by two files, for a command that connects to two places; none without an authority.
pub(crate) fn tls_of(
    authorities: Option<&Path>,
    certificate: Option<&Path>,
) -> Result<Option<Tls>, AccessError> {
    let Some(authorities) = authorities else { return Ok(None) };
    let files = TlsFiles {
        authorities: Some(authorities.to_owned()),
        certificate: certificate.map(Path::to_owned),
        ..TlsFiles::default()
    };
    Ok(Some(Tls::load(&files)?))
}

pub(crate) fn parse_identity(text: &str) -> Result<Identity, String> {
    let (scheme, auth) = text.split_once(':').ok_or("expected SCHEME:AUTH, as in digest:user:password")?;
    Ok(Identity { scheme: scheme.to_owned(), auth: auth.to_owned() })
}
