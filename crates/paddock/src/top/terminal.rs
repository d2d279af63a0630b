//! The terminal of the live view: another screen, keys without Enter, and everything as it was at the end.
//!
//! The view is one screen of text that is drawn anew, so no library of widgets is needed: a few sequences that every terminal knows are enough.

use std::io::{self, Read as _, Write as _};
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::view::SortOrder;

/// Enters the other screen without a cursor, and leaves it.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// The keys, in the last line.
const HELP: &str = "r by requests  b by bytes  p pause  q end";
/// Ctrl-C, which is a key while the terminal is raw.
const INTERRUPT: u8 = 3;

pub(super) enum Key {
    End,
    Pause,
    By(SortOrder),
    Resized,
    Other,
}

pub(super) struct Terminal {
    before: Termios,
    keys: mpsc::Receiver<u8>,
    resized: Signal,
}

impl Terminal {
    pub(super) fn enter() -> io::Result<Terminal> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let resized = signal(SignalKind::window_change())?;
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        let terminal = Terminal { before, keys: read_keys(), resized };
        write(ENTER)?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> io::Result<(usize, usize)> {
        let size = tcgetwinsize(io::stdout())?;
        Ok((usize::from(size.ws_col), usize::from(size.ws_row).max(2)))
    }

    /// Shows a text, as far as there is room.
    pub(super) fn show(&mut self, text: &str, is_paused: bool) -> io::Result<()> {
        let (columns, rows) = self.size()?;
        let mut screen = String::from("\x1b[H");
        let cut = |line: &str| line.chars().take(columns).collect::<String>();
        for line in text.lines().take(rows - 1) {
            screen += &format!("{}\x1b[K\r\n", cut(line));
        }
        let help = if is_paused { format!("{HELP}  (paused)") } else { HELP.to_owned() };
        // What an earlier screen had below goes away, and the last line has the keys.
        screen += &format!("\x1b[J\x1b[{rows};1H\x1b[7m{}\x1b[0m", cut(&help));
        write(&screen)
    }

    /// The next key, or a change of the size; `None` when the keyboard is gone.
    pub(super) async fn key(&mut self) -> Option<Key> {
        tokio::select! {
            key = self.keys.recv() => Some(match key? {
                b'q' | INTERRUPT => Key::End,
                b'p' | b' ' => Key::Pause,
                b'r' => Key::By(SortOrder::Requests),
                b'b' => Key::By(SortOrder::Bytes),
                _ => Key::Other,
            }),
            _ = self.resized.recv() => Some(Key::Resized),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // There is no other way to say that it failed.
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Reads keys on a thread of its own, which ends with the process.
fn read_keys() -> mpsc::Receiver<u8> {
    let (sender, keys) = mpsc::channel(16);
    thread::spawn(move || {
        for byte in io::stdin().lock().bytes() {
            let Ok(byte) = byte else { return };
            if sender.blocking_send(byte).is_err() {
                return;
            }
        }
    });
    keys
}
