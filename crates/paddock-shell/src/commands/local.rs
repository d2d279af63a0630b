//! Commands about the shell itself.

use serde_json::json;

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::shell::Shell;
use crate::table::{self, COMMANDS, FOUR_LETTER_WORDS};

pub(crate) async fn change_directory(shell: &mut Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0).or(Some("/")))?;
    shell.client()?.exists(&path).await.map_err(ShellFailure::at(&path))?;
    shell.directory = path;
    Ok(())
}

pub(crate) fn directory(shell: &Shell) -> Result<(), ShellFailure> {
    shell.output.show(|| json!(shell.directory), || shell.directory.clone())
}

pub(crate) async fn connect(shell: &mut Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    if let Some(servers) = arguments.at(0) {
        shell.settings.servers = servers.to_owned();
    }
    shell.transaction = None;
    shell.connect().await
}

pub(crate) async fn close(shell: &mut Shell) -> Result<(), ShellFailure> {
    shell.transaction = None;
    shell.close().await;
    Ok(())
}

pub(crate) fn version(shell: &Shell) -> Result<(), ShellFailure> {
    let version = env!("CARGO_PKG_VERSION");
    shell.output.show(|| json!({ "version": version }), || format!("paddock {version}"))
}

pub(crate) fn history(shell: &Shell) -> Result<(), ShellFailure> {
    let mut lines = shell.history.iter().enumerate();
    lines.try_for_each(|(number, line)| {
        shell.output.show(|| json!({ "number": number, "line": line }), || format!("{number} - {line}"))
    })
}

/// The line of the history that `redo` stands for.
pub(crate) fn line_again(shell: &Shell, arguments: &Arguments) -> Result<String, ShellFailure> {
    let number: usize = arguments.number_at(0)?.expect("the table wants one");
    let line = shell.history.get(number).cloned();
    let line =
        line.ok_or_else(|| ShellFailure::Usage(format!("there is no line {number}: history shows them")))?;
    if line.trim_start().starts_with("redo") {
        return Err(ShellFailure::Usage(
            "a redo is not done again: name the line that it stood for".to_owned(),
        ));
    }
    Ok(line)
}

pub(crate) fn help(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    if let Some(name) = arguments.at(0) {
        let unknown = || ShellFailure::Usage(format!("there is no command {name:?}: help lists them all"));
        let command = table::find(name).ok_or_else(unknown)?;
        let aliases = match command.aliases {
            [] => String::new(),
            aliases => format!("\nAlso: {}", aliases.join(", ")),
        };
        let (name, usage, sentence, example) =
            (command.name, command.usage, command.sentence, command.example);
        let text = || format!("{name} {usage}\n{sentence}{aliases}\nExample: {example}");
        return shell
            .output
            .show(|| json!({ "name": name, "usage": usage, "text": sentence, "example": example }), text);
    }
    if shell.output.is_json() {
        let names: Vec<_> = COMMANDS.iter().map(|command| command.name).collect();
        return shell.output.line(&json!(names).to_string());
    }
    for command in COMMANDS {
        shell.output.line(format!("{} {}", command.name, command.usage).trim_end())?;
    }
    shell.output.line(&format!("Four-letter words: {}", FOUR_LETTER_WORDS.join(" ")))?;
    shell.output.line("help COMMAND tells more, with an example.")
}
