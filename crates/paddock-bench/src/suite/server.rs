//! One server as a suite measures it: its members, each in a directory of its own, started from a template.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::process::SuiteProcess;
use super::template::Values;
use super::{ServerTemplate, ports};
use crate::BenchError;
use crate::driver::probe;

/// Time for one attempt to open a session; between attempts the process is looked at.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Pause before a server that does not serve yet is asked again, at least. More questions would be a load of their own.
const PAUSE: Duration = Duration::from_millis(2);
/// Questions asked while a start lasts, about: the time of a start is exact to one part in this number.
const QUESTIONS: u32 = 100;

/// Pause between two looks at the command that prepares a server.
const PREPARED: Duration = Duration::from_millis(20);

/// A number of writes that no run reaches: snapshots are not taken where they are not measured.
pub(super) const NEVER: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct SuiteServer<'a> {
    template: &'a ServerTemplate,
    directory: PathBuf,
    members: Vec<MemberProcess>,
    /// From its start until all members served.
    ready_after: Duration,
}

#[derive(Debug)]
struct MemberProcess {
    values: Values,
    process: SuiteProcess,
}

/// Reasons for which a server does not serve.
#[derive(Debug)]
pub(super) enum NotServing {
    /// The user wants no more.
    Stopped,
    Failed(BenchError),
}

impl From<BenchError> for NotServing {
    fn from(error: BenchError) -> NotServing {
        NotServing::Failed(error)
    }
}

impl<'a> SuiteServer<'a> {
    /// Starts every member on an empty directory below `directory` and waits until all of them serve.
    pub(super) fn start(
        template: &'a ServerTemplate,
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<SuiteServer<'a>, NotServing> {
        wipe(directory)?;
        let mut server = SuiteServer {
            template,
            directory: directory.to_owned(),
            members: Vec::new(),
            ready_after: Duration::ZERO,
        };
        server.start_members(values(template, directory)?, stop)?;
        server.prepare(stop)?;
        Ok(server)
    }

    /// Runs the command with which the server is prepared, to its end.
    fn prepare(&self, stop: &AtomicBool) -> Result<(), NotServing> {
        let (Some(first), false) = (self.members.first(), self.template.prepare.is_empty()) else {
            return Ok(());
        };
        let command: Vec<String> = self.template.prepare.iter().map(|word| first.values.fill(word)).collect();
        let mut process = SuiteProcess::start(&command, &self.directory, self.directory.join("prepare.log"))?;
        let status = loop {
            match process.ended()? {
                Some(status) => break status,
                None if stop.load(Ordering::Relaxed) => return Err(NotServing::Stopped),
                None => thread::sleep(PREPARED),
            }
        };
        if status.success() {
            return Ok(());
        }
        let what = format!("is not prepared: {} ended with {status}", command[0]);
        Err(BenchError::Server { server: self.template.name.clone(), what, log: process.log_tail() }.into())
    }

    /// Ends all members in good order and starts them again on what they wrote, to take snapshots after `snapshot_writes` writes.
    pub(super) fn restart(&mut self, snapshot_writes: u64, stop: &AtomicBool) -> Result<(), NotServing> {
        let mut all = self.stop_members()?;
        all.iter_mut().for_each(|values| values.snapshot_writes = snapshot_writes.to_string());
        self.start_members(all, stop)
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.members.iter().map(MemberProcess::host).collect()
    }

    /// The processes of all members.
    pub(super) fn pids(&self) -> Result<Vec<u32>, BenchError> {
        let of_each: Result<Vec<_>, _> = self.members.iter().map(|member| member.process.pids()).collect();
        Ok(of_each?.concat())
    }

    /// The directory in which its members write.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Ends all members and removes what they wrote.
    pub(super) fn stop(mut self) -> Result<(), BenchError> {
        self.stop_members()?;
        wipe(&self.directory)
    }

    fn start_members(&mut self, all: Vec<Values>, stop: &AtomicBool) -> Result<(), NotServing> {
        let started = Instant::now();
        for values in all {
            let process = start_member(self.template, &values)?;
            self.members.push(MemberProcess { values, process });
        }
        self.wait_until_ready(started, stop)?;
        self.ready_after = started.elapsed();
        Ok(())
    }

    fn stop_members(&mut self) -> Result<Vec<Values>, BenchError> {
        self.members.iter().for_each(|member| member.process.terminate());
        let mut all = Vec::new();
        for member in self.members.drain(..) {
            member.process.stop()?;
            all.push(member.values);
        }
        Ok(all)
    }

    fn wait_until_ready(&mut self, started: Instant, stop: &AtomicBool) -> Result<(), NotServing> {
        let within = self.template.ready_within;
        let deadline = started + within;
        let tls = self.template.tls()?;
        for member in &mut self.members {
            let host = member.host();
            // A session is the one sign that a server serves which every server gives.
            while let Err(error) = probe(&host, tls.as_ref(), ATTEMPT) {
                if stop.load(Ordering::Relaxed) {
                    return Err(NotServing::Stopped);
                }
                let what = match member.process.ended()? {
                    Some(status) => format!("ended with {status} before it served"),
                    None if Instant::now() >= deadline => {
                        let why = paddock_tls::with_causes(&error);
                        format!("does not serve on {host} after {within:?}: {why}")
                    }
                    None => {
                        thread::sleep(PAUSE.max(started.elapsed() / QUESTIONS));
                        continue;
                    }
                };
                let log = member.process.log_tail();
                return Err(BenchError::Server { server: self.template.name.clone(), what, log }.into());
            }
        }
        Ok(())
    }
}

impl MemberProcess {
    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.values.port)
    }
}

fn start_member(template: &ServerTemplate, values: &Values) -> Result<SuiteProcess, BenchError> {
    let directory = Path::new(&values.dir);
    fs::create_dir_all(directory).map_err(BenchError::file("create", directory))?;
    for (path, text) in &template.files {
        let path = directory.join(path);
        let parent = path.parent().expect("a file of a member stands in its directory");
        fs::create_dir_all(parent).map_err(BenchError::file("create", parent))?;
        fs::write(&path, values.fill(text)).map_err(BenchError::file("write", &path))?;
    }
    let command: Vec<String> = template.command.iter().map(|word| values.fill(word)).collect();
    SuiteProcess::start(&command, directory, directory.join("server.log"))
}

/// The placeholders of every member.
fn values(template: &ServerTemplate, directory: &Path) -> Result<Vec<Values>, BenchError> {
    let directory = std::path::absolute(directory).map_err(BenchError::file("find", directory))?;
    let mut all = Vec::new();
    for id in 1..=template.members {
        all.push(Values {
            dir: directory.join(id.to_string()).display().to_string(),
            port: ports::free()?.to_string(),
            quorum_port: ports::free()?.to_string(),
            election_port: ports::free()?.to_string(),
            admin_port: ports::free()?.to_string(),
            id: id.to_string(),
            servers: String::new(),
            snapshot_writes: NEVER.to_string(),
        });
    }
    if all.len() > 1 {
        let line = |v: &Values| format!("server.{}=127.0.0.1:{}:{}", v.id, v.quorum_port, v.election_port);
        let servers = all.iter().map(line).collect::<Vec<_>>().join("\n");
        all.iter_mut().for_each(|values| values.servers.clone_from(&servers));
    }
    Ok(all)
}

pub(super) fn wipe(directory: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BenchError::file("remove", directory)(error))
        }
        _ => Ok(()),
    }
}
