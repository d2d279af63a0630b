//! Scripts of several members: lines in, what connections and members say out.
//!
//! A script is a list of paragraphs, with a blank line between them: a title, some lines, `---`, the answers. A paragraph that
//! begins with `members` begins a story with an ensemble of its own; the ones behind it go on with that. A line is a command of
//! `Script::run`. What connections are told stands among the answers, behind the command that brought it about:
//! `ann: #7 "/a"` is what ann is told of her request 7.
//!
//! A member is named for its part when the ensemble first had a leader: `leader`, `follower`, and `third` and so on for the
//! rest; before that, and if it is new, by its number. So a story with `seeds=0..20` has the same answers with each of them,
//! which is checked.

use std::collections::BTreeMap;

use paddock_proto::OpCode;
use paddock_replica::Role;

use super::stage::{Guest, Stage};
use crate::scripts::{answered, check, commands};

const PARTS: [&str; 5] = ["leader", "follower", "third", "fourth", "fifth"];

#[test]
fn scripts() {
    check("ensemble", play);
}

/// The script with the answers that it gets now.
fn play(script: &str) -> String {
    let mut stories: Vec<Vec<&str>> = Vec::new();
    for paragraph in script.trim().split("\n\n") {
        let begins = commands(paragraph).next().is_some_and(|line| line.starts_with("members "));
        match stories.last_mut().filter(|_| !begins) {
            Some(story) => story.push(paragraph),
            None => stories.push(vec![paragraph]),
        }
    }
    stories.iter().map(|story| play_story(story)).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Plays a story with each of its seeds. Returns its paragraphs with their answers.
fn play_story(story: &[&str]) -> String {
    let first = commands(story[0]).next().expect("a story begins with its members");
    let seeds = option(first, "seeds").map_or_else(
        || {
            let seed = option(first, "seed").expect("a story has a seed");
            let seed: u64 = seed.parse().expect("a seed is a number");
            seed..seed + 1
        },
        |seeds| {
            let (from, to) = seeds.split_once("..").expect("seeds are a range");
            from.parse().expect("a seed is a number")..to.parse().expect("a seed is a number")
        },
    );
    let first_seed = seeds.start;
    let mut all = seeds.map(|seed| (seed, play_with(story, seed)));
    let (_, played) = all.next().expect("there are seeds");
    for (seed, other) in all {
        assert_eq!(other, played, "seed {seed} plays differently from seed {first_seed}");
    }
    played
}

fn play_with(story: &[&str], seed: u64) -> String {
    let mut lines = story.iter().flat_map(|paragraph| commands(paragraph));
    let mut script = Script::new(lines.next().expect("a story begins with its members"), seed);
    let played = story.iter().map(|paragraph| {
        let lines = commands(paragraph).filter(|line| !line.starts_with("members "));
        let answers: Vec<String> = lines.flat_map(|line| script.run(line)).collect();
        answered(paragraph, &answers)
    });
    played.collect::<Vec<_>>().join("\n\n")
}

/// Value of `name=value` in a line.
fn option<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// A connection of a story; those that were only asked for have no guest.
struct Connection {
    name: String,
    member: u64,
    number: u64,
    guest: Option<Guest>,
}

struct Script {
    stage: Stage,
    /// Members by the names that the story gives them; the first name of a member is the one that answers use.
    names: Vec<(String, u64)>,
    connections: Vec<Connection>,
    /// Entries of each member, and messages carried, when `mark` was said.
    marked: (BTreeMap<u64, usize>, usize),
}

impl Script {
    fn new(line: &str, seed: u64) -> Script {
        let count = line.split_whitespace().nth(1).expect("so many members");
        let mut stage = Stage::new(count.parse().expect("a number of members"), seed);
        stage.linearizable_reads = option(line, "reads") == Some("linearizable");
        stage.lease_clock_bound_ms =
            option(line, "lease").map(|ms| ms.parse().expect("a lease's bound in ms"));
        if stage.linearizable_reads || stage.lease_clock_bound_ms.is_some() {
            stage.numbers().into_iter().for_each(|member| stage.start_empty(member));
        }
        if let Some(entries) = option(line, "entries") {
            stage.entries_max = entries.parse().expect("a number of entries");
        }
        Script { stage, names: Vec::new(), connections: Vec::new(), marked: (BTreeMap::new(), 0) }
    }

    /// Runs one line. Returns what is to be told of it.
    fn run(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (command, words) = match words[..] {
            ["submit", command, ..] => (command, &words[2..]),
            _ => (words[0], &words[1..]),
        };
        let told = match command {
            "elect" => self.elect(words),
            "connect" | "ask" | "resume" | "submit-resume" => self.connect(command, words),
            "create" | "set" | "get" | "watch" | "sync" | "touch" | "disconnect" => {
                self.request(command, words);
                None
            }
            "fill" => return vec![self.fill(words)],
            "tick" => {
                self.stage.run_ticks(number(words[0]));
                None
            }
            "hear" => {
                let guest = self.guest(words[0]);
                self.stage.run_ticks_with(&guest, number(words[1]));
                None
            }
            "step" => {
                (0..number(words[0])).for_each(|_| self.stage.step_once());
                None
            }
            "deliver" => {
                self.stage.deliver_all();
                None
            }
            "settle" => None,
            "mark" => {
                let numbers = self.stage.numbers();
                let entries = numbers.into_iter().map(|member| (member, self.stage.entries(member)));
                self.marked = (entries.collect(), self.stage.messages_carried);
                None
            }
            "pass" => {
                self.stage.pass_time(number(words[0]));
                None
            }
            "corrupt" => {
                self.stage.corrupt(self.member(words[0]), words[1]);
                None
            }
            "diverged" => {
                let diverged =
                    self.stage.numbers().into_iter().filter(|member| self.stage.has_diverged(*member));
                Some(format!("diverged: {}", self.listed(diverged)))
            }
            "silence-within" => Some(self.silence_within(number(words[0]), number(words[1]))),
            "messages" => Some(format!("messages={}", self.stage.messages_carried - self.marked.1)),
            "leaders" => Some(format!("leaders={}", self.count(Role::Leader))),
            "looking" => Some(format!("looking={}", self.count(Role::Looking))),
            "entries" | "data" | "session" | "roles" | "silence" | "watches" | "differing" => {
                Some(self.shown(command, words))
            }
            "agree" => {
                self.stage.check_agreement();
                Some("all agree".to_owned())
            }
            _ => {
                self.happen(command, words);
                None
            }
        };
        // A question about members changes nothing on the way.
        let asks = [
            "data",
            "diverged",
            "differing",
            "entries",
            "roles",
            "session",
            "silence",
            "watches",
            "leaders",
            "looking",
            "messages",
        ];
        let is_quiet =
            ["deliver", "step", "touch", "mark", "pass"].contains(&command) || asks.contains(&command);
        let is_submitted = line.starts_with("submit") || is_quiet;
        if !is_submitted {
            self.stage.settle();
        }
        let mut answers = self.stories();
        answers.extend(told);
        answers
    }

    /// `elect`, `elect NAME` or `elect NAME beside MEMBER`: until a member leads.
    fn elect(&mut self, words: &[&str]) -> Option<String> {
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
        let told = format!("{name}={}", self.name(leader));
        if self.names.iter().all(|(known, _)| known != name) {
            self.names.push(((*name).to_owned(), leader));
        }
        Some(told)
    }

    /// `connect CLIENT MEMBER`, `ask CLIENT MEMBER [read-only]`, `resume CLIENT MEMBER FORMER`.
    fn connect(&mut self, command: &str, words: &[&str]) -> Option<String> {
        let (member, number) = (self.member(words[1]), self.connections.len() as u64 + 1);
        let guest = match command {
            "ask" => {
                self.stage.ask_for_session(member, number, words.get(2) == Some(&"read-only"));
                None
            }
            "submit-resume" => {
                let former = self.guest(words[2]);
                self.stage.submit_resume(member, number, &former);
                None
            }
            "resume" => {
                let former = self.guest(words[2]);
                Some(self.stage.resume(member, number, &former))
            }
            _ => Some(self.stage.connect(member, number)),
        };
        self.connections.push(Connection { name: words[0].to_owned(), member, number, guest });
        None
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
            "set" => self.stage.submit_set(&guest, xid, path, data),
            "get" => self.stage.submit_local(&guest, xid, OpCode::GetData, path),
            "sync" => self.stage.submit_local(&guest, xid, OpCode::Sync, path),
            "watch" => self.stage.watch(&guest, xid, path),
            "touch" => self.stage.touch(&guest),
            _ => self.stage.disconnect(&guest),
        }
    }

    /// `fill CLIENT XID XID PATH BYTES`: creates, with these xids, of the path and the xid. Returns the count of good replies.
    fn fill(&mut self, words: &[&str]) -> String {
        let guest = self.guest(words[0]);
        let data = "x".repeat(number(words[4]) as usize);
        for xid in number(words[1])..=number(words[2]) {
            self.stage.create(&guest, xid as i32, &format!("{}{xid}", words[3]), &data);
        }
        let stories = self.stories();
        let good = stories.iter().filter(|line| line.contains(" \"/")).count();
        format!("{}: {good} of {} lines are good", words[0], stories.len())
    }

    /// Something happens to members.
    fn happen(&mut self, command: &str, words: &[&str]) {
        let members: Vec<u64> = words.iter().map(|word| self.member(word)).collect();
        match command {
            "lose-link" => return self.stage.lose_link(members[0], members[1]),
            "apart" => return self.stage.set_apart(&members),
            _ => assert!(!members.is_empty(), "{command} is said of members"),
        }
        for member in members {
            match command {
                "cut" => self.stage.cut(member),
                "mend" => self.stage.mend(member),
                "stop" => self.stage.stop(member),
                "start" => self.stage.start(member),
                "start-empty" => self.stage.start_empty(member),
                "sleep" => self.stage.sleep(member),
                "wake" => self.stage.wake(member),
                "deafen" => self.stage.deafen(member),
                "tell" => self.stage.tell(member),
                "disk-full" => self.stage.disk_full(member, true),
                "disk-room" => self.stage.disk_full(member, false),
                "damage-snapshot" => self.stage.damage_snapshot(member),
                other => panic!("no command {other:?}"),
            }
        }
    }

    /// Facts of each running member, as `leader=…`, in the order in which they were named.
    fn shown(&self, command: &str, words: &[&str]) -> String {
        let mut members: Vec<u64> = Vec::new();
        for (_, member) in &self.names {
            if !members.contains(member) && self.stage.is_running(*member) {
                members.push(*member);
            }
        }
        let show = |member: u64| match command {
            "entries" => (self.stage.entries(member) - self.marked.0[&member]).to_string(),
            "data" => match self.stage.data(member, words[0]) {
                Some(data) if data.len() > 20 => format!("{} bytes", data.len()),
                Some(data) => format!("{data:?}"),
                None => "none".to_owned(),
            },
            "session" => self.stage.has_session_at(member, &self.guest(words[0])).to_string(),
            "roles" => format!("{:?}", self.stage.role(member)),
            "silence" => format!("{}ms", self.stage.silence_ms(member)),
            "differing" => self.listed(self.stage.differing(member).iter().copied()),
            _ => self.stage.watch_count(member).to_string(),
        };
        let shown: Vec<String> =
            members.into_iter().map(|member| format!("{}={}", self.name(member), show(member))).collect();
        format!("{}: {}", [&[command], words].concat().join(" "), shown.join(" "))
    }

    /// Says whether every running member has heard of a leader within so many milliseconds, in each of so many ticks.
    fn silence_within(&mut self, ticks: u64, most_ms: u64) -> String {
        for tick in 1..=ticks {
            self.stage.run_ticks(1);
            for member in self.stage.numbers().into_iter().filter(|member| self.stage.is_running(*member)) {
                let silence_ms = self.stage.silence_ms(member);
                if silence_ms > most_ms {
                    return format!(
                        "{} has heard nothing for {silence_ms}ms in tick {tick}",
                        self.name(member)
                    );
                }
            }
        }
        format!("silence stays within {most_ms}ms for {ticks} ticks")
    }

    /// Names of members, each once, or `nobody`.
    fn listed(&self, members: impl Iterator<Item = u64>) -> String {
        let mut names: Vec<&str> = members.map(|member| self.name(member)).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "nobody".to_owned() } else { names.join(",") }
    }

    fn count(&self, role: Role) -> usize {
        self.stage.roles().iter().filter(|other| **other == role).count()
    }

    /// Lines that connections were told since this was asked last.
    fn stories(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for Connection { name, member, number, .. } in &self.connections {
            let story = self.stage.story_of(*member, *number);
            lines.extend(story.into_iter().map(|line| format!("{name}: {line}")));
        }
        lines
    }

    fn member(&self, name: &str) -> u64 {
        let named = self.names.iter().find(|(known, _)| known == name).map(|(_, member)| *member);
        named.unwrap_or_else(|| name.parse().unwrap_or_else(|_| panic!("no member {name:?}")))
    }

    fn name(&self, member: u64) -> &str {
        let named = self.names.iter().find(|(_, number)| *number == member);
        named.map(|(name, _)| name.as_str()).expect("every member was named at the first election")
    }

    fn guest(&self, name: &str) -> Guest {
        let connection = self.connections.iter().find(|connection| connection.name == name);
        let guest = connection.and_then(|connection| connection.guest.clone());
        guest.unwrap_or_else(|| panic!("no client {name:?}"))
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
}
