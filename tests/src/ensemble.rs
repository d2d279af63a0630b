//! An ensemble of Paddock processes on loopback, all started on one `zoo.cfg` but for the client's port.

use std::time::{Duration, Instant};

use crate::server::{Server, free_port};

const AGREED_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Ensemble {
    members: Vec<Server>,
}

impl Ensemble {
    /// Starts so many members and waits until one leads.
    pub fn start(members: usize) -> Ensemble {
        Ensemble::start_with(members, &[])
    }

    /// The same with more lines in every `zoo.cfg`.
    pub fn start_with(members: usize, settings: &[(&str, &str)]) -> Ensemble {
        let settings: Vec<(String, String)> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Ensemble::start_each(members, &server_lines(members), |_| settings.clone())
    }

    /// The same with lines that differ from member to member, which are numbered from 1.
    pub fn start_each(
        members: usize,
        servers: &[(String, String)],
        settings: impl Fn(usize) -> Vec<(String, String)>,
    ) -> Ensemble {
        let start = |id| {
            let own = settings(id);
            let all: Vec<(&str, &str)> =
                servers.iter().chain(&own).map(|(key, value)| (&**key, &**value)).collect();
            Server::start_member(id, &all)
        };
        let mut ensemble = Ensemble { members: (1..=members).map(start).collect() };
        ensemble.leader();
        ensemble
    }

    /// `host:port` of every member, for a client.
    pub fn hosts(&self) -> String {
        let addresses: Vec<String> = self.members.iter().map(|member| member.address().to_string()).collect();
        addresses.join(",")
    }

    /// By its place from 0.
    pub fn member(&mut self, number: usize) -> &mut Server {
        &mut self.members[number]
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The place of the member that leads now; waits until one does and all that run follow.
    pub fn leader(&mut self) -> usize {
        let deadline = Instant::now() + AGREED_WITHIN;
        loop {
            let modes: Vec<Option<String>> = self.members.iter().map(mode).collect();
            let running = self.members.iter().filter(|member| member.is_running()).count();
            let count = |wanted: &str| modes.iter().filter(|mode| mode.as_deref() == Some(wanted)).count();
            if count("leader") == 1 && count("leader") + count("follower") == running {
                return modes
                    .iter()
                    .position(|mode| mode.as_deref() == Some("leader"))
                    .expect("it was counted");
            }
            assert!(
                Instant::now() < deadline,
                "no leader that all follow after {AGREED_WITHIN:?}: {modes:?}"
            );
            std::thread::yield_now();
        }
    }

    /// Waits until all members have applied as much as the one that has applied most.
    pub fn settle(&self) {
        let deadline = Instant::now() + AGREED_WITHIN;
        loop {
            let zxids: Vec<Option<String>> =
                self.members.iter().map(|member| word(member, "Zxid: ")).collect();
            if zxids.iter().all(|zxid| zxid.is_some() && *zxid == zxids[0]) {
                return;
            }
            assert!(Instant::now() < deadline, "members differ after {AGREED_WITHIN:?}: {zxids:?}");
            std::thread::yield_now();
        }
    }
}

/// The lines that name so many members, each on ports of its own.
pub fn server_lines(members: usize) -> Vec<(String, String)> {
    let line = |id| (format!("server.{id}"), format!("127.0.0.1:{}:{}", free_port(), free_port()));
    (1..=members).map(line).collect()
}

fn mode(member: &Server) -> Option<String> {
    word(member, "Mode: ")
}

fn word(member: &Server, name: &str) -> Option<String> {
    if !member.is_running() {
        return None;
    }
    let srvr = member.four_letter_word("srvr").ok()?;
    srvr.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}
