//! The files of a machine on which the program is installed, and a tree of them that is the same wherever it is made.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::build::{Documents, SHELLS, Split};
use super::components::Listings;
use super::folders::renew;
use crate::process::{Error, Program};

/// All that is packed.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) root: PathBuf,
    pub(super) split: Split,
    pub(super) documents: Documents,
    pub(super) listings: Listings,
}

/// A file to be.
#[derive(Debug)]
pub(super) struct StagedFile {
    /// Path from the top of the tree. A file whose name ends in `.gz` is compressed when it is written.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_program: bool,
}

impl StagedFile {
    pub(super) fn new(path: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: text.into(), is_program: false }
    }

    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { is_program: true, ..Self::new(path, bytes) }
    }

    /// A copy of a file.
    pub(super) fn copy(path: impl Into<String>, from: &Path) -> Result<Self, Error> {
        Ok(Self::new(path, fs::read(from).map_err(Error::io("read", from))?))
    }
}

/// Places of completions, which differ between the kinds of packages.
pub(super) struct CompletionPlaces {
    pub(super) zsh: &'static str,
}

/// Configuration files, which an upgrade leaves as their owner has them.
pub(super) const CONFIGURATION: [&str; 2] = ["etc/default/paddock", "etc/paddock/paddock.toml"];
/// Examples of settings, and their names in the documentation.
pub(super) const EXAMPLES: [(&str, &str); 3] =
    [("paddock.toml", "paddock.toml"), ("ensemble/paddock.toml", "ensemble.toml"), ("zoo.cfg", "zoo.cfg")];

/// Files that Debian's packages and RPMs have alike.
pub(super) fn installed(parts: &Parts, places: &CompletionPlaces) -> Result<Vec<StagedFile>, Error> {
    let packaging = |name: &str| parts.root.join("packaging").join(name);
    let copy = |path: &str, from: &Path| StagedFile::copy(path, from);
    let mut files = vec![
        StagedFile { is_program: true, ..copy("usr/bin/paddock", &parts.split.program)? },
        copy("usr/lib/sysusers.d/paddock.conf", &packaging("paddock.sysusers"))?,
        copy(CONFIGURATION[0], &packaging("paddock.default"))?,
        copy(CONFIGURATION[1], &packaging("paddock.toml"))?,
        copy("usr/share/doc/paddock/THIRD-PARTY.txt.gz", &parts.listings.notices)?,
        copy("usr/share/doc/paddock/bill-of-materials.cdx.json.gz", &parts.listings.bill)?,
        copy("usr/share/doc/paddock/changelog.gz", &parts.root.join("CHANGELOG.md"))?,
    ];
    for (from, to) in EXAMPLES {
        let from = parts.root.join("docs/examples").join(from);
        files.push(copy(&format!("usr/share/doc/paddock/examples/{to}"), &from)?);
    }
    let Documents { pages, completions } = &parts.documents;
    for page in pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        files.push(copy(&format!("usr/share/man/man1/{name}.gz"), page)?);
    }
    let of_shells = [
        "usr/share/bash-completion/completions/paddock".to_owned(),
        format!("{}/_paddock", places.zsh),
        "usr/share/fish/vendor_completions.d/paddock.fish".to_owned(),
    ];
    for (shell, place) in SHELLS.into_iter().zip(of_shells) {
        files.push(copy(&place, &completions.join(shell))?);
    }
    Ok(files)
}

/// Writes the files below an empty directory. All files and directories get the same time, and modes that no umask changes.
pub(super) fn write(files: &[StagedFile], directory: &Path, epoch: u64) -> Result<(), Error> {
    renew(directory)?;
    for StagedFile { path, bytes, is_program } in files {
        let file = directory.join(path.strip_suffix(".gz").unwrap_or(path));
        let parent = file.parent().unwrap_or(directory);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        fs::write(&file, bytes).map_err(Error::io("write", &file))?;
        set_mode(&file, if *is_program { 0o755 } else { 0o644 })?;
        if path.ends_with(".gz") {
            Program::new("gzip").args(["--best", "--no-name"]).arg(&file).run()?;
        }
    }
    date(directory, epoch)
}

/// Gives a time to all below a directory, and then to itself; directories get their modes, too.
fn date(directory: &Path, epoch: u64) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        if path.is_dir() { date(&path, epoch)? } else { set_time(&path, epoch)? }
    }
    set_mode(directory, 0o755)?;
    set_time(directory, epoch)
}

pub(super) fn set_time(path: &Path, epoch: u64) -> Result<(), Error> {
    let set = File::open(path).and_then(|file| file.set_modified(UNIX_EPOCH + Duration::from_secs(epoch)));
    set.map_err(Error::io("date", path))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(Error::io("give a mode to", path))
}

/// A file of `packaging`, with words in `@` replaced.
pub(super) fn filled(root: &Path, name: &str, words: &[(&str, &str)]) -> Result<String, Error> {
    let file: PathBuf = root.join("packaging").join(name);
    let text = fs::read_to_string(&file).map_err(Error::io("read", &file))?;
    Ok(words.iter().fold(text, |text, (word, value)| text.replace(&format!("@{word}@"), value)))
}
