//! A real Prometheus with the rules of `docs/monitoring`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use paddock_tests::server::free_port;
use serde_json::Value;
use tempfile::TempDir;

use crate::monitoring;

/// In these tests, seconds for which a member may lag behind.
pub(crate) const LAG_MAX_S: usize = 2;
/// Age of a backup from which on it is too old for the rules as the tests have them.
const BACKUP_AGE_MAX_S: usize = 5;

fn program(name: &str) -> PathBuf {
    Path::new(&env::var_os("PROMETHEUS_BIN").expect("PROMETHEUS_BIN names a directory")).join(name)
}

#[derive(Debug)]
pub(crate) struct Prometheus {
    process: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes these ports each second. The rules' patience is cut to a second, what they look back at to ten,
    /// the time for which a member may lag behind to `LAG_MAX_S`, and the age of a backup to `BACKUP_AGE_MAX_S`.
    pub(crate) fn start(ports: &[u16]) -> Prometheus {
        let directory = TempDir::new().expect("a directory for Prometheus");
        let at = |name: &str| directory.path().join(name);
        let rules = fs::read_to_string(monitoring().join("alerts.yml")).expect("read the rules");
        let impatient = |line: &str| match line.trim().starts_with("for: ") {
            true => "        for: 1s".to_owned(),
            false => line
                .replace("[5m]", "[10s]")
                .replace("[1h]", "[10s]")
                .replace("> 3600", &format!("> {BACKUP_AGE_MAX_S}"))
                .replace("lag_seconds > 10", &format!("lag_seconds > {LAG_MAX_S}")),
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
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let text = String::from_utf8_lossy(&answer);
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// True if a query has at least one value that is a number.
    pub(crate) fn has_data(&self, query: &str) -> bool {
        let Some(answer) = self.get(&format!("/api/v1/query?query={}", encoded(query))) else { return false };
        assert!(answer["error"].is_null(), "{query}: {}", answer["error"]);
        let values = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        values.iter().any(|value| value["value"][1].as_str().is_some_and(|number| number != "NaN"))
    }

    pub(crate) fn is_firing(&self, alert: &str) -> bool {
        let Some(answer) = self.get("/api/v1/alerts") else { return false };
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().any(|one| one["labels"]["alertname"] == alert && one["state"] == "firing")
    }

    pub(crate) fn rules(&self) -> Vec<Value> {
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
