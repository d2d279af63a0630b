//! Options of every command that connects to servers as a client: TLS, a login, and the identities that it shows.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use paddock_bench::{Access, Tls, TlsFiles};
use paddock_client::TlsError;
use paddock_sasl::Login;

use crate::identity_source::{IdentityError, IdentitySource, parse_identity, read_identities};

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
    /// Log in to servers by SASL (DIGEST-MD5) as this user; the only line of FILE is its password
    #[arg(long, value_name = "USER:FILE", value_parser = parse_login)]
    sasl: Option<LoginFile>,
    /// Identity to show to servers, such as digest:USER:PASSWORD: the only line of FILE (@- is standard input), or env:NAME for what a
    /// variable of the environment holds; may be repeated
    #[arg(long, value_name = "@FILE", value_parser = parse_identity)]
    auth: Vec<IdentitySource>,
}

/// Servers for a command that looks at some: those that its line names, else those of the variable `PADDOCK_HOSTS`, else this machine's.
pub(crate) fn servers(named: Option<&str>) -> String {
    let of_variable = || env::var("PADDOCK_HOSTS").ok().filter(|hosts| !hosts.is_empty());
    named.map(str::to_owned).or_else(of_variable).unwrap_or_else(|| "localhost:2181".to_owned())
}

/// A command cannot connect as it was told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("--tls-cert is for TLS: say --tls-ca FILE with whom to believe, too")]
    CertificateAlone,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("read the password in {}: {error}", file.display())]
    ReadPassword { file: PathBuf, error: io::Error },
    #[error("{}: expected one line, the password", file.display())]
    NoPassword { file: PathBuf },
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// A user of SASL, and the file whose only line is its password: a command line is for everybody to read.
#[derive(Clone, Debug)]
pub(crate) struct LoginFile {
    user: String,
    file: PathBuf,
}

impl LoginFile {
    pub(crate) fn read(&self) -> Result<Login, AccessError> {
        let file = self.file.clone();
        let text = fs::read_to_string(&file)
            .map_err(|error| AccessError::ReadPassword { file: file.clone(), error })?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let password = line.strip_suffix('\r').unwrap_or(line);
        if password.is_empty() || password.contains('\n') {
            return Err(AccessError::NoPassword { file });
        }
        Ok(Login { user: self.user.clone(), password: password.to_owned() })
    }
}

pub(crate) fn parse_login(text: &str) -> Result<LoginFile, String> {
    match text.split_once(':') {
        Some((user, file)) if !user.is_empty() && !file.is_empty() => {
            Ok(LoginFile { user: user.to_owned(), file: PathBuf::from(file) })
        }
        _ => Err("expected USER:FILE, the file with the password".to_owned()),
    }
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
        let login = self.sasl.as_ref().map(LoginFile::read).transpose()?;
        let identities = read_identities("--auth", &self.auth)?;
        Ok(Access { tls, login, identities })
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
