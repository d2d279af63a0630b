//! Permissions of data directories: new ones are for their owner only, and wider ones are warned of.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Config;

/// Permissions of the group and of everybody else.
const OTHERS: u32 = 0o077;

/// Warns of data directories that others than their owner may enter.
pub(crate) fn warn_of_open_directories(config: &Config) {
    for directory in open_directories([Some(&config.data_dir), config.log_dir.as_ref()]) {
        tracing::warn!(
            directory = %directory.display(),
            "other users of this machine may enter the data directory, which holds what clients keep from each other: \
             take their permissions away with chmod 700"
        );
    }
}

fn open_directories(directories: [Option<&PathBuf>; 2]) -> impl Iterator<Item = &Path> {
    directories.into_iter().flatten().map(PathBuf::as_path).filter(|directory| is_open(directory))
}

/// A directory that cannot be looked at is not open, either.
fn is_open(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    #[test]
    fn new_data_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let config = Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::new(&data_dir) };
        Server::start(config).unwrap().shutdown().unwrap();
        let mut found = vec![data_dir.clone()];
        let mut count = 0;
        while let Some(path) = found.pop() {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & OTHERS, 0, "{} has the mode {mode:o}", path.display());
            count += 1;
            if path.is_dir() {
                found.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        assert!(count > 3, "{count} files and directories were looked at");
        assert_eq!(open_directories([Some(&data_dir), None]).count(), 0);
        fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(open_directories([None, Some(&data_dir)]).collect::<Vec<_>>(), [data_dir.as_path()]);
    }
}
