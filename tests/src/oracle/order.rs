//! Zxids as places in an order, for two servers that do not count alike: on etcd what is refused takes no zxid, and what
//! others write there does. And of a transaction on etcd only what it leaves behind is known: no order of its events.
//!
//! The zxids of Stats are those of changes that both servers have made. Each is told as its place among them, and any other zxid as
//! the place of the newest one that is not behind it.

use std::collections::BTreeSet;
use std::mem;

use super::play::Transcript;

/// Marks of zxids in the text of answers: those of Stats, and all others.
const IN_STATS: [&str; 3] = [" czxid=", " mzxid=", " pzxid="];
const ELSEWHERE: [&str; 2] = [" zxid=", "now at "];

/// Answers, with places instead of zxids, and with the events of one zxid sorted, each once.
pub(super) fn by_order(transcript: Transcript) -> Transcript {
    let lines = || transcript.iter().flatten();
    let in_stats: BTreeSet<i64> = lines().flat_map(|line| zxids(line)).collect();
    let place = |zxid: i64| format!("#{}", in_stats.range(..=zxid).count());
    transcript
        .iter()
        .map(|step| without_order(step.iter().map(|line| replaced(line, &place)).collect()))
        .collect()
}

/// The lines of a step, with the events that a connection gets of one zxid as a set.
fn without_order(mut lines: Vec<String>) -> Vec<String> {
    let mut told = Vec::new();
    for events in lines.chunk_by_mut(|a, b| origin(a).is_some() && origin(a) == origin(b)) {
        if events.iter().any(|line| origin(line).is_none()) {
            told.extend(events.iter_mut().map(mem::take));
            continue;
        }
        let all: BTreeSet<String> = events.iter_mut().map(mem::take).collect();
        told.extend(all);
    }
    told
}

/// The connection of an event, and its zxid.
fn origin(line: &str) -> Option<(&str, &str)> {
    let (connection, event) = line.split_once(": event ")?;
    Some((connection, event.rsplit_once(" zxid=")?.1))
}

/// Zxids of the Stats in a line.
fn zxids(line: &str) -> Vec<i64> {
    let values = IN_STATS.iter().flat_map(|mark| line.split(mark).skip(1));
    values.filter_map(|rest| Some(split(rest)?.0)).collect()
}

/// The number at the beginning of a text, if there is a zxid, and what stands behind it. 0 and less are no places.
fn split(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_prefix('+')?;
    let end = text.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn replaced(line: &str, place: &impl Fn(i64) -> String) -> String {
    let mut out = String::new();
    let mut rest = line;
    let next = |text: &str| {
        let found = IN_STATS.iter().chain(&ELSEWHERE).filter_map(|mark| Some(text.find(mark)? + mark.len()));
        found.min()
    };
    while let Some(at) = next(rest) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        rest = behind;
        if let Some((zxid, behind)) = split(behind) {
            out.push_str(&place(zxid));
            rest = behind;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::by_order;

    fn check(lines: [&str; 3], expected: [&str; 3]) {
        let told = by_order(vec![lines.map(str::to_owned).to_vec()]);
        assert_eq!(told, [expected.map(str::to_owned).to_vec()]);
    }

    #[test]
    fn zxids_become_places() {
        check(
            [
                "connection 0: xid=1 zxid=+7 error=Ok  czxid=+5 mzxid=+7 pzxid=0 version=1",
                "connection 1: event NodeDataChanged /a zxid=+7 state=3",
                "connection 0: now at +9",
            ],
            [
                "connection 0: xid=1 zxid=#2 error=Ok  czxid=#1 mzxid=#2 pzxid=0 version=1",
                "connection 1: event NodeDataChanged /a zxid=#2 state=3",
                "connection 0: now at #2",
            ],
        );
    }

    #[test]
    fn events_of_one_zxid_are_a_set() {
        check(
            [
                "connection 1: event NodeCreated /b zxid=+3 state=3",
                "connection 1: event NodeChildrenChanged /a zxid=+3 state=3",
                "connection 2: event NodeCreated /b zxid=+3 state=3",
            ],
            [
                "connection 1: event NodeChildrenChanged /a zxid=#0 state=3",
                "connection 1: event NodeCreated /b zxid=#0 state=3",
                "connection 2: event NodeCreated /b zxid=#0 state=3",
            ],
        );
    }

    #[test]
    fn what_was_there_before_has_a_place_too() {
        check(
            ["a czxid=+-3 mzxid=+-3 pzxid=+2 x", "now at +1", "xid=1 zxid=+2 error=Ok"],
            ["a czxid=#1 mzxid=#1 pzxid=#2 x", "now at #1", "xid=1 zxid=#2 error=Ok"],
        );
    }
}
