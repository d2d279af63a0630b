//! A shell for any server that speaks ZooKeeper's protocol.
//!
//! `table.rs` lists the commands; `shell.rs` is the session; `commands.rs` carries commands out, one line after the other, and
//! `commands/` has what each of them does. Lines come from the program that holds the shell,
//! or from `terminal.rs`, which edits them.
//!
//! Always true:
//! - A command prints its result on standard output, and nothing else goes there.
//! - A failure is one line, on standard error.
//! - Names and data from a server are printed without control characters, but for data in the raw form.

mod arguments;
mod commands;
mod events;
mod failure;
mod output;
mod paths;
mod pretty;
mod shell;
mod table;
mod terminal;
mod walk;
mod words;

pub use failure::ShellFailure;
pub use output::{Form, Sink, standard_output, time_text};
pub use shell::{Shell, ShellSettings, Step};
pub use table::{COMMANDS, Command, find};
pub use terminal::{Terminal, converse};
pub use words::{SplitError, Word, split};
