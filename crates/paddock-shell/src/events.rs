//! Events of a session: watches that fired, and the connection's coming and going.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paddock_client::Event;
use tokio::sync::{mpsc, watch};

use crate::output::Printer;

/// Events of a session, as far as they have come.
#[derive(Clone, Debug)]
pub(crate) struct Happenings {
    /// Watch events that have come.
    pub fired: watch::Receiver<u64>,
    pub connected: watch::Receiver<bool>,
    pub expired: watch::Receiver<bool>,
}

/// Prints events as they come, for as long as the session lives.
pub(crate) fn tell(
    mut events: mpsc::UnboundedReceiver<Event>,
    output: Printer,
    prints: Arc<AtomicBool>,
) -> Happenings {
    let (count, fired) = watch::channel(0);
    let (connection, connected) = watch::channel(true);
    let (expiry, expired) = watch::channel(false);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            // A prompt that stands behind a message says the same.
            match event {
                Event::Znode { .. } => {}
                Event::Disconnected => drop(connection.send_replace(false)),
                Event::Reconnected => drop(connection.send_replace(true)),
                Event::SessionExpired => drop(expiry.send_replace(true)),
            }
            if prints.load(Ordering::Relaxed) {
                // If the output is closed, the command that writes next finds out.
                let _ = output.event(&event);
            }
            if matches!(event, Event::Znode { .. }) {
                count.send_modify(|count| *count += 1);
            }
        }
    });
    Happenings { fired, connected, expired }
}
