//! A front end on etcd: the thread that runs the engine of `paddock-etcd`, and its connection to the cluster.
//!
//! Engine and connection share one thread, so that a write costs a hop to it and one back.

mod calls;
mod channel;
mod client;
mod connection;
mod login;
mod runner;
mod tls;
mod transport;

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;
use paddock_state::ClientInput;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::config::EtcdSettings;
use crate::error::ServerError;
use crate::shared::Shared;
use crate::threads::spawn;
use runner::Message;
use tls::etcd_client;

pub use client::EtcdClient;

/// The way to the engine, for workers.
#[derive(Clone, Debug)]
pub(crate) struct EtcdHandle {
    messages: UnboundedSender<Message>,
}

impl EtcdHandle {
    /// Hands inputs of clients to the engine and leaves the vector empty.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        if !inputs.is_empty() {
            // After the engine's end connections are about to end too.
            let _ = self.messages.send(Message::Clients(std::mem::take(inputs)));
        }
    }

    /// Ends the engine, which needs nothing any more once the workers have ended.
    pub(crate) fn close(&self) {
        let _ = self.messages.send(Message::Close);
    }
}

/// A running engine.
#[derive(Debug)]
pub(crate) struct EtcdEngine {
    pub(crate) handle: EtcdHandle,
    pub(crate) thread: JoinHandle<()>,
    /// Closed when the state has been read for the first time.
    pub(crate) loaded: Receiver<()>,
}

/// Reads the files that TLS to etcd needs, so that a wrong one is told before anything begins.
pub(crate) fn check(settings: &EtcdSettings) -> Result<(), ServerError> {
    settings.tls.as_ref().map_or(Ok(()), |tls| etcd_client(tls).map(drop)).map_err(ServerError::EtcdTls)
}

pub(crate) fn start(shared: &Arc<Shared>, settings: EtcdSettings) -> EtcdEngine {
    let (messages, received) = unbounded_channel();
    let (is_loading, loaded) = crossbeam_channel::bounded(0);
    let shared = shared.clone();
    let thread = spawn("etcd", move || runner::run(shared, settings, received, is_loading));
    EtcdEngine { handle: EtcdHandle { messages }, thread, loaded }
}
