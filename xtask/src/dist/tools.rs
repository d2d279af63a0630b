//! Programs that make a distribution, at fixed versions, and where they come from.
//!
//! Zig links against the glibc that it is told, and `cargo-zigbuild` tells it; both are packages of PyPI. `cargo-auditable` writes
//! the list of crates into the program. Debian has the rest.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::target::Target;
use crate::apt;
use crate::install::{library_path, once, virtual_environment};
use crate::layout::Layout;
use crate::process::{Error, Program};

const PYTHON_PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
const AUDITABLE: &str = "0.7.7";

/// Place of `ZIG_COMMAND` below a Python environment.
const ZIG_COMMAND_NAME: &str = "bin/zig-where-it-lies";
/// Calls Zig, to link from its own folder. Zig brings a library for unwinding as a source; the debugging information of that has its
/// paths as they are seen from the folder that Zig is called in, and would tell where the sources of the program lie.
const ZIG_COMMAND: &str = r#"#!/bin/sh
zig=$(dirname "$0")/../lib/python3*/site-packages/ziglang
zig=$(cd $zig && pwd) || exit
case " $* " in
    *" -c "*|*" -S "*|*" -E "*) ;;
    " cc "*|" c++ "*) cd "$zig" || exit ;;
esac
exec "$zig/zig" "$@"
"#;

/// A Cargo that compiles for one target.
#[derive(Debug)]
pub(super) struct Compiler {
    rustc: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Compiler {
    /// The toolchain of this machine if it has the target's standard library, otherwise Debian's.
    pub(super) fn install(layout: &Layout, target: Target) -> Result<Self, Error> {
        let path = env::var_os("PATH").unwrap_or_default();
        let zig = zig(layout)?;
        let path = [zig.join("bin"), auditable(layout)?].into_iter().chain(env::split_paths(&path));
        let path = env::join_paths(path).map_err(|error| Error::new(format!("PATH: {error}")))?;
        let variables = vec![
            ("PATH", path),
            ("CARGO_ZIGBUILD_ZIG_PATH", zig.join(ZIG_COMMAND_NAME).into()),
            ("XDG_CACHE_HOME", layout.dist_work("cache").into()),
        ];
        let mut compiler = Self { rustc: "rustc".into(), variables };
        let libraries = compiler.rustc().args(["--print", "target-libdir", "--target", &target.triple()]);
        if Path::new(&libraries.output()?).is_dir() {
            return Ok(compiler);
        }
        let root = debian_rust(layout, target)?;
        compiler.rustc = root.join("usr/bin/rustc");
        compiler.variables.push(("RUSTC", compiler.rustc.clone().into()));
        compiler.variables.push(("LD_LIBRARY_PATH", library_path(&root)?));
        Ok(compiler)
    }

    /// `cargo auditable`, whose next argument is the command.
    pub(super) fn cargo(&self) -> Program {
        Program::new("cargo-auditable").arg("auditable").envs(&self.variables)
    }

    fn rustc(&self) -> Program {
        Program::new(&self.rustc).envs(&self.variables)
    }

    /// Directory of the standard library's sources, if it is installed: paths into it are of this machine then.
    pub(super) fn sources(&self) -> Result<PathBuf, Error> {
        Ok(Path::new(&self.rustc().args(["--print", "sysroot"]).output()?).join("lib/rustlib/src/rust"))
    }
}

/// Directory of Debian's compiler of Rust, the one of which browsers are built, with the standard libraries of this machine and of a target.
fn debian_rust(layout: &Layout, target: Target) -> Result<PathBuf, Error> {
    let directory = layout.environment(&format!("rust-web-{}", target.debian()));
    let library = format!("libstd-rust-web-dev:{}", target.debian());
    once(&directory, &library, || {
        let log = layout.log("install-rust-web");
        // Unpacked into one root: a compiler takes no library but of its own version.
        apt::unpack(&["rustc-web"], &directory, &log)?;
        apt::unpack_foreign(target.debian(), &[&library], &directory, &log)
    })?;
    Ok(directory.join("root"))
}

/// A Python environment with Zig.
fn zig(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = layout.environment("zig");
    let source = format!("{} and\n{ZIG_COMMAND}", PYTHON_PACKAGES.join(", "));
    once(&directory, &source, || {
        let log = layout.log("install-zig");
        let pip = Program::new(virtual_environment(&directory, &log)?).args(["-m", "pip", "install"]);
        pip.args(PYTHON_PACKAGES).log_to(&log).run()?;
        let command = directory.join(ZIG_COMMAND_NAME);
        fs::write(&command, ZIG_COMMAND).map_err(Error::io("write", &command))?;
        let is_program = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&command, is_program).map_err(Error::io("make a program of", &command))
    })?;
    Ok(directory)
}

/// Directory of `cargo-auditable`.
fn auditable(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = layout.environment("cargo-auditable");
    once(&directory, AUDITABLE, || {
        let cargo = layout.cargo().args(["install", "--debug", "--locked", "--root"]).arg(&directory);
        cargo.args(["--version", AUDITABLE, "cargo-auditable"]).log_to(&layout.log("install-auditable")).run()
    })?;
    Ok(directory.join("bin"))
}

/// A program with the variables that let it run.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) program: PathBuf,
    pub(super) variables: Vec<(&'static str, OsString)>,
}

impl Tool {
    pub(super) fn program(&self) -> Program {
        Program::new(&self.program).envs(&self.variables)
    }
}

/// A program of one of Debian's packages, which is unpacked and not installed.
fn of_debian(layout: &Layout, package: &str, program: &str) -> Result<Tool, Error> {
    let directory = layout.environment(package);
    let log = layout.log(&format!("install-{package}"));
    once(&directory, package, || apt::unpack(&[package], &directory, &log))?;
    let root = directory.join("root");
    Ok(Tool {
        program: root.join("usr/bin").join(program),
        variables: vec![("LD_LIBRARY_PATH", library_path(&root)?)],
    })
}

/// The `objcopy` of a target: that of this machine for its own programs, and Debian's for others.
pub(super) fn objcopy(layout: &Layout, target: Target) -> Result<Tool, Error> {
    if target.is_of_this_machine() {
        return Ok(Tool { program: "objcopy".into(), variables: Vec::new() });
    }
    let machine = target.machine();
    of_debian(layout, &format!("binutils-{machine}-linux-gnu"), &format!("{machine}-linux-gnu-objcopy"))
}

/// Debian's minisign.
pub(super) fn minisign(layout: &Layout) -> Result<Tool, Error> {
    if Program::new("minisign").arg("-v").succeeds() {
        return Ok(Tool { program: "minisign".into(), variables: Vec::new() });
    }
    of_debian(layout, "minisign", "minisign")
}

/// Debian's `rpmbuild`, or another program of its package.
pub(super) fn rpm(layout: &Layout, name: &str) -> Result<Tool, Error> {
    const PACKAGE: &str = "rpm";
    if Program::new(name).arg("--version").succeeds() {
        return Ok(Tool { program: name.into(), variables: Vec::new() });
    }
    let mut tool = of_debian(layout, PACKAGE, name)?;
    let settings = layout.environment(PACKAGE).join("root/usr/lib/rpm");
    tool.variables.push(("RPM_CONFIGDIR", settings.into()));
    Ok(tool)
}

/// An emulator of a target, and the directory of Debian's C library for it.
pub(super) fn emulator(layout: &Layout, target: Target) -> Result<(PathBuf, PathBuf), Error> {
    let emulator =
        of_debian(layout, "qemu-user-static", &format!("qemu-{}-static", target.machine()))?.program;
    let libraries = layout.environment("libc-arm64");
    let packages = ["libc6:arm64", "libgcc-s1:arm64"];
    once(&libraries, &packages.join(", "), || {
        apt::unpack_foreign("arm64", &packages, &libraries, &layout.log("install-libc-arm64"))
    })?;
    Ok((emulator, libraries.join("root")))
}
