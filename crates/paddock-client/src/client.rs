//! The handle of a session.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paddock_proto::{OpCode, Password, SessionId, Zxid};

use crate::connection::ServedConnection;
use crate::outbox::{Intent, Outbox};
use crate::pending::{Decode, Pending, Reply};
use crate::{ClientOptions, Error, results};

/// One session. Clones share it; when the last one is dropped without `close`, the connection is cut and the server
/// lets the session expire.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    shared: Arc<ClientShared>,
}

/// State that callers and the connection's task share.
#[derive(Debug, Default)]
pub(crate) struct ClientShared {
    pub outbox: Outbox,
    pub session: AtomicI64,
    pub password: Mutex<Option<Password>>,
    pub last_zxid: AtomicI64,
    pub timeout_ms: AtomicU64,
    pub is_read_only: AtomicBool,
}

impl Client {
    /// Opens a session on the first of `servers` (`host:port`, separated by commas) that takes it. Has to be called in a runtime of Tokio with
    /// its network and its clock (`enable_all`): the task that owns the socket runs there, and the session ends with the runtime.
    ///
    /// # Errors
    /// [`Error::NoServers`] if the list is empty, [`Error::Login`] if a server refuses the user of [`ClientOptions::sasl`], and [`Error::Connect`] with the
    /// last failure if no server has granted a session within [`ClientOptions::connect_timeout`].
    pub async fn connect(servers: &str, options: ClientOptions) -> Result<Client, Error> {
        let shared = Arc::new(ClientShared::default());
        let connection = ServedConnection::open(servers, options, Arc::clone(&shared)).await?;
        tokio::spawn(connection.run());
        Ok(Client { handle: Arc::new(Handle { shared }) })
    }

    /// Sends any operation; `body` appends its fields. The typed operations are made of this. Watches and identities
    /// set this way are not renewed after a reconnect.
    pub fn send(&self, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) -> Pending<Reply> {
        self.request(op, Intent::Nothing, body, results::raw)
    }

    /// Ends the session: its ephemerals are gone when this returns. Later requests get [`Error::Closed`].
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if the connection broke before the answer: the session may live until its timeout. [`Error::SessionExpired`] if
    /// it was over already.
    pub async fn close(&self) -> Result<(), Error> {
        self.request(OpCode::CloseSession, Intent::Close, |_| {}, results::nothing).await
    }

    /// True if the client is at a server without a quorum, which takes no writes: only with
    /// [`ClientOptions::allow_read_only`]. A session that began there is replaced, watches and identities included, when a server with a quorum is
    /// found: `SessionId` and password are others then.
    pub fn is_read_only(&self) -> bool {
        self.shared().is_read_only.load(Ordering::Acquire)
    }

    /// The number of the session, which a reconnect keeps.
    pub fn session(&self) -> SessionId {
        SessionId(self.shared().session.load(Ordering::Acquire))
    }

    /// The password with which the session can be resumed: a client that has it can take the session over.
    pub fn session_password(&self) -> Password {
        let password = self.shared().password.lock().expect("no holder of the password panics");
        password.expect("it came with the session")
    }

    /// The session timeout that the server granted, which may differ from the one that was asked for.
    pub fn session_timeout(&self) -> Duration {
        Duration::from_millis(self.shared().timeout_ms.load(Ordering::Acquire))
    }

    /// The newest transaction this session has seen in an answer; 0 before the first one. After a reconnect only servers serve it that have
    /// applied this one.
    pub fn last_zxid(&self) -> Zxid {
        Zxid(self.shared().last_zxid.load(Ordering::Acquire))
    }

    pub(crate) fn request<T>(
        &self,
        op: OpCode,
        intent: Intent,
        body: impl FnOnce(&mut Vec<u8>),
        decode: Decode<T>,
    ) -> Pending<T> {
        self.shared().outbox.push(op, intent, body, decode)
    }

    fn shared(&self) -> &ClientShared {
        &self.handle.shared
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.outbox.lock().abandoned = true;
        self.shared.outbox.wake.notify_one();
    }
}
