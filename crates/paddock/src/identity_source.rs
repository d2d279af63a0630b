//! Identities that a command shows to servers, and where it has them from: a command line can be read by every user of the machine.

use std::io::{self, Read};
use std::path::PathBuf;
use std::{env, fs};

use paddock_bench::ShownIdentity;

/// Begins the name of a file, and that of a variable of the environment.
const FILE: &str = "@";
const VARIABLE: &str = "env:";
/// Stands for standard input in place of a file.
const STANDARD_INPUT: &str = "-";
/// Schemes whose identities are no secrets.
const OPEN_SCHEMES: [&str; 2] = ["ip", "world"];
/// An identity is shorter.
const IDENTITY_BYTES_MAX: u64 = 64 << 10;

/// The value of `--auth` and its kin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdentitySource {
    /// The identity itself.
    Literal(ShownIdentity),
    File(PathBuf),
    StandardInput,
    Variable(String),
}

/// Reasons for which there is no identity. None of them shows what was read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("read the identity in {place}: {error}")]
    Read { place: String, error: io::Error },
    #[error("the variable {0} of the environment, which is to hold an identity, is not set to a text")]
    NoVariable(String),
    #[error("{place}: expected one line, SCHEME:AUTH, as in digest:USER:PASSWORD")]
    NoIdentity { place: String },
}

pub(crate) fn parse_identity(text: &str) -> Result<IdentitySource, String> {
    let named = |name: &str, what: &str| {
        if name.is_empty() { Err(format!("expected {what}")) } else { Ok(name.to_owned()) }
    };
    if let Some(name) = text.strip_prefix(VARIABLE) {
        return named(name, "env:NAME, a variable of the environment").map(IdentitySource::Variable);
    }
    match text.strip_prefix(FILE) {
        Some(STANDARD_INPUT) => Ok(IdentitySource::StandardInput),
        Some(file) => Ok(IdentitySource::File(named(file, "@FILE")?.into())),
        None => identity(text)
            .map(IdentitySource::Literal)
            .ok_or_else(|| "expected @FILE, @- or env:NAME, where SCHEME:AUTH is to be found".to_owned()),
    }
}

fn identity(text: &str) -> Option<ShownIdentity> {
    let (scheme, auth) = text.split_once(':')?;
    (!scheme.is_empty()).then(|| ShownIdentity { scheme: scheme.to_owned(), auth: auth.to_owned() })
}

/// Reads identities, and warns on standard error of secrets that the option was given as they are.
pub(crate) fn read_identities(
    option: &str,
    sources: &[IdentitySource],
) -> Result<Vec<ShownIdentity>, IdentityError> {
    if sources.iter().any(IdentitySource::shows_secret) {
        eprintln!("{}", warning(option));
    }
    sources.iter().map(IdentitySource::read).collect()
}

fn warning(option: &str) -> String {
    format!(
        "warning: other users of this machine can see the secret behind {option} in the list of processes: write the identity into \
         a file and say {option} @FILE, or {option} env:NAME"
    )
}

impl IdentitySource {
    fn shows_secret(&self) -> bool {
        match self {
            IdentitySource::Literal(identity) => !OPEN_SCHEMES.contains(&identity.scheme.as_str()),
            _ => false,
        }
    }

    fn read(&self) -> Result<ShownIdentity, IdentityError> {
        let (place, text) = match self {
            IdentitySource::Literal(identity) => return Ok(identity.clone()),
            IdentitySource::File(file) => {
                let place = file.display().to_string();
                let text = fs::File::open(file).and_then(read_short);
                (place, text)
            }
            IdentitySource::StandardInput => ("standard input".to_owned(), read_short(io::stdin())),
            IdentitySource::Variable(name) => {
                let text = env::var(name).map_err(|_| IdentityError::NoVariable(name.clone()))?;
                (format!("the variable {name}"), Ok(text))
            }
        };
        match text {
            Ok(text) => only_line(&text).and_then(identity).ok_or(IdentityError::NoIdentity { place }),
            Err(error) => Err(IdentityError::Read { place, error }),
        }
    }
}

fn read_short(input: impl Read) -> io::Result<String> {
    let mut text = String::new();
    input.take(IDENTITY_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The only line of a text, which may have a line feed at its end.
fn only_line(text: &str) -> Option<&str> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    (!line.contains(['\n', '\r'])).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_where_no_other_user_sees_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("identity");
        let source = parse_identity(&format!("@{}", file.display())).unwrap();
        let expected = ShownIdentity { scheme: "digest".to_owned(), auth: "ann:se:cret ".to_owned() };
        for text in ["digest:ann:se:cret ", "digest:ann:se:cret \n", "digest:ann:se:cret \r\n"] {
            fs::write(&file, text).unwrap();
            assert_eq!(source.read().unwrap(), expected, "{text:?}");
            assert!(!source.shows_secret());
        }
        for text in ["", "\n", "digest", ":x", "digest:a:b\ndigest:c:d\n"] {
            fs::write(&file, text).unwrap();
            let error = source.read().unwrap_err().to_string();
            assert!(error.contains("identity: expected one line, SCHEME:AUTH"), "{text:?}: {error}");
        }
        fs::remove_file(&file).unwrap();
        assert!(source.read().unwrap_err().to_string().starts_with("read the identity in "));
        // The variable is there in every test, whoever runs it, and is no identity.
        let variable = parse_identity("env:CARGO_MANIFEST_DIR").unwrap();
        assert!(
            variable.read().unwrap_err().to_string().contains("the variable CARGO_MANIFEST_DIR: expected")
        );
        let missing = parse_identity("env:PADDOCK_NO_SUCH_VARIABLE").unwrap();
        assert!(missing.read().unwrap_err().to_string().contains("PADDOCK_NO_SUCH_VARIABLE"));
        assert_eq!(parse_identity("@-"), Ok(IdentitySource::StandardInput));
    }

    #[test]
    fn a_secret_on_the_command_line_is_used_and_warned_of() {
        let literal = parse_identity("digest:ann:secret").unwrap();
        let expected = ShownIdentity { scheme: "digest".to_owned(), auth: "ann:secret".to_owned() };
        assert_eq!(literal.read().unwrap(), expected);
        assert!(literal.shows_secret());
        assert!(!parse_identity("ip:127.0.0.1").unwrap().shows_secret());
        assert!(!warning("--auth").contains("secret:"), "the secret itself is not printed again");
        for wrong in ["", "@", "env:", "digest", ":auth"] {
            let error = parse_identity(wrong).unwrap_err();
            assert!(error.starts_with("expected "), "{wrong}: {error}");
        }
    }
}
