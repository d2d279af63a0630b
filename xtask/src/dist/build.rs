//! The program: compiled for a target, linked against an old glibc, and parted from its debug symbols.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::folders::Folders;
use super::source::DistSource;
use super::target::{GLIBC, Target};
use super::tools::{self, Compiler};
use crate::layout::Layout;
use crate::process::{Error, Program};

/// Leaves out code of AWS-LC for AVX-512, 700 KB of AES for streams that are faster than any network here.
const WITHOUT_AVX512: &str = "-DMY_ASSEMBLER_IS_TOO_OLD_FOR_512AVX";

/// Compiles the program from the sources in `root`; returns where it is.
pub(super) fn program(
    layout: &Layout,
    source: &DistSource,
    target: Target,
    profile: &str,
    folders: &Folders,
) -> Result<PathBuf, Error> {
    let Folders { root, build: directory, .. } = folders;
    let compiler = Compiler::install(layout, target)?;
    let triple = target.triple();
    let cargo = source.with_variables(compiler.cargo()).current_dir(root);
    let cargo = cargo.args(["zigbuild", "--locked", "--package", "paddock", "--profile", profile]);
    let cargo = cargo.arg("--target").arg(format!("{triple}.{GLIBC}"));
    let flags = remapped(root, directory, &compiler)?;
    let c_flags = flags.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    let c_flags: Vec<String> = c_flags.chain([WITHOUT_AVX512.to_owned()]).collect();
    let flags = flags.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect::<Vec<_>>();
    let cargo = cargo
        .env("CARGO_TARGET_DIR", directory)
        // Its separator may be part of no path.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env(&format!("CFLAGS_{}", triple.replace('-', "_")), c_flags.join(" "))
        .env("CARGO_INCREMENTAL", "0");
    cargo.run()?;
    Ok(directory.join(triple).join(profile).join("paddock"))
}

/// Directories of this machine, and names for them that every machine can have in its messages and symbols.
fn remapped(root: &Path, target: &Path, compiler: &Compiler) -> Result<Vec<(String, String)>, Error> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo_home = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let mut pairs = vec![(root.to_owned(), "/paddock".to_owned()), (target.to_owned(), "/target".to_owned())];
    let registries = cargo_home.join("registry/src");
    // The name of a registry's directory has a hash of its address, which may be that of a mirror.
    for entry in fs::read_dir(&registries).map_err(Error::io("list", &registries))? {
        pairs.push((entry.map_err(Error::io("list", &registries))?.path(), "/crates".to_owned()));
    }
    pairs.extend([(compiler.sources()?, "/rustc".to_owned())]);
    let pair = |(from, to): (PathBuf, String)| from.into_os_string().into_string().map(|from| (from, to));
    let pairs: Result<Vec<_>, OsString> = pairs.into_iter().map(pair).collect();
    pairs.map_err(|path| Error::new(format!("{}: the path has to be UTF-8", path.display())))
}

/// A program without symbols, and its symbols.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) program: PathBuf,
    pub(super) symbols: PathBuf,
    pub(super) symbol_bytes: u64,
}

/// Parts a program from its symbols, which debuggers find by the name that it keeps.
pub(super) fn split(layout: &Layout, target: Target, whole: &Path, work: &Path) -> Result<Split, Error> {
    let (program, symbols) = (work.join("paddock"), work.join("paddock.debug"));
    let objcopy = tools::objcopy(layout, target)?;
    let copy =
        |options: &[&str], from: &Path, to: &Path| objcopy.program().args(options).arg(from).arg(to).run();
    copy(&["--only-keep-debug", "--compress-debug-sections"], whole, &symbols)?;
    copy(&["--strip-all", "--remove-section=.comment"], whole, &program)?;
    // The link has the file's name and check sum: it is added where that is.
    let link = objcopy.program().current_dir(work);
    link.args(["--add-gnu-debuglink=paddock.debug", "paddock"]).run()?;
    let symbol_bytes = fs::metadata(&symbols).map_err(Error::io("look at", &symbols))?.len();
    Ok(Split { program, symbols, symbol_bytes })
}

/// Manual pages, and completions for shells.
#[derive(Debug)]
pub(super) struct Documents {
    pub(super) pages: Vec<PathBuf>,
    /// Directory with a script for each of `SHELLS`.
    pub(super) completions: PathBuf,
}

pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Lets the program write what there is to know of its command line. One for another machine runs under QEMU.
pub(super) fn documents(
    layout: &Layout,
    program: &Path,
    target: Target,
    work: &Path,
) -> Result<Documents, Error> {
    let (manual, completions) = (work.join("man"), work.join("completions"));
    for directory in [&manual, &completions] {
        fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    }
    let emulator = if target.is_of_this_machine() { None } else { Some(tools::emulator(layout, target)?) };
    let paddock = || match &emulator {
        None => Program::new(program),
        Some((emulator, libraries)) => Program::new(emulator).arg("-L").arg(libraries).arg(program),
    };
    paddock().args(["man", "--to"]).arg(&manual).run()?;
    for shell in SHELLS {
        let script = completions.join(shell);
        let text = paddock().args(["completions", shell]).output()? + "\n";
        fs::write(&script, text).map_err(Error::io("write", &script))?;
    }
    let mut pages = Vec::new();
    for entry in fs::read_dir(&manual).map_err(Error::io("list", &manual))? {
        pages.push(entry.map_err(Error::io("list", &manual))?.path());
    }
    pages.sort();
    Ok(Documents { pages, completions })
}
