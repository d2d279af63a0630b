//! A process on a data directory that may be damaged: it serves, or it refuses.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::log_lines::wait_for_line;

use paddock_client::{Client, ClientOptions};
use rustix::process::Pid;

/// Directories of tests are small: whatever it does, it does it soon.
const DECIDED_WITHIN: Duration = Duration::from_secs(10);
/// A member lets its clients read their answers before it ends.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);

/// Result of a start.
#[derive(Debug)]
pub enum Start {
    Serves(MemberProcess),
    Refuses(StartRefusal),
}

#[derive(Debug)]
pub struct StartRefusal {
    pub exit_code: Option<i32>,
    /// All of standard error.
    pub log: String,
}

/// A member that serves. It is killed when this is dropped.
#[derive(Debug)]
pub struct MemberProcess {
    process: Child,
    address: SocketAddr,
    output: tempfile::TempDir,
}

/// Starts `paddock server` on a data directory with these lines of `zoo.cfg`.
pub fn start(data_dir: &Path, settings: &[(&str, &str)]) -> Start {
    let output = tempfile::tempdir().expect("make a directory for a log");
    let config = output.path().join("zoo.cfg");
    let mut lines = format!("dataDir={}\nclientPort=1\ntickTime=2000\n", data_dir.display());
    settings.iter().for_each(|(key, value)| lines.push_str(&format!("{key}={value}\n")));
    fs::write(&config, lines).expect("write zoo.cfg");
    let binary = env::var("PADDOCK_BIN").expect("PADDOCK_BIN is not set: run `cargo xtask test`");
    let create = |path: PathBuf| File::create(path).expect("create a log");
    let mut process = Command::new(binary)
        .args(["server", "--listen", "127.0.0.1:0", "--config"])
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(create(output.path().join("stdout")))
        .stderr(create(output.path().join("stderr")))
        .spawn()
        .expect("start paddock");
    let deadline = Instant::now() + DECIDED_WITHIN;
    loop {
        if let Some(address) = announced(&read(&output.path().join("stdout"))) {
            return Start::Serves(MemberProcess { process, address, output });
        }
        if let Some(status) = process.try_wait().expect("ask for the exit status") {
            let log = read(&output.path().join("stderr"));
            return Start::Refuses(StartRefusal { exit_code: status.code(), log });
        }
        if Instant::now() > deadline {
            process.kill().expect("kill the member");
            panic!("neither serves nor refuses: {}", read(&output.path().join("stderr")));
        }
        thread::sleep(POLL);
    }
}

impl Start {
    #[track_caller]
    pub fn serves(self, what: &str) -> MemberProcess {
        match self {
            Start::Serves(member) => member,
            Start::Refuses(refusal) => panic!("{what}: it does not start: {}", refusal.log),
        }
    }

    #[track_caller]
    pub fn refuses(self, what: &str) -> StartRefusal {
        match self {
            Start::Refuses(refusal) => refusal,
            Start::Serves(member) => panic!("{what}: it starts: {}", member.log()),
        }
    }
}

impl StartRefusal {
    /// The last line of its log, which has to be enough.
    pub fn line(&self) -> &str {
        self.log.lines().last().unwrap_or("")
    }
}

impl MemberProcess {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn process_id(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    pub fn log(&self) -> String {
        read(&self.output.path().join("stderr"))
    }

    /// Waits until the log says this.
    pub fn wait_for_log(&self, text: &str) {
        wait_for_line(|| self.log(), text);
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(mut self) -> (Option<i32>, String) {
        let asked = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
        assert!(asked.is_ok_and(|status| status.success()), "send SIGTERM");
        let deadline = Instant::now() + ENDS_WITHIN;
        loop {
            if let Some(status) = self.process.try_wait().expect("ask for the exit status") {
                return (status.code(), self.log());
            }
            assert!(Instant::now() < deadline, "it does not end within {ENDS_WITHIN:?}");
            thread::sleep(POLL);
        }
    }

    pub async fn connect(&self) -> Client {
        self.connect_with(ClientOptions::default()).await
    }

    pub async fn connect_with(&self, options: ClientOptions) -> Client {
        let connected = Client::connect(&self.address.to_string(), options).await;
        connected.unwrap_or_else(|error| panic!("connect: {error:?}\n{}", self.log()))
    }
}

impl Drop for MemberProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the log of the member on {}:\n{}", self.address, self.log());
        }
    }
}

/// The address in what a member prints once clients can connect.
fn announced(output: &str) -> Option<SocketAddr> {
    // The line is whole once the next one has begun.
    let (first, _) = output.split_once('\n')?;
    first.rsplit(' ').next()?.parse().ok()
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("read a log")).into_owned()
}
