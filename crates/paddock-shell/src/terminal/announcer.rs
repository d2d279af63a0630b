//! Messages of other threads, printed above the line that is being edited.
//!
//! The editor takes one message at a time, and none while it shows a list: a thread waits for it, so that the session never does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread;

use rustyline::ExternalPrinter;

use crate::output::{Announce, Sink};

/// Messages that wait for the editor. Later ones are counted and left out.
const WAITING_MAX: usize = 1000;

/// Starts the thread that prints. `sink` holds results of commands, which are printed before a message.
pub(super) fn start(mut printer: impl ExternalPrinter + Send + 'static, sink: Sink) -> Announce {
    let (sender, messages) = sync_channel::<String>(WAITING_MAX);
    let left_out = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&left_out);
    thread::spawn(move || {
        while let Ok(message) = messages.recv() {
            // A closed output is told to the command that writes next.
            let _ = sink.lock().expect("nobody panics while writing").flush();
            let _ = printer.print(message + "\n");
            let missing = count.swap(0, Ordering::Relaxed);
            if missing > 0 {
                let _ = printer.print(format!("{missing} messages were left out: they came too fast\n"));
            }
        }
    });
    Arc::new(move |message| match sender.try_send(message) {
        Ok(()) | Err(TrySendError::Disconnected(_)) => {}
        Err(TrySendError::Full(_)) => drop(left_out.fetch_add(1, Ordering::Relaxed)),
    })
}
