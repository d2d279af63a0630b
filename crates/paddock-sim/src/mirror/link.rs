//! The link between the mirror and its source: what is sent on it arrives late, in its order, or is lost with it.

use std::collections::VecDeque;

use paddock_forward::{Input, SourceRequest};
use paddock_proto::{MemberNumber, OpCode, SessionId};
use paddock_tree::AppliedTransaction;

use super::cutover::Cutover;
use super::source::MIRROR;
use super::world::{MirrorServer, MirrorWorld};
use crate::checks::Checked;

impl MirrorWorld {
    /// The source carries a write out, or refuses it, and tells the mirror.
    pub(super) fn write_at_source(
        &mut self,
        member: MemberNumber,
        asked: (SessionId, i32),
        op: OpCode,
        body: &[u8],
    ) -> Checked<AppliedTransaction> {
        let transaction = self.source.write(member, asked, op, body, self.now_ms());
        let (session, number, zxid) = (asked.0, asked.1, transaction.zxid);
        self.note(format_args!("zxid {zxid}: {op:?} {number} of {session}: {:?}", transaction.answer));
        self.checks.observe(&transaction, None)?;
        self.tell(Input::Change(Box::new(transaction.clone())));
        Ok(transaction)
    }

    fn tell(&mut self, word: Input) {
        if let Some(words) = &mut self.words {
            words.push_back(word);
        }
    }

    /// The oldest request comes to the source.
    pub(super) fn deliver_request(&mut self) -> Checked {
        let Some(request) = self.requests.pop_front() else { return Ok(()) };
        let now_ms = self.now_ms();
        match request {
            SourceRequest::Write { session, xid, op, body, .. } => {
                self.write_at_source(MIRROR, (session, xid), op, &body)?;
            }
            SourceRequest::Sync { .. } => self.tell(Input::CaughtUp),
            SourceRequest::Revalidate { session, timeout_ms } => {
                let lives = self.source.resume(MIRROR, session, timeout_ms, now_ms);
                self.tell(Input::Revalidated { session, lives });
            }
            SourceRequest::Touch { session, .. } => self.source.touch(session, now_ms),
        }
        Ok(())
    }

    /// The oldest word of the source comes to the mirror.
    pub(super) fn deliver_word(&mut self) -> Checked {
        let Some(word) = self.words.as_mut().and_then(VecDeque::pop_front) else { return Ok(()) };
        if matches!(word, Input::Linked) {
            self.is_linked = true;
        }
        self.note(format_args!("the mirror hears {word:?}"));
        self.input(word)
    }

    pub(super) fn trouble_link(&mut self) -> Checked {
        if matches!(self.server, MirrorServer::Successor(_)) {
            return Ok(());
        }
        if self.words.is_none() {
            let is_back = !self.has_faults || self.chance.one_in(20);
            return if is_back { self.begin_link() } else { Ok(()) };
        }
        if self.strikes(self.weather.link_lost) { self.lose_link() } else { Ok(()) }
    }

    /// Some of the requests on their way have come to the source, and none of what it has said since.
    fn lose_link(&mut self) -> Checked {
        self.note(format_args!("the link is lost, with {} requests on it", self.requests.len()));
        let arrived = self.chance.index(self.requests.len() + 1);
        // While requests are held back the source does nothing that is not told.
        for _ in 0..arrived {
            self.deliver_request()?;
        }
        self.requests.clear();
        (self.words, self.is_linked) = (None, false);
        if matches!(self.cutover, Cutover::Holding) {
            self.cutover = Cutover::NotYet;
        }
        self.input(Input::Lost)
    }

    /// The mirror learns first what it has missed.
    pub(super) fn begin_link(&mut self) -> Checked {
        let shown = self.state.tree().zxid();
        let is_whole = self.chance.one_in(3);
        self.note(format_args!("the link comes again, {shown} is shown; the whole state: {is_whole}"));
        let mut words = VecDeque::new();
        if is_whole {
            words.push_back(Input::Replace(Box::new(self.source.copy(&self.checks.znodes))));
        } else {
            let missed = self.source.behind(shown).iter().cloned();
            words.extend(missed.map(|transaction| Input::Change(Box::new(transaction))));
        }
        words.push_back(Input::Linked);
        self.words = Some(words);
        Ok(())
    }
}
