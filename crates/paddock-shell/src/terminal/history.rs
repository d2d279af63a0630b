//! The history of lines: the editor's keys, the commands `history` and `redo`, and a file for the next run.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::shell::Shell;
use crate::terminal::LineEditor;
use crate::words::shows_secret;

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
