//! `paddock completions` and `paddock man`: what shells and man(1) want to know of the command line, generated from its definition.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  paddock completions bash > ~/.local/share/bash-completion/completions/paddock
  paddock completions zsh > ~/.zfunc/_paddock
      with ~/.zfunc in fpath, before compinit
  paddock completions fish > ~/.config/fish/completions/paddock.fish";

/// Print a script with which a shell completes the command line
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: CompletedShell,
}

/// Shells whose scripts are tried.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CompletedShell {
    Bash,
    Fish,
    Zsh,
}

/// Write manual pages, one for each command
#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// An existing directory
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(crate) fn complete(args: &CompletionArgs, mut command: Command) -> ExitCode {
    let shell = match args.shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Fish => Shell::Fish,
        CompletedShell::Zsh => Shell::Zsh,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    ended(io::stdout().write_all(&script), "write to standard output")
}

pub(crate) fn write_manual(args: &ManualArgs, command: Command) -> ExitCode {
    let written = fs::metadata(&args.to).and_then(|_| {
        clap_mangen::generate_to(command, &args.to)?;
        fs::read_dir(&args.to)?.try_for_each(|entry| keep_lines_of_examples(&entry?.path()))
    });
    ended(written, &format!("write {}", args.to.display()))
}

/// Gives the text behind the options of a page a name, and leaves its lines as they are: they are mostly commands to type.
fn keep_lines_of_examples(page: &Path) -> io::Result<()> {
    let text = fs::read_to_string(page)?;
    let Some((before, after)) = text.split_once("\n.SH EXTRA\n") else { return Ok(()) };
    let (examples, rest) = after.split_once("\n.SH ").unwrap_or((after, ""));
    let examples = examples.trim_start_matches("Examples:\n");
    let rest = if rest.is_empty() { String::new() } else { format!(".SH {rest}") };
    fs::write(page, format!("{before}\n.SH EXAMPLES\n.nf\n{examples}\n.fi\n{rest}"))
}

fn ended(written: io::Result<()>, action: &str) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{action}: {error}");
            ExitCode::FAILURE
        }
    }
}
