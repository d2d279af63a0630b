//! One member: its ports, its files, its process.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::loopback;
use crate::layout::Layout;
use crate::process::Error;

pub(super) const CONFIG: &str = "paddock.toml";

/// From a client's port to the ports for members: from 2181 to ZooKeeper's usual ones.
const TO_QUORUM_PORT: u16 = 2888 - 2181;
const TO_ELECTION_PORT: u16 = 3888 - 2181;
/// From a client's port to that of the page for administrators.
const TO_PAGE_PORT: u16 = 6000;

/// The settings of a member before it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) number: u16,
    port: u16,
}

impl Plan {
    pub(super) fn all(count: u16, first_port: u16) -> Vec<Plan> {
        (0..count).map(|n| Plan { number: n + 1, port: first_port + n }).collect()
    }

    /// Address where clients connect.
    pub(super) fn client(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// Address of the page for administrators.
    pub(super) fn page(&self) -> SocketAddr {
        loopback(self.port + TO_PAGE_PORT)
    }

    fn quorum_port(&self) -> u16 {
        self.port + TO_QUORUM_PORT
    }

    pub(super) fn check_ports(&self) -> Result<(), Error> {
        let ports = [
            (self.port, "its clients"),
            (self.quorum_port(), "the other members"),
            (self.page().port(), "its page"),
        ];
        for (port, who) in ports {
            TcpListener::bind(loopback(port)).map_err(|error| {
                Error::new(format!(
                    "member {} cannot listen on {} for {who}: {error}; end what uses that port, or name other ports \
                     with --port",
                    self.number,
                    loopback(port)
                ))
            })?;
        }
        Ok(())
    }

    fn config(&self, all: &[Plan]) -> String {
        let mut text = format!(
            "# Written by `cargo xtask cluster` at each start.\nmember = {}\nlisten = \"{}\"\nadmin_listen = \"{}\"\nwords = [\"*\"]\n",
            self.number,
            self.client(),
            self.page()
        );
        // A member alone has no address for others.
        for member in all.iter().filter(|_| all.len() > 1) {
            text += &format!(
                "\n[[ensemble.member]]\nid = {}\nhost = \"127.0.0.1\"\nquorum_port = {}\nelection_port = {}\n\
                 client_port = {}\n",
                member.number,
                member.quorum_port(),
                member.port + TO_ELECTION_PORT,
                member.port
            );
        }
        text
    }
}

pub(super) fn directory(all: &Path, number: u16) -> PathBuf {
    all.join(format!("member-{number}"))
}

/// A process, until it was waited for.
#[derive(Debug)]
pub(super) struct ClusterMember {
    pub(super) plan: Plan,
    child: Child,
    pid: u32,
    log: PathBuf,
    /// The command line that starts it again.
    command: String,
}

impl ClusterMember {
    pub(super) fn start(
        layout: &Layout,
        plan: &Plan,
        all: &[Plan],
        directory: &Path,
    ) -> Result<ClusterMember, Error> {
        let directory = self::directory(directory, plan.number);
        fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
        let config = directory.join(CONFIG);
        fs::write(&config, plan.config(all)).map_err(Error::io("write", &config))?;
        let path = directory.join("server.log");
        let log = File::create(&path).map_err(Error::io("create", &path))?;
        let copy = log.try_clone().map_err(Error::io("share", &path))?;

        let mut command = Command::new(layout.paddock());
        command.arg("server").arg("--config").arg(&config).arg("--data-dir").arg(directory.join("data"));
        let printed = for_a_shell(&command);
        command.stdin(Stdio::null()).stdout(log).stderr(copy).process_group(0);
        let child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Error::new(format!("can't start member {}: {error}", plan.number)))?;
        let pid = child.id().expect("it was not waited for");
        Ok(ClusterMember { plan: *plan, child, pid, log: path, command: printed })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }

    pub(super) async fn wait(&mut self) -> Result<ExitStatus, Error> {
        let number = self.plan.number;
        self.child
            .wait()
            .await
            .map_err(|error| Error::new(format!("can't wait for member {number}: {error}")))
    }

    /// Asks the process to end; a second time, to end at once.
    pub(super) fn ask_to_end(&self) {
        // Once the process was waited for, its number may be another's.
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // The member may have ended meanwhile.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

fn for_a_shell(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| {
        let word = word.to_string_lossy();
        let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
        if is_plain { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Describes how a process ended.
pub(super) fn describe(status: ExitStatus) -> String {
    let signals = [(6, "SIGABRT"), (9, "SIGKILL"), (11, "SIGSEGV"), (15, "SIGTERM")];
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended well".to_owned(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => match signals.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("was ended by {name}"),
            None => format!("was ended by signal {signal}"),
        },
        (None, None) => format!("ended: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_the_usual_ports() {
        let all = Plan::all(3, 2181);
        assert_eq!(
            all[1].config(&all[..2]),
            "# Written by `cargo xtask cluster` at each start.\n\
             member = 2\nlisten = \"127.0.0.1:2182\"\nadmin_listen = \"127.0.0.1:8182\"\nwords = [\"*\"]\n\n\
             [[ensemble.member]]\nid = 1\nhost = \"127.0.0.1\"\nquorum_port = 2888\nelection_port = 3888\n\
             client_port = 2181\n\n\
             [[ensemble.member]]\nid = 2\nhost = \"127.0.0.1\"\nquorum_port = 2889\nelection_port = 3889\n\
             client_port = 2182\n"
        );
    }

    #[test]
    fn a_member_alone_is_no_ensemble() {
        let all = Plan::all(1, 2181);
        assert!(!all[0].config(&all).contains("ensemble"));
    }

    #[test]
    fn the_highest_ports_are_ports() {
        let all = Plan::all(5, 59_000);
        assert!(all.last().is_some_and(|last| last.port.checked_add(TO_PAGE_PORT).is_some()));
    }

    #[test]
    fn a_port_in_use_is_named() {
        let any = || TcpListener::bind("127.0.0.1:0").unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        // Higher up there is no room for the others.
        let used = std::iter::repeat_with(any).find(|listener| port(listener) <= 59_000).unwrap();
        let error = Plan { number: 2, port: port(&used) }.check_ports().unwrap_err().to_string();
        let expected = format!("member 2 cannot listen on 127.0.0.1:{} for its clients", port(&used));
        assert!(error.contains(&expected), "{error}");
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let mut command = Command::new("/opt/paddock");
        command.args(["--data-dir", "/a b/it's"]);
        assert_eq!(for_a_shell(&command), r"/opt/paddock --data-dir '/a b/it'\''s'");
    }

    #[test]
    fn the_end_of_a_process_is_named() {
        let check = |raw, expected| assert_eq!(describe(ExitStatus::from_raw(raw)), expected);
        check(0, "ended well");
        check(1 << 8, "ended with exit code 1");
        check(9, "was ended by SIGKILL");
        check(4, "was ended by signal 4");
    }
}
