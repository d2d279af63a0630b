//! Hearing of a client where znodes are spread over groups: what can be judged at once is, and the rest is noted for the end of the run.

use paddock_model::{Question, Wish};
use paddock_proto::{ErrorCode, EventKind, ReplyHeader, Zxid};

use super::SimClient;
use crate::ask::{Ask, AskedRequest};
use crate::checks::one_order::Spread;
use crate::checks::one_order::history::{AnsweredRequest, Happening, History};
use crate::checks::order::check_monotonic;
use crate::checks::{Checked, Checks};

impl SimClient {
    pub(super) fn see_spread(&mut self, zxid: Zxid) -> Checked {
        check_monotonic(self.seen, zxid)?;
        self.seen = zxid;
        Ok(())
    }

    /// The run is over, and nothing is on its way to the client any more.
    pub(crate) fn note_rest(&self, history: &mut History) {
        history.note(self.number, self.session, Happening::Rests);
    }

    pub(super) fn hear_event_spread(
        &mut self,
        zxid: Zxid,
        kind: EventKind,
        path: &str,
        spread: &mut Spread,
    ) -> Checked {
        // An event may stand before its own zxid in the order, and so may what follows it.
        if zxid != Zxid::NONE {
            check_monotonic(self.seen, zxid)?;
        }
        self.watching.note_told(kind, path);
        let path = path.to_owned();
        spread.history.note(self.number, self.session, Happening::Told { kind, path, zxid });
        Ok(())
    }

    pub(super) fn hear_reply_spread(
        &mut self,
        request: AskedRequest,
        header: ReplyHeader,
        body: &[u8],
        checks: &mut Checks,
    ) -> Checked {
        let is_newest = checks.real_time.is_of_every_read();
        let limits = checks.limits;
        let is_refused = header.error == Some(ErrorCode::NotReadOnly);
        let is_set_again = matches!(request.ask, Ask::SetWatches { .. });
        self.has_enough |= is_refused && is_set_again;
        let (session, ask, body) = (self.session, request.ask.clone(), body.to_vec());
        if let Some(spread) = &mut checks.spread {
            let latest = spread.last_zxid();
            let answered = AnsweredRequest { request, header, body, limits, latest, is_newest };
            spread.history.note(self.number, session, Happening::Answered(Box::new(answered)));
        }
        match ask {
            Ask::Write(wish) if !is_refused => {
                self.acknowledged += 1;
                if wish == Wish::CloseSession && header.error.is_none() {
                    self.forget_session();
                }
            }
            Ask::Read { question, watch: true } => self.note_watch(&question, header.error),
            Ask::AddWatch { path, mode } if header.error.is_none() => self.watching.watch_mode(&path, mode),
            _ => {}
        }
        Ok(())
    }

    fn note_watch(&mut self, question: &Question, error: Option<ErrorCode>) {
        match (question, error) {
            (Question::Exists { path } | Question::GetData { path }, None) => self.watching.watch_data(path),
            (Question::Exists { path }, Some(ErrorCode::NoNode)) => self.watching.watch_exist(path),
            (Question::GetChildren { path } | Question::GetChildren2 { path }, None) => {
                self.watching.watch_children(path);
            }
            _ => {}
        }
    }
}
