//! Programs that do not end: after a time they are made to, so that what hangs is named and everything else is still run.

use std::fs;
use std::process::Child;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Time after which a program counts as hung; unset where programs may run for any time.
static PATIENCE: OnceLock<Duration> = OnceLock::new();

/// Time that a hung program has to say where it was, before it is killed with all that it has started.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Ends every program that is started from now on and has run for this time.
pub(crate) fn give_up_after(patience: Duration) {
    PATIENCE.get_or_init(|| patience);
}

/// Watches over a running program.
pub(super) struct Watch {
    ended: Sender<()>,
    watching: JoinHandle<Option<String>>,
}

impl Watch {
    pub(super) fn begin(child: &Child) -> Watch {
        Watch::with_patience(child, PATIENCE.get().copied(), LAST_WORDS)
    }

    fn with_patience(child: &Child, patience: Option<Duration>, last_words: Duration) -> Watch {
        let (ended, end) = mpsc::channel();
        let program = Pid::from_child(child);
        let watching = thread::spawn(move || {
            let patience = patience?;
            let is_running = |time| end.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !is_running(patience) {
                return None;
            }
            let started = descendants(program);
            // What has ended meanwhile needs no signal.
            let _ = kill_process(program, Signal::INT);
            if is_running(last_words) {
                let _ = kill_process(program, Signal::KILL);
            }
            for one in started {
                let _ = kill_process(one, Signal::KILL);
            }
            Some(format!("ended: it hung, and had run for {} s", patience.as_secs()))
        });
        Watch { ended, watching }
    }

    /// To be called when the program has ended. A line about that if it was not by itself.
    pub(super) fn has_ended_it(self) -> Option<String> {
        // The thread may have ended, too.
        let _ = self.ended.send(());
        self.watching.join().expect("the watch does not panic")
    }
}

/// Processes that a process has started, and those that they have.
fn descendants(process: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<i32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|one| one.parse().ok()).collect::<Vec<_>>())
        .collect();
    let children = numbers.into_iter().filter_map(Pid::from_raw);
    children.flat_map(|child| descendants(child).into_iter().chain([child])).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_has_started() {
        // The shell says the number of a process that it has started, and waits for it.
        let script = "sleep 1000 & echo $!; wait";
        let mut child = Command::new("sh");
        let child = child.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let watch = Watch::with_patience(&child, Some(Duration::from_secs(1)), Duration::from_secs(1));
        let output = child.wait_with_output().expect("it ends");
        assert!(watch.has_ended_it().is_some_and(|line| line.contains("hung")));
        let started = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        // A process that is killed closes its output some time before it is gone.
        let goes_on = || {
            let stat = fs::read_to_string(format!("/proc/{started}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while goes_on() {
            assert!(Instant::now() < deadline, "process {started} goes on");
            thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_ends_by_itself_is_left_alone() {
        let mut child = Command::new("true").spawn().expect("it is there");
        let watch = Watch::with_patience(&child, Some(Duration::from_secs(600)), LAST_WORDS);
        assert!(child.wait().expect("it ends").success());
        assert_eq!(watch.has_ended_it(), None);
    }
}
