//! One server as a suite measures it: its members, each in a directory of its own, started from a template.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions};

use super::process::{Process, system};
use super::template::Values;
use super::{ServerTemplate, causes, ports};
use crate::BenchError;

/// How long one attempt to open a session may take; between attempts the process is looked at.
const ATTEMPT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Server {
    name: String,
    directory: PathBuf,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    host: String,
    process: Process,
}

/// Why a server does not serve.
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

impl Server {
    /// Starts every member on an empty directory below `directory` and waits until all of them serve.
    pub(super) fn start(
        template: &ServerTemplate,
        directory: &Path,
        stop: &AtomicBool,
    ) -> Result<Server, NotServing> {
        wipe(directory)?;
        let mut server =
            Server { name: template.name.clone(), directory: directory.to_owned(), members: Vec::new() };
        for values in values(template, directory)? {
            server.members.push(start_member(template, &values)?);
        }
        server.wait_until_ready(template.ready_within, stop)?;
        Ok(server)
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.members.iter().map(|member| member.host.clone()).collect()
    }

    /// The processes of all members.
    pub(super) fn pids(&self) -> Result<Vec<u32>, BenchError> {
        let of_each: Result<Vec<_>, _> = self.members.iter().map(|member| member.process.pids()).collect();
        Ok(of_each?.concat())
    }

    /// Ends all members and removes what they wrote.
    pub(super) fn stop(mut self) -> Result<(), BenchError> {
        self.members.iter().for_each(|member| member.process.terminate());
        for member in self.members.drain(..) {
            member.process.stop()?;
        }
        wipe(&self.directory)
    }

    fn wait_until_ready(&mut self, within: Duration, stop: &AtomicBool) -> Result<(), NotServing> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system("prepare to connect"))?;
        let deadline = Instant::now() + within;
        for member in &mut self.members {
            while let Err(error) = runtime.block_on(open_and_close(&member.host)) {
                if stop.load(Ordering::Relaxed) {
                    return Err(NotServing::Stopped);
                }
                let what = match member.process.ended()? {
                    Some(status) => format!("ended with {status} before it served"),
                    None if Instant::now() >= deadline => {
                        let why = causes(&error);
                        format!("does not serve on {} after {within:?}: {why}", member.host)
                    }
                    None => continue,
                };
                let log = member.process.log_tail();
                return Err(BenchError::Server { server: self.name.clone(), what, log }.into());
            }
        }
        Ok(())
    }
}

fn start_member(template: &ServerTemplate, values: &Values) -> Result<Member, BenchError> {
    let directory = Path::new(&values.dir);
    fs::create_dir_all(directory).map_err(BenchError::file("create", directory))?;
    for (path, text) in &template.files {
        let path = directory.join(path);
        let parent = path.parent().expect("a file of a member stands in its directory");
        fs::create_dir_all(parent).map_err(BenchError::file("create", parent))?;
        fs::write(&path, values.fill(text)).map_err(BenchError::file("write", &path))?;
    }
    let command: Vec<String> = template.command.iter().map(|word| values.fill(word)).collect();
    let process = Process::start(&command, directory, directory.join("server.log"))?;
    Ok(Member { host: format!("127.0.0.1:{}", values.port), process })
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
            id: id.to_string(),
            servers: String::new(),
        });
    }
    if all.len() > 1 {
        let line = |v: &Values| format!("server.{}=127.0.0.1:{}:{}", v.id, v.quorum_port, v.election_port);
        let servers = all.iter().map(line).collect::<Vec<_>>().join("\n");
        all.iter_mut().for_each(|values| values.servers.clone_from(&servers));
    }
    Ok(all)
}

/// A session is the one sign that a server serves which every server gives.
async fn open_and_close(host: &str) -> Result<(), paddock_client::Error> {
    let options = ClientOptions { connect_timeout: ATTEMPT, ..ClientOptions::default() };
    let client = Client::connect(host, options).await?;
    tokio::time::timeout(ATTEMPT * 10, client.close())
        .await
        .unwrap_or(Err(paddock_client::Error::ConnectionLost))
}

pub(super) fn wipe(directory: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BenchError::file("remove", directory)(error))
        }
        _ => Ok(()),
    }
}
