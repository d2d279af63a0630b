//! The history of lines: the editor's keys, the commands `history` and `redo`, and a file for the next run.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::shell::Shell;
use crate::terminal::LineEditor;
use crate::words::split;

/// Lines that the file keeps.
pub(super) const LINES_MAX: usize = 10_000;

/// The file of the history. When it cannot be used, that is said once, and the history is that of this run.
pub(super) struct Recorder {
    file: Option<PathBuf>,
}

impl Recorder {
    pub(super) fn open(editor: &mut LineEditor, file: Option<PathBuf>) -> Recorder {
        let Some(file) = file else { return Recorder { file: None } };
        let opened = make_directory(&file).and_then(|()| match fs::exists(&file)? {
            true => editor.load_history(&file).map_err(io::Error::other),
            false => Ok(()),
        });
        match opened {
            Ok(()) => Recorder { file: Some(file) },
            Err(error) => {
                eprintln!("the history is not kept: {}: {error}", file.display());
                Recorder { file: None }
            }
        }
    }

    /// Keeps a line, unless it shows a secret.
    pub(super) fn add(&mut self, editor: &mut LineEditor, shell: &mut Shell, line: &str) {
        if line.trim().is_empty() || shows_secret(line) {
            return;
        }
        shell.remember(line);
        if !editor.add_history_entry(line).unwrap_or(false) {
            return;
        }
        if let Some(file) = &self.file
            && let Err(error) = editor.append_history(file)
        {
            eprintln!("the history is kept no longer: {}: {error}", file.display());
            self.file = None;
        }
    }
}

fn make_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(directory) => DirBuilder::new().recursive(true).mode(0o700).create(directory),
        None => Ok(()),
    }
}

/// True if a password may stand in a line, however its command is written.
fn shows_secret(line: &str) -> bool {
    let names_it = |text: &str| text.to_ascii_lowercase().contains("addauth");
    names_it(line) || split(line).is_ok_and(|words| words.first().is_some_and(|word| names_it(&word.text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_passwords_are_known() {
        for line in
            ["addauth digest a:b", "  ADDAUTH digest a:b", "\"add\"auth digest a:b", "addauth digest \"a:b"]
        {
            assert!(shows_secret(line), "{line}");
        }
        assert!(!shows_secret("get /auth"));
    }
}
