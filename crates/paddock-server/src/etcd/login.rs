//! The token of a user of etcd, which each call shows, and its renewal when etcd does not take it any more.

use std::cell::RefCell;
use std::sync::Arc;

use hyper::http::HeaderValue;
use tokio::sync::Mutex;

use crate::config::EtcdUser;
use crate::etcd_metrics::EtcdStats;

#[derive(Debug)]
pub(super) struct Login {
    pub(super) user: EtcdUser,
    token: RefCell<Option<HeaderValue>>,
    /// Held by the call that renews the token: many may find at the same time that it is of no use.
    pub(super) renewing: Mutex<()>,
    stats: Arc<EtcdStats>,
}

impl Login {
    pub(super) fn new(user: EtcdUser, stats: Arc<EtcdStats>) -> Login {
        Login { user, token: RefCell::default(), renewing: Mutex::default(), stats }
    }

    pub(super) fn token(&self) -> Option<HeaderValue> {
        self.token.borrow().clone()
    }

    pub(super) fn set(&self, token: HeaderValue) {
        *self.token.borrow_mut() = Some(token);
        self.stats.logged_in();
    }
}
