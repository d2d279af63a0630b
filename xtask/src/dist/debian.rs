//! The Debian package, by `dpkg-deb`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::source::{DistSource, RELEASE};
use super::stage::{self, CONFIGURATION, CompletionPlaces, Parts, StagedFile};
use super::target::{GLIBC, Target};
use crate::process::{Error, Program};

const SCRIPTS: [&str; 3] = ["postinst", "postrm", "prerm"];
const PLACES: CompletionPlaces = CompletionPlaces { zsh: "usr/share/zsh/vendor-completions" };

/// Writes the package of a target.
pub(super) fn write(
    source: &DistSource,
    parts: &Parts,
    target: Target,
    work: &Path,
    output: &Path,
) -> Result<(), Error> {
    let version = format!("{}-{RELEASE}", source.version);
    let maintainer = maintainer();
    let date = source.date("+%a, %d %b %Y %H:%M:%S +0000")?;
    let words = [("VERSION", version.as_str()), ("MAINTAINER", &maintainer), ("DATE", &date)];
    let mut files = stage::installed(parts, &PLACES)?;
    let unit = parts.root.join("packaging/paddock.service");
    files.push(StagedFile::copy("lib/systemd/system/paddock.service", &unit)?);
    let overrides = stage::filled(&parts.root, "debian/lintian-overrides", &[])?;
    files.push(StagedFile::new("usr/share/lintian/overrides/paddock", overrides));
    let doc = |name: &str| format!("usr/share/doc/paddock/{name}");
    let changelog = stage::filled(&parts.root, "debian/changelog", &words)?;
    files.push(StagedFile::new(doc("changelog.Debian.gz"), changelog));
    files.push(StagedFile::new(doc("copyright"), stage::filled(&parts.root, "debian/copyright", &words)?));

    let tree = work.join("debian");
    stage::write(&files, &tree, source.epoch)?;
    let kibibytes = kibibytes(&tree)?.to_string();
    let more = [("ARCHITECTURE", target.debian()), ("KIBIBYTES", &kibibytes), ("GLIBC", GLIBC)];
    let control = stage::filled(&parts.root, "debian/control", &[&words[..], &more].concat())?;
    let configuration: String = CONFIGURATION.iter().map(|path| format!("/{path}\n")).collect();
    files.push(StagedFile::new("DEBIAN/control", control));
    files.push(StagedFile::new("DEBIAN/conffiles", configuration));
    files.push(StagedFile::new("DEBIAN/md5sums", sums(&tree)?));
    for script in SCRIPTS {
        let text = stage::filled(&parts.root, &format!("debian/{script}"), &[])?;
        files.push(StagedFile::program(format!("DEBIAN/{script}"), text));
    }
    stage::write(&files, &tree, source.epoch)?;
    let package = output.join(format!("paddock_{version}_{}.deb", target.debian()));
    let dpkg = source.with_variables(Program::new("dpkg-deb"));
    let dpkg = dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(package);
    dpkg.output().map(drop)
}

/// The maintainer as other tools of Debian are told of one.
fn maintainer() -> String {
    let named = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    format!("{} <{}>", named("DEBFULLNAME", "Paddock maintainers"), named("DEBEMAIL", "paddock@example.org"))
}

/// Disk space of a tree as Debian's policy counts it: each file in whole kibibytes, and one for each directory.
fn kibibytes(directory: &Path) -> Result<u64, Error> {
    let mut sum = 1;
    for path in list(directory)? {
        sum += if path.is_dir() { kibibytes(&path)? } else { bytes(&path)?.div_ceil(1024) };
    }
    Ok(sum)
}

fn bytes(file: &Path) -> Result<u64, Error> {
    Ok(fs::metadata(file).map_err(Error::io("look at", file))?.len())
}

/// Check sums of the files of a tree, by which `dpkg --verify` compares them. Those of configuration files are kept elsewhere.
fn sums(tree: &Path) -> Result<String, Error> {
    let mut files = Vec::new();
    collect(tree, &mut files)?;
    let names: Vec<&Path> = files.iter().filter_map(|file| file.strip_prefix(tree).ok()).collect();
    let names = names.into_iter().filter(|name| !CONFIGURATION.iter().any(|path| *name == Path::new(path)));
    Ok(Program::new("md5sum").current_dir(tree).args(names).output()? + "\n")
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for path in list(directory)? {
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Paths in a directory, in their order.
fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        paths.push(entry.map_err(Error::io("list", directory))?.path());
    }
    paths.sort();
    Ok(paths)
}
