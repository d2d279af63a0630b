//! Root file systems of Debian 12 on which packages are installed: a bare one, and one with the programs that judge packages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::once;
use crate::apt;
use crate::layout::Layout;
use crate::process::{Error, Program};

const RELEASE: &str = "bookworm";
/// Packages beside the bare ones: systemd with what it starts, and judges.
const TOOLS: [&str; 6] = ["systemd", "systemd-sysv", "dbus", "lintian", "rpm", "man-db"];

/// Both directories, as variables of the tests. Without root there is none, and tests that want one say so.
pub(crate) fn install(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    if !apt::is_root() {
        return Ok(Vec::new());
    }
    let log = layout.log("install-debian-roots");
    let bare = layout.environment("debian-bare");
    once(&bare, RELEASE, || bootstrap(layout, &bare, &log))?;
    let tools = layout.environment("debian-tools");
    once(&tools, &TOOLS.join(", "), || {
        let root = root_in(&tools);
        Program::new("cp").arg("-a").arg(root_in(&bare)).arg(&root).log_to(&log).run()?;
        let apt = |arguments: &[&str]| {
            let apt = Program::new("chroot").arg(&root).args(["apt-get", "-q"]).args(arguments);
            apt.env("DEBIAN_FRONTEND", "noninteractive").log_to(&log).run()
        };
        apt(&["update"])?;
        apt(&[&["install", "-y", "--no-install-recommends"], &TOOLS[..]].concat())?;
        apt(&["clean"])
    })?;
    Ok(vec![("DEBIAN_ROOT", root_in(&bare).into()), ("TOOLS_ROOT", root_in(&tools).into())])
}

fn root_in(directory: &Path) -> PathBuf {
    directory.join("root")
}

/// Debian's own `debootstrap`, from Debian's own mirror.
fn bootstrap(layout: &Layout, directory: &Path, log: &Path) -> Result<(), Error> {
    let program = layout.environment("debootstrap");
    once(&program, "debootstrap", || apt::unpack(&["debootstrap"], &program, log))?;
    let unpacked = program.join("root");
    let debootstrap = Program::new(unpacked.join("usr/sbin/debootstrap"));
    let debootstrap = debootstrap.env("DEBOOTSTRAP_DIR", unpacked.join("usr/share/debootstrap"));
    debootstrap.args(["--variant=minbase", RELEASE]).arg(root_in(directory)).log_to(log).run()
}
