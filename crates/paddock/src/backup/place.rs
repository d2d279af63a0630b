//! Places where backups are kept: a directory of the file system, or a bucket. Each backup is a directory there, with its parts and, written last, its
//! manifest.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::BackupFailure;
use super::manifest::{self, Manifest, is_plain};

/// A name that no backup has, for what is being made.
const UNFINISHED: &str = ".unfinished-";
/// Age from which on such a directory is taken for abandoned.
const ABANDONED: Duration = Duration::from_hours(24);

/// A place for backups.
#[derive(Debug)]
pub(crate) enum BackupPlace {
    Directory(PathBuf),
    #[cfg(feature = "s3")]
    Bucket(super::bucket::Bucket),
}

impl BackupPlace {
    /// The name of a place as a person says it.
    pub(crate) fn shown(&self, name: &str) -> String {
        match self {
            BackupPlace::Directory(dir) => dir.join(name).display().to_string(),
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => bucket.shown(name),
        }
    }

    /// Names of the backups that have a manifest, the oldest first.
    pub(crate) fn names(&self) -> Result<Vec<String>, BackupFailure> {
        let mut names = match self {
            BackupPlace::Directory(dir) => names_in(dir)?,
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => bucket.names()?,
        };
        names.retain(|name| is_plain(name));
        names.sort();
        Ok(names)
    }

    /// The manifest of a backup.
    pub(crate) fn manifest(&self, name: &str) -> Result<Manifest, BackupFailure> {
        let place = self.shown(&format!("{name}/{}", manifest::NAME));
        let bytes = match self {
            BackupPlace::Directory(dir) => read_short(&dir.join(name).join(manifest::NAME)),
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => bucket.get_short(&format!("{name}/{}", manifest::NAME))?,
        };
        match bytes {
            Ok(bytes) => Manifest::decode(&bytes, &place),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(BackupFailure::NoManifest { place: self.shown(name) })
            }
            Err(source) => Err(BackupFailure::Io { action: "read", place, source }),
        }
    }

    /// An empty directory, in which what comes to this place is made.
    pub(crate) fn workshop(&self) -> Result<Workshop, BackupFailure> {
        match self {
            BackupPlace::Directory(dir) => {
                fs::create_dir_all(dir).map_err(BackupFailure::io("create directory", dir.display()))?;
                Workshop::new(dir)
            }
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(_) => Workshop::new(&std::env::temp_dir()),
        }
    }

    /// Takes a new backup, which the workshop holds.
    pub(crate) fn put(
        &self,
        name: &str,
        workshop: Workshop,
        manifest: &Manifest,
    ) -> Result<(), BackupFailure> {
        match self {
            BackupPlace::Directory(dir) => {
                write_synced(&workshop.path().join(manifest::NAME), &manifest.encode())?;
                sync_directory(workshop.path())?;
                let to = dir.join(name);
                fs::rename(workshop.path(), &to)
                    .map_err(BackupFailure::io("name directory", to.display()))?;
                workshop.mark_taken();
                sync_directory(dir)
            }
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => {
                for part in manifest.parts() {
                    bucket.put_file(&format!("{name}/{}", part.file), &workshop.path().join(&part.file))?;
                }
                bucket.put(&format!("{name}/{}", manifest::NAME), manifest.encode())
            }
        }
    }

    /// Takes one more part of a backup that is there, and then its new manifest.
    pub(crate) fn add(
        &self,
        name: &str,
        workshop: &Workshop,
        file: &str,
        manifest: &Manifest,
    ) -> Result<(), BackupFailure> {
        let from = workshop.path().join(file);
        match self {
            BackupPlace::Directory(dir) => {
                let dir = dir.join(name);
                let to = dir.join(file);
                fs::rename(&from, &to).map_err(BackupFailure::io("name", to.display()))?;
                sync_directory(&dir)?;
                let new = workshop.path().join(manifest::NAME);
                write_synced(&new, &manifest.encode())?;
                let to = dir.join(manifest::NAME);
                fs::rename(&new, &to).map_err(BackupFailure::io("name", to.display()))?;
                sync_directory(&dir)
            }
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => {
                bucket.put_file(&format!("{name}/{file}"), &from)?;
                bucket.put(&format!("{name}/{}", manifest::NAME), manifest.encode())
            }
        }
    }

    /// A file with a part of a backup: itself, or a copy in the workshop.
    pub(crate) fn fetch(
        &self,
        name: &str,
        file: &str,
        #[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "only buckets are copied from"))]
        workshop: &Workshop,
    ) -> Result<PathBuf, BackupFailure> {
        match self {
            BackupPlace::Directory(dir) => Ok(dir.join(name).join(file)),
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => {
                let to = workshop.path().join(file);
                bucket.get_file(&format!("{name}/{file}"), &to)?;
                Ok(to)
            }
        }
    }

    /// Removes a backup: its manifest first, so that no part of it is taken for the whole.
    pub(crate) fn remove(&self, name: &str) -> Result<(), BackupFailure> {
        match self {
            BackupPlace::Directory(dir) => {
                let dir = dir.join(name);
                let manifest = dir.join(manifest::NAME);
                fs::remove_file(&manifest).map_err(BackupFailure::io("remove", manifest.display()))?;
                fs::remove_dir_all(&dir).map_err(BackupFailure::io("remove", dir.display()))
            }
            #[cfg(feature = "s3")]
            BackupPlace::Bucket(bucket) => bucket.remove(name, manifest::NAME),
        }
    }
}

/// A directory in which a backup is made. What is left in it goes with it.
#[derive(Debug)]
pub(crate) struct Workshop {
    path: PathBuf,
    is_taken: bool,
}

impl Workshop {
    /// A new directory within another one.
    pub(crate) fn new(within: &Path) -> Result<Workshop, BackupFailure> {
        remove_abandoned(within);
        // Processes of different containers may have the same number.
        let path =
            within.join(format!("{UNFINISHED}{:016x}", RandomState::new().hash_one(std::process::id())));
        // A snapshot holds everything, and the directory around may be one for all users.
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(BackupFailure::io("create directory", path.display()))?;
        Ok(Workshop { path, is_taken: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory has another name now.
    fn mark_taken(mut self) {
        self.is_taken = true;
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if !self.is_taken {
            // What cannot be removed has a name that says what it is.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes what a process left that was killed while it made a backup.
fn remove_abandoned(within: &Path) {
    let Ok(entries) = within.read_dir() else { return };
    let is_abandoned = |entry: &fs::DirEntry| {
        let is_unfinished = entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED));
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok());
        is_unfinished && age.is_some_and(|age| age > ABANDONED)
    };
    for entry in entries.flatten().filter(is_abandoned) {
        // Another user's stays.
        let _ = fs::remove_dir_all(entry.path());
    }
}

fn names_in(dir: &Path) -> Result<Vec<String>, BackupFailure> {
    let failed =
        |source| BackupFailure::Io { action: "read directory", place: dir.display().to_string(), source };
    let entries = match dir.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.path().join(manifest::NAME).is_file() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

fn read_short(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(manifest::BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), BackupFailure> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(BackupFailure::io("write", path.display()))
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(dir: &Path) -> Result<(), BackupFailure> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(BackupFailure::io("sync directory", dir.display()))
}
