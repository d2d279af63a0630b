//! Every write of a session counts at most once, and those that count do so in the order in which they were asked for,
//! whoever leads and wherever the client goes.

use std::collections::{BTreeMap, BTreeSet};

use paddock_model::Wish;
use paddock_proto::{ErrorCode, SessionId, Xid};

use super::truth::Happened;
use super::{Checked, ensure};

const CHECKER: &str = "exactly once";

#[derive(Debug, Default)]
struct Asked {
    wishes: Vec<(Xid, Wish)>,
    /// Those before this one have counted or never will.
    next: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Once {
    sessions: BTreeMap<SessionId, Asked>,
    ended: BTreeSet<SessionId>,
}

impl Once {
    /// A client asks for a write.
    pub(crate) fn ask(&mut self, session: SessionId, xid: Xid, wish: &Wish) {
        self.sessions.entry(session).or_default().wishes.push((xid, wish.clone()));
    }

    /// The client is told that a write was not taken: it must never count.
    pub(crate) fn refuse(&mut self, session: SessionId, xid: Xid) -> Checked {
        let asked = self.sessions.entry(session).or_default();
        let found = asked.wishes[asked.next..].iter().position(|(asked, _)| *asked == xid);
        ensure!(
            found.is_some(),
            CHECKER,
            "request {} of session {session} is refused, and has counted",
            xid.0
        );
        if let Some(position) = found {
            asked.wishes.remove(asked.next + position);
        }
        Ok(())
    }

    pub(crate) fn happened(&mut self, happened: &Happened) -> Checked {
        let (session, wish) = (happened.call.session, &happened.call.wish);
        let ends = match wish {
            Wish::CloseSession => Some(session),
            Wish::ExpireSession { session } => Some(*session),
            _ => None,
        };
        // One that has ended may be closed again, which does nothing.
        let is_late_end =
            ends.is_some_and(|session| happened.outcome.result.is_ok() && !self.ended.insert(session));
        let is_clients = !matches!(wish, Wish::CreateSession { .. } | Wish::ResumeSession { .. });
        // What a session has left on the way is refused without effect, and answered to nobody.
        let is_late =
            matches!(happened.outcome.result, Err(ErrorCode::SessionMoved | ErrorCode::SessionExpired));
        if session == SessionId::NONE || !is_clients || is_late || is_late_end {
            return Ok(());
        }
        let asked = self.sessions.entry(session).or_default();
        let found = asked.wishes[asked.next..].iter().position(|(_, asked)| asked == wish);
        if found.is_none() && matches!(wish, Wish::Broken) {
            // What cannot be read is refused before it is asked whose it is: one that a session has left on the way, too.
            return Ok(());
        }
        ensure!(
            found.is_some(),
            CHECKER,
            "{wish:?} of session {session} counts in entry {} and was not asked for since the last that counted \
             ({} of {} are settled)",
            happened.index,
            asked.next,
            asked.wishes.len()
        );
        asked.next += found.unwrap_or_default() + 1;
        Ok(())
    }
}
