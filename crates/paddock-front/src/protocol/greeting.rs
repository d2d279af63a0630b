//! The greeting of a connection: its dialect, and the session that it asks for.

use paddock_proto::{ConnectRequest, Dialect, Extensions, SessionId};
use paddock_state::{ClientInput, ProvenIds};

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
        context: &Context<'_>,
        settings: &Settings,
    ) -> Action<'f> {
        let Ok(request) = ConnectRequest::decode(frame) else { return silently("malformed connect request") };
        let tree = context.tree.expect("a greeting finds the state");
        if request.last_zxid_seen > context.seen_max {
            // The client has seen more than this member knows: it would go back in time here.
            return silently("client has seen a newer zxid than this member");
        }
        if identities::check(self.client.ids(), &settings.limits).is_err() {
            // These identities are of its certificate: it has shown no others yet.
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
        if !limits.counters.connects.admit(session == SessionId::NONE, context.now_ms) {
            return Action::Refuse(Refusal::Limited(LimitHit::ConnectRate));
        }
        if session == SessionId::NONE {
            if tree.session_count() >= limits.sessions_max {
                return Action::Refuse(Refusal::Limited(LimitHit::Sessions));
            }
            let ids = ProvenIds::of(self.client.ids());
            return Action::Submit(ClientInput::Connect { conn, timeout_ms, may_only_read, ids });
        }
        self.on_return((session, request.password.unwrap_or_default()), timeout_ms, tree, settings)
    }

    pub(super) fn version(&self) -> i32 {
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
