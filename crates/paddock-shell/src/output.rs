//! The output of commands: text, JSON or bytes, on standard output, which watch events share.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use paddock_client::{Acl, Event, EventKind, Stat};
use serde_json::{Value, json};

use crate::failure::ShellFailure;

/// Form of what is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Lines for people and for pipes.
    #[default]
    Text,
    /// One JSON value on one line for each command.
    Json,
    /// Data as its bytes, with nothing added.
    Raw,
}

/// Receiver of whole pieces of output.
pub type Sink = Arc<Mutex<dyn Write + Send>>;

/// Prints a message while a line may be being edited.
pub(crate) type Announce = Arc<dyn Fn(String) + Send + Sync>;

/// The place to which one shell prints. Clones write to the same place.
#[derive(Clone)]
pub(crate) struct Printer {
    form: Form,
    colours: bool,
    sink: Sink,
    /// Prints events in another way than the results of commands.
    announce: Option<Announce>,
    /// True if the command that prints shall end.
    interrupted: Arc<AtomicBool>,
}

/// The sink of standard output, which keeps what is written until it is flushed.
pub fn standard_output() -> Sink {
    Arc::new(Mutex::new(BufWriter::with_capacity(64 << 10, io::stdout())))
}

impl Printer {
    pub(crate) fn new(form: Form, colours: bool, sink: Sink) -> Printer {
        Printer { form, colours, sink, announce: None, interrupted: Arc::default() }
    }

    /// As before, but events are announced, and a command that prints ends when it is interrupted.
    pub(crate) fn at_terminal(self, announce: Announce, interrupted: Arc<AtomicBool>) -> Printer {
        Printer { announce: Some(announce), interrupted, ..self }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    pub(crate) fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// Prints the JSON or the text of a result, whichever is wanted.
    pub(crate) fn show(
        &self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), ShellFailure> {
        if self.is_json() { self.line(&json().to_string()) } else { self.line(&text()) }
    }

    /// Prints one line. Control characters of names do not reach a terminal.
    pub(crate) fn line(&self, line: &str) -> Result<(), ShellFailure> {
        self.coloured_line(&harmless(line))
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), ShellFailure> {
        self.refuse_after_interruption()?;
        Ok(self.sink.lock().expect("nobody panics while writing").write_all(bytes)?)
    }

    pub(crate) fn flush(&self) -> Result<(), ShellFailure> {
        Ok(self.sink.lock().expect("nobody panics while writing").flush()?)
    }

    /// Prints data: its bytes in the raw form; as text if it is one; else in hexadecimal.
    pub(crate) fn data(&self, bytes: Option<&[u8]>) -> Result<(), ShellFailure> {
        let bytes = bytes.unwrap_or_default();
        match (self.form, std::str::from_utf8(bytes)) {
            (Form::Raw, _) => self.bytes(bytes),
            (_, Ok(text)) if is_printable(text) => self.line(text),
            _ => self.line(&hexadecimal(bytes)),
        }
    }

    pub(crate) fn stat(&self, stat: &Stat) -> Result<(), ShellFailure> {
        self.line(&stat_text(stat))
    }

    /// A word in a colour, on a terminal that has some.
    pub(crate) fn coloured(&self, colour: Colour, text: &str) -> String {
        let text = harmless(text);
        if self.colours && !self.is_json() { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text }
    }

    /// Writes a line whose names are harmless already, for `coloured` has made it.
    pub(crate) fn coloured_line(&self, line: &str) -> Result<(), ShellFailure> {
        self.refuse_after_interruption()?;
        let mut sink = self.sink.lock().expect("nobody panics while writing");
        Ok(writeln!(sink, "{line}")?)
    }

    fn refuse_after_interruption(&self) -> Result<(), ShellFailure> {
        if self.interrupted.load(Ordering::Relaxed) { Err(ShellFailure::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn event(&self, event: &Event) -> Result<(), ShellFailure> {
        let line = match event {
            Event::Znode { kind, path, zxid } if self.is_json() => {
                json!({ "event": kind_name(*kind), "path": path, "zxid": zxid.0 }).to_string()
            }
            Event::Znode { kind, path, .. } => {
                format!("watch: {} {}", self.coloured(Colour::Yellow, kind_name(*kind)), harmless(path))
            }
            // A script waits until the server is back, or fails.
            _ if self.announce.is_none() => return Ok(()),
            Event::Disconnected => "the connection is lost: looking for a server".to_owned(),
            Event::Reconnected => "connected again, with the same session".to_owned(),
            Event::SessionExpired => "the session has expired: the next command opens a new one".to_owned(),
        };
        match &self.announce {
            Some(announce) => announce(line),
            None => {
                self.coloured_line(&line)?;
                self.flush()?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Colour {
    Yellow = 33,
    Blue = 34,
}

fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::NodeCreated => "NodeCreated",
        EventKind::NodeDeleted => "NodeDeleted",
        EventKind::NodeDataChanged => "NodeDataChanged",
        EventKind::NodeChildrenChanged => "NodeChildrenChanged",
    }
}

fn is_printable(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r'))
}

/// A text without characters that a terminal obeys.
pub(crate) fn harmless(text: &str) -> String {
    if is_printable(text) {
        return text.to_owned();
    }
    let escaped = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(escaped).collect()
}

/// Bytes as two digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes in base64, with its usual letters.
pub(crate) fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Bytes that are given in base64.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, ShellFailure> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
    decoded.map_err(|error| ShellFailure::Usage(format!("{text:?} is no base64: {error}")))
}

/// Bytes as `hexdump -C` has them.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let line = |(number, bytes): (usize, &[u8])| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
        let visible =
            |&byte: &u8| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' };
        format!("{:08x}  {hex:<48} |{}|", number * 16, bytes.iter().map(visible).collect::<String>())
    };
    bytes.chunks(16).enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Data in JSON: text if it is one, else in base64 under another name.
pub(crate) fn data_json(bytes: Option<&[u8]>) -> (&'static str, Value) {
    match bytes.map(std::str::from_utf8) {
        None => ("data", Value::Null),
        Some(Ok(text)) => ("data", text.into()),
        Some(Err(_)) => ("data_base64", base64(bytes.unwrap_or_default()).into()),
    }
}

pub(crate) fn stat_json(stat: &Stat) -> Value {
    json!({
        "czxid": stat.czxid.0, "mzxid": stat.mzxid.0, "pzxid": stat.pzxid.0,
        "ctime_ms": stat.ctime_ms, "mtime_ms": stat.mtime_ms,
        "version": stat.version, "cversion": stat.cversion, "aversion": stat.aversion,
        "ephemeral_owner": format!("0x{:x}", stat.ephemeral_owner.0),
        "data_length": stat.data_length, "num_children": stat.num_children,
    })
}

/// The fields by the names and in the order of `zkCli.sh`.
fn stat_text(stat: &Stat) -> String {
    format!(
        "cZxid = 0x{:x}\nctime = {}\nmZxid = 0x{:x}\nmtime = {}\npZxid = 0x{:x}\ncversion = {}\ndataVersion = {}\n\
         aclVersion = {}\nephemeralOwner = 0x{:x}\ndataLength = {}\nnumChildren = {}",
        stat.czxid.0,
        time_text(stat.ctime_ms),
        stat.mzxid.0,
        time_text(stat.mtime_ms),
        stat.pzxid.0,
        stat.cversion,
        stat.version,
        stat.aversion,
        stat.ephemeral_owner.0,
        stat.data_length,
        stat.num_children,
    )
}

/// A time in milliseconds since 1970, as RFC 3339 writes it.
pub fn time_text(ms: i64) -> String {
    /// The last millisecond of the year 9999; a later time is shown as its number.
    const LAST_MS: u64 = 253_402_300_799_999;
    match u64::try_from(ms) {
        Ok(ms) if ms <= LAST_MS => {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms);
            humantime::format_rfc3339_millis(time).to_string()
        }
        _ => format!("{ms} ms"),
    }
}

/// Letters of permissions, in the order of `zkCli.sh`.
pub(crate) const PERMISSIONS: [(char, i32); 5] = [('c', 4), ('d', 8), ('r', 1), ('w', 2), ('a', 16)];

pub(crate) fn acl_text(acl: &Acl) -> String {
    let perms: String =
        PERMISSIONS.iter().filter(|(_, bit)| acl.perms.0 & bit != 0).map(|(letter, _)| letter).collect();
    format!("{}:{}:{perms}", acl.id.scheme, acl.id.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_nothing_that_it_would_obey() {
        assert_eq!(harmless("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(harmless("two\nlines"), "two\nlines");
        assert_eq!(harmless("zwölf"), "zwölf");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_in_hexadecimal() {
        let expected = format!("00000000  {:<48} |.a|", "ff 61 ");
        assert_eq!(hexadecimal(b"\xffa"), expected);
        assert_eq!(data_json(Some(b"\xff")), ("data_base64", "/w==".into()));
        assert_eq!(data_json(Some(b"x")), ("data", "x".into()));
        assert_eq!(data_json(None), ("data", Value::Null));
    }

    #[test]
    fn a_time_of_any_number_is_shown() {
        assert_eq!(time_text(0), "1970-01-01T00:00:00.000Z");
        for ms in [-1, i64::MIN, i64::MAX] {
            assert_eq!(time_text(ms), format!("{ms} ms"));
        }
    }
}
