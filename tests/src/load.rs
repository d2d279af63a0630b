//! Load from real clients, each in a process of its own: kazoo (tests/support/load.py) and ZooKeeper's Java client
//! (tests/java/src/paddock/Load.java). Both take the same arguments and tell of each write in the same lines.
//!
//! A session counts in a znode of its own, which no other session writes. So the znode's version says how often its writes were
//! carried out, and its data which of them was the last. An ephemeral znode below it says whether the session lives.

use std::net::SocketAddr;
use std::time::Duration;

use paddock_client::{Client, ClientOptions};
use rustix::time::{ClockId, clock_gettime};

use crate::library::{Library, Program};
use crate::teller::{Listener, Teller};

/// A request to set a session's data, as its client saw it.
#[derive(Clone, Debug)]
pub struct Write {
    pub start_ns: i64,
    pub end_ns: i64,
    /// The znode's version behind it, or the client's name for what went wrong.
    pub result: Result<i32, String>,
}

/// Account of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionAccount {
    pub path: String,
    pub id: String,
    pub writes: Vec<Write>,
    /// States of the connection that the client told, in its own words.
    pub states: Vec<String>,
    /// Its id and its znode's data when the load ended.
    pub end: Option<(String, String)>,
}

impl SessionAccount {
    fn acknowledged(&self) -> usize {
        self.writes.iter().filter(|write| write.result.is_ok()).count()
    }

    /// Complaints about a session whose client should have none: errors, another connection, another session.
    pub fn complaints(&self) -> Vec<String> {
        let failed = self.writes.iter().filter_map(|write| write.result.as_ref().err());
        let mut complaints: Vec<String> = failed.map(|error| format!("a write failed: {error}")).collect();
        complaints.extend(self.states.iter().map(|state| format!("its client was told: {state}")));
        complaints.extend(self.faults());
        complaints
    }

    /// Faults that no crash of a member excuses: another session, a write that was lost or carried out twice.
    pub fn faults(&self) -> Vec<String> {
        let (id, data) = self.end.as_ref().expect("the load has ended");
        let mut faults = Vec::new();
        if *id != self.id {
            faults.push(format!("session {} became {id}", self.id));
        }
        let mut versions = 0..=0;
        for (count, write) in (1..).zip(&self.writes) {
            versions = match &write.result {
                Ok(version) if !(versions.start() + 1..=versions.end() + 1).contains(version) => {
                    faults.push(format!("write {count} made version {version}, not one behind {versions:?}"));
                    *version..=*version
                }
                Ok(version) => *version..=*version,
                // The write may have been carried out.
                Err(_) => *versions.start()..=versions.end() + 1,
            };
        }
        let last = self.writes.iter().rposition(|write| write.result.is_ok()).map_or(0, |last| last + 1);
        if !data.parse().is_ok_and(|data: usize| (last..=self.writes.len()).contains(&data)) {
            faults.push(format!("write {last} was acknowledged, and the data is {data:?} in the end"));
        }
        faults
    }
}

/// A process full of sessions.
#[derive(Debug)]
pub struct Load {
    teller: Teller<LoadAccount>,
}

#[derive(Debug)]
struct LoadAccount {
    sessions: Vec<SessionAccount>,
    is_ready: bool,
}

impl Load {
    /// One of each library.
    pub fn start_all(root: &str, hosts: &[String]) -> [Load; 2] {
        Library::WITH_LOAD.map(|library| Load::start(library, &format!("{root}-{library:?}"), hosts))
    }

    /// Opens one session for each connection string and lets them write, as soon as all are there, below `root`.
    pub fn start(library: Library, root: &str, hosts: &[String]) -> Load {
        let mut command = library.command(Program::Load);
        let path = |number| SessionAccount { path: format!("{root}/{number}"), ..SessionAccount::default() };
        let sessions = (0..hosts.len()).map(path).collect();
        let seen = LoadAccount { sessions, is_ready: false };
        let name = format!("the load of {library:?}");
        Load { teller: Teller::start(name, command.arg(root).args(hosts), seen) }
    }

    /// Waits until every session has got `more` writes acknowledged.
    pub fn wait_for_writes(&self, more: usize) {
        self.teller.wait("is not ready", |seen| seen.is_ready);
        let before: Vec<usize> =
            self.teller.look(|seen| seen.sessions.iter().map(SessionAccount::acknowledged).collect());
        self.teller.wait(&format!("has not made {more} writes more than {before:?}"), |seen| {
            seen.sessions.iter().zip(&before).all(|(session, before)| session.acknowledged() >= before + more)
        });
    }

    /// Lets the sessions end, and returns what is known of them.
    pub fn stop(mut self) -> Vec<SessionAccount> {
        self.teller.stop();
        let sessions = self.teller.look(|seen| seen.sessions.clone());
        assert!(sessions.iter().all(|session| session.end.is_some()), "a session was not closed");
        sessions
    }
}

impl Listener for LoadAccount {
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        if words == ["ready"] {
            self.is_ready = true;
            return;
        }
        let number =
            |at: usize| words[at].parse::<i64>().unwrap_or_else(|_| panic!("number {at} of {line:?}"));
        let write = |result| Write { start_ns: number(2), end_ns: number(3), result };
        let session = &mut self.sessions[number(1) as usize];
        match words[0] {
            "session" => session.id = words[2].to_owned(),
            "write" => session.writes.push(write(Ok(number(4) as i32))),
            "failed" => session.writes.push(write(Err(words[4].to_owned()))),
            "state" => session.states.push(words[2..].join(" ")),
            "closed" => session.end = Some((words[2].to_owned(), words[3].to_owned())),
            _ => panic!("a load says {line:?}"),
        }
    }
}

/// A connection string for each session, all with the same members, so that every member is the first of some.
pub fn spread(members: &[SocketAddr], sessions: usize) -> Vec<String> {
    let hosts = |first: usize| {
        let order = (0..members.len()).map(|place| members[(first + place) % members.len()].to_string());
        order.collect::<Vec<_>>().join(",")
    };
    (0..sessions).map(hosts).collect()
}

/// Every session that writes now has its ephemeral, as a member sees it after a sync.
#[tokio::main(flavor = "current_thread")]
pub async fn check_ephemerals(member: SocketAddr, loads: &[Load]) {
    let client = connect(member).await;
    client.sync("/").await.expect("a sync asks the quorum");
    for session in loads.iter().flat_map(|load| load.teller.look(|seen| seen.sessions.clone())) {
        let path = format!("{}/here", session.path);
        let stat = client.exists(&path).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(format!("{:#x}", stat.ephemeral_owner.0), session.id, "{path}");
    }
    client.close().await.expect("close");
}

/// A member has what sessions that have ended read in the end.
#[tokio::main(flavor = "current_thread")]
pub async fn check_data(member: SocketAddr, sessions: &[SessionAccount]) {
    let client = connect(member).await;
    for SessionAccount { path, end, .. } in sessions {
        let data = client.get_data(path).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let (_, expected) = end.as_ref().expect("the load has ended");
        assert_eq!(data.bytes.as_deref(), Some(expected.as_bytes()), "{path}");
    }
    client.close().await.expect("close");
}

async fn connect(member: SocketAddr) -> Client {
    let options = ClientOptions::default();
    Client::connect(&member.to_string(), options).await.expect("connect to a member")
}

/// The longest time between two moments in which none of the sessions got an answer to a write.
pub fn longest_gap(sessions: &[SessionAccount], from_ns: i64, to_ns: i64) -> Duration {
    let answered = sessions.iter().flat_map(|session| &session.writes).filter(|write| write.result.is_ok());
    let mut times: Vec<i64> = answered.map(|write| write.end_ns).collect();
    times.retain(|time| (from_ns..=to_ns).contains(time));
    times.extend([from_ns, to_ns]);
    times.sort_unstable();
    let gap = times.windows(2).map(|pair| pair[1] - pair[0]).max().expect("there are two moments at least");
    Duration::from_nanos(gap.unsigned_abs())
}

/// Now, by the clock of the clients' times.
pub fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
