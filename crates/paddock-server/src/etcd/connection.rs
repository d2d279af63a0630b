//! The connection to the etcd cluster: to one member after the other, until one answers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use paddock_etcd::CallError;

use super::channel::{Channel, lost};
use crate::config::EtcdSettings;

/// Time between two tries to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// The channel of now.
#[derive(Debug, Default)]
pub(super) struct Connection {
    channel: RefCell<Option<Channel>>,
}

impl Connection {
    pub(super) fn channel(&self) -> Result<Channel, CallError> {
        self.channel.borrow().clone().ok_or_else(|| lost("there is no connection to etcd"))
    }

    /// Keeps a connection to some member as long as it is polled.
    pub(super) async fn keep(self: Rc<Connection>, settings: EtcdSettings) {
        let mut is_told = false;
        for endpoint in settings.endpoints.iter().cycle() {
            match Channel::open(endpoint, settings.user.as_ref()).await {
                Ok((channel, driver)) => {
                    tracing::info!(endpoint = endpoint.url(), "connected to etcd");
                    is_told = false;
                    *self.channel.borrow_mut() = Some(channel);
                    driver.ended().await;
                    *self.channel.borrow_mut() = None;
                    tracing::warn!(endpoint = endpoint.url(), "lost the connection to etcd");
                }
                Err(error) if is_told => {
                    tracing::debug!(endpoint = endpoint.url(), %error, "etcd does not answer");
                }
                Err(error) => {
                    tracing::warn!(endpoint = endpoint.url(), %error, "etcd does not answer; trying again");
                    is_told = true;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
