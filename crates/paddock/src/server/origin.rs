//! Place that a member's settings come from, to read them again while it runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paddock_config::{ConfigError, Environment, Loaded, Overrides};

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
        paddock_config::load(self.file.as_deref(), &self.overrides, &self.environment)
    }

    /// Watches the file, if there is one.
    pub(super) fn watch(&self) -> Watch {
        let file = self.file.clone().or_else(|| self.environment.file());
        let known = stamps(file.as_ref());
        Watch { file, seen: known.clone(), known }
    }
}

/// Time of the last change, size, and number of a file: after a change some of it is different.
type Stamp = (i64, i64, u64, u64);

/// A file with those that are merged into it, as they were at one time; without a stamp if they are not there.
type Stamps = Vec<(PathBuf, Option<Stamp>)>;

fn stamps(file: Option<&PathBuf>) -> Stamps {
    let files = file.map(|file| paddock_config::files_of(file)).unwrap_or_default();
    let stamped = |file: PathBuf| {
        let stamp = stamp(&file);
        (file, stamp)
    };
    files.into_iter().map(stamped).collect()
}

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino()))
}

/// A file that is looked at for changes.
#[derive(Debug)]
pub(super) struct Watch {
    file: Option<PathBuf>,
    /// The file, and those that are merged into it, as they were read last.
    known: Stamps,
    /// Files as they were looked at last.
    seen: Stamps,
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
        self.known = stamps(self.file.as_ref());
    }

    /// True if the file has changed, and is the same as at the last look: one that is being written is left alone.
    fn look(&mut self) -> bool {
        let now = stamps(self.file.as_ref());
        let is_changed = now != self.known;
        let is_at_rest = now == self.seen;
        self.seen = now;
        is_at_rest && is_changed
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
    fn a_file_that_is_merged_into_it_is_looked_at_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("keeper_config.xml");
        fs::write(&file, "a").unwrap();
        fs::create_dir(dir.path().join("keeper_config.d")).unwrap();
        let mut watch = Origin::new(Some(file), Overrides::default()).watch();
        let other = dir.path().join("keeper_config.d/ports.yaml");
        fs::write(&other, "a").unwrap();
        assert_eq!([watch.look(), watch.look()], [false, true], "a new file");
        watch.note();
        fs::write(&other, "ab").unwrap();
        assert_eq!([watch.look(), watch.look()], [false, true], "another size");
        watch.note();
        fs::remove_file(&other).unwrap();
        assert_eq!([watch.look(), watch.look()], [false, true], "no file");
        fs::write(dir.path().join("keeper_config.d/notes.txt"), "a").unwrap();
        watch.note();
        assert_eq!([watch.look(), watch.look()], [false, false], "not one that is merged");
    }

    #[test]
    fn nothing_changes_without_a_file() {
        let mut watch = Watch { file: None, known: Vec::new(), seen: Vec::new() };
        assert_eq!([watch.look(), watch.look()], [false, false]);
    }
}
