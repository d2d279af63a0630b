//! One server process for a test: Paddock or Apache ZooKeeper, both started on the same `zoo.cfg`.
//!
//! A server keeps its port and its data over `kill`, `stop` and `restart`, so clients find it again. When a test
//! fails, the end of each server's log goes to standard error.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use crate::filesystem::Filesystem;
use crate::log_lines::wait_for_line;

/// A JVM beside other load takes more than a minute.
const READY_WITHIN: Duration = Duration::from_secs(180);
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
const LOG_TAIL_LINES: usize = 60;

/// ZooKeeper writes many lines for each refused request unless it is told not to.
const LOGBACK: &str = r#"<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.CreateMode" level="OFF"/>
  <logger name="org.apache.zookeeper.jmx.MBeanRegistry" level="OFF"/>
  <logger name="org.apache.zookeeper.server.DataTree" level="OFF"/>
  <logger name="org.apache.zookeeper.server.FinalRequestProcessor" level="OFF"/>
  <logger name="org.apache.zookeeper.server.NIOServerCnxn" level="OFF"/>
  <logger name="org.apache.zookeeper.server.ServerCnxn" level="OFF"/>
  <logger name="org.apache.zookeeper.server.ServerCnxnFactory" level="OFF"/>
  <logger name="org.apache.zookeeper.server.auth" level="OFF"/>
  <logger name="org.apache.zookeeper.server.persistence.FileTxnLog" level="OFF"/>
  <logger name="org.apache.zookeeper.server.PrepRequestProcessor" level="OFF"/>
  <logger name="org.apache.zookeeper.server.ZooKeeperServer" level="OFF"/>
  <logger name="org.apache.zookeeper.audit.Slf4jAuditLogger" level="INFO"/>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"#;

/// Lines of a `zoo.cfg` that ZooKeeper knows as properties of Java alone.
const JAVA_PROPERTIES: [&str; 2] = ["java.security.auth.login.config", "readonlymode.enabled"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    Paddock,
    /// The build before this one.
    PaddockBefore,
    ZooKeeper,
    /// An older version of it.
    OldZooKeeper(Release),
}

/// A line of releases of Apache ZooKeeper before the one that everything is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    V3_5,
    V3_6,
    V3_8,
}

impl ServerKind {
    /// The class path of a server in Java.
    fn class_path(self) -> String {
        environment(match self {
            ServerKind::Paddock | ServerKind::PaddockBefore | ServerKind::ZooKeeper => "ZOOKEEPER_CLASSPATH",
            ServerKind::OldZooKeeper(Release::V3_5) => "ZOOKEEPER_3_5_CLASSPATH",
            ServerKind::OldZooKeeper(Release::V3_6) => "ZOOKEEPER_3_6_CLASSPATH",
            ServerKind::OldZooKeeper(Release::V3_8) => "ZOOKEEPER_3_8_CLASSPATH",
        })
    }
}

/// Place of a server in its ensemble.
#[derive(Clone, Debug)]
pub struct MemberSettings<'a> {
    pub kind: ServerKind,
    pub id: usize,
    /// Address where its clients connect.
    pub address: SocketAddr,
    /// The network namespace it lives in; none for the one of the test.
    pub namespace: Option<String>,
    /// The size of the disk that its data are on; none for the disk of the test.
    pub disk_bytes: Option<usize>,
    /// More lines in `zoo.cfg`: the servers' at least.
    pub settings: &'a [(&'a str, &'a str)],
}

#[derive(Debug)]
pub struct Server {
    kind: ServerKind,
    address: SocketAddr,
    namespace: Option<String>,
    /// True if Apache ZooKeeper waits for its disk; Paddock always does.
    syncs: bool,
    directory: tempfile::TempDir,
    disk: Option<Filesystem>,
    process: Option<Child>,
    is_paused: bool,
    /// Program, with its arguments, that runs Paddock's binary; if it is empty, nothing stands before the binary.
    runner: Vec<String>,
    /// More arguments on its command line.
    arguments: Vec<String>,
    /// True if Paddock reads `paddock.toml` and not `zoo.cfg`.
    reads_toml: bool,
}

impl Server {
    /// Starts a server with an empty data directory and waits until it serves.
    pub fn start(kind: ServerKind) -> Server {
        Server::start_with(kind, &[])
    }

    /// A server with more lines in `zoo.cfg`.
    pub fn start_with(kind: ServerKind, settings: &[(&str, &str)]) -> Server {
        // What is compared with a single server's are answers: no need to wait for the disk.
        let mut server = Server::prepare(kind, settings);
        server.restart();
        server
    }

    /// A server with an empty data directory that has not been started.
    pub fn prepare(kind: ServerKind, settings: &[(&str, &str)]) -> Server {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Server::prepare_at(kind, address, None, settings)
    }

    /// A server at an address, in a network namespace or in that of the test.
    pub fn prepare_at(
        kind: ServerKind,
        address: SocketAddr,
        namespace: Option<String>,
        settings: &[(&str, &str)],
    ) -> Server {
        let server = Server::new(kind, address, namespace, false);
        server.write_config(settings);
        server
    }

    /// Starts member `id` of an ensemble of Paddock's. It serves only when others do too, so this does not wait.
    pub fn start_member(id: usize, settings: &[(&str, &str)]) -> Server {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let (namespace, disk_bytes) = (None, None);
        Server::start_as(&MemberSettings {
            kind: ServerKind::Paddock,
            id,
            address,
            namespace,
            disk_bytes,
            settings,
        })
    }

    /// A server for any member.
    pub fn start_as(member: &MemberSettings<'_>) -> Server {
        let mut server = Server::new(member.kind, member.address, member.namespace.clone(), true);
        server.disk = member.disk_bytes.map(|bytes| Filesystem::try_mount(bytes).expect("mount a disk"));
        server.write_config(member.settings);
        fs::write(server.data_directory().join("myid"), member.id.to_string()).expect("write myid");
        server.spawn();
        server
    }

    fn new(kind: ServerKind, address: SocketAddr, namespace: Option<String>, syncs: bool) -> Server {
        let directory = tempfile::tempdir().expect("make a directory for a server");
        Server {
            kind,
            address,
            namespace,
            syncs,
            directory,
            disk: None,
            process: None,
            is_paused: false,
            runner: Vec::new(),
            arguments: Vec::new(),
            reads_toml: false,
        }
    }

    /// From the next start on Paddock reads a configuration of its own format: its data directory, its address, and these lines.
    pub fn use_toml(&mut self, lines: &str) {
        let (data, address) = (self.data_directory(), self.address);
        let text = format!("data_dir = {:?}\nlisten = \"{address}\"\n{lines}", data.display().to_string());
        self.reads_toml = true;
        fs::write(self.paddock_config_path(), text).expect("write paddock.toml");
    }

    fn paddock_config_path(&self) -> PathBuf {
        if self.reads_toml { self.directory.path().join("paddock.toml") } else { self.config_path() }
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// True if it runs and has not been paused.
    pub fn is_awake(&self) -> bool {
        self.is_running() && !self.is_paused
    }

    /// Exit status of a process that ended without being told to; it can be spawned again then.
    pub fn ended_by_itself(&mut self) -> Option<process::ExitStatus> {
        let status = self.process.as_mut()?.try_wait().expect("ask for the exit status")?;
        self.process = None;
        self.is_paused = false;
        Some(status)
    }

    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process that runs now.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// Directory of the transaction log and the snapshots.
    pub fn data_directory(&self) -> PathBuf {
        self.disk.as_ref().map_or(self.directory.path(), Filesystem::path).join("data")
    }

    /// The disk that its data are on, if it was started with one of its own.
    pub fn disk(&self) -> Option<&Filesystem> {
        self.disk.as_ref()
    }

    /// Log lines of all its starts.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).expect("read the log")
    }

    /// Waits until the log says this.
    pub fn wait_for_log(&self, text: &str) {
        wait_for_line(|| self.log(), text);
    }

    /// Copies its data, its log and its configuration into a directory.
    pub fn keep(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let mut copy = Command::new("cp");
        copy.arg("-a").args([self.data_directory(), self.log_path(), self.config_path()]).arg(directory);
        let output = copy.output()?;
        if output.status.success() {
            Ok(())
        } else {
            Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
        }
    }

    /// From now on `log` has only what comes.
    pub fn forget_log(&self) {
        // Writers append, so there is no hole.
        File::options()
            .write(true)
            .open(self.log_path())
            .and_then(|file| file.set_len(0))
            .expect("empty the log");
    }

    /// Arguments that its command line has from the next start on.
    pub fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    }

    /// From the next start on Paddock's binary is run by another program, which becomes it or watches it in its own process.
    pub fn set_runner(&mut self, program_and_arguments: &[&str]) {
        self.runner = program_and_arguments.iter().map(|word| (*word).to_owned()).collect();
    }

    /// Starts the process again on the same data and waits until it serves.
    pub fn restart(&mut self) {
        self.spawn();
        self.wait_until_ready();
    }

    /// From the next start on it is a server of another kind, which has to know the data of this one.
    pub fn become_kind(&mut self, kind: ServerKind) {
        assert!(self.process.is_none(), "{:?} runs", self.kind);
        self.kind = kind;
    }

    /// Starts the process again on the same data.
    pub fn spawn(&mut self) {
        self.spawn_with(&[]);
    }

    /// Spawns the process with more arguments on its command line.
    pub fn spawn_with(&mut self, arguments: &[&str]) {
        assert!(self.process.is_none(), "{:?} runs already", self.kind);
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).expect("open the log");
        let child = self
            .command()
            .args(&self.arguments)
            .args(arguments)
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("share the log"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("start {:?}: {error}", self.kind));
        self.process = Some(child);
    }

    /// Stops the process from running, as a machine that hangs does: its connections stay open.
    pub fn pause(&mut self) {
        self.signal("-STOP");
        self.is_paused = true;
    }

    /// Lets a paused process go on.
    pub fn resume(&mut self) {
        self.signal("-CONT");
        self.is_paused = false;
    }

    fn signal(&self, signal: &str) {
        self::signal(self.pid(), signal);
    }

    /// Ends the process at once, as a crash would: SIGKILL.
    pub fn kill(&mut self) {
        self.is_paused = false;
        let mut child = self.process.take().expect("the server runs");
        child.kill().expect("kill the server");
        child.wait().expect("wait for the killed server");
    }

    /// Asks the process to end and returns what it exited with.
    pub fn stop(&mut self) -> process::ExitStatus {
        self.signal("-TERM");
        let mut child = self.process.take().expect("it was just sent a signal");
        let deadline = Instant::now() + STOPPED_WITHIN;
        loop {
            if let Some(status) = child.try_wait().expect("ask for the exit status") {
                return status;
            }
            if Instant::now() > deadline {
                self.process = Some(child);
                panic!("{:?} did not end within {STOPPED_WITHIN:?} after SIGTERM", self.kind);
            }
            thread::sleep(POLL);
        }
    }

    /// Sends a four-letter word and returns the answer.
    pub fn four_letter_word(&self, word: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            // Before it serves, ZooKeeper answers with a sentence that says so.
            if self.four_letter_word("srvr").is_ok_and(|answer| answer.contains("Mode:")) {
                return;
            }
            let child = self.process.as_mut().expect("the server was started");
            if let Some(status) = child.try_wait().expect("ask for the exit status") {
                self.process = None;
                panic!("{:?} ended with {status} before it was ready", self.kind);
            }
            assert!(Instant::now() < deadline, "{:?} does not serve after {READY_WITHIN:?}", self.kind);
            thread::sleep(POLL);
        }
    }

    /// Writes its `zoo.cfg` anew, for the next start.
    pub fn write_config(&self, settings: &[(&str, &str)]) {
        let mut config = format!(
            "dataDir={}\nclientPort={}\nclientPortAddress={}\ntickTime=2000\nmaxClientCnxns=0\n\
             4lw.commands.whitelist=*\n",
            self.data_directory().display(),
            self.address.port(),
            self.address.ip(),
        );
        for (key, value) in settings {
            config.push_str(&format!("{key}={value}\n"));
        }
        // A member warns of one that others may enter.
        let private = DirBuilder::new().recursive(true).mode(0o700).create(self.data_directory());
        private.expect("make the data directory");
        fs::write(self.config_path(), config).expect("write zoo.cfg");
        fs::write(self.logback_path(), LOGBACK).expect("write logback.xml");
    }

    fn command(&self) -> Command {
        match self.kind {
            ServerKind::Paddock | ServerKind::PaddockBefore => {
                let is_this_build = self.kind == ServerKind::Paddock;
                let binary = environment(if is_this_build { "PADDOCK_BIN" } else { "PADDOCK_BEFORE_BIN" });
                let words: Vec<&String> = self.runner.iter().chain([&binary]).collect();
                let mut command = program(self.namespace.as_deref(), words[0]);
                command.args(&words[1..]).arg("server").arg("--config").arg(self.paddock_config_path());
                command
            }
            ServerKind::ZooKeeper | ServerKind::OldZooKeeper(_) => {
                let mut command = program(self.namespace.as_deref(), "java");
                command.args(["-Xmx512m", "-XX:+UseSerialGC", "-cp"]);
                command.arg(self.kind.class_path());
                command.args([
                    "-Dzookeeper.extendedTypesEnabled=true",
                    "-Dzookeeper.admin.enableServer=false",
                    // The removal of empty containers would take zxids at times of its own.
                    "-Dznode.container.checkIntervalMs=86400000",
                ]);
                if !self.syncs {
                    command.arg("-Dzookeeper.forceSync=no");
                }
                command.args(self.java_properties());
                command.arg(format!("-Dlogback.configurationFile={}", self.logback_path().display()));
                command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
                command.arg(self.config_path());
                command
            }
        }
    }

    /// Arguments for the properties that its `zoo.cfg` names, which only Paddock looks for there.
    fn java_properties(&self) -> Vec<String> {
        let config = fs::read_to_string(self.config_path()).expect("read zoo.cfg");
        let is_property =
            |line: &&str| line.split_once('=').is_some_and(|(name, _)| JAVA_PROPERTIES.contains(&name));
        config.lines().filter(is_property).map(|line| format!("-D{line}")).collect()
    }

    /// Its `zoo.cfg`.
    pub fn config_path(&self) -> PathBuf {
        self.directory.path().join("zoo.cfg")
    }

    fn logback_path(&self) -> PathBuf {
        self.directory.path().join("logback.xml")
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("server.log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
        if thread::panicking() {
            eprintln!(
                "the end of the log of {:?} on {}:\n{}",
                self.kind,
                self.address,
                tail(&self.log_path())
            );
        }
    }
}

/// A program, in a network namespace or in that of the test. It keeps its process: `ip` becomes the program.
pub(crate) fn program(namespace: Option<&str>, name: &str) -> Command {
    match namespace {
        None => Command::new(name),
        Some(namespace) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace, name]);
            command
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").arg(signal).arg(pid.to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()), "send {signal} to process {pid}");
}

pub fn environment(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test`"))
}

/// Value of a metric in an answer to `mntr`; `None` if it is not told.
pub fn metric<'a>(mntr: &'a str, name: &str) -> Option<&'a str> {
    mntr.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))
}

fn tail(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut file) = File::open(path) {
        // A log that is not UTF-8 is shown as far as it is.
        let _ = file.read_to_string(&mut text);
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

/// A free port below Linux's ephemeral range: one from inside it could be taken by some client's outgoing connection
/// while our server is down. `TEST_PORTS` narrows the choice, where other tests start servers meanwhile.
pub fn free_port() -> u16 {
    paddock_os::free_port(Ipv4Addr::LOCALHOST.into(), ports()).expect("a free port")
}

fn ports() -> Range<u16> {
    let Ok(named) = env::var("TEST_PORTS") else { return 20_000..32_000 };
    let bounds = named.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("TEST_PORTS is like 20000..21000, not {named:?}"))
}
