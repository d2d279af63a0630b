//! The operator's word that the cut-over may come: SIGUSR1.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

/// True from the first SIGUSR1 on.
#[derive(Clone, Debug, Default)]
pub(super) struct Trigger(Arc<AtomicBool>);

impl Trigger {
    /// Waits for the signal from now on, instead of ending by it.
    pub(super) fn listen() -> io::Result<Trigger> {
        let trigger = Trigger::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _entered = runtime.enter();
            signal(SignalKind::user_defined1())?
        };
        let pulled = trigger.clone();
        thread::spawn(move || {
            while runtime.block_on(signals.recv()).is_some() {
                pulled.0.store(true, Ordering::Release);
            }
        });
        Ok(trigger)
    }

    pub(super) fn is_pulled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
