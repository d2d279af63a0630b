//! Options of a client.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::{Event, Login, Tls};

#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The session timeout to ask for; the server has the last word.
    pub session_timeout: Duration,
    /// Time after which `Client::connect` gives up. A lost connection is sought without end, for only the server knows how long the
    /// session may live.
    pub connect_timeout: Duration,
    /// A longer reply ends the connection.
    pub reply_bytes_max: i32,
    /// TLS for every connection; none is plaintext.
    pub tls: Option<Tls>,
    /// User that logs in by SASL (DIGEST-MD5) on every connection, before anything else; none does not.
    pub sasl: Option<Login>,
    /// Receiver of watch events and changes of the connection. Without it they are dropped.
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
            events: None,
        }
    }
}
