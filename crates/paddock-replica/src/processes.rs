//! The processes that the other members run in. A member's number belongs to one process at a time: the first that was heard,
//! until its link has ended or it has been silent for a while. What another process says in that member's name is dropped.
//!
//! A member that was restarted is another process, and so is one whose directory was copied and started elsewhere. The
//! first has no other beside it; the second is told from it by the other one, which can still be heard. To be heard, members say now
//! and then that they are there, also those that have nothing to say to each other.

use std::collections::BTreeMap;

use crate::member_profiles::MemberProfiles;

/// Time in milliseconds after which a process that was not heard is taken for ended.
const SILENCE_MS: u64 = 1500;
/// Ticks between two messages that tell the other members that this one runs.
const PRESENT_TICKS: u64 = 5;
/// Ticks between two heartbeats of a group that is not the home group. All of a member's groups have them at the same tick, so that those to one
/// member are one packet.
const GROUP_HEARTBEAT_TICKS: u64 = 3;

#[derive(Debug, Default)]
pub(crate) struct Processes {
    by_member: BTreeMap<u64, Heard>,
    ticks: u64,
    /// Facts that members tell of themselves.
    pub(crate) profiles: MemberProfiles,
}

/// The process that has a member's number.
#[derive(Debug)]
struct Heard {
    process: u64,
    at_ms: u64,
    /// Its link has ended since then.
    is_lost: bool,
    /// The last other process that spoke in its name.
    rival: Option<u64>,
}

impl Heard {
    /// True if the process was heard of late, over a link that has not ended since.
    fn is_there(&self, now_ms: u64) -> bool {
        !self.is_lost && now_ms.saturating_sub(self.at_ms) < SILENCE_MS
    }
}

/// Sender of a message, as far as its process tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The process that has the member's number.
    Known,
    /// The process has the number from now on. Another one had it before.
    Successor,
    /// Another process has the number. This is the first message of this one.
    NewRival,
    Rival,
}

impl Processes {
    /// A message comes from `process` in the name of `member`.
    pub(crate) fn hear(&mut self, member: u64, process: u64, now_ms: u64) -> Speaker {
        let heard = Heard { process, at_ms: now_ms, is_lost: false, rival: None };
        let Some(known) = self.by_member.get_mut(&member) else {
            self.by_member.insert(member, heard);
            return Speaker::Known;
        };
        if known.process == process {
            (known.at_ms, known.is_lost) = (now_ms, false);
            return Speaker::Known;
        }
        if !known.is_there(now_ms) {
            *known = heard;
            return Speaker::Successor;
        }
        if known.rival.replace(process) == Some(process) { Speaker::Rival } else { Speaker::NewRival }
    }

    /// True if a process of the member was heard of late, over a link that has not ended since.
    pub(crate) fn is_there(&self, member: u64, now_ms: u64) -> bool {
        self.by_member.get(&member).is_some_and(|heard| heard.is_there(now_ms))
    }

    /// True at the ticks at which this member tells the others that it runs.
    pub(crate) fn tick(&mut self) -> bool {
        self.ticks += 1;
        self.ticks.is_multiple_of(PRESENT_TICKS)
    }

    /// True at the ticks at which the groups beside the home group have their heartbeats.
    pub(crate) fn is_heartbeat_of_groups(&self) -> bool {
        self.ticks.is_multiple_of(GROUP_HEARTBEAT_TICKS)
    }

    /// The link to the member has ended.
    pub(crate) fn lose(&mut self, member: u64) {
        if let Some(known) = self.by_member.get_mut(&member) {
            known.is_lost = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_the_first_process_that_is_heard_until_it_is_gone() {
        let mut processes = Processes::default();
        assert_eq!(processes.hear(3, 10, 0), Speaker::Known);
        assert_eq!(processes.hear(3, 11, 100), Speaker::NewRival);
        assert_eq!(processes.hear(3, 11, 200), Speaker::Rival);
        assert_eq!(processes.hear(2, 11, 200), Speaker::Known, "each member has its own");
        assert_eq!(processes.hear(3, 10, 1000), Speaker::Known);
        assert_eq!(processes.hear(3, 11, 1000 + SILENCE_MS - 1), Speaker::Rival);
        assert_eq!(processes.hear(3, 11, 1000 + SILENCE_MS), Speaker::Successor);
        assert_eq!(processes.hear(3, 10, 2000 + SILENCE_MS), Speaker::NewRival, "the first has come back");
    }

    #[test]
    fn a_process_whose_link_has_ended_is_followed_at_once() {
        let mut processes = Processes::default();
        processes.hear(3, 10, 0);
        processes.lose(3);
        assert_eq!(processes.hear(3, 10, 1), Speaker::Known, "it has connected again");
        processes.lose(3);
        assert_eq!(processes.hear(3, 7, 2), Speaker::Successor, "whatever its number");
        assert_eq!(processes.hear(3, 10, 3), Speaker::NewRival);
    }
}
