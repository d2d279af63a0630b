//! Porcupine's judgement on a history, which is a file with a request a line (tests/porcupine).

use std::path::Path;
use std::process::Command;

use crate::server::environment;

/// Verdict of the checker, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Linearizable(String),
    /// There is a picture beside the history.
    Violated(String),
    /// The file cannot be used, or the search took too long.
    None(String),
}

/// # Panics
///
/// If there is no Porcupine where the environment says.
pub fn judge(history: &Path) -> Verdict {
    let output = Command::new(environment("PORCUPINE_BIN")).arg(history).output().expect("run Porcupine");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.code() {
        Some(0) => Verdict::Linearizable(text(&output.stdout)),
        Some(1) => Verdict::Violated(text(&output.stderr)),
        _ => Verdict::None(format!("{}: {}", output.status, text(&output.stderr))),
    }
}
