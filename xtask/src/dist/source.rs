//! The sources of a distribution: version, commit, and the time that all files are given.

use std::env;
use std::path::Path;

use crate::process::{Error, Program};

/// The sources of a distribution.
#[derive(Debug)]
pub(super) struct DistSource {
    pub(super) version: &'static str,
    /// The commit, and `-changed` if the sources are not what it says.
    pub(super) commit: String,
    /// Seconds since 1970, of the commit or of `SOURCE_DATE_EPOCH`.
    pub(super) epoch: u64,
}

/// The number of the package within a version, of Debian and of RPM.
pub(super) const RELEASE: u32 = 1;

const EPOCH: &str = "SOURCE_DATE_EPOCH";
const WITHOUT_GIT: &str =
    "sources without git: SOURCE_DATE_EPOCH has to say their time, in seconds since 1970";

impl DistSource {
    pub(super) fn find(root: &Path) -> Result<Self, Error> {
        let git = |arguments: &[&str]| Program::new("git").arg("-C").arg(root).args(arguments).output();
        let named = env::var(EPOCH).ok();
        let (commit, time) = match git(&["log", "-1", "--format=%H %ct"]) {
            Ok(line) => line.split_once(' ').map(|(commit, time)| (commit.to_owned(), time.to_owned())),
            Err(_) => None,
        }
        .unwrap_or_else(|| ("unknown".to_owned(), String::new()));
        let is_changed = git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.is_empty());
        let epoch = named.unwrap_or(time).parse().map_err(|_| Error::new(WITHOUT_GIT))?;
        let mark = if is_changed { "-changed" } else { "" };
        Ok(Self { version: env!("CARGO_PKG_VERSION"), commit: commit + mark, epoch })
    }

    /// Variables of every program whose output is shipped.
    pub(super) fn variables(&self) -> [(&'static str, String); 3] {
        [
            (EPOCH, self.epoch.to_string()),
            ("PADDOCK_COMMIT", self.commit.clone()),
            // Time zones are of the machine.
            ("TZ", "UTC".to_owned()),
        ]
    }

    /// A program with these variables.
    pub(super) fn with_variables(&self, program: Program) -> Program {
        self.variables().into_iter().fold(program, |program, (name, value)| program.env(name, value))
    }

    /// The time as `date` prints it in a format.
    pub(super) fn date(&self, format: &str) -> Result<String, Error> {
        let date = Program::new("date").args(["--utc", "--date", &format!("@{}", self.epoch), format]);
        date.output()
    }
}
