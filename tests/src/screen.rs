//! A program in a real terminal, by `tmux`: keys go in, and what the terminal shows comes out.
//!
//! - `TMUX_BIN`: a tmux.
//! - `SCREENS`: a directory where screens are kept as text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::environment;

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A terminal of its own, with one program. It ends with this value.
#[derive(Debug)]
pub struct Screen {
    name: String,
    directory: tempfile::TempDir,
    kept: PathBuf,
}

impl Screen {
    /// Starts a program, with these variables beside those of the test, in a terminal of 90 columns and 24 rows.
    pub fn start(name: &str, program: &Command) -> Screen {
        let directory = tempfile::tempdir().expect("make a directory for a terminal");
        let kept = PathBuf::from(environment("SCREENS"));
        fs::create_dir_all(&kept).expect("make the directory of screens");
        let screen = Screen { name: name.to_owned(), directory, kept };
        let words = [program.get_program()].into_iter().chain(program.get_args());
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().expect("words are text"));
        let mut line = "exec env".to_owned();
        let text = |word: &std::ffi::OsStr| word.to_str().expect("variables are text").to_owned();
        for (variable, _) in program.get_envs().filter(|(_, value)| value.is_none()) {
            line += &format!(" -u {}", text(variable));
        }
        for (variable, value) in program.get_envs() {
            if let Some(value) = value {
                line += &format!(" {}={}", text(variable), quoted(value));
            }
        }
        words.for_each(|word| line += &format!(" {}", quoted(word)));
        screen.tmux(&["new-session", "-d", "-x", "90", "-y", "24", &line]);
        screen
    }

    /// Types a text as it is.
    pub fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Presses a key by its name in tmux: `Enter`, `Tab`, `C-c`, `Up`.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Types a line and ends it.
    pub fn enter(&self, line: &str) {
        self.type_text(line);
        self.press("Enter");
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// The lines that are shown, without the empty ones at the end.
    pub fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// The lines that are shown, with the sequences that colour them.
    pub fn shown_with_colours(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"]).trim_end().to_owned()
    }

    /// Waits until what is shown is so, keeps it under a name, and returns it.
    pub fn wait(&self, name: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if is_so(&shown) {
                self.keep(name, &shown);
                return shown;
            }
            if Instant::now() > deadline {
                self.keep(&format!("{name}-missing"), &shown);
                panic!("{}: {name} was not shown, but:\n{shown}", self.name);
            }
            thread::sleep(POLL);
        }
    }

    /// Waits until a text is shown.
    pub fn wait_for(&self, name: &str, text: &str) -> String {
        self.wait(name, |shown| shown.contains(text))
    }

    /// Waits until the last line is this one.
    pub fn wait_for_last(&self, name: &str, line: &str) -> String {
        self.wait(name, |shown| shown.lines().last().is_some_and(|last| last.trim_end() == line))
    }

    /// Waits until the program has ended.
    pub fn wait_for_end(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.command(&["has-session"]).status().expect("run tmux").success() {
            assert!(Instant::now() < deadline, "{}: the program goes on:\n{}", self.name, self.shown());
            thread::sleep(POLL);
        }
    }

    fn keep(&self, name: &str, shown: &str) {
        let file: &Path = &self.kept.join(format!("{}-{name}.txt", self.name));
        fs::write(file, format!("{shown}\n")).expect("keep a screen");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(environment("TMUX_BIN"));
        // Neither the settings of the user nor a tmux around the test matter.
        command
            .env_remove("TMUX")
            .args(["-f", "/dev/null", "-u", "-S"])
            .arg(self.directory.path().join("socket"));
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("run tmux");
        assert!(output.status.success(), "{}: tmux {arguments:?} failed: the program has ended", self.name);
        String::from_utf8(output.stdout).expect("a screen is text")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).status();
    }
}
