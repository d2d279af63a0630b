//! An ensemble in namespaces, and what was acknowledged to its clients.

use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::named_network::{Family, NamedNetwork};
use tempfile::TempDir;

use crate::settings::{SettingsText, Source};

/// Members wait for each other, and for what changes of members take; other tests may take the processors meanwhile.
const WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
const MEMBERS_MAX: usize = 4;

/// Host of a member in its own settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnHost {
    Named,
    Unspecified,
}

#[derive(Debug)]
pub(crate) struct NamedEnsemble {
    pub(crate) network: NamedNetwork,
    family: Family,
    source: Source,
    own_host: OwnHost,
    /// Number of members in the settings that are given from now on.
    in_list: usize,
    members: Vec<NamedMember>,
    /// Number of znodes that were acknowledged.
    written: usize,
}

#[derive(Debug)]
struct NamedMember {
    directory: TempDir,
    process: Option<Child>,
    /// Bytes of the log of earlier starts.
    earlier: usize,
}

impl NamedEnsemble {
    /// An ensemble none of whose members has been started, or why this machine has no namespaces. The thread of the test goes into its network.
    pub(crate) fn new(family: Family, source: Source, own_host: OwnHost) -> Result<NamedEnsemble, String> {
        let network = NamedNetwork::new(MEMBERS_MAX, family)?;
        network.enter();
        let members = (1..=MEMBERS_MAX).map(NamedMember::new).collect();
        Ok(NamedEnsemble { network, family, source, own_host, in_list: 3, members, written: 0 })
    }

    pub(crate) fn start(&mut self, id: usize) {
        let binary = env::var("PADDOCK_BIN").expect("PADDOCK_BIN names the binary");
        let mut command = self.network.command(id, &binary);
        command.arg("server");
        let is_wildcard = self.own_host == OwnHost::Unspecified;
        let settings = SettingsText { id, family: self.family, members: self.in_list, is_wildcard };
        let member = &mut self.members[id - 1];
        settings.give(self.source, member.directory.path(), &mut command);
        member.start(command);
    }

    pub(crate) fn stop(&mut self, id: usize) {
        self.members[id - 1].stop();
    }

    /// As charts scale: member 4 is started, and one after the other gets a list that names it.
    pub(crate) fn grow(&mut self) {
        self.in_list = MEMBERS_MAX;
        self.start(MEMBERS_MAX);
        for id in 1..MEMBERS_MAX {
            self.stop(id);
            self.start(id);
            self.check_serves(3, &format!("member {id} knows of member 4"));
        }
    }

    /// Waits until the member says that it misses its own name. With `keeper_config.xml` it does not: members listen at every address, and one with
    /// a higher number calls the others, which are linked whether they know its name or not.
    pub(crate) fn wait_for_missing_name(&self, id: usize) {
        if self.source == Source::Xml {
            return;
        }
        let text = "cannot listen for members yet: trying again";
        let deadline = Instant::now() + WITHIN;
        while !self.members[id - 1].log().contains(text) {
            assert!(Instant::now() < deadline, "{text:?} is not logged\n{}", self.logs());
            thread::sleep(POLL);
        }
    }

    #[track_caller]
    pub(crate) fn check_serves(&mut self, members: usize, when: &str) {
        let deadline = Instant::now() + WITHIN;
        for id in 1..=members {
            while !self.is_serving(id) {
                assert!(Instant::now() < deadline, "{when}: member {id} has no quorum\n{}", self.logs());
                thread::sleep(POLL);
            }
        }
        let addresses: Vec<SocketAddr> = (1..=members).map(|id| self.address(id)).collect();
        match write_and_read(&addresses, self.written) {
            Ok(written) => self.written = written,
            Err(error) => panic!("{when}: {error}\n{}", self.logs()),
        }
    }

    fn address(&self, id: usize) -> SocketAddr {
        SocketAddr::new(self.network.address(id), 2181)
    }

    fn is_serving(&self, id: usize) -> bool {
        let answer = four_letter_word(self.address(id), "srvr");
        ["Mode: leader", "Mode: follower"].iter().any(|mode| answer.contains(mode))
    }

    fn logs(&self) -> String {
        let log = |(id, member): (usize, &NamedMember)| format!("--- member {id}\n{}", member.log());
        (1..).zip(&self.members).map(log).collect()
    }
}

impl Drop for NamedEnsemble {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(mut process) = member.process.take() {
                // The member may have ended by itself, which the test has told.
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }
}

impl NamedMember {
    fn new(id: usize) -> NamedMember {
        let directory = tempfile::tempdir().expect("make a directory");
        fs::create_dir(directory.path().join("data")).expect("make the data directory");
        fs::write(directory.path().join("data/myid"), format!("{id}\n")).expect("write myid");
        fs::write(directory.path().join("log"), "").expect("begin a log");
        NamedMember { directory, process: None, earlier: 0 }
    }

    fn start(&mut self, mut command: Command) {
        assert!(self.process.is_none(), "it runs already");
        let path = self.directory.path().join("log");
        self.earlier = fs::metadata(&path).expect("look at the log").len() as usize;
        let log = OpenOptions::new().append(true).open(&path).expect("open the log");
        command.current_dir(self.directory.path()).env_remove("PADDOCK_LOG").stdin(Stdio::null());
        command.stdout(log.try_clone().expect("share the log")).stderr(log);
        self.process = Some(command.spawn().expect("start a member"));
    }

    fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        let told = Command::new("kill").arg("-TERM").arg(process.id().to_string()).status();
        assert!(told.is_ok_and(|status| status.success()), "tell a member to stop");
        let status = process.wait().expect("wait for its end");
        assert!(status.success(), "it ended with {status}: {}", self.log());
    }

    /// Lines of this start.
    fn log(&self) -> String {
        let text = fs::read(self.directory.path().join("log")).expect("read the log");
        String::from_utf8_lossy(&text[self.earlier..]).into_owned()
    }
}

/// The answer; empty if there is none.
fn four_letter_word(address: SocketAddr, word: &str) -> String {
    use std::io::{Read, Write};
    let mut answer = String::new();
    let Ok(mut socket) = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
        return answer;
    };
    let patience = socket.set_read_timeout(Some(Duration::from_secs(5)));
    if patience.and_then(|()| socket.write_all(word.as_bytes())).is_ok() {
        // What came counts.
        let _ = socket.read_to_string(&mut answer);
    }
    answer
}

/// A client of each member writes a znode; then each member has these, and those of before. Returns how many that are.
#[tokio::main(flavor = "current_thread")]
async fn write_and_read(members: &[SocketAddr], before: usize) -> Result<usize, paddock_client::Error> {
    let mut clients = Vec::new();
    for member in members {
        clients.push(Client::connect(&member.to_string(), ClientOptions::default()).await?);
    }
    let written = before + members.len();
    for (client, number) in clients.iter().zip(before..) {
        client.create(&format!("/{number}"), b"", CreateMode::Persistent).await?;
    }
    for client in &clients {
        client.sync("/").await?;
        for number in 0..written {
            client.exists(&format!("/{number}")).await?;
        }
    }
    for client in clients {
        client.close().await?;
    }
    Ok(written)
}
