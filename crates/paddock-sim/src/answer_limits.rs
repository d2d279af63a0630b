//! Limits of the members that their answers show.

use paddock_model::Answer;
use paddock_proto::ErrorCode;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerLimits {
    /// Watches of a setWatches that a member sets at once, at most.
    pub(crate) watches_per_turn: usize,
    /// Bytes of a list's names, each with its length, above which it is refused.
    pub(crate) list_bytes_max: usize,
}

impl AnswerLimits {
    /// True if a member refuses this answer, a list, because of its length.
    pub(crate) fn refuse(&self, answer: &Result<Answer, ErrorCode>) -> bool {
        match answer {
            Ok(Answer::Children(names) | Answer::Children2(names, _)) => {
                let bytes: usize = names.iter().map(|name| size_of::<i32>() + name.len()).sum();
                bytes > self.list_bytes_max
            }
            _ => false,
        }
    }
}
