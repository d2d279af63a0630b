//! Builds before this one, made from the history of the repository, beside which this one has to work, or is measured.

use std::env;
use std::path::PathBuf;

use crate::layout::Layout;
use crate::process::{Error, Program};

/// Names another revision than the default one.
const VARIABLE: &str = "PADDOCK_PREVIOUS";

/// The revision that stands for the release before as long as no tag does: the last one before members came to hold groups, with other forms of
/// entries, greetings and snapshots.
const FIRST: &str = "56059c8";

/// A commit of this repository, by its full name.
#[derive(Clone, Debug)]
pub(crate) struct Commit(String);

/// Builds `paddock` as it was in the release before, unless it is there already; returns its path.
pub(crate) fn build(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    let revision = env::var(VARIABLE).ok().or_else(|| newest_tag(layout)).unwrap_or_else(|| FIRST.to_owned());
    let unknown = || {
        Error::new(format!(
            "there is no revision {revision} here: fetch the whole history, or set {VARIABLE}"
        ))
    };
    Commit::find(layout, &revision).ok_or_else(unknown)?.build(layout, stage)
}

impl Commit {
    /// The commit that a revision, such as a tag, stands for; `None` if there is none here.
    pub(crate) fn find(layout: &Layout, revision: &str) -> Option<Commit> {
        let git = Program::new("git").current_dir(layout.root());
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let commit = git.args(arguments).arg(format!("{revision}^{{commit}}")).output().ok()?;
        Some(Commit(commit.trim().to_owned()))
    }

    /// Its name as people write it.
    pub(crate) fn short(&self) -> &str {
        &self.0[..10]
    }

    /// Builds its `paddock` by its own profile `release`, unless that is there already; returns its path.
    pub(crate) fn build(&self, layout: &Layout, log: &str) -> Result<PathBuf, Error> {
        let directory = layout.environment("previous").join(&self.0);
        let binary = directory.join("target").join("release").join("paddock");
        if binary.is_file() {
            return Ok(binary);
        }
        let git = || Program::new("git").current_dir(layout.root());
        let sources = directory.join("sources");
        if !sources.is_dir() {
            git().args(["worktree", "prune"]).run()?;
            let add = git().args(["worktree", "add", "--quiet", "--force", "--detach"]);
            add.arg(&sources).arg(&self.0).run()?;
        }
        let cargo = layout.cargo().current_dir(&sources).env("CARGO_TARGET_DIR", directory.join("target"));
        cargo
            .args(["build", "--locked", "--release", "--package", "paddock"])
            .log_to(&layout.log(log))
            .run()?;
        git().args(["worktree", "remove", "--force"]).arg(&sources).run()?;
        Ok(binary)
    }
}

/// The newest release that this revision stands on.
fn newest_tag(layout: &Layout) -> Option<String> {
    let git = Program::new("git").current_dir(layout.root());
    let tag = git.args(["describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD~1"]).output().ok()?;
    Some(tag.trim().to_owned()).filter(|tag| !tag.is_empty())
}
