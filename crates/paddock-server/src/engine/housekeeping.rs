//! The thread that prepares files for the log, and takes back those that the log has released.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use paddock_os::threads::spawn;
use paddock_storage::{Housekeeper, LogError};

/// Pause of the housekeeper when there was no room on the disk, or no descriptor.
const PAUSE_FULL: Duration = Duration::from_secs(5);

/// The housekeeper's thread.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    thread: JoinHandle<Result<(), LogError>>,
    housekeeper: Housekeeper,
    stop: Sender<()>,
}

impl Housekeeping {
    pub(crate) fn start(housekeeper: Housekeeper) -> Housekeeping {
        let (stop, stopped) = bounded(0);
        let of_thread = housekeeper.clone().with_pauses();
        let thread = spawn("housekeeper", move || keep_house(&of_thread, &stopped));
        Housekeeping { thread, housekeeper, stop }
    }

    /// True if it has ended by itself, because the disk failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread; `None` if it has panicked.
    pub(crate) fn stop(self) -> Option<Result<(), LogError>> {
        drop(self.stop);
        self.housekeeper.end_waits();
        self.thread.join().ok()
    }
}

/// Prepares segments ahead of the log and takes back those it has released, until the `stop` channel closes.
fn keep_house(housekeeper: &Housekeeper, stop: &Receiver<()>) -> Result<(), LogError> {
    let mut full = false;
    loop {
        match housekeeper.run() {
            Ok(true) => {
                full = false;
                continue;
            }
            Ok(false) => {}
            Err(error) if error.is_passing() && full => {}
            Err(error) if error.is_passing() => {
                tracing::warn!(%error, cause = ?std::error::Error::source(&error), "no room or no descriptor for a segment ahead of time");
                full = true;
            }
            Err(error) => return Err(error),
        }
        // Each try on a full disk fills it up, as far as there is room.
        let is_over = match full {
            true => stop.recv_timeout(PAUSE_FULL) != Err(RecvTimeoutError::Timeout),
            false => !housekeeper.wait(),
        };
        if is_over {
            return Ok(());
        }
    }
}
