//! Servers with an HTTP interface for administrators, and the commands that ask them.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use paddock_client::{Client, ClientOptions};
use paddock_proto::{Acl, Id, Perms};

use crate::server::{Server, ServerKind, environment, free_port};

/// The administrator, as `--auth` takes it from a file.
const IDENTITY: &str = "digest:owner:secret";

/// A server that an administrator may ask.
#[derive(Debug)]
pub struct Administered {
    pub server: Server,
    pub admin: SocketAddr,
}

impl Administered {
    /// Starts a member alone, whose root names the administrator.
    pub async fn start(settings: &[(&str, &str)]) -> Administered {
        let port = free_port();
        let own = admin_settings(port);
        let own = own.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let all: Vec<(&str, &str)> = own.chain(settings.iter().copied()).collect();
        let server = Server::start_with(ServerKind::Paddock, &all);
        name_administrator(&server.address().to_string()).await;
        Administered { server, admin: SocketAddr::from(([127, 0, 0, 1], port)) }
    }

    /// A client of the server.
    pub async fn client(&self) -> Client {
        connect(&self.server.address().to_string()).await
    }
}

/// Settings of a server with an interface at a port.
pub fn admin_settings(port: u16) -> [(String, String); 4] {
    admin_settings_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Settings of a server with an interface at an address, which gives snapshots as often as they are asked for.
pub fn admin_settings_at(address: SocketAddr) -> [(String, String); 4] {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let settings = [
        ("admin.enableServer", "true"),
        ("admin.serverAddress", &*host),
        ("admin.serverPort", &*port),
        ("admin.rateLimiterIntervalInMS", "1"),
    ];
    settings.map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// A client of any of some servers.
pub async fn connect(hosts: &str) -> Client {
    Client::connect(hosts, ClientOptions::default()).await.expect("connect")
}

/// Gives the root an ACL that names the administrator, and lets everybody else do all that they could.
pub async fn name_administrator(hosts: &str) {
    let client = connect(hosts).await;
    let (scheme, auth) = IDENTITY.split_once(':').expect("there is one");
    client.add_auth(scheme, auth.as_bytes()).await.expect("show an identity");
    let id = |scheme: &str, id: &str| Id { scheme: scheme.to_owned(), id: id.to_owned() };
    let acl =
        [Acl { perms: Perms::ALL, id: id("world", "anyone") }, Acl { perms: Perms::ALL, id: id("auth", "") }];
    client.set_acl("/", &acl, None).await.expect("set the ACL of the root");
    client.close().await.expect("close");
}

/// The value of the header that shows the administrator's identity.
pub fn authorization() -> String {
    IDENTITY.replacen(':', " ", 1)
}

/// A file with the administrator's identity, as a value of `--auth`.
pub fn identity_file(dir: &Path) -> String {
    let file = dir.join("identity");
    fs::write(&file, IDENTITY).expect("write an identity");
    format!("@{}", file.display())
}

/// A command line of Paddock's binary.
pub fn paddock(arguments: &[&str]) -> Command {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Output of a command that succeeds.
pub fn succeed(arguments: &[&str]) -> String {
    let output = paddock(arguments).output().expect("run paddock");
    assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The one line with which a command refuses.
pub fn refusal(arguments: &[&str]) -> String {
    let output = paddock(arguments).output().expect("run paddock");
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}");
    assert_eq!(printed.lines().count(), 1, "{arguments:?}: {printed}");
    printed
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

/// All files below a directory, sorted.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("list a directory") {
        let path = entry.expect("list a directory").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
