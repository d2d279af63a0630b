//! A headless Chromium that opens pages and tells what they did: messages, requests, what was drawn.
//!
//! The browser is driven over two pipes by the DevTools protocol: messages of JSON, each followed by a zero byte. It resolves no
//! names but this machine's address, so that a page which asks for something elsewhere is found out and gets nothing.

mod tab;
mod visit;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{env, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

pub use tab::Tab;
pub use visit::{Chart, Look, Visit};

const PATIENCE: Duration = Duration::from_secs(60);

/// The shell puts the pipes where Chromium expects them, which are not its standard streams.
const START: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#;

const ARGUMENTS: [&str; 12] = [
    "--headless",
    "--remote-debugging-pipe",
    // The pages are our own, and a container has no room for a sandbox.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-color-profile=srgb",
];

#[derive(Debug)]
pub struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    events: Vec<Value>,
    sent: u64,
    _profile: TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let profile = TempDir::new().expect("a directory for the browser");
        let mut process = Command::new("sh")
            .args(["-c", START])
            .arg(env::var_os("CHROMIUM_BIN").expect("CHROMIUM_BIN names a Chromium"))
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log())
            .spawn()
            .expect("start Chromium");
        let commands = process.stdin.take().expect("its input is piped");
        let mut output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("Chromium writes JSON");
                message.clear();
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Browser { process, commands, messages, events: Vec::new(), sent: 0, _profile: profile }
    }

    /// Opens a file in a tab of its own and closes it again.
    pub fn open(&mut self, page: &Path, look: Look) -> Visit {
        let target = self.call(None, "Target.createTarget", json!({"url": "about:blank"}));
        let target = &target["targetId"];
        let tab = self.call(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let tab = tab["sessionId"].as_str().expect("an attached tab has a session").to_owned();
        let visit = visit::visit(self, &tab, page, look);
        self.call(None, "Target.closeTarget", json!({"targetId": target}));
        visit
    }

    /// Opens a tab to use a page in.
    pub fn tab(&mut self) -> Tab<'_> {
        Tab::new(self)
    }

    /// Waits for the answer and keeps the events that come before it.
    fn call(&mut self, tab: Option<&str>, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut command = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(tab) = tab {
            command["sessionId"] = tab.into();
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).expect("Chromium takes commands");
        loop {
            let message = self.receive(method);
            if message["id"] == self.sent {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn wait_for(&mut self, tab: &str, event: &str) {
        let is_it = |message: &Value| message["method"] == event && message["sessionId"] == tab;
        while !self.events.iter().any(is_it) {
            let message = self.receive(event);
            self.events.push(message);
        }
    }

    fn receive(&self, waiting_for: &str) -> Value {
        self.messages
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("Chromium says nothing after {waiting_for}"))
    }

    fn take_events(&mut self, tab: &str) -> Vec<Value> {
        let (events, others) = self.events.drain(..).partition(|event| event["sessionId"] == tab);
        self.events = others;
        events
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The processes that it started end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn log() -> Stdio {
    let Some(directory) = env::var_os("SCREENSHOTS") else { return Stdio::null() };
    fs::create_dir_all(&directory).expect("create the directory of the screenshots");
    let log = File::options().create(true).append(true).open(Path::new(&directory).join("chromium.log"));
    log.expect("open the browser's log").into()
}
