//! A pod: the process of a member in its namespace, its mounted file of settings, and its disk.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use paddock_tests::named_network::{NamedNetwork, host_name};
use tempfile::TempDir;

const HTTP_PORT: u16 = 8080;
pub(crate) const CLIENT_PORT: u16 = 2181;

#[derive(Debug)]
pub(crate) struct Pod {
    id: usize,
    directory: TempDir,
    process: Option<Child>,
}

impl Pod {
    pub(crate) fn new(id: usize) -> Pod {
        let directory = tempfile::tempdir().expect("make a directory");
        fs::write(directory.path().join("log"), "").expect("begin a log");
        Pod { id, directory, process: None }
    }

    /// Mounts a list of members 1 to `members`, as the chart writes it: another file takes the place of the one that is there.
    pub(crate) fn mount(&self, members: usize) {
        mount(&self.settings(), members);
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.directory.path().join("paddock.toml")
    }

    pub(crate) fn start(&mut self, network: &NamedNetwork) {
        assert!(!self.is_running(), "pod {} runs", self.id);
        let binary = env::var("PADDOCK_BIN").expect("PADDOCK_BIN names the binary");
        let mut command = network.command(self.id, &binary);
        let log =
            OpenOptions::new().append(true).open(self.directory.path().join("log")).expect("open the log");
        command.args(["server", "--config", "paddock.toml"]).env("ZOO_MY_ID", self.id.to_string());
        command.current_dir(self.directory.path()).env_remove("PADDOCK_LOG").stdin(Stdio::null());
        command.stdout(log.try_clone().expect("share the log")).stderr(log).process_group(0);
        self.process = Some(command.spawn().expect("start a member"));
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Sends the signal that ends it orderly.
    pub(crate) fn terminate(&self) {
        let process = self.process.as_ref().expect("it runs");
        let told = Command::new("kill").arg("-TERM").arg(process.id().to_string()).status();
        assert!(told.is_ok_and(|status| status.success()), "tell a member to stop");
    }

    pub(crate) fn wait_for_end(&mut self) {
        let status = self.process.take().expect("it was told to end").wait().expect("wait for its end");
        assert!(status.success(), "pod {} ended with {status}: {}", self.id, self.log());
    }

    /// Panics if it has ended by itself.
    #[track_caller]
    pub(crate) fn check_running(&mut self) {
        let process = self.process.as_mut().expect("it runs");
        if let Some(status) = process.try_wait().expect("look after it") {
            panic!("pod {} ended by itself with {status}: {}", self.id, self.log());
        }
    }

    pub(crate) fn delete_disk(&self) {
        let data = self.directory.path().join("data");
        if data.exists() {
            fs::remove_dir_all(data).expect("delete the disk");
        }
    }

    pub(crate) fn log(&self) -> String {
        let text = fs::read(self.directory.path().join("log")).expect("read the log");
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().take(60).collect::<Vec<_>>();
        format!("--- pod {}\n{}\n", self.id, last.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // A member that has ended by itself was told of by the test.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

pub(crate) fn mount(settings: &PathBuf, members: usize) {
    let mut text = format!(
        "data_dir = 'data'\nlisten = '0.0.0.0:{CLIENT_PORT}'\nadmin_listen = '0.0.0.0:{HTTP_PORT}'\nwords = ['*']\nbind_tries = 0\n\
         connections_per_address_max = 0\n[ensemble]\nlisten_on_all_addresses = true\n"
    );
    for id in 1..=members {
        let host = host_name(id);
        text += &format!("[[ensemble.member]]\nid = {id}\nhost = '{host}'\nclient_port = {CLIENT_PORT}\n");
    }
    let new = settings.with_extension("new");
    fs::write(&new, text).expect("write settings");
    fs::rename(new, settings).expect("put the settings in place");
}

/// True if the member answers its readiness probe so.
pub(crate) fn is_ready(address: IpAddr) -> bool {
    let ask = || {
        let mut socket =
            TcpStream::connect_timeout(&SocketAddr::new(address, HTTP_PORT), Duration::from_secs(1))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(socket, "GET /ready HTTP/1.1\r\nHost: {address}:{HTTP_PORT}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// `leader`, `follower` and so on; empty if it does not answer.
pub(crate) fn mode(address: IpAddr) -> String {
    let ask = || {
        let mut socket =
            TcpStream::connect_timeout(&SocketAddr::new(address, CLIENT_PORT), Duration::from_secs(1))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.write_all(b"srvr")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    let answer = ask().unwrap_or_default();
    answer.lines().find_map(|line| line.strip_prefix("Mode: ")).unwrap_or_default().to_owned()
}
