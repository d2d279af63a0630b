//! The build before this one, made from the history of the repository, beside which this one has to work.

use std::env;
use std::path::PathBuf;

use crate::layout::Layout;
use crate::process::{Error, Program};

/// Names another revision than the default one.
const VARIABLE: &str = "PADDOCK_PREVIOUS";

/// The revision that stands for the release before as long as no tag does: the last one before members came to hold groups, with other forms of
/// entries, greetings and snapshots.
const FIRST: &str = "56059c8";

/// Builds `paddock` as it was, unless it is there already; returns its path.
pub(crate) fn build(layout: &Layout, stage: &str) -> Result<PathBuf, Error> {
    let git = || Program::new("git").current_dir(layout.root());
    let revision = env::var(VARIABLE).ok().or_else(|| newest_tag(layout)).unwrap_or_else(|| FIRST.to_owned());
    let commit = git().args(["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]).output();
    let commit = commit.map_err(|_| {
        Error::new(format!(
            "there is no revision {revision} here: fetch the whole history, or set {VARIABLE}"
        ))
    })?;
    let commit = commit.trim();
    let directory = layout.environment("previous").join(commit);
    let binary = directory.join("target").join("release").join("paddock");
    if binary.is_file() {
        return Ok(binary);
    }
    let sources = directory.join("sources");
    if !sources.is_dir() {
        git().args(["worktree", "prune"]).run()?;
        git().args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&sources).arg(commit).run()?;
    }
    let cargo = layout.cargo().current_dir(&sources).env("CARGO_TARGET_DIR", directory.join("target"));
    cargo
        .args(["build", "--locked", "--release", "--package", "paddock"])
        .log_to(&layout.log(stage))
        .run()?;
    git().args(["worktree", "remove", "--force"]).arg(&sources).run()?;
    Ok(binary)
}

/// The newest release that this revision stands on.
fn newest_tag(layout: &Layout) -> Option<String> {
    let git = Program::new("git").current_dir(layout.root());
    let tag = git.args(["describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD~1"]).output().ok()?;
    Some(tag.trim().to_owned()).filter(|tag| !tag.is_empty())
}
