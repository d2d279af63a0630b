//! The directories of scripts: text in, text out. `UPDATE_SCRIPTS=1` writes the answers anew; review the difference.

use std::path::Path;

/// Plays every script of a directory below `tests/scripts` and compares it with its file.
pub(crate) fn check(directory: &str, play: impl Fn(&str) -> String) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(directory);
    let entries = std::fs::read_dir(&directory).expect("list the scripts");
    let mut scripts: Vec<_> = entries.map(|entry| entry.expect("list the scripts").path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "there are scripts");
    for path in scripts {
        let script = std::fs::read_to_string(&path).expect("read a script");
        let played = play(&script);
        if std::env::var_os("UPDATE_SCRIPTS").is_some() {
            std::fs::write(&path, played).expect("write a script");
        } else {
            assert!(
                played == script,
                "{} plays differently:\n{}",
                path.display(),
                difference(&script, &played)
            );
        }
    }
}

/// The paragraphs that differ: as the file has them, and as they were played.
fn difference(script: &str, played: &str) -> String {
    let mut lines = Vec::new();
    for (wanted, got) in script.trim_end().split("\n\n").zip(played.trim_end().split("\n\n")) {
        if wanted != got {
            lines.extend(
                wanted.lines().filter(|line| got.lines().all(|l| l != *line)).map(|l| format!("- {l}")),
            );
            lines.extend(
                got.lines().filter(|line| wanted.lines().all(|l| l != *line)).map(|l| format!("+ {l}")),
            );
            lines.push(format!("in\n{got}\n"));
        }
    }
    lines.join("\n")
}

/// The lines of a paragraph that say what is to be done: without its title and its answers.
pub(crate) fn commands(paragraph: &str) -> impl Iterator<Item = &str> {
    question(paragraph).lines().filter(|line| !line.starts_with('#'))
}

/// The paragraph with these answers in place of its own.
pub(crate) fn answered(paragraph: &str, answers: &[String]) -> String {
    let mut played = question(paragraph).to_owned();
    if commands(paragraph).next().is_some() {
        played.push_str("\n---");
    }
    answers.iter().for_each(|answer| played.push_str(&format!("\n{answer}")));
    played
}

fn question(paragraph: &str) -> &str {
    paragraph.split("\n---").next().expect("a split has a first part")
}
