//! Threads of the member.

use std::thread::JoinHandle;

/// Starts a thread under a name that shows in `top` and in a debugger.
pub(crate) fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .expect("the operating system gives the member its threads")
}
