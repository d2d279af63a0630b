//! An administrator who moves the znodes of a round from group to group, whatever happens to the members meanwhile.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paddock_chance::Chance;

use super::znodes::{SPLIT_POINT, Znodes};
use crate::administered::{identity_file, paddock};

/// Between two moves.
const PAUSE: Duration = Duration::from_millis(100);
/// Time of a move, after which another one is tried: while the home group has no quorum none is made.
const WITHIN: &str = "1s";

/// Moves the slot of one znode at a time, in a thread of its own, until it is told to end.
#[derive(Debug)]
pub(super) struct Mover {
    end: Sender<()>,
    thread: JoinHandle<usize>,
}

impl Mover {
    pub(super) fn start(
        mut chance: Chance,
        znodes: &Znodes,
        groups: usize,
        admins: Vec<SocketAddr>,
    ) -> Mover {
        let (end, is_over) = channel();
        let slots = znodes.slots();
        let thread = thread::spawn(move || {
            let directory = tempfile::tempdir().expect("make a directory");
            let auth = identity_file(directory.path());
            let mut moves = 0;
            while is_over.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let (host, slot) = (chance.pick(&admins).to_string(), chance.pick(&slots).to_string());
                let group = chance.index(groups).to_string();
                let order = ["groups", "move", &host, SPLIT_POINT, "--to", &group, "--slots", &slot];
                let moved = paddock(&order).args(["--within", WITHIN, "--auth", &auth]).output();
                moves += usize::from(moved.expect("run paddock").status.success());
            }
            moves
        });
        Mover { end, thread }
    }

    /// Lets it end, and returns how many moves were made.
    pub(super) fn end(self) -> usize {
        // If it has ended by itself, that is told below.
        let _ = self.end.send(());
        self.thread.join().expect("the mover ends well")
    }
}
