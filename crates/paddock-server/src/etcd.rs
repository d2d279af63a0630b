//! A front end on etcd: the thread that runs the engine of `paddock-etcd`, and its connection to the cluster.
//!
//! Engine and connection share one thread, so that a write costs a hop to it and one back.

mod calls;
mod channel;
mod client;
mod connection;
mod hosted;
mod login;
mod tls;
mod transport;

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;
use paddock_etcd::Input;
use paddock_os::threads::{runtime_with_helpers, spawn};
use tokio::task::{LocalSet, spawn_local};

use crate::config::EtcdSettings;
use crate::error::ServerError;
use crate::host::{EngineHost, Inbox, run};
use crate::shared::Shared;
use hosted::HostedEtcd;
use tls::etcd_client;

pub use client::EtcdClient;

/// The way to the engine.
pub(crate) type EtcdHandle = Inbox<Input>;

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
    let (handle, messages) = Inbox::new();
    let (is_loading, loaded) = crossbeam_channel::bounded(0);
    let (host, inbox) = (EngineHost::new(shared.clone()), handle.clone());
    let thread = spawn("etcd", move || {
        let runtime = runtime_with_helpers(&mut tokio::runtime::Builder::new_current_thread());
        LocalSet::new().block_on(&runtime, async {
            let engine = HostedEtcd::new(&host, &settings, inbox, is_loading);
            let keeping = spawn_local(engine.connection().keep(settings));
            run(host, engine, messages).await;
            keeping.abort();
        });
    });
    EtcdEngine { handle, thread, loaded }
}
