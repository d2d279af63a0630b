//! A client inside the member: it asks what an administrator wants changed, by a session of its own for each request.
//!
//! The client goes the way of every client, so that quotas, ACLs and versions count and nothing is applied here that was not replicated. It
//! has a mailbox of its own, behind those of the workers, and no socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_front::Front;
use paddock_proto::jute::Reader;
use paddock_proto::{
    ConnectRequest, ErrorCode, Extensions, Id, OpCode, ReplyHeader, RequestHeader, SessionId, Xid, Zxid,
    frame,
};
use paddock_state::ConnId;
use paddock_statistics::stats::ConnStats;

use super::host::WorkerHost;
use crate::clock;
use crate::engines::EngineHandle;
use crate::shared::Shared;

/// Time that a change may take before the administrator is told that it is not known what came of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reason for which a request has no answer that counts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InnerError {
    #[error("the request was refused: {0:?}")]
    Refused(ErrorCode),
    #[error("This member cannot write now: there is no quorum, or it stops.")]
    NotServing,
    #[error("There was no answer within ten seconds; whether the change was made is not known.")]
    TimedOut,
}

#[derive(Debug)]
pub(crate) struct InnerClient {
    front: Front<WorkerHost>,
    host: WorkerHost,
    engine: EngineHandle,
    next_conn: u64,
}

impl InnerClient {
    pub(crate) fn new(shared: &Arc<Shared>, engine: &EngineHandle) -> InnerClient {
        InnerClient {
            front: Front::new(shared.of_front()),
            host: WorkerHost::new(shared.clone(), shared.mailboxes.inner_worker()),
            engine: engine.clone(),
            next_conn: 1,
        }
    }

    /// Asks one thing, for a requester with these identities, and returns the body of the reply. To be called by threads on which the
    /// runtime lets functions block.
    pub(crate) fn ask(
        &mut self,
        peer: SocketAddr,
        ids: &[Id],
        op: OpCode,
        body: &[u8],
    ) -> Result<Vec<u8>, InnerError> {
        let mut settings = self.host.shared.of_front();
        // The client asks for what only one dialect has, whatever others may speak.
        settings.dialect = None;
        self.front.set_settings(settings);
        let conn = ConnId::new(self.host.worker, self.next_conn);
        self.next_conn += 1;
        self.front.accept_proven(conn, peer, Arc::new(ConnStats::new(peer, clock::wall_ms())), ids);
        let answer = self.converse(conn, op, body);
        self.front.leave(conn, &self.host);
        self.engine.hand_over(self.front.inputs());
        answer
    }

    fn converse(&mut self, conn: ConnId, op: OpCode, body: &[u8]) -> Result<Vec<u8>, InnerError> {
        let until = Instant::now() + PATIENCE;
        let mut greeting = Vec::new();
        self.greeting().encode(&mut greeting);
        let greeted = self.exchange(conn, &greeting, until)?;
        // A version, and the timeout that was agreed: none if there is no session.
        let timeout_ms = Reader::new(&greeted[4.min(greeted.len())..]).i32().unwrap_or(0);
        if timeout_ms <= 0 {
            return Err(InnerError::NotServing);
        }
        let answer = self.exchange(conn, &request(1, op, body), until)?;
        let mut reader = Reader::new(&answer);
        let header = ReplyHeader::decode(&mut reader).map_err(|_| InnerError::NotServing)?;
        let reply = reader.rest().to_vec();
        // Its answer says nothing that counts.
        let _ = self.exchange(conn, &request(2, OpCode::CloseSession, &[]), until);
        header.error.map_or(Ok(reply), |error| Err(InnerError::Refused(error)))
    }

    fn greeting(&self) -> ConnectRequest<'static> {
        let timeout_ms = self.host.shared.settings().session_timeout_ms_min;
        ConnectRequest {
            protocol_version: 0,
            extensions: Extensions::default(),
            last_zxid_seen: Zxid(0),
            timeout_ms: i32::try_from(timeout_ms).unwrap_or(i32::MAX),
            session: SessionId::NONE,
            password: Some(&[0; 16]),
            read_only: Some(false),
        }
    }

    /// Hands a frame in and returns the next one that comes out, without its length.
    fn exchange(&mut self, conn: ConnId, bytes: &[u8], until: Instant) -> Result<Vec<u8>, InnerError> {
        let now_ms = self.host.shared.clock.monotonic_ms();
        self.front.receive(conn, bytes, now_ms, &self.host);
        self.engine.hand_over(self.front.inputs());
        let mut output = Vec::new();
        loop {
            self.front.deliver(&self.host);
            self.front.take_reached(&mut Vec::new());
            let taken = self.front.send(conn, |unsent| {
                output.extend_from_slice(unsent);
                Ok::<_, std::convert::Infallible>(unsent.len())
            });
            taken.unwrap_or_else(|never| match never {});
            if let Ok(Some((answer, _))) = frame::split(&output, i32::MAX) {
                return Ok(answer.to_vec());
            }
            let is_over = self.front.condition(conn, &self.host).is_none_or(|condition| condition.is_closing);
            if is_over || self.host.shared.life.is_stopping() {
                return Err(InnerError::NotServing);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.host.shared.mailboxes.of(self.host.worker).wait(left) {
                return Err(InnerError::TimedOut);
            }
        }
    }
}

fn request(xid: i32, op: OpCode, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, |out| {
        RequestHeader { xid: Xid(xid), op: op.code() }.encode(out);
        out.extend_from_slice(body);
    });
    out
}
