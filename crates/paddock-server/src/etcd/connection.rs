//! The connection to the etcd cluster: to one member after the other, until one answers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use paddock_etcd::CallError;
use tokio::time::{sleep, timeout};

use super::channel::{Channel, Driver, lost};
use crate::config::{EtcdEndpoint, EtcdSettings};
use crate::etcd_metrics::EtcdStats;

/// Time between two tries to connect.
const PAUSE: Duration = Duration::from_millis(200);
/// A connection that has lasted for this time was of use: the next one is made at once when it ends.
const STEADY: Duration = Duration::from_secs(1);

/// The channel of now.
#[derive(Debug)]
pub(super) struct Connection {
    channel: RefCell<Option<Channel>>,
    pub(super) stats: Arc<EtcdStats>,
}

impl Connection {
    pub(super) fn new(stats: Arc<EtcdStats>) -> Connection {
        Connection { channel: RefCell::default(), stats }
    }

    pub(super) fn channel(&self) -> Result<Channel, CallError> {
        self.channel.borrow().clone().ok_or_else(|| lost("there is no connection to etcd"))
    }

    /// Keeps a connection to some member as long as it is polled.
    pub(super) async fn keep(self: Rc<Connection>, settings: EtcdSettings) {
        // True since the log has a line about trouble, until it has one about its end.
        let mut is_told = false;
        for endpoint in settings.endpoints.iter().cycle() {
            let url = endpoint.url();
            match Channel::open(endpoint, &settings, &self.stats).await {
                Ok((channel, driver)) => {
                    self.stats.connected();
                    *self.channel.borrow_mut() = Some(channel);
                    let was_steady = self.watch_over(endpoint, driver, &mut is_told).await;
                    *self.channel.borrow_mut() = None;
                    if was_steady {
                        continue;
                    }
                }
                Err(error) if is_told => tracing::debug!(endpoint = url, %error, "etcd does not answer"),
                Err(error) => {
                    tracing::warn!(endpoint = url, %error, "etcd does not answer; trying again");
                    is_told = true;
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits for the end of a connection. True if it has lasted.
    async fn watch_over(&self, endpoint: &EtcdEndpoint, mut driver: Driver, is_told: &mut bool) -> bool {
        let endpoint = endpoint.url();
        if !*is_told {
            tracing::info!(endpoint, "connected to etcd");
        }
        if let Ok(reason) = timeout(STEADY, driver.ended()).await {
            if !std::mem::replace(is_told, true) {
                tracing::warn!(endpoint, reason, "lost the connection to etcd");
            }
            return false;
        }
        if std::mem::take(is_told) {
            tracing::info!(endpoint, "connected to etcd");
        }
        let reason = driver.ended().await;
        tracing::warn!(endpoint, reason, "lost the connection to etcd");
        true
    }
}
