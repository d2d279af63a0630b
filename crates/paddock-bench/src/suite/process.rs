//! A process that cannot outlive the value that stands for it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};

use crate::BenchError;
use crate::sample::{process_cpu_s, process_resident_bytes};

const STOPPED_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
const TAIL_LINES: usize = 30;

#[derive(Debug)]
pub(super) struct SuiteProcess {
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl SuiteProcess {
    /// Starts `command` in `directory`; what it prints goes to `log`.
    pub(super) fn start(
        command: &[String],
        directory: &Path,
        log: PathBuf,
    ) -> Result<SuiteProcess, BenchError> {
        let (program, arguments) = command.split_first().expect("a suite's file gives each server a program");
        let output = File::create(&log).map_err(BenchError::file("create", &log))?;
        let errors = output.try_clone().map_err(BenchError::file("share", &log))?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C is for the suite, which ends its servers itself.
            .process_group(0)
            .spawn()
            .map_err(BenchError::file("start", program))?;
        running().insert(child.id());
        Ok(SuiteProcess { child, log, status: None })
    }

    /// The process and those that it has started: a command may be a shell around the server.
    pub(super) fn pids(&self) -> Result<Vec<u32>, BenchError> {
        let mut pids = Vec::new();
        for entry in fs::read_dir("/proc").map_err(BenchError::file("list", "/proc"))? {
            let name = entry.map_err(BenchError::file("list", "/proc"))?.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok());
            pids.extend(pid.filter(|pid| group_of(*pid) == Some(self.child.id())));
        }
        Ok(pids)
    }

    /// The exit status of the process, if it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, BenchError> {
        if self.status.is_none() {
            self.status = self.child.try_wait().map_err(system("wait for a server"))?;
        }
        Ok(self.status)
    }

    /// The last lines that it printed.
    pub(super) fn log_tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Asks it to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for the end that was asked for, and forces it if it does not come.
    pub(super) fn stop(mut self) -> Result<(), BenchError> {
        self.terminate();
        let deadline = Instant::now() + STOPPED_WITHIN;
        while !(self.ended()?.is_some() && self.pids()?.is_empty()) && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        // Dropping it kills what is left.
        Ok(())
    }

    /// To the process and to what it has started; not when all have ended, and the number may be another's.
    fn signal(&self, signal: Signal) {
        if self.status.is_none() || self.pids().is_ok_and(|pids| !pids.is_empty()) {
            kill_group(self.child.id(), signal);
        }
    }
}

impl Drop for SuiteProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if self.status.is_none() {
            // A killed process ends; no caller can be told if it could not be waited for.
            let _ = self.child.wait();
        }
        running().remove(&self.child.id());
    }
}

/// The processes whose values are alive.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().expect("nobody panics who holds this lock")
}

/// Ends every server at once: for a program that is about to exit without dropping what it has.
pub fn kill_servers() {
    running().iter().for_each(|pid| kill_group(*pid, Signal::KILL));
}

fn kill_group(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // What has ended meanwhile needs no signal.
    let _ = kill_process_group(pid.expect("process numbers are positive"), signal);
}

/// The process group; none if the process has ended, even if it was not waited for it yet.
fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, spaces too.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    if fields.next()? == "Z" { None } else { fields.nth(1)?.parse().ok() }
}

/// Resident memory of all processes together, in bytes.
pub(super) fn resident_bytes(pids: &[u32]) -> Result<u64, BenchError> {
    let of = |pid: &u32| {
        let gone = || io::Error::other("it tells no resident memory: the process has ended");
        let file = format!("/proc/{pid}/status");
        process_resident_bytes(*pid).ok_or_else(|| BenchError::file("read", file)(gone()))
    };
    pids.iter().map(of).sum()
}

/// The CPU time of all processes together so far.
pub(super) fn cpu_s(pids: &[u32]) -> f64 {
    pids.iter().filter_map(|pid| process_cpu_s(*pid)).sum()
}

/// Lets this process, and those that it starts from now on, have as many files open as the system allows.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Who needs more than there are is told so then.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Number of files that this process may have open.
pub(super) fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

pub(super) fn system(action: &'static str) -> impl FnOnce(io::Error) -> BenchError {
    move |source| BenchError::System { action, source }
}
