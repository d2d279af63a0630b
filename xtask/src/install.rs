//! Installers for what the tests need and a fresh machine lacks; all of it lies below the target directory.
//!
//! Each installer is quick when its work is done already: a stamp file, written last, holds what it was done from.
//! Two that want the same at the same time wait for each other. Proxies and mirrors are the business of pip's, Maven's and apt's own settings, which pass through untouched.

mod debian_roots;
mod kubernetes;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::apt;
use crate::layout::Layout;
use crate::process::{Error, Program};

pub(crate) use debian_roots::install as debian_roots;
pub(crate) use kubernetes::install as kubernetes;

/// A thing to install, for those who only want it to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Python,
    Moto,
    Jars,
    OlderZookeepers,
    Go,
    Clickhouse,
    Kafka,
    Etcd,
    Chromium,
    Prometheus,
    FaultTools,
    Scripts,
    Gungraun,
    Valgrind,
    Tmux,
    Kerberos,
    DebianRoots,
    Kubernetes,
}

impl Part {
    pub(crate) fn install(self, layout: &Layout) -> Result<(), Error> {
        match self {
            Part::Python => python(layout).map(drop),
            Part::Moto => moto(layout).map(drop),
            Part::Jars => jars(layout),
            Part::OlderZookeepers => older_zookeepers(layout).map(drop),
            Part::Go => go(layout).map(drop),
            Part::Clickhouse => clickhouse(layout).map(drop),
            Part::Kafka => kafka(layout).map(drop),
            Part::Etcd => etcd(layout).map(drop),
            Part::Prometheus => prometheus(layout).map(drop),
            Part::FaultTools => fault_tools(layout).map(drop),
            Part::Scripts => scripts(layout).map(drop),
            Part::Chromium => chromium(layout).map(drop),
            Part::Gungraun => gungraun(layout).map(drop),
            Part::Valgrind => valgrind(layout).map(drop),
            Part::Tmux => tmux(layout).map(drop),
            Part::Kerberos => kerberos(layout).map(drop),
            Part::DebianRoots => debian_roots::install(layout).map(drop),
            Part::Kubernetes => kubernetes::install(layout).map(drop),
        }
    }
}

/// A Python environment with pytest and kazoo; returns its interpreter.
pub(crate) fn python(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = python_environment(layout, "venv", "requirements.txt")?;
    Ok(directory.join("bin").join("python"))
}

/// A store that speaks S3's protocol; returns its program.
pub(crate) fn moto(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = python_environment(layout, "venv-moto", "s3/requirements.txt")?;
    Ok(directory.join("bin").join("moto_server"))
}

/// A Python environment of this name, with what a file among the tests lists; returns its directory.
fn python_environment(layout: &Layout, name: &str, requirements: &str) -> Result<PathBuf, Error> {
    let directory = layout.environment(name);
    let requirements = layout.tests(requirements);
    once(&directory, &read(&requirements)?, || {
        let log = layout.log(&format!("install-python-{name}"));
        let pip = Program::new(virtual_environment(&directory, &log)?);
        let pip = pip.args(["-m", "pip", "install", "--requirement"]);
        pip.arg(&requirements).log_to(&log).run()
    })?;
    Ok(directory)
}

/// An empty Python environment in a directory; returns its interpreter.
pub(crate) fn virtual_environment(directory: &Path, log: &Path) -> Result<PathBuf, Error> {
    if !Program::new("python3").args(["-c", "import venv, ensurepip"]).succeeds() {
        apt::install(&["python3", "python3-venv"], log)?;
    }
    Program::new("python3").args(["-m", "venv", "--clear"]).arg(directory).log_to(log).run()?;
    Ok(directory.join("bin").join("python"))
}

/// Apache ZooKeeper, Curator and JUnit; `Layout::class_path` names them.
pub(crate) fn jars(layout: &Layout) -> Result<(), Error> {
    let directory = layout.environment("jars");
    let pom = layout.tests("java").join("pom.xml");
    copy_dependencies(layout, &pom, &directory, &[], "install-jars")
}

/// Older versions of Apache ZooKeeper, the last of their lines, and the variables with which the tests find their class paths.
const OLDER_ZOOKEEPERS: [(&str, &str); 3] = [
    ("ZOOKEEPER_3_5_CLASSPATH", "3.5.10"),
    ("ZOOKEEPER_3_6_CLASSPATH", "3.6.4"),
    ("ZOOKEEPER_3_8_CLASSPATH", "3.8.4"),
];

/// Servers of older versions of Apache ZooKeeper; returns the variables with which the tests find them.
pub(crate) fn older_zookeepers(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let pom = layout.tests("zookeeper").join("pom.xml");
    let mut variables = Vec::new();
    for (name, version) in OLDER_ZOOKEEPERS {
        let directory = layout.environment(&format!("zookeeper-{version}"));
        let options = [format!("-Dzookeeper.version={version}")];
        copy_dependencies(layout, &pom, &directory, &options, "install-older-zookeepers")?;
        variables.push((name, directory.join("*").into()));
    }
    Ok(variables)
}

/// A Go toolchain; returns the variables with which it works.
pub(crate) fn go(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    // Its own network of toolchains and its C compiler are not asked for.
    let mut variables = vec![("GOTOOLCHAIN", "local".into()), ("CGO_ENABLED", "0".into())];
    if Program::new("go").arg("version").succeeds() {
        return Ok(variables);
    }
    let directory = layout.environment("go");
    once(&directory, "golang-go", || apt::unpack(&["golang-go"], &directory, &layout.log("install-go")))?;
    let root = directory.join("root/usr/lib/go");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([root.join("bin")].into_iter().chain(env::split_paths(&path)));
    variables.push(("PATH", path.map_err(|error| Error::new(format!("PATH: {error}")))?));
    variables.push(("GOROOT", root.into()));
    Ok(variables)
}

/// A clickhouse-server; returns the variables with which a program finds it.
pub(crate) fn clickhouse(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&path).collect();
    places.push("/usr/sbin".into());
    if places.iter().any(|place| place.join("clickhouse-server").exists()) {
        return Ok(Vec::new());
    }

    let directory = layout.environment("clickhouse");
    once(&directory, "clickhouse-server", || {
        apt::unpack(&["clickhouse-server"], &directory, &layout.log("install-clickhouse"))
    })?;
    let root = directory.join("root");
    places.insert(0, root.join("usr/sbin"));
    let path = env::join_paths(places).map_err(|error| Error::new(format!("PATH: {error}")))?;
    Ok(vec![("PATH", path), ("LD_LIBRARY_PATH", library_path(&root)?)])
}

/// A broker of Apache Kafka; returns its class path.
pub(crate) fn kafka(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = layout.environment("kafka");
    let pom = layout.tests("kafka").join("pom.xml");
    copy_dependencies(layout, &pom, &directory, &[], "install-kafka")?;
    Ok(directory.join("*"))
}

/// Copies what a `pom.xml` names into a directory, by Maven.
fn copy_dependencies(
    layout: &Layout,
    pom: &Path,
    directory: &Path,
    options: &[String],
    log: &str,
) -> Result<(), Error> {
    once(directory, &read(pom)?, || {
        let mut output = OsString::from("-DoutputDirectory=");
        output.push(directory);
        let maven = Program::new("mvn").args(["--batch-mode", "--no-transfer-progress", "--file"]).arg(pom);
        let maven = maven.args(options).arg("dependency:copy-dependencies").arg(output);
        maven.log_to(&layout.log(log)).run()
    })
}

/// An etcd of Debian; returns its program.
pub(crate) fn etcd(layout: &Layout) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(program) = env::split_paths(&path).map(|place| place.join("etcd")).find(|file| file.exists())
    {
        return Ok(program);
    }
    let directory = layout.environment("etcd");
    once(&directory, "etcd-server", || {
        apt::unpack(&["etcd-server"], &directory, &layout.log("install-etcd"))
    })?;
    Ok(directory.join("root/usr/bin/etcd"))
}

/// A certificate for 127.0.0.1 that signs itself: server.p12 with its key, and ca.pem to believe it by.
pub(crate) fn certificate(layout: &Layout, directory: &Path) -> Result<(), Error> {
    once(directory, "certificate for a year", || {
        let log = layout.log("make-certificate");
        let keytool = |command: &str| {
            let keytool =
                Program::new("keytool").args([command, "-alias", "server", "-storepass", "password"]);
            keytool.arg("-keystore").arg(directory.join("server.p12")).log_to(&log)
        };
        let key = ["-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12", "-validity", "365"];
        let names = ["-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1"];
        keytool("-genkeypair").args(key).args(names).run()?;
        keytool("-exportcert").args(["-rfc", "-file"]).arg(directory.join("ca.pem")).run()
    })
}

/// Debian's Prometheus; returns the directory of its programs.
pub(crate) fn prometheus(layout: &Layout) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(place) = env::split_paths(&path).find(|place| place.join("promtool").exists()) {
        return Ok(place);
    }
    let directory = layout.environment("prometheus");
    once(&directory, "prometheus", || {
        apt::unpack(&["prometheus"], &directory, &layout.log("install-prometheus"))
    })?;
    Ok(directory.join("root/usr/bin"))
}

/// Debian's strace and libfaketime, which make syncs slow and clocks wrong; returns the variables with which tests find them.
pub(crate) fn fault_tools(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let directory = layout.environment("fault-tools");
    once(&directory, "strace, libfaketime", || {
        apt::unpack(&["strace", "libfaketime"], &directory, &layout.log("install-fault-tools"))
    })?;
    let root = directory.join("root");
    // What the machine has is not unpacked.
    let find = |name: &str| {
        let places = [root.join("usr"), "/usr".into()];
        let libraries = format!("lib/{}-linux-gnu/faketime", env::consts::ARCH);
        let files =
            places.iter().flat_map(|usr| [usr.join("bin").join(name), usr.join(&libraries).join(name)]);
        let file = files.into_iter().find(|file| file.exists());
        file.map(OsString::from).ok_or_else(|| Error::new(format!("Debian's package has no {name}")))
    };
    Ok(vec![
        ("STRACE_BIN", find("strace")?),
        ("LIBFAKETIME", find("libfaketimeMT.so.1")?),
        ("LD_LIBRARY_PATH", library_path(&root)?),
    ])
}

/// Debian's scripts and plugins that ask a ZooKeeper how it is, and what they ask by; returns the directory below which they are.
pub(crate) fn scripts(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = layout.environment("scripts");
    let packages = ["zktop", "zookeeper", "collectd-core", "netcat-traditional"];
    // Not the Java that one of them depends on: there is one.
    once(&directory, &packages.join(", "), || {
        apt::unpack_alone(&packages, &directory, &layout.log("install-scripts"))
    })?;
    Ok(directory.join("root"))
}

/// A key distribution centre of MIT Kerberos and its library; returns the variables with which tests find the one and servers the other.
pub(crate) fn kerberos(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    if ["krb5kdc", "kadmin.local"].iter().all(|program| Path::new("/usr/sbin").join(program).exists()) {
        return Ok(Vec::new());
    }
    let directory = layout.environment("kerberos");
    let packages = ["krb5-kdc", "krb5-admin-server", "libgssapi-krb5-2"];
    once(&directory, &packages.join(", "), || {
        apt::unpack(&packages, &directory, &layout.log("install-kerberos"))
    })?;
    let root = directory.join("root");
    let libraries = library_path(&root)?;
    Ok(vec![("KERBEROS_ROOT", root.into()), ("LD_LIBRARY_PATH", libraries)])
}

/// A Chromium; returns the variables with which a program finds it and it finds its parts.
pub(crate) fn chromium(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(program) =
        env::split_paths(&path).map(|place| place.join("chromium")).find(|file| file.exists())
    {
        return Ok(vec![("CHROMIUM_BIN", program.into())]);
    }

    let directory = layout.environment("chromium");
    let root = directory.join("root");
    let fonts = directory.join("fonts.conf");
    once(&directory, "chromium, fonts-dejavu-core", || {
        apt::unpack(&["chromium", "fonts-dejavu-core"], &directory, &layout.log("install-chromium"))?;
        fs::write(&fonts, font_settings(&directory)).map_err(Error::io("write", &fonts))
    })?;
    // Not usr/bin/chromium: that is a script which looks for the rest below /usr.
    let program = root.join("usr/lib/chromium/chromium");
    let variables = [("CHROMIUM_BIN", program), ("FONTCONFIG_FILE", fonts)];
    let mut variables: Vec<_> = variables.into_iter().map(|(name, path)| (name, path.into())).collect();
    variables.push(("LD_LIBRARY_PATH", library_path(&root)?));
    Ok(variables)
}

/// Installs the runner of benchmarks that count instructions; returns the variables by which Cargo finds it, and it finds Valgrind.
pub(crate) fn gungraun(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let directory = layout.environment("gungraun");
    // The runner serves no other version of its library.
    let version = locked_version("gungraun-runner", &read(&layout.source("Cargo.lock"))?)?;
    once(&directory, &version, || {
        // Built as it is built fastest: it only starts Valgrind and reads what that writes.
        let cargo = layout.cargo().args(["install", "--debug", "--locked", "--root"]).arg(&directory);
        let cargo = cargo.args(["--version", &version, "gungraun-runner"]);
        cargo.log_to(&layout.log("install-gungraun")).run()
    })?;
    let mut variables = vec![("GUNGRAUN_RUNNER", directory.join("bin/gungraun-runner").into())];
    let valgrind = valgrind(layout)?;
    if let [(_, program), library] = valgrind.as_slice() {
        variables.extend([("GUNGRAUN_VALGRIND_BIN", program.clone()), library.clone()]);
        // Benchmarks get no other variables than these.
        variables.push(("GUNGRAUN_ENVS", "VALGRIND_LIB".into()));
    }
    Ok(variables)
}

/// The version of mdBook that makes the site.
const MDBOOK: &str = "0.5.4";

/// mdBook, from its source; returns its program. No test needs it: it compiles for some minutes.
pub(crate) fn mdbook(layout: &Layout) -> Result<PathBuf, Error> {
    let directory = layout.environment("mdbook");
    once(&directory, MDBOOK, || {
        let cargo = layout.cargo().args(["install", "--debug", "--locked", "--root"]).arg(&directory);
        let cargo =
            cargo.args(["--no-default-features", "--features", "search", "--version", MDBOOK, "mdbook"]);
        cargo.log_to(&layout.log("install-mdbook")).run()
    })?;
    Ok(directory.join("bin/mdbook"))
}

/// Valgrind; returns the variables with which tests find it, and one more, with which it finds its parts, if it was unpacked.
pub(crate) fn valgrind(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    if Program::new("valgrind").arg("--version").succeeds() {
        return Ok(vec![("VALGRIND_BIN", "valgrind".into())]);
    }
    let directory = layout.environment("valgrind");
    once(&directory, "valgrind", || apt::unpack(&["valgrind"], &directory, &layout.log("install-valgrind")))?;
    let root = directory.join("root/usr");
    Ok(vec![
        // Not valgrind itself: that is a script which looks for this below /usr.
        ("VALGRIND_BIN", root.join("bin/valgrind.bin").into()),
        ("VALGRIND_LIB", root.join("libexec/valgrind").into()),
    ])
}

/// A tmux; returns the variables with which tests find it and it finds its libraries.
pub(crate) fn tmux(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    if Program::new("tmux").arg("-V").succeeds() {
        return Ok(vec![("TMUX_BIN", "tmux".into())]);
    }
    let directory = layout.environment("tmux");
    once(&directory, "tmux", || apt::unpack(&["tmux"], &directory, &layout.log("install-tmux")))?;
    let root = directory.join("root");
    let libraries = library_path(&root)?;
    Ok(vec![("TMUX_BIN", root.join("usr/bin/tmux").into()), ("LD_LIBRARY_PATH", libraries)])
}

/// The version of a package that Cargo builds with.
fn locked_version(package: &str, lock: &str) -> Result<String, Error> {
    let start = format!("name = \"{package}\"\nversion = \"");
    let version = lock.split_once(&start).and_then(|(_, rest)| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| Error::new(format!("Cargo.lock does not name {package}")))
}

/// The fonts of this machine and those that were unpacked.
fn font_settings(directory: &Path) -> String {
    let unpacked = directory.join("root/usr/share/fonts");
    let cache = directory.join("font-cache");
    format!(
        "<?xml version=\"1.0\"?>\n<fontconfig>\n<dir>/usr/share/fonts</dir>\n<dir>{}</dir>\n\
         <cachedir>{}</cachedir>\n</fontconfig>\n",
        unpacked.display(),
        cache.display()
    )
}

/// The library directories of an unpacked package tree, before those that are set already.
pub(crate) fn library_path(root: &Path) -> Result<OsString, Error> {
    let mut places = Vec::new();
    // Debian keeps libraries one level down, in a directory named for the machine's kind.
    for library in [root.join("usr/lib"), root.join("lib")].iter().filter(|library| library.exists()) {
        for entry in fs::read_dir(library).map_err(Error::io("list", library))? {
            let place = entry.map_err(Error::io("list", library))?.path();
            // PulseAudio's client library, which Chromium links, keeps a part of itself one level further down.
            places.extend([place.join("pulseaudio"), place].into_iter().filter(|place| place.exists()));
        }
    }
    places.extend(env::split_paths(&env::var_os("LD_LIBRARY_PATH").unwrap_or_default()));
    env::join_paths(places).map_err(|error| Error::new(format!("LD_LIBRARY_PATH: {error}")))
}

/// Directories that something is being installed into, or was.
static UNDER_WAY: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// Runs `install` into an empty `directory`, unless that was done before from the same `source`.
pub(crate) fn once(
    directory: &Path,
    source: &str,
    install: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let lock = UNDER_WAY
        .lock()
        .expect("no installer runs under this lock")
        .entry(directory.into())
        .or_default()
        .clone();
    let _turn = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp = directory.join("installed-from");
    if fs::read_to_string(&stamp).is_ok_and(|done| done == source) {
        return Ok(());
    }
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(Error::io("remove", directory))?;
    }
    fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    install()?;
    fs::write(&stamp, source).map_err(Error::io("write", &stamp))
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}
