//! The thread that answers four-letter words which take long: they list connections, watches or sessions, or look at the disk.
//!
//! One at a time, so that what they hold in memory is bounded however many ask; workers go on serving meanwhile.

use std::thread::JoinHandle;

use paddock_os::threads::spawn;
use tokio::sync::{mpsc, oneshot};

use super::four_letter_words;
use crate::operator::Operator;

/// Words that may wait to be answered.
const WAITING_MAX: usize = 64;
/// Answer to a word that finds no place to wait.
const TOO_MANY: &str = "This member answers too many four-letter words at the moment\n";

#[derive(Debug)]
struct Question {
    word: [u8; 4],
    answer: oneshot::Sender<String>,
}

/// The way to the thread. It ends when the last one of these is gone.
#[derive(Clone, Debug)]
pub(crate) struct WordThread {
    questions: mpsc::Sender<Question>,
}

impl WordThread {
    pub(crate) fn start(operator: Operator) -> (WordThread, JoinHandle<()>) {
        let (questions, mut waiting) = mpsc::channel::<Question>(WAITING_MAX);
        let thread = spawn("words", move || {
            while let Some(Question { word, answer }) = waiting.blocking_recv() {
                if !answer.is_closed() {
                    // The client may be gone by then.
                    let _ = answer.send(four_letter_words::answer_slowly(word, &operator));
                }
            }
        });
        (WordThread { questions }, thread)
    }

    pub(crate) async fn ask(&self, word: [u8; 4]) -> String {
        let (answer, answered) = oneshot::channel();
        if self.questions.try_send(Question { word, answer }).is_err() {
            return TOO_MANY.to_owned();
        }
        answered.await.unwrap_or_default()
    }
}
