//! A pipe with a name for a log, with a reader that can be stopped.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tempfile::TempDir;

/// The pipe, and a thread that reads it, for as long as the test runs.
#[derive(Debug)]
pub struct Pipe {
    directory: TempDir,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    text: Mutex<String>,
    is_paused: Mutex<bool>,
    goes_on: Condvar,
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe::new()
    }
}

impl Pipe {
    pub fn new() -> Pipe {
        let directory = tempfile::tempdir().expect("make a directory");
        let pipe = Pipe { directory, shared: Arc::default() };
        let made = Command::new("mkfifo").arg(pipe.path()).status().expect("run mkfifo");
        assert!(made.success(), "make a pipe");
        // Opened both ways, so that opening does not wait for the other side.
        let end = OpenOptions::new().read(true).write(true).open(pipe.path()).expect("open the pipe");
        let shared = pipe.shared.clone();
        thread::spawn(move || read(end, &shared));
        pipe
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    /// Everything that was read, but for lines of the audit log.
    pub fn text(&self) -> String {
        self.shared.text.lock().expect("the reader does not panic").clone()
    }

    /// From now on the pipe is not read.
    pub fn pause(&self) {
        *self.shared.is_paused.lock().expect("the reader does not panic") = true;
    }

    pub fn go_on(&self) {
        *self.shared.is_paused.lock().expect("the reader does not panic") = false;
        self.shared.goes_on.notify_all();
    }
}

fn read(end: File, shared: &Shared) {
    let mut lines = BufReader::new(end).lines();
    loop {
        let paused = shared.is_paused.lock().expect("the test does not panic with it");
        drop(shared.goes_on.wait_while(paused, |is_paused| *is_paused).expect("nor here"));
        let Some(Ok(line)) = lines.next() else { return };
        if !line.contains("operation=") {
            let mut text = shared.text.lock().expect("the test does not panic with it");
            text.push_str(&line);
            text.push('\n');
        }
    }
}
