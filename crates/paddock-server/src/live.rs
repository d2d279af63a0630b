//! Settings of a member as they are now: some of them change while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::Config;

/// The settings that count now. Those that need a restart are the ones of the start.
#[derive(Debug)]
pub(crate) struct LiveConfig {
    now: RwLock<Arc<Config>>,
    /// Number of changes so far.
    changes: AtomicU64,
}

impl LiveConfig {
    pub(crate) fn new(config: Config) -> LiveConfig {
        LiveConfig { now: RwLock::new(Arc::new(config)), changes: AtomicU64::new(0) }
    }

    pub(crate) fn get(&self) -> Arc<Config> {
        self.now.read().clone()
    }

    pub(crate) fn set(&self, config: Config) {
        *self.now.write() = Arc::new(config);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Number of changes so far, for those who keep a copy of the settings.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}
