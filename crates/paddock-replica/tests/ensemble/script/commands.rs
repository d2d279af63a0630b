//! Commands of a script: elections, clients, what happens to members, and time.

use paddock_proto::OpCode;
use paddock_replica::Role;

use super::super::stage::{Stage, server_line};
use super::{Connection, Script, founding, number, option};

const PARTS: [&str; 5] = ["leader", "follower", "third", "fourth", "fifth"];

/// True for commands after which members do not talk until all is quiet, though they were not submitted.
pub(super) fn is_quiet(command: &str) -> bool {
    ["deliver", "step", "until", "pour", "touch", "mark", "pass"].contains(&command)
}

impl Script {
    /// Carries out a command. Returns what is to be told of it.
    pub(super) fn act(&mut self, command: &str, words: &[&str], is_submitted: bool) -> Option<String> {
        match command {
            "elect" => return Some(self.elect(words)),
            "fill" => return Some(self.fill(words)),
            "pour" => return Some(self.pour(words)),
            "silence-within" => return Some(self.silence_within(number(words[0]), number(words[1]))),
            "connect" => self.connect(words),
            "ask" => self.ask(words),
            "resume" => self.resume(words, is_submitted),
            "hang-up" => {
                let named = self.connections.iter().find(|connection| connection.name == words[0]);
                let Connection { member, number, .. } = named.expect("it has a connection");
                self.stage.hang_up(*member, *number);
            }
            "create" | "container" | "delete" | "set" | "get" | "watch" | "sync" | "touch" | "disconnect"
            | "reconfig" => {
                self.request(command, words);
            }
            "tick" | "hear" | "step" | "until" | "deliver" | "settle" | "pass" | "mark" => {
                self.go_on(command, words);
            }
            "configure" => founding::configure(&mut self.stage, words),
            "elsewhere" => self.go_elsewhere(words),
            "home" => self.come_home(),
            "wall-clock" => self.stage.set_wall_clock(number(words[0]) as i64),
            "keep" => {
                let disk = self.stage.copy_disk(self.member(words[1]));
                self.disks.insert(words[0].to_owned(), disk);
            }
            "start-with" => self.stage.start_with(self.member(words[0]), self.disks[words[1]].clone()),
            "corrupt" => self.stage.corrupt(self.member(words[0]), words[1]),
            "lose-link" => self.stage.lose_link(self.member(words[0]), self.member(words[1])),
            "tell-last" => self.stage.tell_last(self.member(words[0]), self.member(words[1])),
            "apart" => self.stage.set_apart(&self.members(words)),
            _ => self.happen(command, words),
        }
        None
    }

    /// `elect`, `elect NAME` or `elect NAME beside MEMBER`: until a member leads. With `anyone` for its name it is not told who.
    fn elect(&mut self, words: &[&str]) -> String {
        let leader = match words {
            [_, "beside", former] => self.stage.elect_beside(self.member(former)),
            _ => self.stage.elect(),
        };
        if self.names.is_empty() {
            let others = self.stage.numbers().into_iter().filter(|member| *member != leader);
            let members = std::iter::once(leader).chain(others);
            self.names = PARTS.iter().map(|part| part.to_string()).zip(members).collect();
        }
        let name = words.first().unwrap_or(&"leader");
        if *name == "anyone" {
            return "elected".to_owned();
        }
        let told = format!("{name}={}", self.name(leader));
        if self.names.iter().all(|(known, _)| known != name) {
            self.names.push(((*name).to_owned(), leader));
        }
        told
    }

    /// `connect CLIENT MEMBER`: a new session.
    fn connect(&mut self, words: &[&str]) {
        let (member, number) = (self.member(words[1]), self.next_connection());
        let guest = Some(self.stage.connect(member, number));
        self.connections.push(Connection { name: words[0].to_owned(), member, number, guest });
    }

    /// `ask CLIENT MEMBER [read-only]`: asks for a session that it may not get.
    fn ask(&mut self, words: &[&str]) {
        let (member, number) = (self.member(words[1]), self.next_connection());
        self.stage.ask_for_session(member, number, words.get(2) == Some(&"read-only"));
        self.connections.push(Connection { name: words[0].to_owned(), member, number, guest: None });
    }

    /// `resume CLIENT MEMBER FORMER`: a session goes on over another connection.
    fn resume(&mut self, words: &[&str], is_submitted: bool) {
        let (member, number) = (self.member(words[1]), self.next_connection());
        let conn = self.stage.submit_resume(member, number, &self.guest(words[2]));
        let guest = (!is_submitted).then(|| self.stage.greet(member, conn));
        self.connections.push(Connection { name: words[0].to_owned(), member, number, guest });
    }

    fn next_connection(&self) -> u64 {
        self.connections.len() as u64 + 1
    }

    /// `create CLIENT XID PATH ["DATA"] [ephemeral|sequential]` and its like.
    fn request(&mut self, command: &str, words: &[&str]) {
        let guest = self.guest(words[0]);
        let (xid, path) = (words.get(1).map_or(0, |xid| number(xid) as i32), words.get(2).unwrap_or(&""));
        let data = words.get(3..).unwrap_or_default().join(" ");
        let data = data.split('"').nth(1).unwrap_or_default();
        match command {
            "create" => {
                let flags = match *words.last().expect("a create has words") {
                    "ephemeral" => 1,
                    "sequential" => 2,
                    _ => 0,
                };
                self.stage.submit_create(&guest, xid, path, data, flags);
            }
            "container" => self.stage.submit_container(&guest, xid, path),
            "delete" => self.stage.submit_delete(&guest, xid, path),
            "set" => self.stage.submit_set(&guest, xid, path, data),
            "get" => self.stage.submit_local(&guest, xid, OpCode::GetData, path),
            "sync" => self.stage.submit_local(&guest, xid, OpCode::Sync, path),
            "watch" => self.stage.watch(&guest, xid, path),
            "touch" => self.stage.touch(&guest),
            "reconfig" => {
                let (joining, leaving) = self.change(&words[2..].join(" "));
                self.stage.submit_reconfig(&guest, xid, &joining, &leaving);
            }
            _ => self.stage.disconnect(&guest),
        }
    }

    /// `join=4,5 observe=follower leave=leader`: lines of the members that join, and numbers of those that leave.
    fn change(&self, line: &str) -> (Vec<String>, Vec<u64>) {
        let named = |option_name| {
            let names = option(line, option_name).map_or(Vec::new(), |names| names.split(',').collect());
            self.members(&names)
        };
        let voters = named("join").into_iter().map(|id| server_line(id, "participant"));
        let observers = named("observe").into_iter().map(|id| server_line(id, "observer"));
        (voters.chain(observers).collect(), named("leave"))
    }

    /// `fill CLIENT XID XID PATH BYTES`: creates, with these xids, of the path and the xid. Returns the count of good replies.
    fn fill(&mut self, words: &[&str]) -> String {
        let guest = self.guest(words[0]);
        let data = "x".repeat(number(words[4]) as usize);
        for xid in number(words[1])..=number(words[2]) {
            self.stage.create(&guest, xid as i32, &format!("{}{xid}", words[3]), &data);
        }
        self.good_replies(words[0])
    }

    /// `pour CLIENT XID XID PATH BYTES`: the same creates, one in each step, whether they are answered or not.
    fn pour(&mut self, words: &[&str]) -> String {
        let guest = self.guest(words[0]);
        let data = "x".repeat(number(words[4]) as usize);
        for xid in number(words[1])..=number(words[2]) {
            self.stage.submit_create(&guest, xid as i32, &format!("{}{xid}", words[3]), &data, 0);
            self.stage.touch(&guest);
            self.stage.step_once();
        }
        self.good_replies(words[0])
    }

    fn good_replies(&mut self, client: &str) -> String {
        let stories = self.stories();
        let good = stories.iter().filter(|line| line.contains(" \"/")).count();
        format!("{client}: {good} of {} lines are good", stories.len())
    }

    /// Time passes, or messages arrive.
    fn go_on(&mut self, command: &str, words: &[&str]) {
        match command {
            "tick" => self.stage.run_ticks(self.number(words[0])),
            "hear" => self.stage.run_ticks_with(&self.guest(words[0]), number(words[1])),
            "step" => (0..self.number(words[0])).for_each(|_| self.stage.step_once()),
            "until" => self.go_on_until_one_looks(words),
            "deliver" => self.stage.deliver_all(),
            "pass" => self.stage.pass_time(number(words[0])),
            "mark" => {
                let numbers = self.stage.numbers();
                let entries = numbers.into_iter().map(|member| (member, self.stage.entries(member)));
                self.marked = (entries.collect(), self.stage.messages_carried);
            }
            _ => self.stage.settle(),
        }
    }

    /// `until looking REQUEST …`: the request and a step, again and again, until a member looks for a leader.
    fn go_on_until_one_looks(&mut self, words: &[&str]) {
        assert_eq!(words[0], "looking", "there is nothing else to wait for");
        for _ in 0..500 {
            self.request(words[1], &words[2..]);
            self.stage.step_once();
            if self.stage.roles().contains(&Role::Looking) {
                return;
            }
        }
        panic!("nobody looks for a leader after 500 steps");
    }

    /// `silence-within TICKS MS`: says whether every running member has heard of a leader within MS milliseconds, in each
    /// of TICKS ticks.
    fn silence_within(&mut self, ticks: u64, most_ms: u64) -> String {
        for tick in 1..=ticks {
            self.stage.run_ticks(1);
            for member in self.stage.numbers().into_iter().filter(|member| self.stage.is_running(*member)) {
                let silence_ms = self.stage.silence_ms(member);
                if silence_ms > most_ms {
                    let name = self.name(member);
                    return format!("{name} has heard nothing for {silence_ms}ms in tick {tick}");
                }
            }
        }
        format!("silence stays within {most_ms}ms for {ticks} ticks")
    }

    /// `elsewhere 3 seed=61`, or `seed=+100` for one that goes by the story's own: the next lines are of another ensemble, whose
    /// members have the same names. `keep` may take a disk from there.
    fn go_elsewhere(&mut self, words: &[&str]) {
        let line = format!("members {}", words.join(" "));
        let seed = option(&line, "seed").expect("an ensemble has a seed");
        let seed = seed.strip_prefix('+').map_or_else(|| number(seed), |more| self.seed + number(more));
        let mut elsewhere = Script::new(&line, seed, self.rounds);
        elsewhere.names.clone_from(&self.names);
        elsewhere.disks = std::mem::take(&mut self.disks);
        elsewhere.clusters = std::mem::take(&mut self.clusters);
        let home = std::mem::replace(self, elsewhere);
        self.home = Some(Box::new(home));
    }

    fn come_home(&mut self) {
        let home = *self.home.take().expect("the story is elsewhere");
        let elsewhere = std::mem::replace(self, home);
        (self.disks, self.clusters) = (elsewhere.disks, elsewhere.clusters);
    }

    /// Something happens to members, one after the other.
    fn happen(&mut self, command: &str, words: &[&str]) {
        assert!(!words.is_empty(), "{command} is said of members");
        let happens: fn(&mut Stage, u64) = match command {
            "cut" => Stage::cut,
            "mend" => Stage::mend,
            "stop" => Stage::stop,
            "start" => Stage::start,
            "start-empty" => Stage::start_empty,
            "sleep" => Stage::sleep,
            "wake" => Stage::wake,
            "deafen" => Stage::deafen,
            "tell" => Stage::tell,
            "disk-full" => |stage, member| stage.disk_full(member, true),
            "disk-room" => |stage, member| stage.disk_full(member, false),
            "damage-snapshot" => Stage::damage_snapshot,
            other => panic!("no command {other:?}"),
        };
        for member in self.members(words) {
            happens(&mut self.stage, member);
        }
    }
}
