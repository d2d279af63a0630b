//! Archives: the program with what belongs to it, and its debug symbols.

use std::fs;
use std::path::Path;

use super::build::SHELLS;
use super::source::DistSource;
use super::stage::{self, EXAMPLES, Parts, StagedFile};
use super::target::Target;
use crate::process::{Error, Program};

/// Writes the archives and the bill of materials of a target.
pub(super) fn write(
    source: &DistSource,
    parts: &Parts,
    target: Target,
    work: &Path,
    output: &Path,
) -> Result<(), Error> {
    let name = format!("paddock-{}-{}-linux", source.version, target.machine());
    pack(source, &with_program(parts)?, &work.join("archive"), &name, output)?;
    let symbols = [StagedFile::copy("paddock.debug", &parts.split.symbols)?];
    pack(source, &symbols, &work.join("symbols"), &format!("{name}-debug"), output)?;
    let bill = output.join(format!("{name}.cdx.json"));
    fs::copy(&parts.listings.bill, &bill).map_err(Error::io("write", &bill)).map(drop)
}

fn with_program(parts: &Parts) -> Result<Vec<StagedFile>, Error> {
    let copy = |path: &str, from: &Path| StagedFile::copy(path, from);
    let at_top = |name: &str| copy(name, &parts.root.join(name));
    let mut files = vec![
        StagedFile { is_program: true, ..copy("paddock", &parts.split.program)? },
        at_top("LICENSE")?,
        at_top("CHANGELOG.md")?,
        copy("THIRD-PARTY.txt", &parts.listings.notices)?,
        copy("paddock.service", &parts.root.join("packaging/paddock.service"))?,
    ];
    for (from, to) in EXAMPLES {
        files.push(copy(&format!("examples/{to}"), &parts.root.join("docs/examples").join(from))?);
    }
    for page in &parts.documents.pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        files.push(copy(&format!("man/man1/{name}"), page)?);
    }
    // The names that the shells look for.
    for (shell, name) in SHELLS.into_iter().zip(["paddock", "_paddock", "paddock.fish"]) {
        files.push(copy(&format!("completions/{shell}/{name}"), &parts.documents.completions.join(shell))?);
    }
    Ok(files)
}

/// Packs files below one directory of the archive's name.
fn pack(
    source: &DistSource,
    files: &[StagedFile],
    directory: &Path,
    name: &str,
    output: &Path,
) -> Result<(), Error> {
    stage::write(files, &directory.join(name), source.epoch)?;
    let archive = output.join(format!("{name}.tar"));
    let tar = Program::new("tar").args([
        "--format=ustar",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    let tar = tar.arg(format!("--mtime=@{}", source.epoch)).arg("--directory").arg(directory);
    tar.arg("--create").arg("--file").arg(&archive).arg(name).run()?;
    Program::new("gzip").args(["--best", "--no-name", "--force"]).arg(&archive).run()
}
