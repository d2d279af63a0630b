//! Clients that come back to their sessions, and the answers of the engine to them.
//!
//! A client that shows the right password has to be the one that the session is bound to. A client proves that by SASL only once it
//! has been greeted, so it is told that its session lives, and until it has shown who it is the connection serves nothing: its
//! session stays with the connection that is served on it.

use paddock_proto::{ConnectResponse, Password, SessionId};
use paddock_state::{ClientInput, Connected, ProvenIds, Resumption};
use paddock_tree::{ShownPassword, Tree};

use super::action::silently;
use super::{Action, Phase, Protocol, Refusal};
use crate::Settings;
use crate::sasl::SASL;

/// A client that is to show who it is before it gets its session back.
#[derive(Debug)]
pub(super) struct Returning {
    resumption: Resumption,
    may_only_read: bool,
    /// The client was told that it can only read.
    read_only: bool,
}

/// Something to be done because a client has shown another identity.
#[derive(Debug)]
pub(crate) enum Identified {
    /// The client has shown all that its session asks for: to be handed to the engine, whose parcel will answer.
    Resume(ClientInput),
    /// Its session is bound to it from now on: to be handed to the engine, which gives no answer.
    Bind(ClientInput),
    /// The client is not the one that the session belongs to.
    Stranger,
}

/// Answer of a connection to a session that the engine gave it.
#[derive(Debug)]
pub(crate) enum Granted {
    /// This packet tells the client.
    Greet(ConnectResponse),
    /// The client knows it already.
    Known,
    /// The member has begun or ceased to take writes since it was greeted: the client is to come back.
    OtherMode,
}

impl Protocol {
    /// The client wants a session back, for which it has shown a password.
    pub(super) fn on_return<'f>(
        &mut self,
        (session, shown): (SessionId, &[u8]),
        timeout_ms: i32,
        tree: &Tree,
        settings: &Settings,
    ) -> Action<'f> {
        let expired = Action::Refuse(Refusal::Expired { read_only: self.read_only });
        let is_keyed = match tree.compare_password(session, shown) {
            ShownPassword::Right { is_keyed } => is_keyed,
            ShownPassword::Wrong => return expired,
            ShownPassword::Unknown => return silently("this member does not know the ensemble's secret yet"),
        };
        let is_admitted = tree.admits(session, self.client.ids());
        // A certificate was shown before the greeting or never; SASL comes behind it, where there is any.
        let can_prove = |scheme: &str| scheme == SASL && settings.sasl.is_some();
        if !is_admitted && tree.session_identity(session).is_some_and(|id| !can_prove(&id.scheme)) {
            tracing::info!(%session, client = %self.address, "refused to resume a session that is bound to another identity");
            return expired;
        }
        let is_asking = !is_admitted || !self.has_required_identity(settings);
        let ids = ProvenIds::of(self.client.ids());
        let moves = tree.session_moves(session);
        let resumption = Resumption { session, timeout_ms, is_keyed, is_asking, moves, ids };
        let may_only_read = self.read_only == Some(true);
        if is_asking {
            let returning = Returning { resumption: resumption.clone(), may_only_read, read_only: false };
            self.identifying.get_or_insert_default().returning = Some(returning);
        }
        Action::Submit(ClientInput::Resume { conn: self.client.conn, resumption, may_only_read })
    }

    /// The engine gave the connection its session, or says that it lives.
    pub(crate) fn on_connected(&mut self, connected: Connected, password: Password) -> Granted {
        assert!(self.phase == Phase::Connecting, "a session for a connection that did not ask");
        let Connected { session, timeout_ms, read_only } = connected;
        match self.returning_mut() {
            Some(returning) if returning.resumption.is_asking => {
                returning.read_only = read_only;
                self.phase = Phase::Proving;
            }
            Some(returning) if returning.read_only != read_only => return Granted::OtherMode,
            Some(_) => {
                self.begin_serving(session);
                return Granted::Known;
            }
            None => self.begin_serving(session),
        }
        let read_only = self.read_only.map(|_| read_only);
        let protocol_version = self.version();
        Granted::Greet(ConnectResponse { protocol_version, timeout_ms, session, password, read_only })
    }

    fn begin_serving(&mut self, session: SessionId) {
        self.phase = Phase::Serving;
        if let Some(identifying) = &mut self.identifying {
            identifying.returning = None;
        }
        self.client = self.client.clone().with_session(session);
    }

    /// True if the client has been sent a greeting that gives it a session, and waits for more.
    fn is_greeted(&self) -> bool {
        self.returning().is_some_and(|returning| !returning.resumption.is_asking)
    }

    fn returning(&self) -> Option<&Returning> {
        self.identifying.as_ref()?.returning.as_ref()
    }

    fn returning_mut(&mut self) -> Option<&mut Returning> {
        self.identifying.as_mut()?.returning.as_mut()
    }

    /// The session that the client asked for is gone. Returns the packet that tells it, unless it comes too late for that: the client
    /// is told when it asks again.
    pub(crate) fn on_expired(&mut self) -> Option<ConnectResponse> {
        let is_greeted = self.is_greeted();
        self.phase = Phase::Ended;
        let response = ConnectResponse::expired(self.read_only.map(|_| false));
        (!is_greeted).then(|| ConnectResponse { protocol_version: self.version(), ..response })
    }

    /// Tells a client that waits for its session that there is none to be had here now, if its dialect has a packet for that.
    pub(crate) fn on_turned_away(&self) -> Option<ConnectResponse> {
        let is_told = self.phase == Phase::Connecting && self.clickhouse.is_some() && !self.is_greeted();
        is_told.then(ConnectResponse::no_leader)
    }

    /// The client has shown another identity than before.
    pub(crate) fn on_identified(&mut self, tree: &Tree, settings: &Settings) -> Option<Identified> {
        match self.phase {
            Phase::Proving => self.prove_return(tree, settings),
            Phase::Serving => {
                let (session, ids) = (self.client.session, ProvenIds::of(self.client.ids()));
                // A session of read-only mode is no session of the ensemble.
                let is_known = tree.session_timeout_ms(session).is_some();
                let is_new = is_known && !ids.is_empty() && tree.session_identity(session).is_none();
                is_new.then_some(Identified::Bind(ClientInput::Bind { conn: self.client.conn, session, ids }))
            }
            _ => None,
        }
    }

    fn prove_return(&mut self, tree: &Tree, settings: &Settings) -> Option<Identified> {
        let returning = self.returning().expect("a client proves who it is to get its session back");
        if !tree.admits(returning.resumption.session, self.client.ids()) {
            let has_proved = self.client.ids().iter().any(|(scheme, _)| scheme == SASL);
            return has_proved.then_some(Identified::Stranger);
        }
        if !self.has_required_identity(settings) {
            return None;
        }
        let ids = ProvenIds::of(self.client.ids());
        let conn = self.client.conn;
        let returning = self.returning_mut().expect("it was there");
        (returning.resumption.is_asking, returning.resumption.ids) = (false, ids);
        let (resumption, may_only_read) = (returning.resumption.clone(), returning.may_only_read);
        self.phase = Phase::Connecting;
        Some(Identified::Resume(ClientInput::Resume { conn, resumption, may_only_read }))
    }
}
