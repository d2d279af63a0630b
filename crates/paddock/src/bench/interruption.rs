//! Signals that end a measurement early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paddock_bench::BenchError;
use tokio::signal::unix::{SignalKind, signal};

/// A flag that Ctrl-C, SIGTERM and the terminal's end set; the second time `last` is called and the process ends.
pub(super) fn interruption(last: fn()) -> Result<Arc<AtomicBool>, BenchError> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let system = |source| BenchError::System { action: "listen for signals", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let [mut interrupt, mut terminate, mut hangup] = {
        let _entered = runtime.enter();
        let listen = |kind| signal(kind).map_err(system);
        [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?]
    };
    let watch = async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if set.swap(true, Ordering::Relaxed) {
                last();
                std::process::exit(130);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(watch))
        .map_err(system)?;
    Ok(flag)
}
