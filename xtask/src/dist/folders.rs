//! Directories of a distribution on its way.

use std::fs;
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::process::Error;

/// Directories of one distribution.
#[derive(Debug)]
pub(super) struct Folders {
    /// The sources.
    pub(super) root: PathBuf,
    /// Cargo's target directory.
    pub(super) build: PathBuf,
    pub(super) work: PathBuf,
    pub(super) output: PathBuf,
}

impl Folders {
    pub(super) fn of_this_checkout(layout: &Layout) -> Self {
        Self {
            root: layout.root().to_owned(),
            build: layout.dist_work("build"),
            work: layout.dist_work("files"),
            output: layout.dist(),
        }
    }
}

/// Leaves an empty directory.
pub(super) fn renew(directory: &Path) -> Result<(), Error> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(Error::io("remove", directory))?;
    }
    fs::create_dir_all(directory).map_err(Error::io("create", directory))
}
