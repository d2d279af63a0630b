//! Options of a client.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::{Event, Login, Tls};

/// Times, limits and identities of a client. `ClientOptions::default()` suits a server nearby without TLS; change what you need.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The session timeout to ask for, in whole milliseconds; by default 30 s. The server has the last word:
    /// [`Client::session_timeout`](crate::Client::session_timeout).
    pub session_timeout: Duration,
    /// Time after which [`Client::connect`](crate::Client::connect) gives up; by default 10 s. A lost connection is sought without end, for only the
    /// server knows how long the session may live.
    pub connect_timeout: Duration,
    /// The longest reply, in bytes; a longer one ends the connection. By default 256 MiB.
    pub reply_bytes_max: i32,
    /// TLS for every connection; `None`, the default, is plaintext.
    pub tls: Option<Tls>,
    /// User that logs in by SASL (DIGEST-MD5) on every connection, before anything else; `None`, the default, does not.
    pub sasl: Option<Login>,
    /// True if a server without a quorum may serve the client, too, with reads that may be old and no writes; false by default. A server that
    /// takes writes is looked for meanwhile: [`Client::is_read_only`](crate::Client::is_read_only).
    pub allow_read_only: bool,
    /// Receiver of watch events and changes of the connection, in their order. It has no bound: read it. Without it, as by default, they are dropped.
    pub events: Option<mpsc::UnboundedSender<Event>>,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            session_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            reply_bytes_max: 256 << 20,
            tls: None,
            sasl: None,
            allow_read_only: false,
            events: None,
        }
    }
}
