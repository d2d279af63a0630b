//! Threads of the member, and runtimes on them.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

/// Pause before the next try when the operating system has no thread to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// A helper that has nothing to do ends after this time: never, as far as a member is concerned.
const HELPER_KEPT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Starts a thread without which the member cannot be, under a name that shows in `top` and in a debugger. Waits until the
/// operating system has one to give.
pub fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let name = name.into();
    // A thread that does not start takes its body with it.
    let body = Arc::new(Mutex::new(Some(body)));
    let mut has_told = false;
    loop {
        let body = body.clone();
        let run = move || {
            let body = body.lock().take();
            body.expect("a thread runs once")()
        };
        match try_spawn(&name, run) {
            Ok(thread) => return thread,
            Err(error) => {
                if !std::mem::replace(&mut has_told, true) {
                    tracing::error!(thread = name, %error, "no thread to be had: waiting for one; raise the limit");
                }
                std::thread::sleep(EXHAUSTED_PAUSE);
            }
        }
    }
}

/// Starts a thread for something that can be put off, or fail alone.
pub fn try_spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// A runtime on the thread that calls this, with helpers for what blocks. One of them starts at once and stays: where there is none,
/// a system without threads to give would be a panic.
pub fn runtime_with_helpers(builder: &mut Builder) -> Runtime {
    let runtime = builder
        .enable_all()
        .thread_keep_alive(HELPER_KEPT)
        .build()
        .expect("the operating system gives the runtime its event queue");
    runtime.spawn_blocking(|| ());
    runtime
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_helper_of_a_runtime_stays() {
        let runtime = runtime_with_helpers(Builder::new_current_thread().max_blocking_threads(1));
        let id = || runtime.block_on(runtime.spawn_blocking(|| std::thread::current().id())).unwrap();
        assert_eq!(id(), id());
    }

    #[test]
    fn a_thread_has_its_name_and_answers() {
        let thread = spawn("some-thread", || std::thread::current().name().map(str::to_owned));
        assert_eq!(thread.join().unwrap().as_deref(), Some("some-thread"));
    }
}
