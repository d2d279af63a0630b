//! Scripts of several members: lines in, what connections and members say out.
//!
//! A script is a list of paragraphs, with a blank line between them: a title, some lines, `---`, the answers. A paragraph that
//! begins with `members` begins a story with an ensemble of its own; the ones behind it go on with that. A line is a command
//! (`script/commands.rs`) or asks for a fact (`script/facts.rs`). What connections are told stands among the answers, behind the
//! command that brought it about: `ann: #7 "/a"` is what ann is told of her request 7. A command lets members talk until all is
//! quiet, unless it begins with `submit` or is about single steps.
//!
//! A member is named for its part when the ensemble first had a leader: `leader`, `follower`, and `third` and so on for the
//! rest; before that, and if it is new, by its number. A story with `seeds=0..20`, and one with `rounds=0..20`, whose lines may
//! use `rounds` as a number, has the same answers in each variant, which is checked.

mod commands;
mod facts;
mod founding;

use std::collections::BTreeMap;
use std::ops::Range;

use super::stage::{Disk, Guest, Stage};
use crate::scripts::{answered, check, commands as lines_of};

#[test]
fn scripts() {
    check("ensemble", play);
}

/// The script with the answers that it gets now.
fn play(script: &str) -> String {
    let mut stories: Vec<Vec<&str>> = Vec::new();
    for paragraph in script.trim().split("\n\n") {
        let begins = lines_of(paragraph).next().is_some_and(|line| line.starts_with("members "));
        match stories.last_mut().filter(|_| !begins) {
            Some(story) => story.push(paragraph),
            None => stories.push(vec![paragraph]),
        }
    }
    stories.iter().map(|story| play_story(story)).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Plays a story in each of its variants. Returns its paragraphs with their answers.
fn play_story(story: &[&str]) -> String {
    let first = lines_of(story[0]).next().expect("a story begins with its members");
    let seeds = range(first, "seed", "seeds").expect("a story has a seed");
    let rounds = range(first, "round", "rounds").unwrap_or(0..1);
    let variants = seeds.flat_map(|seed| rounds.clone().map(move |rounds| (seed, rounds)));
    let mut all = variants.map(|(seed, rounds)| (seed, rounds, play_variant(story, seed, rounds)));
    let (first_seed, first_rounds, played) = all.next().expect("there are variants");
    for (seed, rounds, other) in all {
        assert_eq!(
            other, played,
            "seed {seed} with {rounds} rounds plays differently from seed {first_seed} with {first_rounds}"
        );
    }
    played
}

fn play_variant(story: &[&str], seed: u64, rounds: u64) -> String {
    let mut lines = story.iter().flat_map(|paragraph| lines_of(paragraph));
    let mut script = Script::new(lines.next().expect("a story begins with its members"), seed, rounds);
    let played = story.iter().map(|paragraph| {
        let lines = lines_of(paragraph).filter(|line| !line.starts_with("members "));
        let answers: Vec<String> = lines.flat_map(|line| script.run(line)).collect();
        answered(paragraph, &answers)
    });
    played.collect::<Vec<_>>().join("\n\n")
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
    seed: u64,
    rounds: u64,
    /// Members by the names that the story gives them; the first name of a member is the one that answers use.
    names: Vec<(String, u64)>,
    connections: Vec<Connection>,
    /// Entries of each member, and messages carried, when `mark` was said.
    marked: (BTreeMap<u64, usize>, usize),
    /// Copies of disks by the names that the story gives them.
    disks: BTreeMap<String, Disk>,
    /// Ids of ensembles, in the order in which the story got to know them; answers call them A, B and so on.
    clusters: Vec<u64>,
    /// The story's own ensemble, while it is told of another one.
    home: Option<Box<Script>>,
}

impl Script {
    fn new(line: &str, seed: u64, rounds: u64) -> Script {
        Script {
            stage: founding::stage(line, seed),
            seed,
            rounds,
            names: Vec::new(),
            connections: Vec::new(),
            marked: (BTreeMap::new(), 0),
            disks: BTreeMap::new(),
            clusters: Vec::new(),
            home: None,
        }
    }

    /// Runs one line. Returns what is to be told of it.
    fn run(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (is_submitted, words) = match words[..] {
            ["submit", ..] => (true, &words[1..]),
            _ => (false, &words[..]),
        };
        let (command, words) = (words[0], &words[1..]);
        let told = match self.fact(command, words) {
            Some(fact) => Some(fact),
            None => {
                let told = self.act(command, words, is_submitted);
                if !is_submitted && !commands::is_quiet(command) {
                    self.stage.settle();
                }
                told
            }
        };
        let mut answers = self.stories();
        answers.extend(told);
        answers
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

    fn members(&self, names: &[&str]) -> Vec<u64> {
        names.iter().map(|name| self.member(name)).collect()
    }

    fn name(&self, member: u64) -> String {
        let named = self.names.iter().find(|(_, number)| *number == member);
        named.map_or_else(|| member.to_string(), |(name, _)| name.clone())
    }

    /// Names of members, each once, or `nobody`.
    fn listed(&self, members: impl IntoIterator<Item = u64>) -> String {
        let mut names: Vec<String> = members.into_iter().map(|member| self.name(member)).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "nobody".to_owned() } else { names.join(",") }
    }

    fn guest(&self, name: &str) -> Guest {
        let connection = self.connections.iter().find(|connection| connection.name == name);
        let guest = connection.and_then(|connection| connection.guest.clone());
        guest.unwrap_or_else(|| panic!("no client {name:?}"))
    }

    fn number(&self, word: &str) -> u64 {
        if word == "rounds" { self.rounds } else { number(word) }
    }
}

/// Value of `name=value` among the words of a line.
fn option<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The range of `several=0..20`, or the single value of `one=7`.
fn range(line: &str, one: &str, several: &str) -> Option<Range<u64>> {
    if let Some(value) = option(line, one) {
        return Some(number(value)..number(value) + 1);
    }
    let (from, to) = option(line, several)?.split_once("..").expect("a range has two ends");
    Some(number(from)..number(to))
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
}
