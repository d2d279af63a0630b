//! A member as the guest of groups that it does not have: what it has asked their hosts, and what they have said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paddock_proto::{MemberNumber, SessionId, Zxid};
use paddock_state::{ConnId, Slot};
use paddock_tree::{AppliedItem, MultiOutcome, RelayedAnswer};

use super::letters::{GuestLetter, HostLetter};
use super::line::{Line, LineFrame, LineName};
use crate::parts::{GroupPart, PartQuery};

/// Ticks for which a host may leave letters without an acknowledgement before it counts as lost.
const SILENT_TICKS_MAX: u32 = 20;

/// The groups of which this member is a guest.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    /// Name of the last line that was begun, or of a later one that a host knows.
    newest: LineName,
    by_group: BTreeMap<u32, Guest>,
    /// Groups whose hosts have said something that was not looked at.
    heard: BTreeSet<u32>,
    /// Groups whose hosts may have to be sent something.
    writing: BTreeSet<u32>,
}

/// One group at its host.
#[derive(Debug)]
struct Guest {
    host: MemberNumber,
    line: Line,
    /// The host has said that nothing of an earlier line can follow.
    is_welcome: bool,
    zxid: Zxid,
    level: Zxid,
    /// Questions that are under way, by the numbers of their letters.
    asked: BTreeMap<u64, PendingQuestion>,
    /// Connections that the host has been told of.
    conns: BTreeSet<ConnId>,
    /// Sessions whose writes the group takes through the host, with the numbers of their moves.
    attended: BTreeMap<SessionId, u32>,
    outcomes: BTreeMap<SessionId, MultiOutcome>,
    /// The largest stamp that the host was asked to come to.
    awaited: Zxid,
    news: VecDeque<HostLetter>,
}

/// A question that is under way, and who waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PendingQuestion {
    Request { conn: ConnId, slot: Slot },
    Parts { conn: ConnId, queries: Vec<PartQuery> },
    Outcome { session: SessionId, multi: i64 },
    Attend { session: SessionId, moves: u32 },
    Submit { session: SessionId },
}

/// Something that a host has said and that concerns a connection.
#[derive(Debug)]
pub(crate) enum NewsOfHost {
    Reply {
        conn: ConnId,
        slot: Slot,
        bytes: Vec<u8>,
    },
    Parts {
        conn: ConnId,
        parts: Vec<(PartQuery, GroupPart)>,
    },
    Event {
        conn: ConnId,
        bytes: Vec<u8>,
    },
    /// The connection is to be closed.
    Close {
        conn: ConnId,
    },
    /// The group has carried out a write that was relayed to it.
    Relayed {
        answer: RelayedAnswer,
    },
    /// Answers to relayed writes may be lost.
    LostAnswers,
    /// The group has come further, and has applied these items.
    Further {
        items: Vec<AppliedItem>,
    },
}

impl Guests {
    pub(crate) fn has(&self, group: u32) -> bool {
        self.by_group.contains_key(&group)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_group.is_empty()
    }

    pub(crate) fn host(&self, group: u32) -> Option<MemberNumber> {
        self.by_group.get(&group).map(|guest| guest.host)
    }

    /// Groups that a member has for this one.
    pub(crate) fn at_host(&self, host: MemberNumber) -> impl Iterator<Item = u32> {
        self.by_group.iter().filter(move |(_, guest)| guest.host == host).map(|(group, _)| *group)
    }

    /// Begins anew with a group's host, which may be another one. `start` numbers the starts of this member's process. Nothing is known any more that was
    /// asked before.
    pub(crate) fn begin(&mut self, group: u32, host: MemberNumber, start: u64) {
        let start = start.max(self.newest.start);
        self.newest = LineName { start, number: self.newest.number + 1 };
        let line = Line::new_held_back(self.newest);
        let guest = Guest {
            host,
            line,
            is_welcome: false,
            zxid: Zxid(0),
            level: Zxid(0),
            asked: BTreeMap::new(),
            conns: BTreeSet::new(),
            attended: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            awaited: Zxid(0),
            news: VecDeque::new(),
        };
        self.by_group.insert(group, guest);
        // The host hears of the line by its first letter.
        self.tell(group, GuestLetter::Level { at_least: Zxid(0) });
    }

    /// The member has a replica of the group.
    pub(crate) fn end(&mut self, group: u32) {
        self.by_group.remove(&group);
    }

    pub(crate) fn level(&self, group: u32) -> Zxid {
        self.by_group.get(&group).map_or(Zxid(0), |guest| guest.level)
    }

    pub(crate) fn zxid(&self, group: u32) -> Zxid {
        self.by_group.get(&group).map_or(Zxid(0), |guest| guest.zxid)
    }

    pub(crate) fn multi_outcome(&self, group: u32, session: SessionId) -> Option<&MultiOutcome> {
        self.by_group.get(&group)?.outcomes.get(&session)
    }

    pub(crate) fn attends(&self, group: u32, session: SessionId, moves: u32) -> bool {
        self.by_group.get(&group).is_some_and(|guest| guest.attended.get(&session) == Some(&moves))
    }

    /// Asks a group's host. Returns the line and the number of the question on it.
    pub(crate) fn ask(
        &mut self,
        group: u32,
        letter: GuestLetter,
        asked: PendingQuestion,
    ) -> Option<(LineName, u64)> {
        let guest = self.writing_to(group)?;
        if asked.is_asked_once() && guest.asked.values().any(|other| *other == asked) {
            return None;
        }
        guest.conns.extend(asked.conn());
        let number = guest.line.push(letter.encode());
        guest.asked.insert(number, asked);
        Some((guest.line.name(), number))
    }

    /// Tells a group's host something that it does not answer.
    pub(crate) fn tell(&mut self, group: u32, letter: GuestLetter) {
        if let Some(guest) = self.writing_to(group) {
            guest.line.push(letter.encode());
        }
    }

    /// A group at its host, who may have to be sent something.
    fn writing_to(&mut self, group: u32) -> Option<&mut Guest> {
        let guest = self.by_group.get_mut(&group)?;
        self.writing.insert(group);
        Some(guest)
    }

    /// The group is to come to a stamp.
    pub(crate) fn await_level(&mut self, group: u32, at_least: Zxid) {
        if let Some(guest) = self.writing_to(group).filter(|guest| guest.awaited < at_least) {
            guest.awaited = at_least;
            guest.line.push(GuestLetter::Level { at_least }.encode());
        }
    }

    /// The connection is gone: hosts that know of it keep nothing for it.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        for (group, guest) in &mut self.by_group {
            if guest.conns.remove(&conn) {
                guest.line.push(GuestLetter::Gone { conn }.encode());
                self.writing.insert(*group);
            }
        }
    }

    /// True if a group's host has said that it is the host.
    pub(crate) fn is_welcome(&self, group: u32) -> bool {
        self.by_group.get(&group).is_some_and(|guest| guest.is_welcome)
    }

    /// True if a question was answered, or can never be carried out any more.
    pub(crate) fn is_over(&self, group: u32, line: LineName, number: u64) -> bool {
        let Some(guest) = self.by_group.get(&group) else { return true };
        if guest.line.name() == line { !guest.asked.contains_key(&number) } else { guest.is_welcome }
    }

    /// Takes a message of a group's host. What it says is kept until [`Guests::next_news`] asks for it. Returns false if another line has to be begun.
    pub(crate) fn take_frame(&mut self, from: MemberNumber, group: u32, bytes: &[u8]) -> bool {
        let Ok(frame) = LineFrame::decode(bytes) else { return false };
        if self.host(group) == Some(from) && frame.line > self.newest {
            // The process before this one has begun lines whose names were not to be repeated.
            self.newest = LineName { number: self.newest.number.max(frame.line.number), ..frame.line };
            return false;
        }
        let is_of = |guest: &&mut Guest| guest.host == from && guest.line.name() == frame.line;
        let Some(guest) = self.by_group.get_mut(&group).filter(is_of) else { return true };
        self.writing.insert(group);
        for (_, letter) in guest.line.receive(&frame) {
            match HostLetter::decode(&letter) {
                Ok(letter) => guest.news.push_back(letter),
                Err(_) => return false,
            }
            self.heard.insert(group);
        }
        true
    }

    /// True if a host has said something that was not looked at.
    pub(crate) fn has_news(&self) -> bool {
        !self.heard.is_empty()
    }

    /// The next thing that a host has said, in its order.
    pub(crate) fn next_news(&mut self) -> Option<(u32, NewsOfHost)> {
        while let Some(group) = self.heard.first().copied() {
            let guest = self.by_group.get_mut(&group);
            let news = guest.and_then(|guest| std::iter::from_fn(|| guest.next_news()).flatten().next());
            match news {
                Some(news) => return Some((group, news)),
                None => self.heard.remove(&group),
            };
        }
        None
    }

    /// Messages for hosts, with their groups.
    pub(crate) fn frames(&mut self) -> Vec<(MemberNumber, u32, Vec<u8>)> {
        let mut frames = Vec::new();
        for group in std::mem::take(&mut self.writing) {
            let Some(guest) = self.by_group.get_mut(&group) else { continue };
            while let Some(frame) = guest.line.next_frame() {
                frames.push((guest.host, group, frame));
            }
        }
        frames
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self) {
        self.by_group.values_mut().for_each(|guest| guest.line.tick());
        self.writing.extend(self.by_group.keys());
    }

    /// Forgets sessions that are over.
    pub(crate) fn keep_sessions(&mut self, is_there: impl Fn(SessionId) -> bool) {
        for guest in self.by_group.values_mut() {
            guest.attended.retain(|session, _| is_there(*session));
            guest.outcomes.retain(|session, _| is_there(*session));
        }
    }

    /// True if a group's host has left letters without an acknowledgement for too long.
    pub(crate) fn is_silent(&self, group: u32) -> bool {
        self.by_group.get(&group).is_some_and(|guest| guest.line.silent_ticks() >= SILENT_TICKS_MAX)
    }
}

impl PendingQuestion {
    /// The connection that the host hears of by the question.
    fn conn(&self) -> Option<ConnId> {
        match self {
            PendingQuestion::Request { conn, .. } | PendingQuestion::Parts { conn, .. } => Some(*conn),
            PendingQuestion::Outcome { .. }
            | PendingQuestion::Attend { .. }
            | PendingQuestion::Submit { .. } => None,
        }
    }

    /// True for questions that are not asked again while they are under way.
    fn is_asked_once(&self) -> bool {
        matches!(
            self,
            PendingQuestion::Outcome { .. } | PendingQuestion::Attend { .. } | PendingQuestion::Submit { .. }
        )
    }
}

impl Guest {
    /// Takes the next letter of the host: `Some(None)` if it says nothing to others.
    fn next_news(&mut self) -> Option<Option<NewsOfHost>> {
        let letter = self.news.pop_front()?;
        Some(self.take(letter))
    }

    fn take(&mut self, letter: HostLetter) -> Option<NewsOfHost> {
        match letter {
            HostLetter::Welcome { zxid, level } => {
                self.is_welcome = true;
                self.line.open();
                self.come_to(zxid, level);
                Some(NewsOfHost::Further { items: Vec::new() })
            }
            HostLetter::Reply { number, zxid, bytes } => {
                self.zxid = self.zxid.max(zxid);
                match self.asked.remove(&number)? {
                    PendingQuestion::Request { conn, slot } => Some(NewsOfHost::Reply { conn, slot, bytes }),
                    _ => None,
                }
            }
            HostLetter::Parts { number, parts } => match self.asked.remove(&number)? {
                PendingQuestion::Parts { conn, queries } => {
                    Some(NewsOfHost::Parts { conn, parts: queries.into_iter().zip(parts).collect() })
                }
                _ => None,
            },
            HostLetter::Outcome { number, outcome } => {
                if let Some(PendingQuestion::Outcome { session, .. }) = self.asked.remove(&number) {
                    self.outcomes.insert(session, outcome);
                }
                Some(NewsOfHost::Further { items: Vec::new() })
            }
            HostLetter::Done { number, zxid } => {
                self.zxid = self.zxid.max(zxid);
                match self.asked.remove(&number) {
                    Some(PendingQuestion::Attend { session, moves }) => {
                        self.attended.insert(session, moves);
                    }
                    // The request is not answered, and cannot be carried out any more.
                    Some(PendingQuestion::Request { conn, .. }) => return Some(NewsOfHost::Close { conn }),
                    _ => {}
                }
                Some(NewsOfHost::Further { items: Vec::new() })
            }
            HostLetter::Event { conn, bytes } => Some(NewsOfHost::Event { conn, bytes }),
            HostLetter::Close { conn } => Some(NewsOfHost::Close { conn }),
            HostLetter::Relayed { answer } => {
                self.zxid = self.zxid.max(answer.zxid);
                Some(NewsOfHost::Relayed { answer })
            }
            HostLetter::LostAnswers => Some(NewsOfHost::LostAnswers),
            HostLetter::Level { zxid, level, items } => {
                self.come_to(zxid, level);
                Some(NewsOfHost::Further { items })
            }
        }
    }

    fn come_to(&mut self, zxid: Zxid, level: Zxid) {
        self.zxid = self.zxid.max(zxid);
        self.level = self.level.max(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_connection_that_is_gone_those_hosts_hear_that_know_of_it() {
        let mut guests = Guests::default();
        for group in 1..=3 {
            guests.begin(group, 9, 1);
        }
        let conn = ConnId::new(0, 1);
        let asked = PendingQuestion::Request { conn, slot: Slot(0) };
        guests.ask(2, GuestLetter::Gone { conn: ConnId::new(0, 2) }, asked);
        let written = |guests: &mut Guests| -> Vec<u32> {
            guests.frames();
            guests.forget(conn);
            guests.writing.iter().copied().collect()
        };
        assert_eq!(written(&mut guests), [2]);
        assert_eq!(written(&mut guests), [], "it knows that");
    }
}
