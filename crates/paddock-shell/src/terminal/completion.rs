//! Completion: commands, their flags, and paths from the live tree.

use std::time::Duration;

use paddock_client::Client;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::output::{Announce, harmless};
use crate::paths;
use crate::shell::Shell;
use crate::table::{self, COMMANDS, Command, FOUR_LETTER_WORDS};
use crate::words::{escaped, split, unfinished};

/// A completion that takes longer is given up: the editor waits for it.
const PATIENCE: Duration = Duration::from_millis(500);
/// A znode of more children is not listed: the list would be long on its way, and the editor takes at most 65535 candidates.
const CHILDREN_MAX: i32 = 20_000;

/// The editor's way to the tree, as the shell stands before a line.
pub(crate) struct TreeHelper {
    runtime: Handle,
    client: Option<Client>,
    directory: String,
    announce: Announce,
}

impl Helper for TreeHelper {}
impl Highlighter for TreeHelper {}
impl Validator for TreeHelper {}
impl Hinter for TreeHelper {
    type Hint = String;
}

impl Completer for TreeHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, word) = unfinished(&line[..at]);
        let before = split(&line[..start]).unwrap_or_default();
        let candidates = match before.first().map(|name| name.text.as_str()) {
            None => commands_like(&word),
            Some("help" | "?") if before.len() == 1 => commands_like(&word),
            Some(name) => match table::find(name) {
                Some(command) if word.starts_with('-') => flags_like(command, &word),
                Some(command) if command.has_paths() => self.paths_like(&word),
                _ => Vec::new(),
            },
        };
        Ok((start, candidates))
    }
}

fn commands_like(word: &str) -> Vec<Pair> {
    let names = COMMANDS.iter().flat_map(|command| [&command.name].into_iter().chain(command.aliases));
    let fitting = names.chain(FOUR_LETTER_WORDS).filter(|name| name.starts_with(word));
    fitting.map(|name| Pair { display: (*name).to_owned(), replacement: format!("{name} ") }).collect()
}

fn flags_like(command: &Command, word: &str) -> Vec<Pair> {
    let flags = command.flags.iter().map(|flag| format!("-{}", flag.trim_end_matches(':')));
    let fitting = flags.filter(|flag| flag.starts_with(word));
    fitting.map(|flag| Pair { replacement: format!("{flag} "), display: flag }).collect()
}

impl TreeHelper {
    pub(super) fn new(shell: &Shell, runtime: Handle, announce: Announce) -> TreeHelper {
        let client = shell.client().ok();
        TreeHelper { runtime, client, directory: shell.directory.clone(), announce }
    }

    /// Paths that begin with what is typed. Nothing is completed while no server answers.
    fn paths_like(&self, word: &str) -> Vec<Pair> {
        // The limit of time begins within the runtime, whose clock it uses.
        match self.runtime.block_on(async { timeout(PATIENCE, self.candidates(word)).await }) {
            Ok(candidates) => candidates.unwrap_or_default(),
            Err(_) => {
                (self.announce)("no completion: the server has not answered in time".to_owned());
                Vec::new()
            }
        }
    }

    async fn candidates(&self, word: &str) -> Option<Vec<Pair>> {
        let (above, begun) = word.rfind('/').map_or(("", word), |slash| word.split_at(slash + 1));
        let parent = paths::resolve(&self.directory, if above.is_empty() { "." } else { above }).ok()?;
        let client = self.client.as_ref()?;
        let children = client.exists(&parent).await.ok()?.num_children;
        if children > CHILDREN_MAX {
            let parent = harmless(&parent);
            (self.announce)(format!(
                "no completion: {parent} has {children} children, more than {CHILDREN_MAX}"
            ));
            return None;
        }
        let mut names = client.get_children(&parent).await.ok()?;
        // A name that a terminal cannot show cannot be typed either.
        names.retain(|name| name.starts_with(begun) && !name.contains(char::is_control));
        names.sort_unstable();
        // After the only one the next step follows, or the next word.
        let end = match names.as_slice() {
            [only] => match client.exists(&paths::child(&parent, only)).await {
                Ok(stat) if stat.num_children > 0 => "/",
                _ => " ",
            },
            _ => "",
        };
        let candidate = |name: String| {
            let replacement = format!("{}{end}", escaped(&format!("{above}{name}")));
            Pair { display: name, replacement }
        };
        Some(names.into_iter().take(CHILDREN_MAX as usize).map(candidate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pairs: Vec<Pair>) -> Vec<String> {
        pairs.into_iter().map(|pair| pair.replacement).collect()
    }

    #[test]
    fn commands_aliases_and_words_are_completed() {
        assert_eq!(shown(commands_like("rm")), ["rm ", "rmr "]);
        assert_eq!(shown(commands_like("ruo")), ["ruok "]);
        assert!(commands_like("xyz").is_empty());
    }

    #[test]
    fn flags_are_those_of_the_command() {
        let create = table::find("create").unwrap();
        assert_eq!(shown(flags_like(create, "-")), ["-e ", "-s ", "-c ", "-t "]);
        assert_eq!(shown(flags_like(table::find("reconfig").unwrap(), "-a")), ["-add "]);
    }
}
