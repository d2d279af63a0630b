//! Place that a member's settings come from, to read them again while it runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{self, ConfigError, Environment, Loaded, Overrides};

/// Interval at which the file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A file, the command line and the environment.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    file: Option<PathBuf>,
    overrides: Overrides,
    environment: Environment,
}

impl Origin {
    pub(super) fn new(file: Option<PathBuf>, overrides: Overrides) -> Origin {
        Origin { file, overrides, environment: Environment::of_process() }
    }

    pub(super) fn load(&self) -> Result<Loaded, ConfigError> {
        config::load(self.file.as_deref(), &self.overrides, &self.environment)
    }

    /// Watches the file, if there is one.
    pub(super) fn watch(&self) -> Watch {
        let file = self.file.clone().or_else(|| self.environment.file());
        let known = stamp(file.as_ref());
        Watch { file, known, seen: known }
    }
}

/// Time of the last change, size, and number of a file: after a change some of it is different.
type Stamp = (i64, i64, u64, u64);

fn stamp(file: Option<&PathBuf>) -> Option<Stamp> {
    let metadata = fs::metadata(file?).ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino()))
}

/// A file that is looked at for changes.
#[derive(Debug)]
pub(super) struct Watch {
    file: Option<PathBuf>,
    /// The file as it was read last.
    known: Option<Stamp>,
    /// The file as it was looked at last.
    seen: Option<Stamp>,
}

impl Watch {
    /// Returns when the file has changed since it was read.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if self.look() {
                return;
            }
        }
    }

    /// The file is about to be read.
    pub(super) fn note(&mut self) {
        self.known = stamp(self.file.as_ref());
    }

    /// True if the file has changed, and is the same as at the last look: one that is being written is left alone.
    fn look(&mut self) -> bool {
        let now = stamp(self.file.as_ref());
        let is_at_rest = now == std::mem::replace(&mut self.seen, now);
        is_at_rest && now != self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_changed_when_it_rests() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("zoo.cfg");
        fs::write(&file, "a").unwrap();
        let mut watch = Origin::new(Some(file.clone()), Overrides::default()).watch();
        assert!(!watch.look());
        fs::write(&file, "ab").unwrap();
        assert!(!watch.look(), "it may still be written");
        fs::write(&file, "abc").unwrap();
        assert!(!watch.look(), "it was");
        assert!(watch.look());
        watch.note();
        assert!(!watch.look());
        let other = dir.path().join("other");
        fs::write(&other, "abc").unwrap();
        fs::rename(other, &file).unwrap();
        assert_eq!([watch.look(), watch.look()], [false, true], "another file of the same size");
        watch.note();
        fs::remove_file(&file).unwrap();
        assert_eq!([watch.look(), watch.look()], [false, true], "no file");
    }

    #[test]
    fn nothing_changes_without_a_file() {
        let mut watch = Watch { file: None, known: None, seen: None };
        assert_eq!([watch.look(), watch.look()], [false, false]);
    }
}
