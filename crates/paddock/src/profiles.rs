//! Profiles: servers and the way in to them under a name, in a file of the user's.
//!
//! No secret stands in the file: `sasl` and `auth` name where one is. Paths are seen from the file's directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::Deserialize;

/// Name of a profile, for when `--profile` is left out.
const VARIABLE: &str = "PADDOCK_PROFILE";

/// The text of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfilesFile {
    /// The profile of commands that name neither a profile nor servers.
    default: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// Servers and the way in to them, each as the option of its name says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub hosts: Option<String>,
    pub tls_ca: Option<PathBuf>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    #[serde(default)]
    pub tls_skip_verify: bool,
    /// `USER:FILE`.
    pub sasl: Option<String>,
    #[serde(default)]
    pub auth: OneOrMore,
    /// Directory of the file that it is from.
    #[serde(skip)]
    pub directory: PathBuf,
}

/// A text, or a list of some.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> OneOrMore {
        OneOrMore::More(Vec::new())
    }
}

impl OneOrMore {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            OneOrMore::One(one) => std::slice::from_ref(one),
            OneOrMore::More(more) => more,
        }
    }
}

/// Reasons for which there is no such profile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    #[error("profile {name:?}: there is no place for {FILE}: set HOME or XDG_CONFIG_HOME")]
    NoPlace { name: String },
    #[error("profile {name:?}: {} does not exist: write it, with [profiles.{name}] and hosts = \"host:port\"", file.display())]
    NoFile { name: String, file: PathBuf },
    #[error("read profiles: {}: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}:{line}: {message}", file.display())]
    Parse { file: PathBuf, line: usize, message: String },
    #[error("{}: there is no profile {name:?}: {}", file.display(), known_names(.known))]
    Unknown { name: String, file: PathBuf, known: Vec<String> },
}

fn known_names(known: &[String]) -> String {
    match known {
        [] => "it has none yet".to_owned(),
        known => format!("it has {}", known.join(", ")),
    }
}

const FILE: &str = "paddock/profiles.toml";

/// The place where configurations of programs of this user stand.
fn file_of_user() -> Option<PathBuf> {
    let directory = |name| env::var_os(name).map(PathBuf::from).filter(|directory| directory.is_absolute());
    let configurations = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(configurations.join(FILE))
}

/// The profile that the command line names, else the variable; else the file's default, if that may be taken.
///
/// # Errors
/// [`ProfileError`] if a profile is named that cannot be had, or if the file that would tell the default is damaged.
pub(crate) fn find(named: Option<&str>, may_be_default: bool) -> Result<Option<Profile>, ProfileError> {
    let of_variable = || env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    let name = named.map(str::to_owned).or_else(of_variable);
    if name.is_none() && !may_be_default {
        return Ok(None);
    }
    find_in(file_of_user(), name)
}

fn find_in(file: Option<PathBuf>, name: Option<String>) -> Result<Option<Profile>, ProfileError> {
    let Some(file) = file else {
        return name.map_or(Ok(None), |name| Err(ProfileError::NoPlace { name }));
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return name.map_or(Ok(None), |name| Err(ProfileError::NoFile { name, file }));
        }
        Err(error) => return Err(ProfileError::Read { file, error }),
    };
    let ProfilesFile { default, mut profiles } = parse(&text, &file)?;
    let Some(name) = name.or(default) else { return Ok(None) };
    match profiles.remove(&name) {
        Some(profile) => {
            let directory = file.parent().unwrap_or(Path::new("")).to_owned();
            Ok(Some(Profile { directory, ..profile }))
        }
        None => Err(ProfileError::Unknown { name, file, known: profiles.into_keys().collect() }),
    }
}

fn parse(text: &str, file: &Path) -> Result<ProfilesFile, ProfileError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count() + 1;
        ProfileError::Parse { file: file.to_owned(), line, message: error.message().to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "default = \"near\"\n\n[profiles.near]\nhosts = \"a:2181\"\n\n[profiles.far]\nhosts = \"b:2281,c:2281\"\n\
                        tls_ca = \"ca.pem\"\nsasl = \"ann:password\"\nauth = [\"@one\", \"env:TWO\"]\n";

    fn written(text: &str) -> (tempfile::TempDir, Option<PathBuf>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("profiles.toml");
        fs::write(&file, text).unwrap();
        (directory, Some(file))
    }

    #[test]
    fn a_profile_is_found_by_its_name_or_as_the_default() {
        let (directory, file) = written(TEXT);
        let far = find_in(file.clone(), Some("far".to_owned())).unwrap().unwrap();
        let expected = Profile {
            hosts: Some("b:2281,c:2281".to_owned()),
            tls_ca: Some("ca.pem".into()),
            sasl: Some("ann:password".to_owned()),
            auth: OneOrMore::More(vec!["@one".to_owned(), "env:TWO".to_owned()]),
            directory: directory.path().to_owned(),
            ..Profile::default()
        };
        assert_eq!(far, expected);
        assert_eq!(find_in(file, None).unwrap().unwrap().hosts.as_deref(), Some("a:2181"));
        let (_directory, without_default) = written("[profiles.a]\nauth = \"@x\"\n");
        assert_eq!(find_in(without_default.clone(), None).unwrap(), None);
        let a = find_in(without_default, Some("a".to_owned())).unwrap().unwrap();
        assert_eq!(a.auth.as_slice(), ["@x"]);
    }

    #[test]
    fn without_a_file_only_a_name_is_an_error() {
        let nowhere = Some(PathBuf::from("/nowhere/profiles.toml"));
        for file in [None, nowhere] {
            assert_eq!(find_in(file.clone(), None).unwrap(), None);
            let error = find_in(file, Some("a".to_owned())).unwrap_err().to_string();
            assert!(error.starts_with("profile \"a\": "), "{error}");
        }
    }

    #[test]
    fn mistakes_are_told_with_what_there_is() {
        for (text, name, expected) in [
            (TEXT, Some("close"), "there is no profile \"close\": it has far, near"),
            ("default = \"x\"\n", None, "there is no profile \"x\": it has none yet"),
            (
                "[profiles.a]\nhost = \"b\"\n",
                Some("a"),
                ".toml:2: unknown field `host`, expected one of `hosts`",
            ),
            ("[profiles.a]\nhosts = 1\n", Some("a"), ".toml:2: invalid type"),
            ("profile = 1\n", None, ".toml:1: unknown field `profile`"),
            ("[profiles.a\n", None, ".toml:1: "),
        ] {
            let (_directory, file) = written(text);
            let error = find_in(file, name.map(str::to_owned)).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
