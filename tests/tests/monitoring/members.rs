//! Members with a port for Prometheus.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use paddock_tests::filesystem::Filesystem;
use paddock_tests::server::{MemberSettings, Server, ServerKind, free_port};
use tempfile::TempDir;

use crate::wait_until;

/// The size of a disk of `ensemble`.
pub(crate) const DISK_BYTES: usize = 64 << 20;

/// A member that is no part of an ensemble.
pub(crate) struct LoneMember {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) metrics_port: u16,
    _directory: TempDir,
}

impl LoneMember {
    /// Starts it with these lines of `paddock.toml`, by a shell that has run `prelude` before.
    pub(crate) async fn start(settings: &str, prelude: &str) -> LoneMember {
        let directory = TempDir::new().expect("a directory for a member");
        let (port, metrics_port) = (free_port(), free_port());
        let text = format!(
            "listen = '127.0.0.1:{port}'\nmetrics_listen = '127.0.0.1:{metrics_port}'\ndata_dir = 'data'\n{settings}\n"
        );
        fs::write(directory.path().join("paddock.toml"), text).expect("write its settings");
        let binary = env::var("PADDOCK_BIN").expect("PADDOCK_BIN names the binary");
        let script = format!("{prelude}; exec \"$0\" server --config paddock.toml");
        let process = Command::new("sh")
            .args(["-c", &script, &binary])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start a member");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        wait_until("the member serves", || TcpStream::connect(address).is_ok()).await;
        LoneMember { process, address, metrics_port, _directory: directory }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for LoneMember {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts an ensemble with these ports for Prometheus, each member on a small disk of its own where that can be had.
pub(crate) fn ensemble(ports: &[u16]) -> Vec<Server> {
    // Where it cannot, a line says so.
    let disk_bytes = Filesystem::mount(DISK_BYTES).map(|_| DISK_BYTES);
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
            // KiB of a file of the log.
            ("preAllocSize", "1024"),
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
            disk_bytes,
            settings: &settings,
        }));
    }
    members
}

/// `host:port` of members, for a client.
pub(crate) fn hosts<'a>(members: impl IntoIterator<Item = &'a Server>) -> String {
    let addresses: Vec<String> = members.into_iter().map(|member| member.address().to_string()).collect();
    addresses.join(",")
}

/// True if a member says that it is a `leader`, or a `follower`.
pub(crate) fn is(member: &Server, mode: &str) -> bool {
    fact(member, "Mode: ").as_deref() == Some(mode)
}

/// The newest zxid that a member has applied; `None` while it does not serve.
pub(crate) fn zxid(member: &Server) -> Option<String> {
    fact(member, "Zxid: ")
}

fn fact(member: &Server, name: &str) -> Option<String> {
    let srvr = member.four_letter_word("srvr").unwrap_or_default();
    srvr.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}
