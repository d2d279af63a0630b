//! The cut-over without a refused request: clients that are served here stay connected, and wait for a moment.
//!
//! The cut-over comes when the operator says so and no client is left at the source's own servers. That shows in the sessions: the ensemble knows
//! each of them, and the server here the connections of its own. A client of the source that is neither seen nor expired holds it up.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use paddock_server::Held;

use super::copy_server::CopyServer;
use super::trigger::Trigger;

/// Time between two looks for clients that are elsewhere. Each makes the clients here wait for one round trip to the leader.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Time that clients wait at most before their requests go to the source after all.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// Sessions that are named.
const NAMES_MAX: usize = 5;

pub(super) struct Handover {
    trigger: Trigger,
    is_told: bool,
    step: HandoverStep,
    /// Sessions that were elsewhere at the last look.
    elsewhere: Option<usize>,
}

enum HandoverStep {
    Waiting,
    /// Nothing is held back before this time.
    Due(Instant),
    Holding(Receiver<Held>, Instant),
}

/// Outcome of a look.
pub(super) enum Look {
    Nothing,
    /// A line for the operator.
    Tell(String),
    /// Nothing is under way: a member may take over.
    Ready(Duration),
}

impl Handover {
    pub(super) fn new(trigger: Trigger) -> Handover {
        Handover { trigger, is_told: false, step: HandoverStep::Waiting, elsewhere: None }
    }

    /// Looks for what is to be done now. To be called often.
    pub(super) fn look(&mut self, server: &CopyServer) -> Look {
        match &self.step {
            HandoverStep::Waiting if self.trigger.is_pulled() => {
                self.step = HandoverStep::Due(Instant::now());
                let first = !std::mem::replace(&mut self.is_told, true);
                if first { Look::Tell("cut-over ordered".to_owned()) } else { Look::Nothing }
            }
            HandoverStep::Due(time) if *time <= Instant::now() && server.is_linked() => {
                if let Some(held) = server.hold() {
                    self.step = HandoverStep::Holding(held, Instant::now());
                }
                Look::Nothing
            }
            HandoverStep::Holding(held, since) => {
                let (held, since) = (held.try_recv(), *since);
                self.judge(held, since, server)
            }
            HandoverStep::Waiting | HandoverStep::Due(_) => Look::Nothing,
        }
    }

    /// True while clients wait.
    pub(super) fn is_holding(&self) -> bool {
        matches!(self.step, HandoverStep::Holding(..))
    }

    fn judge(&mut self, held: Result<Held, TryRecvError>, since: Instant, server: &CopyServer) -> Look {
        let later = HandoverStep::Due(Instant::now() + LOOK_AGAIN);
        match held {
            Ok(Held { elsewhere }) if elsewhere.is_empty() => return Look::Ready(since.elapsed()),
            Ok(Held { elsewhere }) => {
                server.release();
                self.step = later;
                if self.elsewhere.replace(elsewhere.len()) != Some(elsewhere.len()) {
                    let names: Vec<String> =
                        elsewhere.iter().take(NAMES_MAX).map(ToString::to_string).collect();
                    let more = if elsewhere.len() > NAMES_MAX { ", …" } else { "" };
                    return Look::Tell(format!(
                        "sessions whose clients are not here: {} ({}{more}); waiting until they have come or ended",
                        elsewhere.len(),
                        names.join(", ")
                    ));
                }
            }
            Err(TryRecvError::Empty) if since.elapsed() < HOLD_MAX => {}
            Err(TryRecvError::Empty) => {
                server.release();
                self.step = later;
                return Look::Tell(format!(
                    "the leader has not answered everything within {HOLD_MAX:?}; trying again"
                ));
            }
            // The leader is gone, and nothing is held back.
            Err(TryRecvError::Disconnected) => self.step = later,
        }
        Look::Nothing
    }
}
