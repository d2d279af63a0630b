//! The container image, as podman runs it: without root, on a file system that cannot be written, by the variables of ZooKeeper's image and by mounted files.
//!
//! PADDOCK_IMAGE is the file of the image. Where podman cannot run containers nothing is tested, and a line says why.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::server::{environment, free_port};
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const NAME: &str = concat!("localhost/paddock:", env!("CARGO_PKG_VERSION"));
const WITHIN: Duration = Duration::from_secs(60);

/// A podman with images and containers of its own, which are gone with it.
struct Podman {
    directory: TempDir,
    runtime: &'static str,
}

impl Podman {
    /// A podman that has the image, or why this machine has none.
    fn new() -> Result<Podman, String> {
        let directory = tempfile::tempdir().expect("make a directory");
        let mut podman = Podman { directory, runtime: "crun" };
        let load = podman.command(&["load", "--quiet", "--input", &environment("PADDOCK_IMAGE")]).output();
        let load = load.map_err(|error| format!("podman: {error}"))?;
        assert!(load.status.success(), "{}", told(&load));
        let mut reasons = String::new();
        for runtime in ["crun", "runc"] {
            podman.runtime = runtime;
            let version = podman.run(&[], &["version"]);
            if version.status.success() {
                return Ok(podman);
            }
            reasons += &format!("with {runtime}: {} ", told(&version).trim());
        }
        Err(reasons)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut podman = Command::new("podman");
        podman.arg("--root").arg(self.directory.path().join("images"));
        podman.arg("--runroot").arg(self.directory.path().join("run"));
        podman.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", self.runtime]);
        podman.args(arguments);
        podman
    }

    #[track_caller]
    fn output(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("run podman");
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a container as the pages say that it can be run.
    fn run(&self, options: &[&str], command: &[&str]) -> Output {
        let safe = [
            "run",
            "--network",
            "host",
            "--read-only",
            "--cap-drop",
            "all",
            "--security-opt",
            "no-new-privileges",
        ];
        // The machine may have no systemd that would ask for its health.
        let here = ["--no-healthcheck", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"];
        let words = [&safe[..], &here, options, &[NAME], command].concat();
        self.command(&words).output().expect("run podman")
    }

    #[track_caller]
    fn start(&self, name: &str, options: &[&str], command: &[&str]) {
        let output = self.run(&[&["--detach", "--name", name][..], options].concat(), command);
        assert!(output.status.success(), "{name}: {}", told(&output));
    }

    /// Carries the image's own health check out, as often as it takes.
    #[track_caller]
    fn wait_for_health(&self, name: &str, client: SocketAddr) {
        let check =
            self.output(&["image", "inspect", "--format", "{{join .HealthCheck.Test \"\\n\"}}", NAME]);
        let check: Vec<&str> = check.trim().lines().skip(1).collect();
        let words: Vec<&str> = check.iter().flat_map(|part| part.split(' ')).collect();
        let hosts = format!("PADDOCK_HOSTS={client}");
        let exec = [&["exec", "--env", &hosts, name][..], &words].concat();
        let deadline = Instant::now() + WITHIN;
        loop {
            let output = self.command(&exec).output().expect("run podman");
            if output.status.success() {
                return;
            }
            assert!(Instant::now() < deadline, "{exec:?}: {}{}", told(&output), self.logs(name));
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn logs(&self, name: &str) -> String {
        told(&self.command(&["logs", name]).output().expect("run podman"))
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        // Volumes and mounts are given back before the directory is removed.
        let _ = self.command(&["rm", "--all", "--force", "--volumes", "--time", "5"]).output();
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn podman() -> Option<Podman> {
    Podman::new().inspect_err(|reason| println!("skipped: {reason}")).ok()
}

fn local_address() -> SocketAddr {
    ([127, 0, 0, 1], free_port()).into()
}

#[tokio::main(flavor = "current_thread")]
async fn create(at: SocketAddr, path: &str) {
    let client = Client::connect(&at.to_string(), ClientOptions::default()).await.expect("connect");
    client.create(path, b"", CreateMode::Persistent).await.expect("create a znode");
    client.close().await.expect("close");
}

#[tokio::main(flavor = "current_thread")]
async fn has(at: SocketAddr, path: &str) -> bool {
    let client = Client::connect(&at.to_string(), ClientOptions::default()).await.expect("connect");
    client.sync("/").await.expect("sync");
    let is_there = client.exists(path).await.is_ok();
    client.close().await.expect("close");
    is_there
}

#[test]
fn it_says_who_runs_it_and_where_its_data_is() {
    let Some(podman) = podman() else { return };
    let inspect = |what: &str| podman.output(&["image", "inspect", "--format", what, NAME]).trim().to_owned();
    assert_eq!(inspect("{{.Config.User}}"), "1000:1000");
    assert_eq!(inspect("{{json .Config.Volumes}}"), r#"{"/data":{},"/datalog":{}}"#);
    assert_eq!(inspect("{{index .Config.Labels \"org.opencontainers.image.version\"}}"), VERSION);
    assert!(told(&podman.run(&["--rm"], &["version"])).starts_with(&format!("paddock {VERSION}")));
}

#[test]
fn the_compose_file_names_it_and_its_variables_can_be_used() {
    let Some(podman) = podman() else { return };
    let text = include_str!("../../docs/examples/compose.yaml");
    assert!(text.contains(&format!("image: {NAME}\n")), "{text}");
    let value = |start: &'static str| {
        text.lines().filter_map(move |line| line.trim().strip_prefix(start)).map(str::to_owned)
    };
    let servers: Vec<String> = value("server.").map(|line| format!("server.{line}")).collect();
    assert_eq!(servers.len(), 3);
    let servers = format!("ZOO_SERVERS={}", servers.join(" "));
    let extra = format!("ZOO_CFG_EXTRA={}", value("ZOO_CFG_EXTRA: ").next().expect("it is there"));
    for id in value("ZOO_MY_ID: ") {
        let number = format!("ZOO_MY_ID={id}");
        let checked = podman
            .run(&["--rm", "--env", &servers, "--env", &extra, "--env", &number], &["server", "--check"]);
        assert!(checked.status.success(), "{}", told(&checked));
    }
}

#[test]
fn an_ensemble_by_the_variables_of_zookeepers_image_keeps_its_data() {
    let Some(podman) = podman() else { return };
    let clients: Vec<SocketAddr> = (0..3).map(|_| local_address()).collect();
    let line = |(id, client): (usize, &SocketAddr)| {
        format!("server.{id}=127.0.0.1:{}:{};{client}", free_port(), free_port())
    };
    let servers: Vec<String> = (1..).zip(&clients).map(line).collect();
    let servers = format!("ZOO_SERVERS={}", servers.join(" "));
    for id in 1..=3 {
        let (name, number) = (format!("zoo{id}"), format!("ZOO_MY_ID={id}"));
        podman.start(&name, &["--env", &servers, "--env", &number], &[]);
    }
    clients
        .iter()
        .enumerate()
        .for_each(|(at, client)| podman.wait_for_health(&format!("zoo{}", at + 1), *client));
    create(clients[0], "/a");
    assert!(has(clients[2], "/a"));
    // Docker's way to upgrade: each is stopped orderly and starts with its volume.
    for (id, client) in (1..).zip(&clients) {
        let name = format!("zoo{id}");
        podman.output(&["stop", "--time", "30", &name]);
        let code = podman.output(&["inspect", "--format", "{{.State.ExitCode}}", &name]);
        assert_eq!(code.trim(), "0", "{}", podman.logs(&name));
        podman.output(&["start", &name]);
        podman.wait_for_health(&name, *client);
    }
    assert!(has(clients[1], "/a"));
}

#[test]
fn mounted_files_are_taken_as_they_are() {
    let Some(podman) = podman() else { return };
    let client = local_address();
    let (port, host) = (client.port(), client.ip());
    let files = [
        (
            "zoo.cfg",
            format!("dataDir=/data\ndataLogDir=/datalog\nclientPort={port}\nclientPortAddress={host}\n"),
        ),
        (
            "keeper_config.xml",
            format!(
                "<clickhouse><listen_host>{host}</listen_host><keeper_server><tcp_port>{port}</tcp_port><server_id>1</server_id>\
                 <log_storage_path>/datalog</log_storage_path><snapshot_storage_path>/data</snapshot_storage_path></keeper_server></clickhouse>"
            ),
        ),
        ("paddock.toml", format!("data_dir = '/data'\nlisten = '{client}'\n")),
    ];
    for (name, text) in files {
        let directory = tempfile::tempdir().expect("make a directory");
        let file = directory.path().join(name);
        fs::write(&file, text).expect("write a file");
        let mount = format!("{}:{}:ro", file.display(), Path::new("/conf").join(name).display());
        podman.start("mounted", &["--volume", &mount], &[]);
        podman.wait_for_health("mounted", client);
        create(client, "/a");
        podman.output(&["rm", "--force", "--volumes", "--time", "30", "mounted"]);
    }
}
