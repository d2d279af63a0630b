//! The greeting of a connection: its dialect, and the session that it asks for.

use paddock_proto::{ConnectRequest, ConnectResponse, Dialect, Extensions, Password, SessionId};
use paddock_state::ClientInput;
use subtle::ConstantTimeEq;

use super::action::silently;
use super::{Action, Context, Phase, Protocol, Refusal};
use crate::clickhouse::ClickHouse;
use crate::identities;
use crate::{LimitHit, Settings};

/// Session timeout of a ClickHouse client that asks for none in particular, in milliseconds, as ClickHouse Keeper has it.
const CLICKHOUSE_TIMEOUT_MS: i32 = 30_000;

impl Protocol {
    pub(super) fn on_greeting<'f>(
        &mut self,
        frame: &'f [u8],
        context: &Context,
        settings: &Settings,
    ) -> Action<'f> {
        let Ok(request) = ConnectRequest::decode(frame) else { return silently("malformed connect request") };
        if request.last_zxid_seen > context.zxid {
            // The client has seen more than this member knows: it would go back in time here.
            return silently("client has seen a newer zxid than this member");
        }
        if identities::check(self.client.ids(), &settings.limits).is_err() {
            // Those of its certificate: it has shown no others yet.
            return Action::Refuse(Refusal::Limited(LimitHit::Identities));
        }
        self.read_only = request.read_only;
        let mut asked_ms = request.timeout_ms;
        match dialect_of(&request, settings.dialect) {
            None => return silently("ClickHouse's greeting where only ZooKeeper's protocol is spoken"),
            Some(Dialect::ZooKeeper) => {}
            Some(Dialect::ClickHouse) if context.is_looking => return Action::Refuse(Refusal::NoLeader),
            Some(Dialect::ClickHouse) => {
                // Its byte always says that it may only read, and it takes none.
                self.read_only = None;
                self.speak(ClickHouse::new(request.extensions, request.protocol_version));
                if asked_ms == 0 {
                    asked_ms = CLICKHOUSE_TIMEOUT_MS;
                }
            }
        }
        self.phase = Phase::Connecting;
        let (conn, session) = (self.client.conn, request.session);
        let timeout_ms = settings.negotiate_timeout_ms(asked_ms);
        let may_only_read = self.read_only == Some(true);
        let limits = &settings.limits;
        if !limits.connects.admit(session == SessionId::NONE, context.now_ms) {
            return Action::Refuse(Refusal::Limited(LimitHit::ConnectRate));
        }
        if session == SessionId::NONE {
            if context.sessions >= limits.sessions_max {
                return Action::Refuse(Refusal::Limited(LimitHit::Sessions));
            }
            return Action::Submit(ClientInput::Connect { conn, timeout_ms, may_only_read });
        }
        let password = request.password.unwrap_or_default();
        // The time that it takes tells nothing of a password.
        if !bool::from(password.ct_eq(&Password::of(session).0)) {
            return Action::Refuse(Refusal::Expired { read_only: self.read_only });
        }
        Action::Submit(ClientInput::Resume { conn, session, timeout_ms, may_only_read })
    }

    /// The engine gave the connection its session. Returns the packet that tells the client.
    pub(crate) fn on_connected(
        &mut self,
        session: SessionId,
        timeout_ms: i32,
        read_only: bool,
    ) -> ConnectResponse {
        assert!(self.phase == Phase::Connecting, "a session for a connection that did not ask");
        self.phase = Phase::Serving;
        self.client = self.client.clone().with_session(session);
        let read_only = self.read_only.map(|_| read_only);
        let password = Password::of(session);
        ConnectResponse { protocol_version: self.version(), timeout_ms, session, password, read_only }
    }

    /// The session that the client asked for is gone. Returns the packet that tells it.
    pub(crate) fn on_expired(&mut self) -> ConnectResponse {
        self.phase = Phase::Ended;
        let response = ConnectResponse::expired(self.read_only.map(|_| false));
        ConnectResponse { protocol_version: self.version(), ..response }
    }

    /// Tells a client that waits for its session that there is none to be had here now, if its dialect has a packet for that.
    pub(crate) fn on_turned_away(&self) -> Option<ConnectResponse> {
        let is_told = self.phase == Phase::Connecting && self.clickhouse.is_some();
        is_told.then(ConnectResponse::no_leader)
    }

    fn version(&self) -> i32 {
        self.clickhouse.as_ref().map_or(0, |clickhouse| clickhouse.version)
    }
}

/// The dialect in which a connection begins; `None` if it greets in another than it must.
fn dialect_of(request: &ConnectRequest<'_>, pinned: Option<Dialect>) -> Option<Dialect> {
    match (pinned, Extensions::are_meant_by(request.protocol_version)) {
        (Some(Dialect::ZooKeeper), true) => None,
        (None, true) => Some(Dialect::ClickHouse),
        (pinned, _) => Some(pinned.unwrap_or_default()),
    }
}
