//! Torture by itself, as `cargo xtask torture` runs it; its environment says what is wanted (tests/src/torture.rs).

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{panic, thread};

use paddock_tests::torture::{Options, TortureOutcome, run};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a program that Ctrl-C ended, as shells count.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&is_interrupted);
    thread::spawn(move || wait_for_signal(&shared));
    let shared = Arc::clone(&is_interrupted);
    let tell = panic::take_hook();
    // Ctrl-C reaches members and clients, too. What then fails of it is not worth telling.
    panic::set_hook(Box::new(move |panicked| {
        if !shared.load(Ordering::Relaxed) {
            tell(panicked);
        }
    }));
    match run(&Options::from_environment(100), &is_interrupted) {
        TortureOutcome::Good => ExitCode::SUCCESS,
        TortureOutcome::Violated => ExitCode::FAILURE,
        TortureOutcome::Interrupted => ExitCode::from(INTERRUPTED),
    }
}

/// Signals that would end this process at once, with its namespaces and disks left behind.
fn wait_for_signal(is_interrupted: &AtomicBool) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("make a runtime");
    runtime.block_on(async {
        let listen = |kind| signal(kind).expect("listen for a signal");
        let mut interrupt = listen(SignalKind::interrupt());
        let mut terminate = listen(SignalKind::terminate());
        let mut hang_up = listen(SignalKind::hangup());
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            if !is_interrupted.swap(true, Ordering::Relaxed) {
                println!("stopping: members, namespaces and disks are removed");
            }
        }
    });
}
