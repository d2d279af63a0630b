//! Evidence of a round with a violation: the history, with a picture of it, what was done to the members, their
//! data and their logs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::faults::Struck;
use super::size::Size;
use crate::ensemble::Ensemble;
use crate::server::environment;

/// The directory of a round.
#[derive(Debug)]
pub(super) struct Evidence {
    directory: PathBuf,
}

impl Evidence {
    pub(super) fn new(seed: u64, size: Size) -> Evidence {
        let name = format!("torture-{}{seed}", size.name());
        let directory = PathBuf::from(environment("HISTORIES")).join(name);
        // Of an earlier round with this seed.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)
            .unwrap_or_else(|error| panic!("create {}: {error}", directory.display()));
        Evidence { directory }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file for what clients complain of.
    pub(super) fn errors(&self) -> File {
        let path = self.directory.join("clients.log");
        let file = File::options().create(true).append(true).open(&path);
        file.unwrap_or_else(|error| panic!("open {}: {error}", path.display()))
    }

    /// Writes the history, and returns where it is.
    pub(super) fn write_history(&self, lines: &[String]) -> PathBuf {
        self.write("history.jsonl", lines)
    }

    /// Keeps what there is to see.
    pub(super) fn keep(&self, ensemble: &mut Ensemble, struck: &[Struck], why: &str) {
        let told = struck.iter().map(|struck| format!("{} {struck}", struck.moment_ns));
        self.write("faults.txt", &told.collect::<Vec<_>>());
        self.write("violation.txt", &[why.to_owned()]);
        for member in 0..ensemble.len() {
            let directory = self.directory.join(format!("member-{}", member + 1));
            if let Err(error) = ensemble.member(member).keep(&directory) {
                eprintln!("keep what member {} left in {}: {error}", member + 1, directory.display());
            }
        }
    }

    /// For a round that was good.
    pub(super) fn remove(self) {
        // What stays disturbs no later run.
        let _ = fs::remove_dir_all(self.directory);
    }

    fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, lines.join("\n") + "\n")
            .unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
        path
    }
}
