//! The watch over running members: leaders, deaths, and Ctrl-C.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::member::{ClusterMember, describe};
use crate::process::{Error, last_lines};

/// Time between two questions to the members which of them leads.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time after which a member's answer is not waited for any more.
const PATIENCE: Duration = Duration::from_millis(400);
/// Number of lines that are shown of the log of a member that died.
const LOG_LINES: usize = 5;

/// Tells what happens until no member runs. Whether all ended well, after they were asked to.
pub(super) async fn until_stopped(members: Vec<ClusterMember>, hosts: &str) -> Result<bool, Error> {
    let mut signals =
        Signals::new().map_err(|error| Error::new(format!("can't wait for Ctrl-C: {error}")))?;
    let mut news = News { hosts: hosts.to_owned(), count: members.len(), told: None };
    let clients: Vec<(u16, SocketAddr)> =
        members.iter().map(|member| (member.plan.number, member.plan.client())).collect();
    let mut running = JoinSet::new();
    let mut stops: Vec<UnboundedSender<()>> = Vec::new();
    for member in members {
        let (stop, stopped) = unbounded_channel();
        stops.push(stop);
        running.spawn(attend(member, stopped));
    }
    let mut ticks = interval(INTERVAL);
    let (mut is_stopping, mut all_well) = (false, true);
    loop {
        tokio::select! {
            ended = running.join_next() => match ended {
                None => return Ok(is_stopping && all_well),
                Some(ended) => all_well &= report(ended.expect("a task of this program does not panic")?, is_stopping),
            },
            () = signals.next() => {
                println!("{}", if is_stopping { "stopping at once" } else { "stopping; Ctrl-C again stops at once" });
                is_stopping = true;
                // Who is not there any more has ended.
                for stop in &stops {
                    let _ = stop.send(());
                }
            }
            _ = ticks.tick(), if !is_stopping => news.tell(&modes(&clients).await),
        }
    }
}

/// A member's process that has ended.
struct Ended {
    member: ClusterMember,
    how: String,
    is_well: bool,
}

/// Waits for the end of a member, and asks it to end as often as it is told to.
async fn attend(mut member: ClusterMember, mut stopped: UnboundedReceiver<()>) -> Result<Ended, Error> {
    let status = loop {
        tokio::select! {
            status = member.wait() => break status?,
            Some(()) = stopped.recv() => member.ask_to_end(),
        }
    };
    Ok(Ended { how: describe(status), is_well: status.success(), member })
}

/// Prints how a member ended; true if it ended as it should.
fn report(ended: Ended, is_stopping: bool) -> bool {
    let Ended { member, how, is_well } = ended;
    println!("member {} {how}", member.plan.number);
    if is_stopping && is_well {
        return true;
    }
    println!("  the end of {}:", member.log().display());
    last_lines(member.log(), LOG_LINES).lines().for_each(|line| println!("    {line}"));
    if !is_stopping {
        println!("  to start it again: {}", member.command());
    }
    false
}

/// The leader that was told last; a change is told again.
struct News {
    hosts: String,
    count: usize,
    told: Option<WatchedState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchedState {
    Leader(u16),
    /// A member alone serves.
    Alone,
    Nobody,
}

impl News {
    fn tell(&mut self, modes: &[(u16, Option<String>)]) {
        let (state, running) = (state(modes), modes.iter().filter(|(_, mode)| mode.is_some()).count());
        let is_first = self.told.is_none();
        // At the beginning no member leads yet.
        if self.told == Some(state) || (is_first && state == WatchedState::Nobody) {
            return;
        }
        self.told = Some(state);
        match state {
            WatchedState::Leader(number) => println!("member {number} leads"),
            WatchedState::Alone => println!("it serves"),
            WatchedState::Nobody if running > self.count / 2 => println!("no member leads now"),
            WatchedState::Nobody => {
                println!("no member leads: of {} members {running} run, fewer than a majority", self.count);
            }
        }
        if is_first {
            self.tell_how_to_connect();
        }
    }

    fn tell_how_to_connect(&self) {
        let hosts = &self.hosts;
        println!("clients connect to {hosts}, such as");
        println!("  zkCli.sh -server {hosts}");
        println!("  cargo run --release -- bench run mixed --hosts {hosts}");
        println!("Ctrl-C stops; the data stays for the next time");
    }
}

fn state(modes: &[(u16, Option<String>)]) -> WatchedState {
    let with = |wanted: &str| modes.iter().find(|(_, mode)| mode.as_deref() == Some(wanted));
    match (with("leader"), with("standalone")) {
        (Some((number, _)), _) => WatchedState::Leader(*number),
        (None, Some(_)) => WatchedState::Alone,
        (None, None) => WatchedState::Nobody,
    }
}

/// Roles of the members by their own account; `None` of one that has no leader or does not answer. All are asked at once.
async fn modes(clients: &[(u16, SocketAddr)]) -> Vec<(u16, Option<String>)> {
    let mut asked = JoinSet::new();
    for &(number, address) in clients {
        asked.spawn(async move { (number, timeout(PATIENCE, mode(address)).await.ok().flatten()) });
    }
    asked.join_all().await
}

async fn mode(address: SocketAddr) -> Option<String> {
    let mut socket = TcpStream::connect(address).await.ok()?;
    socket.write_all(b"srvr").await.ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.ok()?;
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
    Some(mode.unwrap_or_default().to_owned())
}

/// Ctrl-C, and what asks a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
