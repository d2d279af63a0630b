//! Other programs: run them, keep their output, say clearly what went wrong.

mod hung;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

pub(crate) use hung::give_up_after;

/// An action that failed. The message is for a person and complete in itself.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// For `map_err`: an I/O error with the action and the path it happened to.
    pub(crate) fn io<'a>(action: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |error| Self(format!("{action} {}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A program with its arguments, to be run once. It inherits the environment, but for what the machine's user likes: its words are English
/// and its text is UTF-8, and it asks no proxy for this machine. It has no standard input.
pub(crate) struct Program {
    command: Command,
    log: Option<PathBuf>,
}

impl Program {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
        let named = ["no_proxy", "NO_PROXY"].map(|name| env::var(name).unwrap_or_default());
        let without_proxy = without_proxy(&named);
        command.env("no_proxy", &without_proxy).env("NO_PROXY", without_proxy);
        Self { command, log: None }
    }

    /// A program that takes only the time of the processors that others leave, by how nice it is: from 1, hardly, to 19, entirely.
    pub(crate) fn nice(niceness: u32, program: impl AsRef<OsStr>) -> Self {
        Self::new("nice").args(["-n", &niceness.to_string()]).arg(program)
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn envs(mut self, variables: &[(&str, OsString)]) -> Self {
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    pub(crate) fn current_dir(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Sends all output to a file instead of to the terminal, after what other programs wrote into it.
    pub(crate) fn log_to(mut self, file: &Path) -> Self {
        self.log = Some(file.to_owned());
        self
    }

    /// Runs to the end; an error if the program can't be started or fails.
    pub(crate) fn run(self) -> Result<(), Error> {
        let name = self.name();
        let log = self.log.clone();
        let status = self.status()?;
        if status.success() {
            return Ok(());
        }
        let output = log.map(|file| last_lines(&file, 200)).unwrap_or_default();
        Err(Error(format!("`{name}` failed: {status}\n{output}")))
    }

    /// Runs to the end; how it ended is for the caller to judge.
    pub(crate) fn status(mut self) -> Result<ExitStatus, Error> {
        if let Some(path) = &self.log {
            let log = append_to(path)?;
            let copy = log.try_clone().map_err(Error::io("share", path))?;
            self.command.stdout(log).stderr(copy);
        }
        let mut child = self.spawn()?;
        let watch = hung::Watch::begin(&child);
        let ended =
            child.wait().map_err(|error| Error(format!("can't wait for `{}`: {error}", self.name())))?;
        match (watch.has_ended_it(), &self.log) {
            (Some(line), Some(log)) => note(log, &line)?,
            (Some(line), None) => eprintln!("{line}"),
            (None, _) => {}
        }
        Ok(ended)
    }

    fn spawn(&mut self) -> Result<Child, Error> {
        self.command.spawn().map_err(|error| Error(format!("can't run `{}`: {error}", self.name())))
    }

    /// Runs to the end, with its output kept.
    fn ended(&mut self, errors: Stdio) -> Result<Output, Error> {
        self.command.stdout(Stdio::piped()).stderr(errors);
        let child = self.spawn()?;
        let watch = hung::Watch::begin(&child);
        let output = child.wait_with_output();
        let mut output =
            output.map_err(|error| Error(format!("can't wait for `{}`: {error}", self.name())))?;
        if let Some(line) = watch.has_ended_it() {
            output.stderr.extend_from_slice(format!("\n{line}\n").as_bytes());
        }
        Ok(output)
    }

    /// Becomes the program, with this process's number and terminal. What it returns is why that failed.
    pub(crate) fn replace_this_process(mut self) -> Error {
        let name = self.name();
        Error(format!("can't run `{name}`: {}", self.command.exec()))
    }

    /// Runs to the end and returns what the program prints; an error if it can't be started or fails.
    pub(crate) fn output(mut self) -> Result<String, Error> {
        let name = self.name();
        let output = self.ended(Stdio::piped())?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(Error(format!("`{name}` failed: {}\n{errors}", output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs to the end and returns what the program prints. What it says of errors goes to a file, after what is there.
    pub(crate) fn output_beside_log(mut self, log: &Path) -> Result<String, Error> {
        let name = self.name();
        let output = self.ended(append_to(log)?.into())?;
        if !output.status.success() {
            return Err(Error(format!("`{name}` failed: {}\n{}", output.status, last_lines(log, 200))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs to the end; how it ended, and what it printed: first to its output, then of errors.
    pub(crate) fn ended_with_output(mut self) -> Result<(ExitStatus, String), Error> {
        let output = self.ended(Stdio::piped())?;
        let printed = [output.stdout, output.stderr].concat();
        Ok((output.status, String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Runs to the end; true if the program is there and succeeds. Its output is dropped.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.status().is_ok_and(|status| status.success())
    }

    /// The program and its first arguments, for messages.
    fn name(&self) -> String {
        let mut words: Vec<OsString> = vec![self.command.get_program().to_owned()];
        words.extend(self.command.get_args().take(4).map(OsStr::to_owned));
        words.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }
}

/// Hosts that are asked without a proxy: those that the user names in one of the two variables, and this machine.
fn without_proxy(named: &[String]) -> String {
    match named.iter().find(|named| !named.is_empty()) {
        // All of them.
        Some(all) if all == "*" => all.clone(),
        Some(named) => format!("{named},{THIS_MACHINE}"),
        None => THIS_MACHINE.to_owned(),
    }
}

const THIS_MACHINE: &str = "127.0.0.1,localhost";

/// Writes a line into a log, after what programs wrote into it.
pub(crate) fn note(log: &Path, line: &str) -> Result<(), Error> {
    writeln!(append_to(log)?, "{line}").map_err(Error::io("write", log))
}

fn append_to(path: &Path) -> Result<File, Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    }
    File::options().create(true).append(true).open(path).map_err(Error::io("open", path))
}

/// The last lines of a log.
pub(crate) fn last_lines(file: &Path, count: usize) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_ask_no_proxy_for_this_machine() {
        let check = |named: [&str; 2], expected: &str| {
            assert_eq!(without_proxy(&named.map(str::to_owned)), expected, "{named:?}");
        };
        check(["", ""], "127.0.0.1,localhost");
        check(["", "example.org"], "example.org,127.0.0.1,localhost");
        check(["example.org", "example.net"], "example.org,127.0.0.1,localhost");
        check(["*", ""], "*");
    }

    #[test]
    fn programs_speak_english_in_utf_8() {
        let told = Program::new("sh").args(["-c", "echo $LC_ALL $LANGUAGE"]).output().expect("it runs");
        assert_eq!(told, "C.UTF-8");
    }
}
