//! Every write of a session counts at most once, and those that count do so in the order in which they were asked for,
//! whichever member leads and wherever the client goes.

use std::collections::{BTreeMap, BTreeSet};

use paddock_model::Wish;
use paddock_proto::{ErrorCode, SessionId, Xid};

use super::happened::Happened;
use super::{Checked, ensure};

const CHECKER: &str = "exactly once";

#[derive(Debug)]
struct AskedWish {
    xid: Xid,
    wish: Wish,
    has_counted: bool,
}

/// Requests of a session, in its order.
#[derive(Debug, Default)]
struct Asked {
    lines: Vec<AskedWish>,
}

impl Asked {
    /// A wish counts: the first like it behind all that have counted. False if there is none.
    fn count(&mut self, wish: &Wish) -> bool {
        let next = self.lines.iter().rposition(|line| line.has_counted).map_or(0, |last| last + 1);
        let found = self.lines[next..].iter_mut().find(|line| line.wish == *wish);
        found.map(|line| line.has_counted = true).is_some()
    }

    /// A wish will never count. If it seems that it has, then another one like it did, and nothing else in between. False
    /// if there is no such one.
    fn refuse(&mut self, xid: Xid) -> bool {
        let Some(position) = self.lines.iter().position(|line| line.xid == xid) else { return false };
        let refused = self.lines.remove(position);
        if !refused.has_counted {
            return true;
        }
        let behind = self.lines[position..].iter_mut();
        let mut counting = behind.skip_while(|line| line.has_counted == (line.wish == refused.wish));
        match counting.next().filter(|line| !line.has_counted) {
            Some(line) => line.has_counted = true,
            None => return false,
        }
        true
    }

    fn counted(&self) -> usize {
        self.lines.iter().filter(|line| line.has_counted).count()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Once {
    sessions: BTreeMap<SessionId, Asked>,
    ended: BTreeSet<SessionId>,
}

impl Once {
    /// A client asks for a write.
    pub(crate) fn ask(&mut self, session: SessionId, xid: Xid, wish: &Wish) {
        let line = AskedWish { xid, wish: wish.clone(), has_counted: false };
        self.sessions.entry(session).or_default().lines.push(line);
    }

    /// The client is told that a write was not taken: it must never count.
    pub(crate) fn refuse(&mut self, session: SessionId, xid: Xid) -> Checked {
        let is_right = self.sessions.entry(session).or_default().refuse(xid);
        ensure!(is_right, CHECKER, "request {} of session {session} is refused, and has counted", xid.0);
        Ok(())
    }

    pub(crate) fn happened(&mut self, happened: &Happened) -> Checked {
        let (session, wish) = (happened.call.session, &happened.call.wish);
        let ends = match wish {
            Wish::CloseSession => Some(session),
            Wish::ExpireSession { session } => Some(*session),
            _ => None,
        };
        // A session that has ended may be closed again, which does nothing.
        let is_late_end =
            ends.is_some_and(|session| happened.outcome.result.is_ok() && !self.ended.insert(session));
        let is_clients =
            !matches!(wish, Wish::CreateSession { .. } | Wish::ResumeSession { .. } | Wish::BindSession);
        // What a session has left on the way is refused without effect, and not answered.
        let is_late =
            matches!(happened.outcome.result, Err(ErrorCode::SessionMoved | ErrorCode::SessionExpired));
        if session == SessionId::NONE || !is_clients || is_late || is_late_end {
            return Ok(());
        }
        let asked = self.sessions.entry(session).or_default();
        // A request that cannot be decoded is refused before its session is looked at, so also if the session has moved on since.
        let is_right = asked.count(wish) || matches!(wish, Wish::Broken);
        ensure!(
            is_right,
            CHECKER,
            "{wish:?} of session {session} counts in entry {} and was not asked for since the last that counted \
             ({} of {} have)",
            happened.index,
            asked.counted(),
            asked.lines.len()
        );
        Ok(())
    }
}
