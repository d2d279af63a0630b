//! An asynchronous client for Paddock, ZooKeeper and whatever else speaks ZooKeeper's protocol.
//!
//! A `Client` is one session. Every operation returns a `Pending` at once and is on its way whether or not the
//! `Pending` is awaited, so thousands may be in flight; the server answers them in the order in which they were made.
//! One task per client owns the socket. It pings, reconnects to the next server with the same session, and registers
//! the watches again; events arrive on the channel given in `ClientOptions`.
//!
//! Always true:
//! - A request whose connection breaks before its answer ends in `Error::ConnectionLost` and is never sent twice.
//! - A request made while there is no connection waits for the next one.
//! - Nothing that a server sends is trusted: a bad frame or record ends the connection, never the process.
//!
//! Errors are in [`Error`], times and limits in [`ClientOptions`]; `docs/embedding.md` tells of a server in the same process. What is hidden from
//! this documentation is for the project's own programs, and changes without notice.
//!
//! ```no_run
//! # async fn example() -> Result<(), paddock_client::Error> {
//! use paddock_client::{Client, ClientOptions, CreateMode};
//!
//! let client = Client::connect("127.0.0.1:2181", ClientOptions::default()).await?;
//! client.create("/greeting", b"hello", CreateMode::Persistent).await?;
//! let greeting = client.get_data("/greeting").await?;
//! assert_eq!(greeting.bytes.as_deref(), Some(&b"hello"[..]));
//! client.close().await?;
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod client;
mod connection;
mod error;
mod handshake;
mod multi;
mod operations;
mod options;
mod outbox;
mod pending;
mod results;
mod sasl;
mod stream;
mod tls;
mod watches;
mod writable;

pub use client::Client;
pub use error::Error;
pub use multi::{Multi, MultiRead, ReadReply};
pub use options::ClientOptions;
pub use paddock_proto::{
    Acl, AddWatchMode, CreateMode, ErrorCode, EventKind, Id, OpCode, Perms, SessionId, Stat, WatcherKind,
    WriteReply, Zxid,
};
pub use paddock_sasl::Login;
pub use pending::{Pending, Reply};
pub use results::{Children, Created, Data};
pub use sasl::LoginError;
#[doc(hidden)]
pub use sasl::{LoginSteps, fresh_nonce};
#[doc(hidden)]
pub use stream::Stream;
pub use tls::{Tls, TlsError, TlsFiles};
pub use watches::Event;
