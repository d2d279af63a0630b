//! Scripts of one member: lines in, what connections are told out. `UPDATE_SCRIPTS=1` writes the answers anew; review the difference.
//!
//! A script is a list of stories, with a blank line between them: some lines, `---`, the answers. One member lives through a
//! script. A line is a command of `Script::run`; connections are numbered. Answers come with `settle`, `tick` and `apply`:
//! `1: #7 "/a"` is what connection 1 is told of its request 7.

use std::collections::BTreeMap;

use super::scripts::{answered, check, commands};
use super::*;

#[test]
fn scripts() {
    check("member", play);
}

/// The script with the answers that it gets now.
fn play(script: &str) -> String {
    let mut stage = Script { member: Member::start(vec![], HardState::default()), clients: BTreeMap::new() };
    let stories = script.trim().split("\n\n").map(|story| {
        let answers: Vec<String> = commands(story).flat_map(|line| stage.run(line)).collect();
        answered(story, &answers)
    });
    stories.collect::<Vec<_>>().join("\n\n") + "\n"
}

struct Script {
    member: Member,
    clients: BTreeMap<u64, Client>,
}

impl Script {
    /// Runs one line. Returns what is to be told of it.
    fn run(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| -> i64 { words[at].parse().unwrap_or_else(|_| panic!("{line}: word {at}")) };
        let client = |script: &Script| script.clients[&(number(1) as u64)].clone();
        match words[0] {
            "connect" => {
                let connection = number(1) as u64;
                let client = self.member.connect(connection, number(2) as i32);
                self.clients.insert(connection, client);
            }
            "resume" => self.resume(number(1) as u64, number(2) as u64, number(3) as i32),
            "claim" => self.claim(&words),
            "bind" => {
                let (conn, session) = (conn(number(1) as u64), client(self).session);
                let ids = proven(words[2]);
                self.member.step(Input::Client(ClientInput::Bind { conn, session, ids }));
            }
            "disconnect" => {
                self.member.step(Input::Client(ClientInput::Disconnect { conn: conn(number(1) as u64) }));
            }
            "touch" => {
                let session = client(self).session;
                self.member.step(Input::Client(ClientInput::Touch { session }));
            }
            "create" => {
                let flags = i32::from(words.get(5) == Some(&"ephemeral"));
                self.member.create(
                    &client(self),
                    number(2) as i32,
                    words[3],
                    words[4].trim_matches('"'),
                    flags,
                );
            }
            "container" => {
                let mut body = Vec::new();
                body.put_string(words[3]);
                body.put_string("");
                body.extend_from_slice(paddock_proto::AclList::OPEN.wire());
                body.put_i32(4);
                self.member.write(&client(self), number(2) as i32, OpCode::CreateContainer, &body);
            }
            "set" => self.member.set(&client(self), number(2) as i32, words[3], words[4].trim_matches('"')),
            "delete" => {
                let mut body = Vec::new();
                body.put_string(words[3]);
                body.put_i32(-1);
                self.member.write(&client(self), number(2) as i32, OpCode::Delete, &body);
            }
            "close" => self.member.write(&client(self), number(2) as i32, OpCode::CloseSession, &[]),
            "get" => {
                self.member.get(&client(self), number(2) as i32, words[3], words.get(4) == Some(&"watch"));
            }
            "tick" => return self.member.tick_at(number(1) as u64),
            "stand-still" => return self.member.stand_still_until(number(1) as u64),
            "settle" => return self.member.settle(),
            "collect" => {
                self.member.replica.collect(self.member.now, &mut self.member.effects);
                let Effects { committed, locals, .. } = &self.member.effects;
                return vec![format!("collected committed={} locals={locals}", committed.len())];
            }
            "apply" => {
                self.member.apply();
                return self.member.story();
            }
            "persist" => return vec![format!("persisted {}", self.member.persist())],
            "tree" => {
                let tree = self.member.state.tree();
                let is_there = |path: &&&str| tree.stat(path).is_some();
                let there: Vec<&str> = words[1..].iter().filter(is_there).copied().collect();
                let line =
                    format!("zxid={} sessions={} {}", tree.zxid(), tree.sessions().count(), there.join(" "));
                return vec![line.trim_end().to_owned()];
            }
            "restart" => {
                self.member = Member::start(std::mem::take(&mut self.member.disk), self.member.hard_state);
            }
            other => panic!("no command {other:?}"),
        }
        Vec::new()
    }

    /// Connection `number` wants the session back that connection `former` had.
    fn resume(&mut self, number: u64, former: u64, timeout_ms: i32) {
        let session = self.clients[&former].session;
        let moves = self.member.state.tree().session_moves(session);
        self.resume_as(number, Resumption { moves, ..Resumption::keyed(session, timeout_ms) });
    }

    fn resume_as(&mut self, number: u64, resumption: Resumption) {
        let conn = conn(number);
        self.clients.insert(number, Client::new(conn, resumption.session, &[]));
        self.member.step(Input::Client(ClientInput::Resume { conn, resumption, may_only_read: false }));
    }

    /// `claim CONNECTION FORMER [USER] [asking] [zookeeper]`: a client wants the session of connection FORMER, as a user of SASL or
    /// before it has shown who it is, with a keyed password or ZooKeeper's.
    fn claim(&mut self, words: &[&str]) {
        let number = |at: usize| words[at].parse().expect("a number");
        let is_option = |word: &&&str| ["asking", "zookeeper"].contains(*word);
        let user = words[3..].iter().find(|word| !is_option(word));
        let resumption = Resumption {
            session: self.clients[&number(2)].session,
            timeout_ms: 4000,
            is_keyed: !words.contains(&"zookeeper"),
            is_asking: words.contains(&"asking"),
            moves: self.member.state.tree().session_moves(self.clients[&number(2)].session),
            ids: user.map(|user| proven(user)).unwrap_or_default(),
        };
        self.resume_as(number(1), resumption);
    }
}

fn proven(user: &str) -> ProvenIds {
    let ids = IdList::encode(&[Id::new("sasl", user)]);
    ProvenIds::of(IdList::decode(&mut Reader::new(&ids)).expect("ids come back as encoded"))
}
