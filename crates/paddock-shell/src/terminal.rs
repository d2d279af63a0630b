//! The shell at a terminal: a line editor with history and completion, and events that are printed above the edited line.
//!
//! The editor waits for keys on the thread that calls it; another one drives the session, so that pings and events go on meanwhile.

mod announcer;
mod completion;
mod history;

use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::failure::ShellFailure;
use crate::output::{Sink, harmless};
use crate::shell::{Shell, ShellSettings, Step};
use completion::TreeHelper;

/// Parts of a terminal that the program brings.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// File of the history; without one the history is that of this run.
    pub history: Option<PathBuf>,
    /// The runtime of the session, which another thread drives.
    pub runtime: Handle,
}

type LineEditor = Editor<TreeHelper, FileHistory>;

/// Reads lines and carries them out, until the end of input or `quit`.
pub fn converse(settings: ShellSettings, terminal: &Terminal) -> Result<(), ShellFailure> {
    let runtime = &terminal.runtime;
    let sink = standard_output();
    let mut editor = open_editor(settings.colours)?;
    let printer = editor.create_external_printer().map_err(editing)?;
    let announce = announcer::start(printer, Arc::clone(&sink));
    let interruptions = Interruptions::listen(runtime);
    let mut shell = Shell::new(settings, sink);
    shell.output = shell.output.at_terminal(announce.clone(), Arc::clone(&interruptions.flag));
    let mut history = history::Recorder::open(&mut editor, terminal.history.clone());
    report(&runtime.block_on(interruptions.cut(shell.connect())));
    loop {
        editor.set_helper(Some(TreeHelper::new(&shell, runtime.clone(), announce.clone())));
        let prompt = shell.prompt();
        let line = match editor.readline(&(prompt.as_str(), styled(&shell, &prompt))) {
            Ok(line) => line,
            // Ctrl-C takes the line away, Ctrl-D ends the shell.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(editing(error)),
        };
        history.add(&mut editor, &mut shell, &line);
        match carry_out(&mut shell, &mut editor, runtime, &interruptions, &line) {
            Ok(Step::Next) => {}
            Ok(Step::Quit) => break,
            Err(ShellFailure::OutputClosed) => return Err(ShellFailure::OutputClosed),
            Err(failure) => report(&Err::<(), _>(failure)),
        }
    }
    runtime.block_on(shell.close());
    Ok(())
}

/// Standard output in small pieces: after Ctrl-C not much more is to come.
fn standard_output() -> Sink {
    Arc::new(Mutex::new(BufWriter::with_capacity(4 << 10, io::stdout())))
}

fn open_editor(colours: bool) -> Result<LineEditor, ShellFailure> {
    /// A list of more candidates is shown only after a question.
    const LISTED_MAX: usize = 100;
    let config = Config::builder()
        .max_history_size(history::LINES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(editing)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_prompt_limit(LISTED_MAX)
        .color_mode(if colours { ColorMode::Enabled } else { ColorMode::Disabled })
        .build();
    Editor::with_config(config).map_err(editing)
}

fn styled(shell: &Shell, prompt: &str) -> String {
    if shell.settings.colours { format!("\x1b[34m{prompt}\x1b[0m") } else { prompt.to_owned() }
}

/// Carries a line out, in a new session if the old one has expired, and again when its user agrees to what it would remove.
fn carry_out(
    shell: &mut Shell,
    editor: &mut LineEditor,
    runtime: &Handle,
    interruptions: &Interruptions,
    line: &str,
) -> Result<Step, ShellFailure> {
    if shell.has_expired() && !line.trim().is_empty() {
        reopen(shell, runtime, interruptions)?;
    }
    let mut done = runtime.block_on(interruptions.cut(shell.run_line(line)));
    if let Err(ShellFailure::Unconfirmed { what }) = &done {
        let question = format!("remove {}? [y/N] ", harmless(what));
        let agrees =
            editor.readline(&question).is_ok_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes"));
        if !agrees {
            return Err(ShellFailure::Refused("nothing was removed".to_owned()));
        }
        shell.is_confirmed = true;
        done = runtime.block_on(interruptions.cut(shell.run_line(line)));
        shell.is_confirmed = false;
    }
    // The rest of an interrupted listing is short.
    shell.output.flush()?;
    if done.as_ref().is_err_and(ShellFailure::ends_session) {
        report(&done);
        return reopen(shell, runtime, interruptions).map(|()| Step::Next);
    }
    done
}

/// Opens a new session in the place of one that is over.
fn reopen(shell: &mut Shell, runtime: &Handle, interruptions: &Interruptions) -> Result<(), ShellFailure> {
    runtime.block_on(interruptions.cut(shell.connect()))?;
    eprintln!("a new session was opened: ephemerals and watches of the old one are gone");
    Ok(())
}

/// Ctrl-C while a command is carried out. The editor takes it as a key.
struct Interruptions {
    flag: Arc<AtomicBool>,
    count: watch::Receiver<u64>,
}

impl Interruptions {
    fn listen(runtime: &Handle) -> Interruptions {
        let flag = Arc::new(AtomicBool::new(false));
        let (counter, count) = watch::channel(0);
        let set = Arc::clone(&flag);
        runtime.spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                set.store(true, Ordering::Relaxed);
                counter.send_modify(|count| *count += 1);
            }
        });
        Interruptions { flag, count }
    }

    /// The result of what is done, unless Ctrl-C comes first.
    async fn cut<T>(&self, doing: impl Future<Output = Result<T, ShellFailure>>) -> Result<T, ShellFailure> {
        self.flag.store(false, Ordering::Relaxed);
        let mut count = self.count.clone();
        count.mark_unchanged();
        let done = tokio::select! {
            done = doing => done,
            Ok(()) = count.changed() => Err(ShellFailure::Interrupted),
        };
        self.flag.store(false, Ordering::Relaxed);
        done
    }
}

fn report<T>(done: &Result<T, ShellFailure>) {
    if let Err(failure) = done {
        eprintln!("error: {}", harmless(&failure.to_string()));
    }
}

fn editing(error: ReadlineError) -> ShellFailure {
    ShellFailure::Editor(error.to_string())
}
