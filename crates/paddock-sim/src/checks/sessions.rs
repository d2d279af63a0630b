//! Sessions: no id is given out twice, none ends while its client is heard, and a client is told the truth about its end.
//!
//! A leader may end a session only if it has not heard of it for the whole timeout, by its own clock, since it leads. So for
//! each leader there is noted when it heard of each session last, and whether there was such a silence. Ends are judged when
//! their leader proposes them: also those that another wanted who led before, and knows nothing of what was heard since.

use crate::numbering::machine_of;
use std::collections::{BTreeMap, BTreeSet};

use paddock_model::Wish;
use paddock_proto::{SessionId, Write};
use paddock_replica::{LogEntry, Role};
use paddock_tree::Tree;

use super::happened::Happened;
use super::{Checked, ensure};
use crate::time::{SimDuration, Time};

const CHECKER: &str = "sessions";

/// One of these sessions that has ended: a member has connections of living sessions alone in the end, for who asks nothing more would never learn that its own is
/// over.
pub(crate) fn ended_one(tree: &Tree, mut served: impl Iterator<Item = SessionId>) -> Option<SessionId> {
    served.find(|session| *session != SessionId::NONE && tree.session_timeout_ms(*session).is_none())
}

#[derive(Debug, Default)]
struct Pulse {
    last_ms: u64,
    /// True if there was a silence as long as the timeout since the member leads.
    was_silent: bool,
}

#[derive(Debug, Default)]
struct Reign {
    since_ms: u64,
    /// There are no other members, to which it would send what it proposes.
    is_alone: bool,
    /// Last entry of its log when its process began: entries up to it were proposed by another one.
    log_at_start: u64,
    pulses: BTreeMap<SessionId, Pulse>,
}

impl Reign {
    fn heard_ms(&self, session: SessionId) -> u64 {
        self.pulses.get(&session).map_or(self.since_ms, |pulse| pulse.last_ms)
    }

    /// True if the session was, up to then, not heard for its whole timeout.
    fn was_silent(&self, session: SessionId, timeout_ms: u64, until_ms: u64) -> bool {
        let was_silent = self.pulses.get(&session).is_some_and(|pulse| pulse.was_silent);
        was_silent || until_ms - self.heard_ms(session) >= timeout_ms
    }
}

/// A client that takes its session for alive, by the rules of its protocol: it is connected, and has heard something within two
/// thirds of the timeout.
#[derive(Debug)]
pub(crate) struct Believer {
    pub(crate) client: usize,
    pub(crate) session: SessionId,
    pub(crate) timeout: SimDuration,
    /// To which it is connected.
    pub(crate) member: u8,
    /// The member has heard of it later than it should, a short time ago: the client was cut off, or the machine slept.
    pub(crate) is_late: bool,
    /// The way to the member takes too long for such a timeout.
    pub(crate) is_far: bool,
    /// The machine is gone, sleeps or has just woken, or is cut off from its clients.
    pub(crate) cannot_be_told: bool,
}

impl Believer {
    /// No member could have told the client in time:
    /// - not a machine that cannot do or say anything. Its client will find out by itself;
    /// - not a member that was in contact with the leader all the while, but not with its client: what the leader knows of
    ///   the session is older than what the member's last contact says. Two things have to go wrong for that;
    /// - not over a way that takes as long as the margin between the connection's end and the session's.
    fn is_excused(&self) -> bool {
        self.cannot_be_told || self.is_late || self.is_far
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// The timeouts of those that live.
    timeouts_ms: BTreeMap<SessionId, u64>,
    ended: BTreeSet<SessionId>,
    /// Reigns of the members that lead, as far as they know.
    reigns: BTreeMap<u8, Reign>,
    /// Reigns before them, of members that led and could not write for a while, and when that began. What they proposed may
    /// be sent much later.
    former: BTreeMap<u8, (Reign, u64)>,
    /// The ends that were judged when they were proposed: index and term of their entry.
    judged: BTreeSet<(u64, u64, SessionId)>,
    /// The last entry in the log of each member when its process began.
    logs_at_start: BTreeMap<u8, u64>,
    /// The monotonic clock of each member when it was looked at last.
    clocks_ms: BTreeMap<u8, u64>,
    /// Time at which the monotonic clock of a member jumped last.
    jumps: BTreeMap<u8, Time>,
    /// Sessions that have just been ended because they were silent, and who found that.
    expired: Vec<(SessionId, u8)>,
}

impl Sessions {
    /// Notes a member's role, and the time of its monotonic clock.
    pub(crate) fn look_at(&mut self, member: u8, role: Option<Role>, now_ms: u64) {
        self.clocks_ms.insert(member, now_ms);
        let is_alone = role == Some(Role::Alone);
        if !is_alone && role != Some(Role::Leader) {
            let ended = self.reigns.remove(&member);
            if role != Some(Role::ReadOnly) {
                self.former.remove(&member);
            } else if let Some(ended) = ended {
                self.former.insert(member, (ended, now_ms));
            }
        } else if !self.reigns.contains_key(&member) {
            let log_at_start = self.logs_at_start.get(&member).copied().unwrap_or_default();
            let reign = Reign { since_ms: now_ms, is_alone, log_at_start, ..Reign::default() };
            self.reigns.insert(member, reign);
        }
    }

    /// A member's process begins, with a log up to this entry.
    pub(crate) fn begins(&mut self, member: u8, last_entry: u64) {
        self.logs_at_start.insert(member, last_entry);
    }

    /// A member sends an entry of its own term to another. If it proposes to end a session, it must have been silent.
    pub(crate) fn proposed(&mut self, member: u8, entry: &LogEntry) -> Checked {
        for batch in entry.batches() {
            for command in batch.commands() {
                let Ok(Write::ExpireSession { session }) = command.write else { continue };
                if self.judged.insert((entry.index, entry.term, session)) {
                    self.check_silence(member, session)?;
                }
            }
        }
        Ok(())
    }

    /// A member heard of a session: from its client, from another member, or from the log.
    pub(crate) fn heard(&mut self, member: u8, session: SessionId, now_ms: u64) {
        let Some(&timeout_ms) = self.timeouts_ms.get(&session) else { return };
        let Some(reign) = self.reigns.get_mut(&member) else { return };
        let since_ms = reign.since_ms;
        let pulse =
            reign.pulses.entry(session).or_insert_with(|| Pulse { last_ms: since_ms, ..Pulse::default() });
        pulse.was_silent |= now_ms - pulse.last_ms >= timeout_ms;
        pulse.last_ms = now_ms;
    }

    pub(crate) fn happened(&mut self, happened: &Happened) -> Checked {
        if happened.outcome.result.is_err() {
            return Ok(());
        }
        let session = happened.call.session;
        match happened.call.wish {
            Wish::CreateSession { timeout_ms } => {
                let is_new = !self.timeouts_ms.contains_key(&session) && !self.ended.contains(&session);
                ensure!(is_new, CHECKER, "the id {session} is given to a session, and was to another before");
                self.timeouts_ms.insert(session, timeout_ms as u64);
            }
            Wish::ResumeSession { timeout_ms, is_asking: false, .. } => {
                self.timeouts_ms.insert(session, timeout_ms as u64);
            }
            Wish::CloseSession => self.end(session),
            Wish::ExpireSession { session } => {
                self.check_expiry(happened, session)?;
                self.end(session);
                self.expired.push((session, machine_of(happened.call.member)));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, session: SessionId) {
        self.timeouts_ms.remove(&session);
        self.ended.insert(session);
    }

    pub(crate) fn clock_jumps(&mut self, member: u8, now: Time) {
        self.jumps.insert(member, now);
    }

    /// True if sessions have been ended since `check_beliefs` was called.
    pub(crate) fn has_expired(&self) -> bool {
        !self.expired.is_empty()
    }

    /// Sessions have just been ended, as they were silent: from now on others may take what they held. So no client takes
    /// one of them for alive.
    pub(crate) fn check_beliefs(&mut self, now: Time, believers: &[Believer]) -> Checked {
        for (session, judge) in std::mem::take(&mut self.expired) {
            let of_session = believers.iter().filter(|believer| believer.session == session);
            for believer in of_session.filter(|believer| !believer.is_excused()) {
                let Believer { client, timeout, member, .. } = believer;
                // A leader whose clock jumps finds every session silent, and no other member knows of the jump.
                let jump =
                    self.jumps.get(&judge).filter(|jump| now - **jump <= *timeout + SimDuration::seconds(1));
                ensure!(
                    jump.is_some(),
                    CHECKER,
                    "member {judge} has ended session {session}, of {timeout}; client {client} takes it for alive, connected \
                     to member {member}"
                );
            }
        }
        Ok(())
    }

    /// The end that a leader wanted is carried out. It was judged when it was proposed, unless the leader is alone: then it
    /// is now.
    fn check_expiry(&self, happened: &Happened, session: SessionId) -> Checked {
        let (index, judge) = (happened.index, machine_of(happened.call.member));
        let was_judged = self.judged.contains(&(index, happened.term, session));
        let reigns = |reign: &Reign| reign.is_alone && reign.log_at_start < index;
        if !was_judged && self.reigns.get(&judge).is_some_and(reigns) {
            self.check_silence(judge, session)
        } else {
            Ok(())
        }
    }

    /// Member `judge` ends a session now.
    fn check_silence(&self, judge: u8, session: SessionId) -> Checked {
        let (Some(&timeout_ms), Some(reign)) = (self.timeouts_ms.get(&session), self.reigns.get(&judge))
        else {
            return Ok(());
        };
        let now_ms = self.clocks_ms.get(&judge).copied().unwrap_or_default();
        let was_silent = |(reign, until_ms): &(Reign, u64)| reign.was_silent(session, timeout_ms, *until_ms);
        ensure!(
            reign.was_silent(session, timeout_ms, now_ms) || self.former.get(&judge).is_some_and(was_silent),
            CHECKER,
            "member {judge}, who leads since {} ms, ends session {session}, of which it heard at {} ms; it is \
             {now_ms} ms, the timeout {timeout_ms} ms",
            reign.since_ms,
            reign.heard_ms(session)
        );
        Ok(())
    }

    /// A client is told that its session is gone.
    pub(crate) fn check_end(&self, session: SessionId) -> Checked {
        ensure!(
            self.ended.contains(&session),
            CHECKER,
            "a client is told that session {session} is gone; it lives"
        );
        Ok(())
    }

    /// A client is told that it has a session, which is another than it asked for or none that lives.
    pub(crate) fn check_begin(&self, asked: SessionId, got: SessionId) -> Checked {
        let is_known = self.timeouts_ms.contains_key(&got) || self.ended.contains(&got);
        let is_right = is_known && (asked == SessionId::NONE || asked == got);
        ensure!(is_right, CHECKER, "a client that asked for session {asked} got {got}");
        Ok(())
    }
}
