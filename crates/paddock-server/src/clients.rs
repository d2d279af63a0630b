//! Clients: the listener, and worker threads that own their connections.
//!
//! A worker brings bytes from sockets to its front, hands the front's inputs to the engine, and sends what comes back.

mod flush_queue;
mod group_commit;
mod host;
mod inner_client;
mod listener;
mod serve;
mod tasks;
mod tls_session;
mod welcome;
mod wire;
mod worker;

pub(crate) use inner_client::{InnerClient, InnerError};
pub(crate) use listener::{ClientThreads, Port, start};
