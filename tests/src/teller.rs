//! A program that tells what it does, a line for each thing, until its standard input ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// Receiver of a program's lines.
pub trait Listener: Send + 'static {
    fn take(&mut self, line: &str);
}

/// The process, and what a listener has made of it so far. It is killed when this is dropped.
#[derive(Debug)]
pub struct Teller<L> {
    name: String,
    process: Child,
    input: Option<ChildStdin>,
    heard: Arc<Mutex<Heard<L>>>,
}

#[derive(Debug)]
struct Heard<L> {
    listener: L,
    has_ended: bool,
}

impl<L: Listener> Teller<L> {
    /// Starts a program; `name` is for messages.
    pub fn start(name: String, command: &mut Command, listener: L) -> Teller<L> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("start {name}: {error}"));
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let heard = Arc::new(Mutex::new(Heard { listener, has_ended: false }));
        let shared = Arc::clone(&heard);
        thread::spawn(move || {
            for line in output.lines() {
                let line = line.expect("it writes lines");
                lock(&shared).listener.take(&line);
            }
            lock(&shared).has_ended = true;
        });
        Teller { name, process, input, heard }
    }

    pub fn look<T>(&self, at: impl FnOnce(&L) -> T) -> T {
        at(&lock(&self.heard).listener)
    }

    /// Waits until it is so; fails if the program ends before, or does not get there.
    pub fn wait(&self, otherwise: &str, condition: impl Fn(&L) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !self.look(&condition) {
            let has_ended = lock(&self.heard).has_ended;
            assert!(
                !has_ended && Instant::now() < deadline,
                "{} {otherwise} (ended: {has_ended})",
                self.name
            );
            thread::sleep(POLL);
        }
    }

    /// Lets the program end.
    pub fn stop(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + PATIENCE;
        while !lock(&self.heard).has_ended {
            assert!(Instant::now() < deadline, "{} does not end", self.name);
            thread::sleep(POLL);
        }
        let status = self.process.wait().expect("wait for a child");
        assert!(status.success(), "{} ended with {status}", self.name);
    }
}

fn lock<L>(heard: &Mutex<Heard<L>>) -> MutexGuard<'_, Heard<L>> {
    heard.lock().expect("nobody panics while he holds it")
}

impl<L> Drop for Teller<L> {
    fn drop(&mut self) {
        // The process has ended by itself, unless a test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
