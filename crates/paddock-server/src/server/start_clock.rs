//! The clock of a start, which tells how far it has come.

use paddock_state::Now;
use paddock_statistics::server_metrics::{StartProgress, StartStep};

use crate::clock::Clock;

#[derive(Debug)]
pub(super) struct StartClock<'a> {
    pub(super) clock: &'a Clock,
    pub(super) progress: &'a StartProgress,
}

impl paddock_member::Clock for StartClock<'_> {
    fn now(&self) -> Now {
        self.clock.now()
    }

    fn note_progress(&self, work: &'static str, done: u64, unit: &'static str) {
        self.progress.note(StartStep { work, done, unit });
    }
}
