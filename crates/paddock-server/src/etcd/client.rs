//! A connection to an etcd cluster for a command: one call after the other, on the thread of the caller.

use std::fmt;
use std::sync::Arc;

use paddock_etcd::CallError;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::channel::{Channel, Driver, lost};
use crate::config::EtcdSettings;
use crate::etcd_metrics::EtcdStats;

/// A connection to one member of etcd. A call that fails is not made again.
pub struct EtcdClient {
    channel: Channel,
    /// Carries the connection, while a call is made.
    _driver: Driver,
    tasks: LocalSet,
    runtime: Runtime,
}

impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdClient").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl EtcdClient {
    /// Connects to the first endpoint that answers, and logs the user in, if there is one.
    ///
    /// # Errors
    /// The failure of the last endpoint: it is not reached, does not speak etcd's protocol, or refuses the user.
    ///
    /// # Panics
    /// On a thread of a runtime of Tokio: a call blocks.
    pub fn connect(settings: &EtcdSettings) -> Result<EtcdClient, CallError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(lost)?;
        let (tasks, stats) = (LocalSet::new(), Arc::new(EtcdStats::default()));
        let mut failure = lost("there is no endpoint");
        for endpoint in &settings.endpoints {
            match tasks.block_on(&runtime, Channel::open(endpoint, settings, &stats)) {
                Ok((channel, _driver)) => return Ok(EtcdClient { channel, _driver, tasks, runtime }),
                Err(CallError::Lost(reason)) => failure = lost(format!("{}: {reason}", endpoint.url())),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// A call with one message and one message in answer, both in the form of Protocol Buffers. `path` names the method, such as
    /// `/etcdserverpb.KV/Range`.
    ///
    /// # Errors
    /// etcd's refusal, or the loss of the connection: the call may or may not have been carried out.
    ///
    /// # Panics
    /// On a thread of a runtime of Tokio: a call blocks.
    pub fn call(&self, path: &'static str, message: Vec<u8>) -> Result<Vec<u8>, CallError> {
        self.tasks.block_on(&self.runtime, self.channel.call(path, message))
    }
}
