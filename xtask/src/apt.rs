//! Debian packages: installed on the machine, or only unpacked below the target directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Error, Program};

/// Installs packages on this machine, which takes root or a sudo that doesn't ask.
pub(crate) fn install(packages: &[&str], log: &Path) -> Result<(), Error> {
    let words: &[&str] = if is_root() {
        &["env"]
    } else if Program::new("sudo").args(["-n", "true"]).succeeds() {
        &["sudo", "-n", "--preserve-env", "env"]
    } else {
        let packages = packages.join(" ");
        return Err(Error::new(format!("these packages are missing, install them as root: {packages}")));
    };
    let apt = |arguments: &[&str]| {
        Program::new(words[0])
            .args(&words[1..])
            .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"])
            .args(arguments)
            .log_to(log)
            .run()
    };
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

/// Installs packages on this machine, unless it has this program of theirs.
pub(crate) fn install_program(program: &str, packages: &[&str], log: &Path) -> Result<(), Error> {
    if Program::new(program).arg("--version").succeeds() { Ok(()) } else { install(packages, log) }
}

/// Unpacks packages, and those they depend on that this machine lacks, into `directory`/root.
///
/// Nothing on the machine changes: no service starts, no question is asked, and it takes no root.
pub(crate) fn unpack(packages: &[&str], directory: &Path, log: &Path) -> Result<(), Error> {
    let archives = directory.join("archives");
    fs::create_dir_all(archives.join("partial")).map_err(Error::io("create", &archives))?;
    let apt = own_apt(directory, log)?;
    apt()
        .arg(format!("-oDir::Cache::archives={}", archives.display()))
        .args(["install", "-y", "--no-install-recommends", "--download-only"])
        .args(packages)
        .run()?;
    unpack_archives(&archives, directory, log)
}

/// Unpacks packages without the packages that these depend on.
pub(crate) fn unpack_alone(packages: &[&str], directory: &Path, log: &Path) -> Result<(), Error> {
    let archives = directory.join("archives");
    fs::create_dir_all(&archives).map_err(Error::io("create", &archives))?;
    let apt = own_apt(directory, log)?;
    // apt downloads to the directory where it is started.
    apt().arg("download").args(packages).current_dir(&archives).run()?;
    unpack_archives(&archives, directory, log)
}

/// Unpacks packages of another architecture, such as `libc6:arm64`, without the packages that these depend on.
pub(crate) fn unpack_foreign(
    architecture: &str,
    packages: &[&str],
    directory: &Path,
    log: &Path,
) -> Result<(), Error> {
    let archives = directory.join("archives");
    fs::create_dir_all(&archives).map_err(Error::io("create", &archives))?;
    // A list without this machine's own architecture would say that apt itself cannot run.
    let native = Program::new("dpkg").arg("--print-architecture").output()?;
    let both = format!("-oAPT::Architectures={native},{architecture}");
    let options = [both.as_str()];
    let apt = own_apt_with(&options, directory, log)?;
    apt().arg("download").args(packages).current_dir(&archives).run()?;
    unpack_archives(&archives, directory, log)
}

/// An apt-get with lists of packages below a directory, which are up to date.
fn own_apt(directory: &Path, log: &Path) -> Result<impl Fn() -> Program, Error> {
    own_apt_with(&[], directory, log)
}

fn own_apt_with(options: &[&str], directory: &Path, log: &Path) -> Result<impl Fn() -> Program, Error> {
    let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    let lists = directory.join("lists");
    fs::create_dir_all(lists.join("partial")).map_err(Error::io("create", &lists))?;
    let (directory, log) = (directory.to_owned(), log.to_owned());
    let apt = move || {
        Program::new("apt-get")
            .arg("-q")
            .arg(format!("-oDir::State::lists={}", lists.display()))
            .arg(format!("-oDir::Cache={}", directory.display()))
            .arg("-oDebug::NoLocking=1")
            .args(&options)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .log_to(&log)
    };
    apt().arg("update").run()?;
    Ok(apt)
}

fn unpack_archives(archives: &Path, directory: &Path, log: &Path) -> Result<(), Error> {
    let root = directory.join("root");
    for archive in archives_in(archives)? {
        Program::new("dpkg-deb").arg("-x").arg(&archive).arg(&root).log_to(log).run()?;
    }
    Ok(())
}

fn archives_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            archives.push(path);
        }
    }
    Ok(archives)
}

pub(crate) fn is_root() -> bool {
    Program::new("sh").args(["-c", "test \"$(id -u)\" = 0"]).succeeds()
}
