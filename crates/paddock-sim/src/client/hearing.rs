//! Hearing of a client, and every check of it.

use paddock_model::{Asker, Question, Wish};
use paddock_proto::jute::Reader;
use paddock_proto::{ErrorCode, ReplyHeader, SessionId, WatchEvent, Xid, Zxid, frame};

use super::{ClientPhase, Deed, SimClient};
use crate::ask::{Ask, AskedRequest};
use crate::checks::one_order::history::Happening;
use crate::checks::order::{RealTime, check_monotonic, check_turn};
use crate::checks::watching::SetAgain;
use crate::checks::{Checked, Checks, answers, ensure};
use crate::names;
use crate::time::{SimDuration, Time};
use crate::wire::WirePacket;

const CHECKER: &str = "protocol";

impl SimClient {
    /// Takes what came on its connection.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        packet: WirePacket,
        checks: &mut Checks,
    ) -> Checked<Vec<Deed>> {
        self.heard = now;
        match packet {
            WirePacket::Connected { session, .. } if self.claimed.is_some() => {
                ensure!(
                    false,
                    CHECKER,
                    "session {session} was given to a client that had only ZooKeeper's password for it"
                );
                Ok(Vec::new())
            }
            WirePacket::Expired if self.claimed.take().is_some() => Ok(Vec::new()),
            WirePacket::Connected { session, password, timeout_ms, read_only } => {
                self.password = password;
                self.only_reads = read_only;
                self.is_temporary = read_only && self.session == SessionId::NONE;
                if !self.is_temporary {
                    checks.sessions.check_begin(self.session, session)?;
                }
                if self.session != session {
                    (self.session, self.seen, self.last_zxid) = (session, Zxid(0), Zxid(0));
                }
                self.timeout = SimDuration::millis(timeout_ms as u64);
                self.sent = now;
                if let Some(spread) = &mut checks.spread {
                    let what = Happening::Begins {
                        ids: self.ids.clone(),
                        watching: Box::new(self.watching.clone()),
                    };
                    spread.history.note(self.number, self.session, what);
                }
                Ok(self.begin(now, checks))
            }
            WirePacket::Expired => {
                checks.sessions.check_end(self.session)?;
                self.forget_session();
                Ok(Vec::new())
            }
            WirePacket::Frames(bytes) => self.hear_all(now, &bytes, checks),
            WirePacket::Unreadable => {
                ensure!(false, CHECKER, "the client cannot read what it was sent");
                Ok(Vec::new())
            }
            WirePacket::Closed => {
                self.lose_connection();
                Ok(Vec::new())
            }
        }
    }

    fn begin(&mut self, now: Time, checks: &Checks) -> Vec<Deed> {
        match self.credentials_to_show() {
            Some(credentials) if !self.habits.identifies_late => {
                self.phase = ClientPhase::Identifying;
                vec![self.identify(credentials)]
            }
            _ => self.set_watches(now, checks),
        }
    }

    /// The member was at this zxid when it took the identity that the client has shown. Events go by it from then on.
    fn hear_identified(&mut self, now: Time, zxid: Zxid, checks: &mut Checks) -> Checked<Vec<Deed>> {
        if checks.spread.is_none() {
            self.watching.show(&checks.truth, zxid, &self.ids)?;
        }
        self.ids = self.shown_ids();
        if let Some(spread) = &mut checks.spread {
            let latest = spread.last_zxid();
            let what = Happening::Identified { latest, ids: self.ids.clone() };
            spread.history.note(self.number, self.session, what);
        }
        self.unconfirmed = None;
        let count = self.ids.len();
        ensure!(count <= names::IDENTITIES_MAX, CHECKER, "the connection has shown {count} identities");
        let is_first = self.phase == ClientPhase::Identifying;
        Ok(if is_first { self.set_watches(now, checks) } else { Vec::new() })
    }

    /// The member has not taken the identity that the client has shown. It closes the connection.
    fn hear_not_identified(&mut self, error: ErrorCode) -> Checked {
        let count = self.shown_ids().len();
        let is_right = error == ErrorCode::AuthFailed && count > names::IDENTITIES_MAX;
        ensure!(is_right, CHECKER, "{error:?} for identity {count} of a connection");
        self.unconfirmed = None;
        self.has_enough = true;
        Ok(())
    }

    /// The next connection begins another one.
    pub(super) fn forget_session(&mut self) {
        self.lose_connection();
        self.session = SessionId::NONE;
        self.watching = Default::default();
    }

    fn hear_all(&mut self, now: Time, mut bytes: &[u8], checks: &mut Checks) -> Checked<Vec<Deed>> {
        let mut deeds = Vec::new();
        while let Ok(Some((body, len))) = frame::split(bytes, i32::MAX) {
            let mut reader = Reader::new(body);
            let header = ReplyHeader::decode(&mut reader);
            ensure!(header.is_ok(), CHECKER, "a reply without a header: {body:?}");
            let header = header.expect("that was just looked at");
            match header.xid {
                Xid::NOTIFICATION => self.hear_event(header.zxid, reader.rest(), checks)?,
                Xid::AUTH if header.error.is_some() => {
                    header.error.map_or(Ok(()), |error| self.hear_not_identified(error))?;
                }
                Xid::AUTH => deeds.extend(self.hear_identified(now, header.zxid, checks)?),
                _ => {
                    let left = self.asked.len();
                    self.hear_reply(header, reader.rest(), checks)?;
                    if self.asked.len() < left {
                        self.waits_since = now;
                    }
                }
            }
            bytes = &bytes[len..];
        }
        ensure!(bytes.is_empty(), CHECKER, "a frame that is not whole");
        Ok(deeds)
    }

    fn see(&mut self, zxid: Zxid, checks: &mut Checks) -> Checked {
        check_monotonic(self.seen, zxid)?;
        ensure!(
            zxid <= checks.truth.last_zxid(),
            CHECKER,
            "the client is shown zxid {zxid}, which nobody has applied"
        );
        self.seen = zxid;
        checks.real_time.show(zxid);
        Ok(())
    }

    fn hear_event(&mut self, zxid: Zxid, body: &[u8], checks: &mut Checks) -> Checked {
        let event = WatchEvent::decode(zxid, body);
        ensure!(event.is_ok(), CHECKER, "an event that cannot be read: {body:?}");
        let WatchEvent { kind, path, .. } = event.expect("that was just looked at");
        if let Some(spread) = &mut checks.spread {
            return self.hear_event_spread(zxid, kind, path, spread);
        }
        if zxid != Zxid::NONE {
            self.see(zxid, checks)?;
        }
        self.watching.tell(&checks.truth, zxid, kind, path, &self.ids)
    }

    fn hear_reply(&mut self, header: ReplyHeader, body: &[u8], checks: &mut Checks) -> Checked {
        if header.error == Some(ErrorCode::Unimplemented) && header.zxid == Zxid::NONE {
            return self.hear_last_word(header.xid);
        }
        let is_ping = header.xid == Xid::PING;
        if checks.spread.is_none() {
            self.see(header.zxid, checks)?;
            self.last_zxid = header.zxid;
            self.watching.show(&checks.truth, header.zxid, &self.ids)?;
        } else if !is_ping || header.zxid != Zxid(0) {
            // A ping shows nothing where znodes are spread.
            self.see_spread(header.zxid)?;
            self.last_zxid = header.zxid;
        }
        if is_ping {
            ensure!(self.pings > 0, CHECKER, "a ping is answered that nobody sent");
            self.pings -= 1;
            return Ok(());
        }
        check_turn(self.asked.front().map(|request| request.xid.0), header.xid.0)?;
        let Some(request) = self.asked.pop_front() else { return Ok(()) };
        if checks.spread.is_some() {
            return self.hear_reply_spread(request, header, body, checks);
        }
        self.check_reply(request, header, body, checks)
    }

    /// The client has asked for what no client may have. The member closes the connection.
    fn hear_last_word(&mut self, xid: Xid) -> Checked {
        check_turn(self.asked.front().map(|request| request.xid.0), xid.0)?;
        let Some(request) = self.asked.pop_front() else { return Ok(()) };
        ensure!(request.ask.ends_connection(), CHECKER, "{:?} is called unimplemented", request.ask);
        Ok(())
    }

    fn check_reply(
        &mut self,
        request: AskedRequest,
        header: ReplyHeader,
        body: &[u8],
        checks: &mut Checks,
    ) -> Checked {
        let logged = request.ask.as_logged();
        if header.error == Some(ErrorCode::NotReadOnly) {
            return self.hear_refusal(&request, logged.is_some(), checks);
        }
        match request.ask {
            Ask::Write(ref wish) => match logged {
                Some(logged) => self.hear_write(&request, wish, &logged, header, body, checks)?,
                None => check_error(&request.ask, header, Some(ErrorCode::MarshallingError))?,
            },
            Ask::Read { ref question, watch } => {
                checks.real_time.check_read(request.shown, header.zxid)?;
                let asker = Asker { session: self.session, ids: request.ids };
                self.hear_read(question, watch, &asker, (header, body), checks)?;
            }
            Ask::Sync => {
                check_error(&request.ask, header, None)?;
                RealTime::check_sync(request.shown, header.zxid)?;
            }
            Ask::WhoAmI => {
                check_error(&request.ask, header, None)?;
                let count = Reader::new(body).i32();
                let expected = Ok(request.ids.len() as i32);
                ensure!(count == expected, CHECKER, "whoami says {count:?} identities, not {expected:?}");
            }
            Ask::AddWatch { ref path, mode } => {
                check_error(&request.ask, header, None)?;
                self.watching.watch_mode(path, mode);
            }
            Ask::CheckWatches { ref path, kind } => {
                self.watching.check(path, kind, header.error.is_none())?;
            }
            Ask::RemoveWatches { ref path, kind } => {
                self.watching.check(path, kind, header.error.is_none())?;
                self.watching.remove(path, kind);
            }
            Ask::SetWatches { relative_zxid } => {
                check_error(&request.ask, header, None)?;
                let now = header.zxid;
                let (since, watches_per_turn) = (relative_zxid, checks.limits.watches_per_turn);
                let again = SetAgain { relative_zxid, since, now, watches_per_turn, latest: now };
                // Identities that the client has shown since, and that were taken at once, count for what it asks from then on.
                self.watching.set_again(&again, &checks.truth, &request.ids)?;
            }
        }
        Ok(())
    }

    /// Nothing can be written where the client asks, and nothing new be read.
    fn hear_refusal(&mut self, request: &AskedRequest, is_logged: bool, checks: &mut Checks) -> Checked {
        if is_logged {
            checks.once.refuse(self.session, request.xid)?;
        }
        // Who goes on without its watches misses what they would tell.
        self.has_enough |= matches!(request.ask, Ask::SetWatches { .. });
        Ok(())
    }

    fn hear_write(
        &mut self,
        request: &AskedRequest,
        wish: &Wish,
        logged: &Wish,
        header: ReplyHeader,
        body: &[u8],
        checks: &mut Checks,
    ) -> Checked {
        checks.acknowledged.check_write(&checks.truth, self.session, logged, header, body)?;
        RealTime::check_write(request.shown, header.zxid)?;
        self.acknowledged += 1;
        if *wish == Wish::CloseSession && header.error.is_none() {
            self.forget_session();
        }
        Ok(())
    }

    fn hear_read(
        &mut self,
        question: &Question,
        watch: bool,
        asker: &Asker,
        (header, body): (ReplyHeader, &[u8]),
        checks: &mut Checks,
    ) -> Checked {
        let checked = answers::check_read(&checks.truth, asker, question, (header, body), checks.limits);
        let answer = match checked {
            Err(_) if checks.wrong.as_ref().is_some_and(|path| shows_data(question, path)) => Ok(()),
            checked => checked?,
        };
        if !watch {
            return Ok(());
        }
        match (question, answer) {
            (Question::Exists { path } | Question::GetData { path }, Ok(())) => {
                self.watching.watch_data(path)
            }
            (Question::Exists { path }, Err(ErrorCode::NoNode)) => self.watching.watch_exist(path),
            (Question::GetChildren { path } | Question::GetChildren2 { path }, Ok(())) => {
                self.watching.watch_children(path);
            }
            _ => {}
        }
        Ok(())
    }
}

/// True if the answer has the data of a znode.
fn shows_data(question: &Question, of: &str) -> bool {
    match question {
        Question::GetData { path } => path == of,
        Question::MultiRead(reads) => reads.iter().any(|read| shows_data(read, of)),
        _ => false,
    }
}

fn check_error(ask: &Ask, header: ReplyHeader, expected: Option<ErrorCode>) -> Checked {
    ensure!(
        header.error == expected,
        CHECKER,
        "{ask:?} is answered {:?}; it should be {expected:?}",
        header.error
    );
    Ok(())
}
