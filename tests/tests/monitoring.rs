//! The dashboard and the alert rules of `docs/monitoring`: a real Prometheus scrapes three members under load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::server::{MemberSettings, Server, ServerKind, free_port};
use serde_json::Value;
use tempfile::TempDir;

/// Prometheus takes a few rounds to have rates, and an election takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);

fn monitoring() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring")
}

fn program(name: &str) -> PathBuf {
    Path::new(&env::var_os("PROMETHEUS_BIN").expect("PROMETHEUS_BIN names a directory")).join(name)
}

#[derive(Debug)]
struct Prometheus {
    process: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes these ports each second. The rules' patience is cut to a second.
    fn start(ports: &[u16]) -> Prometheus {
        let directory = TempDir::new().expect("a directory for Prometheus");
        let at = |name: &str| directory.path().join(name);
        let rules = fs::read_to_string(monitoring().join("alerts.yml")).expect("read the rules");
        let impatient = |line: &str| {
            if line.trim().starts_with("for: ") { "        for: 1s".into() } else { line.to_owned() }
        };
        fs::write(at("alerts.yml"), rules.lines().map(impatient).collect::<Vec<_>>().join("\n"))
            .expect("write the rules");
        let targets: Vec<String> = ports.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [alerts.yml]\nscrape_configs:\n  - job_name: \
             paddock\n    static_configs: [{{ targets: [{}] }}]\n",
            targets.join(", ")
        );
        fs::write(at("prometheus.yml"), config).expect("write the configuration");
        let checked =
            Command::new(program("promtool")).args(["check", "config"]).arg(at("prometheus.yml")).output();
        let checked = checked.expect("start promtool");
        assert!(
            checked.status.success(),
            "{}{}",
            String::from_utf8_lossy(&checked.stdout),
            String::from_utf8_lossy(&checked.stderr)
        );
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let process = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", at("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", at("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start Prometheus");
        Prometheus { process, address, _directory: directory }
    }

    /// JSON at a path of its interface; `None` while it does not answer.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let text = String::from_utf8_lossy(&answer);
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// True if a query has at least one value that is a number.
    fn has_data(&self, query: &str) -> bool {
        let Some(answer) = self.get(&format!("/api/v1/query?query={}", encoded(query))) else { return false };
        assert!(answer["error"].is_null(), "{query}: {}", answer["error"]);
        let values = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        values.iter().any(|value| value["value"][1].as_str().is_some_and(|number| number != "NaN"))
    }

    fn is_firing(&self, alert: &str) -> bool {
        let Some(answer) = self.get("/api/v1/alerts") else { return false };
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().any(|one| one["labels"]["alertname"] == alert && one["state"] == "firing")
    }

    fn rules(&self) -> Vec<Value> {
        let answer = self.get("/api/v1/rules").unwrap_or_default();
        answer["data"]["groups"][0]["rules"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn encoded(query: &str) -> String {
    query
        .bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        thread::sleep(POLL);
    }
}

#[tokio::test]
async fn dashboard_and_alerts_have_their_data() {
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut members = ensemble(&ports);
    let prometheus = Prometheus::start(&ports);
    let hosts: Vec<String> = members.iter().map(|member| member.address().to_string()).collect();
    let client = Client::connect(&hosts.join(","), ClientOptions::default()).await.expect("connect");
    let load = tokio::spawn(async move {
        client.create("/load", b"", CreateMode::Persistent).await.expect("create");
        while client.set_data("/load", b"more", None).await.is_ok() && client.get_data("/load").await.is_ok()
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    // Prometheus is asked on this thread, beside the load.
    tokio::task::spawn_blocking(move || {
        check_dashboard(&prometheus);
        wait_until("every rule is evaluated", || {
            let rules = prometheus.rules();
            rules.len() > 9 && rules.iter().all(|rule| rule["health"] == "ok")
        });
        assert!(!prometheus.is_firing("PaddockMemberDown") && !prometheus.is_firing("PaddockNoLeader"));
        check_alerts(&prometheus, &mut members);
    })
    .await
    .expect("the checks pass");
    load.abort();
}

/// A member with little room: few watches and few files.
struct SmallMember {
    process: Child,
    address: SocketAddr,
    metrics_port: u16,
    _directory: TempDir,
}

impl SmallMember {
    const WATCHES_MAX: usize = 10;
    const FILES_MAX: usize = 80;

    fn start() -> SmallMember {
        let directory = TempDir::new().expect("a directory for a member");
        let (port, metrics_port) = (free_port(), free_port());
        let text = format!(
            "listen = '127.0.0.1:{port}'\nmetrics_listen = '127.0.0.1:{metrics_port}'\ndata_dir = 'data'\nwatches_max = {}\n",
            SmallMember::WATCHES_MAX
        );
        fs::write(directory.path().join("paddock.toml"), text).expect("write its settings");
        let binary = env::var("PADDOCK_BIN").expect("PADDOCK_BIN names the binary");
        let script =
            format!("ulimit -n {}; exec \"$0\" server --config paddock.toml", SmallMember::FILES_MAX);
        let process = Command::new("sh")
            .args(["-c", &script, &binary])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start a member");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        wait_until("the member serves", || TcpStream::connect(address).is_ok());
        SmallMember { process, address, metrics_port, _directory: directory }
    }
}

impl Drop for SmallMember {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn limits_that_are_nearly_reached_are_told_of() {
    let member = SmallMember::start();
    let prometheus = Prometheus::start(&[member.metrics_port]);
    let client =
        Client::connect(&member.address.to_string(), ClientOptions::default()).await.expect("connect");
    for number in 1..SmallMember::WATCHES_MAX {
        // There is no such znode, and a watch for it.
        let _ = client.watch_exists(&format!("/{number}")).await;
    }
    let prometheus = tokio::task::spawn_blocking(move || {
        wait_until("PaddockWatchesNearLimit", || prometheus.is_firing("PaddockWatchesNearLimit"));
        assert!(!prometheus.is_firing("PaddockFilesNearlyExhausted"), "there are files left");
        prometheus
    });
    let prometheus = prometheus.await.expect("the checks pass");
    client.close().await.expect("close");
    let address = member.address;
    tokio::task::spawn_blocking(move || {
        let watches = "PaddockWatchesNearLimit";
        wait_until("watches that go with their session are told of no more", || {
            !prometheus.is_firing(watches)
        });
        let files = "PaddockFilesNearlyExhausted";
        let mut connections: Vec<TcpStream> = Vec::new();
        wait_until(files, || {
            // They say nothing, so they stay open for a while.
            connections.extend(TcpStream::connect(address).ok());
            prometheus.is_firing(files)
        });
        drop(connections);
        wait_until("files that are free again are told of no more", || !prometheus.is_firing(files));
    })
    .await
    .expect("the checks pass");
}

fn ensemble(ports: &[u16]) -> Vec<Server> {
    const PROVIDER: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
    let places: Vec<(u16, u16, u16)> =
        ports.iter().map(|_| (free_port(), free_port(), free_port())).collect();
    let lines: Vec<(String, String)> = (1..)
        .zip(&places)
        .map(|(id, (_, quorum, election))| (format!("server.{id}"), format!("127.0.0.1:{quorum}:{election}")))
        .collect();
    let mut members: Vec<Server> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let port = port.to_string();
        let mut settings = vec![
            ("initLimit", "10"),
            ("syncLimit", "5"),
            ("metricsProvider.className", PROVIDER),
            ("metricsProvider.httpHost", "127.0.0.1"),
            ("metricsProvider.httpPort", &port),
        ];
        settings.extend(lines.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        members.push(Server::start_as(&MemberSettings {
            kind: ServerKind::Paddock,
            id: index + 1,
            address: SocketAddr::from(([127, 0, 0, 1], places[index].0)),
            namespace: None,
            disk_bytes: None,
            settings: &settings,
        }));
    }
    members
}

/// Every query of the dashboard, with its variables set.
fn check_dashboard(prometheus: &Prometheus) {
    let text = fs::read_to_string(monitoring().join("grafana.json")).expect("read the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let queries = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("a panel has queries"));
    let queries: Vec<String> = queries
        .map(|target| target["expr"].as_str().expect("a query has an expression"))
        .map(|query| query.replace("$__rate_interval", "10s").replace("$job", "paddock"))
        .collect();
    assert!(queries.len() >= 20, "{} queries", queries.len());
    for query in &queries {
        wait_until(&format!("data for {query}"), || prometheus.has_data(query));
    }
}

/// One member that dies is told of; two are no quorum; and all is silent when they are back.
fn check_alerts(prometheus: &Prometheus, members: &mut [Server]) {
    members[0].kill();
    for alert in ["PaddockMemberDown", "PaddockMemberNotHeard"] {
        wait_until(alert, || prometheus.is_firing(alert));
    }
    members[1].kill();
    for alert in ["PaddockNoQuorum", "PaddockNoLeader"] {
        wait_until(alert, || prometheus.is_firing(alert));
    }
    // Both begin before either is awaited: one alone has no quorum to serve with.
    members[0].spawn();
    members[1].restart();
    for alert in ["PaddockMemberDown", "PaddockMemberNotHeard", "PaddockNoQuorum", "PaddockNoLeader"] {
        wait_until(&format!("{alert} is silent"), || !prometheus.is_firing(alert));
    }
}
