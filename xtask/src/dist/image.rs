//! `cargo xtask image`: a container image that has the program, the C library that it takes, and nothing else.
//!
//! The image begins empty. The program is dynamic, so Debian's C library comes along, for each architecture from its own package. Variables and places are those of
//! ZooKeeper's official image. Decision page 0100 has the reasons.

use std::fs;
use std::path::{Path, PathBuf};

use super::build;
use super::folders::{Folders, renew};
use super::options::ImageOptions;
use super::source::DistSource;
use super::stage::{StagedFile, write};
use super::target::Target;
use crate::apt;
use crate::install::once;
use crate::layout::Layout;
use crate::process::{Error, Program};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask image                                    an image of what `cargo xtask dist` compiles, in target/dist
  cargo xtask image --program target/release/paddock   of a program that is built already
  cargo xtask image --target aarch64
  podman load --input target/dist/paddock-*-x86_64-image.tar

Debian's buildah is installed if it is missing, which takes root; else what `cargo xtask dist` needs is needed.";

/// Packages of the C library, and of the one that unwinds.
const LIBRARIES: [&str; 2] = ["libc6", "libgcc-s1"];
/// Files of these packages that the program takes. Names are looked up by the C library itself.
const FILES: [&str; 3] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1"];
/// Owner of the process and of its directories.
const USER: &str = "1000:1000";
const PLACES: [&str; 3] = ["/conf", "/data", "/datalog"];
const VARIABLES: [&str; 4] =
    ["PATH=/usr/bin", "ZOO_CONF_DIR=/conf", "ZOO_DATA_DIR=/data", "ZOO_DATA_LOG_DIR=/datalog"];

/// Makes the images; returns their files.
pub(crate) fn run(layout: &Layout, options: &ImageOptions) -> Result<Vec<PathBuf>, Error> {
    let source = DistSource::find(layout.root())?;
    let folders = Folders::of_this_checkout(layout);
    fs::create_dir_all(&folders.output).map_err(Error::io("create", &folders.output))?;
    options.target.iter().map(|target| make(layout, &source, options, *target, &folders)).collect()
}

fn make(
    layout: &Layout,
    source: &DistSource,
    options: &ImageOptions,
    target: Target,
    folders: &Folders,
) -> Result<PathBuf, Error> {
    let work = folders.work.join(format!("image-{}", target.machine()));
    renew(&work)?;
    let whole = match &options.program {
        Some(program) => program.clone(),
        None => build::program(layout, source, target, "dist", folders)?,
    };
    let program = build::split(layout, target, &whole, &work)?.program;
    let tree = work.join("tree");
    write(&files(layout, target, &program)?, &tree, source.epoch)?;
    let empty = work.join("empty");
    renew(&empty)?;

    let log = layout.log("image");
    apt::install_program("buildah", &["buildah"], &log)?;
    let buildah = || {
        let buildah =
            Program::new("buildah").args(["--storage-driver", "vfs", "--root"]).arg(work.join("store"));
        buildah.arg("--runroot").arg(work.join("run"))
    };
    let container =
        buildah().args(["from", "--format", "docker", "--arch", target.debian(), "scratch"]).output()?;
    let container = container.trim();
    buildah().args(["copy", "--quiet", container]).arg(&tree).arg("/").log_to(&log).run()?;
    for place in PLACES {
        let copy = buildah().args(["copy", "--quiet", "--chown", USER, container]);
        copy.arg(&empty).arg(place).log_to(&log).run()?;
    }
    configure(buildah().arg("config"), source, target).arg(container).log_to(&log).run()?;
    let name = format!("paddock-{}-{}-image.tar", source.version, target.machine());
    let file = folders.output.join(name);
    if file.exists() {
        fs::remove_file(&file).map_err(Error::io("remove", &file))?;
    }
    let time = source.epoch.to_string();
    let commit = buildah().args(["commit", "--format", "docker", "--quiet", "--timestamp", &time, container]);
    let to = format!("docker-archive:{}:localhost/paddock:{}", file.display(), source.version);
    commit.arg(to).log_to(&log).run()?;
    let bytes = fs::metadata(&file).map_err(Error::io("look at", &file))?.len();
    println!("{}: {bytes} bytes", file.display());
    Ok(file)
}

fn configure(config: Program, source: &DistSource, target: Target) -> Program {
    let config = VARIABLES.iter().fold(config, |config, variable| config.args(["--env", variable]));
    let ports = ["2181", "2888", "3888"];
    let config = ports.iter().fold(config, |config, port| config.args(["--port", port]));
    let config = ["/data", "/datalog"].iter().fold(config, |config, place| config.args(["--volume", place]));
    config
        .args(["--arch", target.debian(), "--os", "linux", "--user", USER, "--workingdir", "/data"])
        .args(["--entrypoint", r#"["/usr/bin/paddock"]"#, "--cmd", "server", "--stop-signal", "SIGTERM"])
        // PADDOCK_HOSTS is for members at other ports.
        .args(["--healthcheck", "CMD paddock shell --connect-timeout 4s -- exists /"])
        .args(["--healthcheck-interval", "10s", "--healthcheck-timeout", "5s"])
        .args(["--healthcheck-start-period", "30s"])
        .args(["--label", &format!("org.opencontainers.image.revision={}", source.commit)])
        .args(["--label", &format!("org.opencontainers.image.version={}", source.version)])
        .args(["--label", "org.opencontainers.image.licenses=Apache-2.0"])
}

/// Files of the image.
fn files(layout: &Layout, target: Target, program: &Path) -> Result<Vec<StagedFile>, Error> {
    let libraries = libraries(layout, target)?;
    let triplet = format!("{}-linux-gnu", target.machine());
    let loader = match target {
        Target::X86_64 => "lib64/ld-linux-x86-64.so.2",
        Target::Aarch64 => "lib/ld-linux-aarch64.so.1",
    };
    let copy = |path: &str, from: &Path| -> Result<StagedFile, Error> {
        Ok(StagedFile { is_program: true, ..StagedFile::copy(path, from)? })
    };
    let of_loader = Path::new(loader).file_name().unwrap_or_default();
    let mut files = vec![
        copy("usr/bin/paddock", program)?,
        copy(loader, &libraries.join(&triplet).join(of_loader))?,
        StagedFile::new("etc/passwd", "root:x:0:0::/:/\npaddock:x:1000:1000::/data:/\n"),
        StagedFile::new("etc/group", "root:x:0:\npaddock:x:1000:\n"),
        StagedFile::new("etc/nsswitch.conf", "hosts: files dns\n"),
        StagedFile::copy("usr/share/doc/paddock/LICENSE", &layout.root().join("LICENSE"))?,
    ];
    for name in FILES {
        files.push(copy(&format!("lib/{triplet}/{name}"), &libraries.join(&triplet).join(name))?);
    }
    for package in LIBRARIES {
        let notice = libraries.join("../usr/share/doc").join(package).join("copyright");
        // That of the second package is a link to that of a package of the same sources.
        if notice.is_file() {
            files.push(StagedFile::copy(format!("usr/share/doc/{package}/copyright"), &notice)?);
        }
    }
    Ok(files)
}

/// The directory `lib` of Debian's packages of a target.
fn libraries(layout: &Layout, target: Target) -> Result<PathBuf, Error> {
    let directory = layout.environment(&format!("image-{}", target.debian()));
    let packages = LIBRARIES.map(|package| format!("{package}:{}", target.debian()));
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    once(&directory, &packages.join(", "), || {
        let log = layout.log("install-image");
        apt::unpack_foreign(target.debian(), &packages, &directory, &log)
    })?;
    Ok(directory.join("root/lib"))
}
