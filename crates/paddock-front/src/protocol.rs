//! The protocol of one client connection as a state machine: frames in, actions out.
//!
//! A connection greets, waits for its session, serves it, and ends. Writes are submitted to the engine; requests that need no
//! write are answered from the state.

mod action;
mod greeting;
mod returning;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use paddock_proto::frame::{self, BadFrameLength};
use paddock_proto::jute::Reader;
use paddock_proto::{
    Auth, ConnectRequest, Dialect, ErrorCode, Extensions, Id, OpCode, Request, RequestHeader, SessionId,
    Write, Xid, Zxid,
};
use paddock_state::{Client, ClientInput, ConnId, RequestId};
use paddock_tree::{Command, Tree};

use crate::acl_schemes;
use crate::auth;
use crate::clickhouse::{self, BadTrace, ClickHouse, Packet};
use crate::handed_bytes::HandedBytes;
use crate::identities::{self, TooManyIdentities};
use crate::memory_limit;
use crate::sasl::{SaslAnswer, SaslExchange};
use crate::{Host, LimitHit, Settings};
pub(crate) use action::{Action, Declined, Refusal};
use action::{reply_and_close, silently, unimplemented};
use returning::Returning;
pub(crate) use returning::{Granted, Identified};

/// The largest connect request, in bytes: a client without a session cannot make the member wait for gigabytes.
const GREETING_BYTES_MAX: i32 = 64 << 10;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    /// A four-letter word is being answered.
    Word([u8; 4]),
    /// The connect request is with the engine. What comes behind it has to wait.
    Connecting,
    /// The client knows that its session lives, and has yet to show who it is before it is served.
    Proving,
    Serving,
    /// Nothing more is read.
    Ended,
}

/// A frame at the front of the input.
#[derive(Debug)]
pub(crate) struct Framed<'f> {
    pub(crate) frame: &'f [u8],
    /// The tracing context behind it, where a connection has them; else empty.
    pub(crate) trace: &'f [u8],
    /// Bytes that both take, with the length in front of them.
    pub(crate) len: usize,
}

/// Input that is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadInput {
    #[error(transparent)]
    Length(#[from] BadFrameLength),
    #[error(transparent)]
    Trace(#[from] BadTrace),
}

/// The member as a greeting finds it.
#[derive(Debug, Default)]
pub(crate) struct Context<'t> {
    /// `None` for requests behind the greeting, which do not ask.
    pub(crate) tree: Option<&'t Tree>,
    /// The largest zxid that a client can have seen, if it is not ahead of this member.
    pub(crate) seen_max: Zxid,
    /// True while the member knows of no leader.
    pub(crate) is_looking: bool,
    /// Monotonic time in milliseconds.
    pub(crate) now_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Protocol {
    address: SocketAddr,
    phase: Phase,
    read_only: Option<bool>,
    client: Client,
    /// `None` for a client that speaks ZooKeeper's dialect.
    clickhouse: Option<Box<ClickHouse>>,
    /// Present once the client has sent a token of SASL, or has to show who it is.
    identifying: Option<Box<Identifying>>,
}

#[derive(Debug, Default)]
struct Identifying {
    sasl: SaslExchange,
    /// Present until a client that comes back has shown who it is, if it has to.
    returning: Option<Returning>,
}

/// Reply to a token of SASL.
#[derive(Debug)]
pub(crate) enum SaslReply {
    /// The client goes on, and has shown no identity yet.
    Token(Option<Vec<u8>>),
    /// The client has shown an identity: the watch table must know, then this token goes out.
    Identify(Option<Vec<u8>>),
}

impl Protocol {
    pub(crate) fn new(conn: ConnId, address: SocketAddr, proven: &[Id]) -> Protocol {
        let ids: Vec<Id> =
            std::iter::once(auth::address_id(address.ip())).chain(proven.iter().cloned()).collect();
        let client = Client::new(conn, SessionId::NONE, &ids);
        Protocol {
            address,
            phase: Phase::Greeting,
            read_only: None,
            client,
            clickhouse: None,
            identifying: None,
        }
    }

    #[inline]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    #[inline]
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    #[inline]
    pub(crate) fn is_greeting(&self) -> bool {
        self.phase == Phase::Greeting
    }

    /// Waits for the answer to a four-letter word.
    pub(crate) fn await_word(&mut self, word: [u8; 4]) {
        self.phase = Phase::Word(word);
    }

    /// The four-letter word whose answer is waited for.
    pub(crate) fn awaited_word(&self) -> Option<[u8; 4]> {
        match self.phase {
            Phase::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A four-letter word has been answered.
    pub(crate) fn end_word(&mut self) {
        self.phase = Phase::Ended;
    }

    /// True if frames are taken in this phase.
    #[inline]
    pub(crate) fn takes_frames(&self) -> bool {
        matches!(self.phase, Phase::Greeting | Phase::Proving | Phase::Serving)
    }

    /// The first frame of `bytes` with what belongs to it, or `None` while it is incomplete.
    #[inline]
    pub(crate) fn split<'f>(
        &self,
        bytes: &'f [u8],
        settings: &Settings,
    ) -> Result<Option<Framed<'f>>, BadInput> {
        let split = match self.phase {
            Phase::Greeting => {
                ConnectRequest::split(bytes, GREETING_BYTES_MAX.min(settings.frame_bytes_max))?
            }
            _ => frame::split(bytes, settings.frame_bytes_max)?,
        };
        let Some((frame, len)) = split else { return Ok(None) };
        if !self.extensions().tracing {
            return Ok(Some(Framed { frame, trace: &[], len }));
        }
        let trace_len = clickhouse::trace_bytes(&bytes[len..])?;
        Ok(trace_len.map(|trace| Framed { frame, trace: &bytes[len..len + trace], len: len + trace }))
    }

    /// True if input and output are in compressed blocks from now on.
    #[inline]
    pub(crate) fn is_compressed(&self) -> bool {
        self.phase != Phase::Greeting && self.extensions().compression
    }

    /// True if packets leave in ZooKeeper's dialect, as they are made.
    #[inline]
    pub(crate) fn speaks_zookeeper(&self) -> bool {
        self.clickhouse.is_none()
    }

    /// Bytes of an xid before those that a member knows.
    #[inline]
    pub(crate) fn xid_bytes_ahead(&self) -> usize {
        if self.extensions().wide_xids { 4 } else { 0 }
    }

    #[inline]
    fn extensions(&self) -> Extensions {
        self.clickhouse.as_ref().map_or(Extensions::default(), |clickhouse| clickhouse.extensions)
    }

    /// True if the client would take the answer to its closeSession for an error.
    #[inline]
    pub(crate) fn wants_no_farewell(&self) -> bool {
        self.clickhouse.as_ref().is_some_and(|clickhouse| clickhouse.wants_no_farewell)
    }

    /// Brings the whole frames from `start` on into the client's form.
    #[inline]
    pub(crate) fn translate(&mut self, packet: Packet, out: &mut Vec<u8>, start: usize) {
        if let Some(clickhouse) = &mut self.clickhouse {
            clickhouse.translate(packet, out, start);
        }
    }

    /// Translates the head of a reply that is no refusal, when no other bytes of its frame are behind it yet.
    pub(crate) fn translate_head(&mut self, out: &mut Vec<u8>, start: usize) {
        if let Some(clickhouse) = &mut self.clickhouse {
            clickhouse.translate_head(out, start);
        }
    }

    #[inline]
    pub(crate) fn on_frame<'f>(
        &mut self,
        frame: &'f [u8],
        context: &Context<'_>,
        settings: &Settings,
        handed: &mut HandedBytes,
    ) -> Action<'f> {
        let action = match self.phase {
            Phase::Greeting => self.on_greeting(frame, context, settings),
            Phase::Proving | Phase::Serving => self.on_request(frame, settings, handed),
            Phase::Word(_) | Phase::Connecting | Phase::Ended => {
                unreachable!("frames are taken only while takes_frames() says so")
            }
        };
        if let Action::Refuse(_) = action {
            self.phase = Phase::Ended;
        }
        action
    }

    /// The client has shown that it is a ClickHouse client.
    fn speak(&mut self, clickhouse: ClickHouse) {
        self.client.dialect = Dialect::ClickHouse;
        self.clickhouse = Some(Box::new(clickhouse));
    }

    fn on_request<'f>(
        &mut self,
        frame: &'f [u8],
        settings: &Settings,
        handed: &mut HandedBytes,
    ) -> Action<'f> {
        let mut reader = Reader::new(frame);
        let header = match &mut self.clickhouse {
            None => RequestHeader::decode(&mut reader),
            Some(clickhouse) => clickhouse.decode_header(&mut reader),
        };
        let Ok(header) = header else { return silently("malformed request header") };
        let body = reader.rest();
        let (xid, Some(op)) = (header.xid, OpCode::from_code(header.op)) else {
            return unimplemented(header.xid);
        };
        let is_clickhouse =
            op == OpCode::GetData && clickhouse::is_read_by_clickhouse(body) || op.is_of_clickhouse();
        if is_clickhouse && self.clickhouse.is_none() {
            match settings.dialect {
                Some(Dialect::ZooKeeper) if op.is_of_clickhouse() => return unimplemented(xid),
                Some(Dialect::ZooKeeper) => {}
                _ => self.speak(ClickHouse::default()),
            }
        }
        let shows_identity = matches!(op, OpCode::Auth | OpCode::Sasl);
        let is_too_early = self.phase == Phase::Proving && op != OpCode::Ping;
        if !shows_identity && (is_too_early || !self.has_required_identity(settings)) {
            return reply_and_close(xid, Zxid(0), ErrorCode::SessionClosedRequireSaslAuth);
        }
        match op {
            OpCode::Ping => Action::Ping,
            OpCode::Auth => self.on_auth(xid, body, settings),
            // A check alone has no effect to report; the others are the service's own.
            OpCode::Check
            | OpCode::CreateSession
            | OpCode::ResumeSession
            | OpCode::ExpireSession
            | OpCode::FoundEnsemble
            | OpCode::SettleReconfig
            | OpCode::SetSecret
            | OpCode::BindSession
            | OpCode::BetweenGroups
            | OpCode::DeleteContainer => unimplemented(xid),
            // The state refuses it in its turn.
            OpCode::Reconfig if !settings.may_reconfig => Action::Read { xid, op, body },
            OpCode::Sasl => Action::Sasl { xid, body },
            op if op.is_write() => self.on_write((xid, op, body), settings, handed),
            op => Action::Read { xid, op, body },
        }
    }

    fn on_write<'f>(
        &mut self,
        (xid, op, body): (Xid, OpCode, &'f [u8]),
        settings: &Settings,
        handed: &mut HandedBytes,
    ) -> Action<'f> {
        let may_name_schemes = match op {
            OpCode::Multi => true,
            _ => match Write::decode(op, body) {
                Ok(write) => acl_schemes::has_closed_acl(&write),
                // Only a multi that cannot be read takes a zxid. The state answers this in its turn, as an error.
                Err(_) => return Action::Read { xid, op, body },
            },
        };
        if settings.limits.counters.memory.is_exceeded() && makes_larger(op, body) {
            return Action::Decline { xid, op, why: Declined::Memory };
        }
        if op == OpCode::CloseSession {
            self.phase = Phase::Ended;
            if let Some(clickhouse) = &mut self.clickhouse {
                clickhouse.wants_no_farewell = clickhouse.is_farewell(xid);
            }
        }
        let bytes = Command::encoded_len(self.client.ids(), body);
        if bytes > settings.command_bytes_max {
            return Action::Decline { xid, op, why: Declined::CommandBytes(bytes) };
        }
        let command = handed.put_together(bytes, |command| {
            Command::encode(self.client.session, 0, self.client.ids(), op, body, command);
            if may_name_schemes {
                let missing = acl_schemes::missing_schemes(op, body, settings);
                let body_at = command.len() - body.len();
                acl_schemes::overwrite(&mut command[body_at..], &missing);
            }
            if settings.enforces_quotas {
                Command::enforce_quotas(self.client.ids(), command);
            }
        });
        Action::Submit(ClientInput::Write {
            conn: self.client.conn,
            request: RequestId::first(xid),
            op,
            command,
        })
    }

    fn on_auth<'f>(&mut self, xid: Xid, body: &[u8], settings: &Settings) -> Action<'f> {
        let Ok(Request::Auth(auth)) = Request::decode(OpCode::Auth, body, Dialect::default()) else {
            return silently("malformed auth packet");
        };
        let Some(proven) = self.prove(&auth, settings) else {
            return Action::Refuse(Refusal::AuthFailed { xid });
        };
        match self.identify(&proven, settings) {
            Ok(()) => Action::Identify { xid },
            Err(found) => Action::Refuse(Refusal::TooManyIdentities { xid, found }),
        }
    }

    #[inline]
    fn has_required_identity(&self, settings: &Settings) -> bool {
        let required = &settings.required_schemes;
        let is_required = |scheme: &str| required.iter().any(|required| required == scheme);
        required.is_empty() || self.client.ids().iter().any(|(scheme, _)| is_required(scheme))
    }

    /// Takes a token of SASL.
    pub(crate) fn on_sasl(
        &mut self,
        xid: Xid,
        body: &[u8],
        settings: &Settings,
        host: &impl Host,
    ) -> Result<SaslReply, Refusal> {
        let Ok(token) = Reader::new(body).buffer() else {
            return Err(self.end(Refusal::Silently { why: "malformed SASL packet" }));
        };
        // As ZooKeeper without SASL: the client goes on without an identity, if it likes.
        let Some(users) = &settings.sasl else { return Ok(SaslReply::Token(None)) };
        let exchange = &mut self.identifying.get_or_insert_default().sasl;
        match exchange.take(token.unwrap_or_default(), users, settings.kerberos.as_ref(), || host.nonce()) {
            Ok(SaslAnswer::Challenge(token)) => Ok(SaslReply::Token(Some(token))),
            Ok(SaslAnswer::Proven { ids, proof }) => {
                tracing::debug!(client = %self.address, user = ids[0].id, "client has proved who it is by SASL");
                if let Err(found) = self.identify(&ids, settings) {
                    let (client, session, now_ms) = (self.address, self.client.session, host.monotonic_ms());
                    settings.limits.counters.hits.hit(
                        LimitHit::Identities,
                        Some(client),
                        session,
                        now_ms,
                        &found,
                    );
                    return Err(self.end(Refusal::SaslFailed { xid, error: settings.failed_auth_error() }));
                }
                Ok(SaslReply::Identify(proof))
            }
            Err(error) => {
                let (client, session, now_ms) = (self.address, self.client.session, host.monotonic_ms());
                settings.limits.counters.hits.hit(
                    LimitHit::FailedSasl,
                    Some(client),
                    session,
                    now_ms,
                    &error,
                );
                if users.keeps_failed_clients && settings.required_schemes.is_empty() {
                    return Ok(SaslReply::Token(None));
                }
                Err(self.end(Refusal::SaslFailed { xid, error: settings.failed_auth_error() }))
            }
        }
    }

    fn end(&mut self, refusal: Refusal) -> Refusal {
        self.phase = Phase::Ended;
        refusal
    }

    /// The client has proved that it has these identities, too.
    fn identify(&mut self, proven: &[Id], settings: &Settings) -> Result<(), TooManyIdentities> {
        if let Some(identified) = identities::with_proven(&self.client, proven, &settings.limits)? {
            self.client = identified;
        }
        Ok(())
    }

    fn prove(&self, auth: &Auth<'_>, settings: &Settings) -> Option<Vec<Id>> {
        match auth.scheme {
            // The certificate was verified in the handshake, whatever comes with the request.
            auth::X509 => auth::certificate_ids(self.client.ids()),
            _ => auth::authenticate(auth, self.address.ip(), settings),
        }
    }
}

/// True if a write needs memory that a member without any does not have.
#[cold]
fn makes_larger(op: OpCode, body: &[u8]) -> bool {
    Write::decode(op, body).is_ok_and(|write| memory_limit::growth(&write) > 0)
}
