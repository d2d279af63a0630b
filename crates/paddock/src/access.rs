//! Options of every command that connects to servers as a client: TLS, a login, and the identities that it shows.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use paddock_bench::{Access, Tls, TlsFiles};
use paddock_client::TlsError;
use paddock_sasl::Login;

use crate::identity_source::{IdentityError, IdentitySource, parse_identity, read_identities};
use crate::profiles::{self, Profile, ProfileError};

/// The options, for a command's own to be followed by.
#[derive(Debug, clap::Args)]
pub(crate) struct AccessArgs {
    /// Profile that says what other options leave out: hosts, tls_ca, tls_cert, tls_key, sasl and auth below [profiles.NAME] in
    /// ~/.config/paddock/profiles.toml [default: the variable PADDOCK_PROFILE]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
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

/// Servers of the variable `PADDOCK_HOSTS`.
fn servers_of_variable() -> Option<String> {
    env::var("PADDOCK_HOSTS").ok().filter(|hosts| !hosts.is_empty())
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
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("sasl of the profile: {0}")]
    ProfileLogin(String),
    #[error("auth of the profile: {text:?} is neither @FILE nor env:NAME: a profile holds no secrets")]
    ProfileIdentity { text: String },
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
    /// The way in for a command that has its servers by other means than a profile: only one that is named counts.
    pub(crate) fn read(&self) -> Result<Access, AccessError> {
        let profile = profiles::find(self.profile.as_deref(), false)?;
        self.read_with(&profile.unwrap_or_default())
    }

    /// Servers for a command that looks at some, and the way in to them: those of [`AccessArgs::known_servers`], else this machine's.
    pub(crate) fn servers(&self, named: Option<&str>) -> Result<(String, Access), AccessError> {
        let (servers, access) = self.known_servers(named)?;
        Ok((servers.unwrap_or_else(|| "localhost:2181".to_owned()), access))
    }

    /// Servers that the command's line names, else those of the profile that it names, else those of the variable `PADDOCK_HOSTS`,
    /// else those of another profile; and the way in to them, of which the profile says what options do not.
    pub(crate) fn known_servers(&self, named: Option<&str>) -> Result<(Option<String>, Access), AccessError> {
        let of_variable = servers_of_variable();
        // The default profile is for its own servers: others are not shown its identities.
        let are_said = named.is_some() || of_variable.is_some();
        let profile = profiles::find(self.profile.as_deref(), !are_said)?.unwrap_or_default();
        let access = self.read_with(&profile)?;
        let servers = match (named, &self.profile) {
            (Some(named), _) => Some(named.to_owned()),
            (None, Some(_)) => profile.hosts.or(of_variable),
            (None, None) => of_variable.or(profile.hosts),
        };
        Ok((servers, access))
    }

    /// Reads the files of TLS, passwords and identities.
    fn read_with(&self, profile: &Profile) -> Result<Access, AccessError> {
        let in_profile = |file: &Option<PathBuf>| file.as_ref().map(|file| profile.directory.join(file));
        let mut files = TlsFiles {
            authorities: self.tls_ca.clone(),
            certificate: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            skip_verification: self.tls_skip_verify,
        };
        if files.authorities.is_none() && !files.skip_verification {
            files.authorities = in_profile(&profile.tls_ca);
            files.skip_verification = profile.tls_skip_verify && files.authorities.is_none();
        }
        if files.certificate.is_none() {
            files.certificate = in_profile(&profile.tls_cert);
            files.key = in_profile(&profile.tls_key);
        }
        let is_wanted = files.authorities.is_some() || files.skip_verification;
        if files.certificate.is_some() && !is_wanted {
            return Err(AccessError::CertificateAlone);
        }
        let tls = if is_wanted { Some(Tls::load(&files)?) } else { None };
        let login = match &self.sasl {
            Some(login) => Some(login.clone()),
            None => profile.sasl.as_deref().map(|text| login_of(profile, text)).transpose()?,
        };
        let login = login.as_ref().map(LoginFile::read).transpose()?;
        let identities = match self.auth.as_slice() {
            [] => profile
                .auth
                .as_slice()
                .iter()
                .map(|text| identity_of(profile, text))
                .collect::<Result<_, _>>()?,
            said => said.to_vec(),
        };
        let identities = read_identities("--auth", &identities)?;
        Ok(Access { tls, login, identities })
    }
}

fn login_of(profile: &Profile, text: &str) -> Result<LoginFile, AccessError> {
    let login = parse_login(text).map_err(AccessError::ProfileLogin)?;
    Ok(LoginFile { file: profile.directory.join(&login.file), ..login })
}

fn identity_of(profile: &Profile, text: &str) -> Result<IdentitySource, AccessError> {
    match parse_identity(text) {
        Ok(IdentitySource::File(file)) => Ok(IdentitySource::File(profile.directory.join(file))),
        Ok(variable @ IdentitySource::Variable(_)) => Ok(variable),
        _ => Err(AccessError::ProfileIdentity { text: hidden(text) }),
    }
}

/// The beginning of what may be a secret.
fn hidden(text: &str) -> String {
    format!("{}…", text.split_once(':').map_or("", |(scheme, _)| scheme))
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
