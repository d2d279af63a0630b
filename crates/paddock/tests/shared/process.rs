//! The binary as a process of its own, for tests.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_paddock");
pub(crate) const WITHIN: Duration = Duration::from_secs(30);

/// A port at `host` for a server, below those that Linux gives to others while the server is down.
pub(crate) fn free_port(host: &str) -> u16 {
    let host = host.parse().expect("an IP address");
    paddock_os::free_port(host, 16_000..20_000).expect("a free port")
}

/// A directory to run in.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("make a directory")
}

pub(crate) fn paddock(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).current_dir(dir).env_remove("PADDOCK_LOG").stdin(Stdio::null());
    command
}

/// Runs to the end.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    paddock(dir, args).output().expect("run paddock")
}

/// Checks a refusal: the exit code, and the whole of standard error.
#[track_caller]
pub(crate) fn check_refused(dir: &Path, args: &[&str], code: i32, line: &str) {
    let output = run(dir, args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, format!("{line}\n"));
    assert_eq!(output.status.code(), Some(code));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "nothing is announced");
}

/// A server that was told that clients can connect. It is killed if a test leaves it running.
pub(crate) struct Server {
    pub(crate) process: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) announced: Vec<String>,
    pub(crate) address: SocketAddr,
    log: Log,
}

impl Server {
    /// Starts it and waits until it says where it listens.
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Server {
        let stdin = if args.contains(&"--end-with-stdin") { Stdio::piped() } else { Stdio::null() };
        let mut process = paddock(dir, &[&["server"], args].concat())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start paddock");
        let mut stdout = BufReader::new(process.stdout.take().expect("standard output is a pipe"));
        let log = Log::follow(process.stderr.take().expect("standard error is a pipe"));
        let is_json = args.contains(&"json");
        let lines = if is_json { 1 } else { 3 };
        let announced: Vec<String> = (0..lines).map(|_| read_line(&mut stdout)).collect();
        let address = if is_json {
            let ready: Option<serde_json::Value> = serde_json::from_str(&announced[0]).ok();
            ready.and_then(|ready| ready["address"].as_str()?.parse().ok())
        } else {
            announced[0].rsplit(' ').next().and_then(|address| address.parse().ok())
        };
        let Some(address) = address else {
            let _ = process.wait();
            panic!("paddock did not start: {announced:?} {}", log.end());
        };
        Server { process, stdout, announced, address, log }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(name).arg(self.process.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "send {name}");
    }

    /// Waits for its end. Returns how it ended, and its log.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + WITHIN;
        while self.process.try_wait().expect("ask for the exit status").is_none() {
            assert!(Instant::now() < deadline, "paddock does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let log = std::mem::take(&mut self.log).end();
        let mut more = String::new();
        self.stdout.read_to_string(&mut more).expect("read standard output");
        assert_eq!(more, "", "nothing else is announced");
        (self.process.wait().expect("the exit status"), log)
    }

    pub(crate) fn stop(self) -> String {
        self.signal("-TERM");
        let (status, log) = self.wait();
        assert_eq!(status.code(), Some(0), "{log}");
        log
    }

    /// Waits until the log has this text, and returns the log so far.
    pub(crate) fn logged(&self, text: &str) -> String {
        let deadline = Instant::now() + WITHIN;
        loop {
            let log = self.log.so_far();
            if log.contains(text) {
                return log;
            }
            assert!(Instant::now() < deadline, "{text:?} is not logged: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn log_so_far(&self) -> String {
        self.log.so_far()
    }

    /// The answer to a four-letter word.
    pub(crate) fn ask(&self, word: &str) -> String {
        let mut socket = TcpStream::connect(self.address).expect("connect");
        socket.set_read_timeout(Some(WITHIN)).unwrap();
        socket.write_all(word.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("read the answer");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has ended already, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Standard error of a server, read as it comes.
#[derive(Default)]
struct Log {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Log {
    fn follow(stderr: ChildStderr) -> Log {
        let text = Arc::new(Mutex::new(String::new()));
        let into = text.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let line = line.expect("the log is text") + "\n";
                into.lock().expect("nobody panics with it").push_str(&line);
            }
        });
        Log { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        self.text.lock().expect("nobody panics with it").clone()
    }

    /// The whole log of a process that has ended.
    fn end(mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log is text");
        }
        self.so_far()
    }
}

fn read_line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("read standard output");
    line.trim_end().to_owned()
}
