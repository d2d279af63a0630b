//! One line for each event of the log, whatever names and texts of others are in it.
//!
//! A text that a client, a peer or a file has made may hold the end of a line, or what a terminal obeys. Some values are quoted by who logs
//! them, and errors and messages are not: here all of them pass.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Format;
use super::json_lists::with_lists;

/// Sequences by which the library switches colours and forms on and off. A text that holds one may be coloured, but neither hidden nor moved.
const COLOURS: [&str; 10] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[3m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[34m",
    "\u{1b}[35m",
    "\u{1b}[36m",
];

/// Takes whole events, each with the line feed that ends it, and passes them on.
pub(super) struct OneLine<W> {
    out: W,
    format: Format,
    has_colours: bool,
}

impl<W: Write> OneLine<W> {
    pub(super) fn new(out: W, format: Format, has_colours: bool) -> OneLine<W> {
        OneLine { out, format, has_colours }
    }

    fn escaped<'a>(&self, event: &'a str) -> Cow<'a, str> {
        let line = event.strip_suffix('\n').unwrap_or(event);
        let is_colour =
            |at: usize| self.has_colours && COLOURS.iter().any(|colour| line[at..].starts_with(colour));
        let passes = |at: usize, c: char| !is_obeyed(c) || (c == '\u{1b}' && is_colour(at));
        if line.char_indices().all(|(at, c)| passes(at, c)) {
            return Cow::Borrowed(event);
        }
        let mut escaped = String::with_capacity(event.len() + 16);
        for (at, c) in line.char_indices() {
            match (c, self.format) {
                (c, _) if passes(at, c) => escaped.push(c),
                // Here the formatter has escaped all others, and a character has four digits.
                (c, Format::Json) => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
                ('\n' | '\r', Format::Text) => escaped.extend(c.escape_default()),
                (c, Format::Text) => escaped.extend(c.escape_unicode()),
            }
        }
        escaped.push_str(&event[line.len()..]);
        Cow::Owned(escaped)
    }
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(event) {
            Ok(text) if self.format == Format::Json => {
                self.out.write_all(with_lists(&self.escaped(text)).as_bytes())?;
            }
            Ok(text) => self.out.write_all(self.escaped(text).as_bytes())?,
            Err(_) => self.out.write_all(event)?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// True for control characters, ends of lines and paragraphs, and those that turn the direction of what follows. Tabs stand between the
/// pairs of the audit log.
fn is_obeyed(c: char) -> bool {
    match c {
        '\t' => false,
        '\u{2028}' | '\u{2029}' => true,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::super::lines;
    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The log with one event about a text: quoted, as it is, as an error, and in the message.
    fn logged(format: Format, has_colours: bool, text: &str) -> String {
        let written = Written::default();
        let out = written.clone();
        let lines = lines(format, has_colours, move || OneLine::new(out.clone(), format, has_colours));
        let subscriber = tracing_subscriber::registry().with(lines);
        let error = io::Error::other(text);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(text, shown = %text, %error, "about {text}");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const HOSTILE: &str =
        "a\nINFO forged\r\u{1b}[2J\u{7}\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\u{202e}b\tc jürgen";

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        for (format, has_colours) in [(Format::Text, false), (Format::Text, true), (Format::Json, false)] {
            let log = logged(format, has_colours, HOSTILE);
            assert_eq!(log.matches('\n').count(), 1, "{log}");
            assert!(log.ends_with('\n') && log.contains("jürgen"), "{log}");
            let line = log.trim_end_matches('\n');
            let plain = COLOURS.iter().fold(line.to_owned(), |line, colour| line.replace(colour, ""));
            assert_eq!(plain != line, has_colours, "{line:?}");
            assert!(!plain.chars().any(is_obeyed), "{line:?}");
        }
    }

    #[test]
    fn json_stays_what_it_was() {
        let log = logged(Format::Json, false, HOSTILE);
        assert!(log.contains("\\u0085") && log.contains("\\u2028"), "{log}");
        let text = log.split("\"text\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a text");
        assert!(text.starts_with("a\\nINFO forged\\r\\u001b[2J"), "{text}");
    }

    #[test]
    fn other_lines_are_as_they_were() {
        let log = logged(Format::Text, false, "a \\ \"b\"\tc");
        assert!(log.contains("shown=a \\ \"b\"\tc"), "{log}");
    }
}
