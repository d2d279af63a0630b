//! Doc comments that begin like a riddle, and not with the name of their subject.

/// Words that a doc comment does not begin with, unless it is a proper question.
const WORDS: [&str; 10] = ["What", "How", "Whether", "Who", "Why", "Which", "When", "Where", "So", "Of"];

/// Lines of doc comments that begin with one of these words.
pub(super) fn riddles(text: &str) -> Vec<&str> {
    let mut riddles = Vec::new();
    let mut before = "";
    for line in text.lines().map(str::trim) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(comment) = comment else {
            before = "";
            continue;
        };
        let ends_sentence = before.is_empty() || before.ends_with(['.', ':', '?']);
        let first = comment.trim().split([' ', ',']).next().unwrap_or_default();
        if ends_sentence && WORDS.contains(&first) && !comment.trim_end().ends_with('?') {
            riddles.push(line);
        }
        before = comment.trim();
    }
    riddles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_riddle_is_known_by_its_first_word() {
        let lines = [
            "//! What it is.",
            "/// How long it takes.",
            "/// A question may be proper, and so is the next one.",
            "/// What is it?",
            "    /// Of all.",
            "// What a comment says that is not for rustdoc.",
            "/// A sentence that goes on",
            "/// So far.",
            "fn f() {}",
            "/// Whether it rains.",
            "/// Where it rains.",
        ];
        let text = lines.join("\n");
        assert_eq!(
            riddles(&text),
            [
                "//! What it is.",
                "/// How long it takes.",
                "/// Of all.",
                "/// Whether it rains.",
                "/// Where it rains."
            ]
        );
    }
}
