//! Words of comments that leave a reader guessing: numbers and persons without a name, and openings without a subject.
//!
//! Only comments are read. A reason why they are counted and not forbidden: now and then such a word is the clearest one.

/// A kind of words that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// "After so many bytes": the number has a name, which the comment should say.
    Numbers,
    /// "Nobody waits": a client, a member or a thread does not.
    Persons,
    /// "The same for a list." is read alone, where no sentence stands in front of it.
    Openings,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Numbers => "numbers",
            Kind::Persons => "persons",
            Kind::Openings => "openings",
        }
    }
}

/// A word that counts, with the number of its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding<'a> {
    pub(super) kind: Kind,
    pub(super) line: usize,
    pub(super) text: &'a str,
}

const AMOUNTS: [&str; 6] = ["many", "few", "much", "long", "large", "often"];
const PERSONS: [&str; 4] = ["nobody", "somebody", "whoever", "anybody"];
const OPENINGS: [&str; 4] = ["It ", "One that ", "The same", "Those "];
/// Words between an amount and the `that` of its consequence: "so many bytes of it that".
const CONSEQUENCE_WORDS: usize = 4;

/// All findings of a file, in the order of its lines.
pub(super) fn findings(text: &str) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    let mut before = "";
    for (index, text) in text.lines().map(str::trim).enumerate() {
        let Some(comment) = text.strip_prefix("//") else {
            before = "";
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim();
        let mut add = |kind, count| {
            findings.extend((0..count).map(|_| Finding { kind, line: index + 1, text }));
        };
        add(Kind::Openings, usize::from(before.is_empty() && begins_without_a_subject(comment)));
        let words: Vec<String> =
            comment.split(|letter: char| !letter.is_alphabetic()).map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        add(Kind::Persons, words.iter().filter(|word| PERSONS.contains(word)).count());
        add(Kind::Numbers, words.windows(2).enumerate().filter(|(at, _)| is_unnamed(&words[*at..])).count());
        before = comment;
    }
    findings
}

fn begins_without_a_subject(comment: &str) -> bool {
    OPENINGS.iter().any(|opening| comment.starts_with(opening))
}

/// Words that begin with "so many", and do not go on to say "that" or "as".
fn is_unnamed(words: &[&str]) -> bool {
    words[0] == "so"
        && AMOUNTS.contains(&words[1])
        && !words[2..].iter().take(CONSEQUENCE_WORDS).any(|word| matches!(*word, "that" | "as"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, usize)> {
        findings(text).iter().map(|finding| (finding.kind, finding.line)).collect()
    }

    #[test]
    fn numbers_without_a_name_are_found() {
        let text = "\
            /// Closes after so many bytes.\n\
            // So few, and so much.\n\
            let so_many = \"so many\";\n\
            /// Waits so long that others come, or so long as it likes.\n\
            /// At most 16 of them, so much is known.";
        assert_eq!(
            kinds(text),
            [(Kind::Numbers, 1), (Kind::Numbers, 2), (Kind::Numbers, 2), (Kind::Numbers, 5)]
        );
    }

    #[test]
    fn persons_without_a_name_are_found_in_comments_only() {
        let text = "\
            //! Nobody waits for somebody.\n\
            let nobody = \"whoever\"; // code with a comment behind it is code\n\
            /// Anybody's guess.";
        assert_eq!(kinds(text), [(Kind::Persons, 1), (Kind::Persons, 1), (Kind::Persons, 3)]);
    }

    #[test]
    fn only_a_first_line_opens_a_comment() {
        let text = "\
            /// The same for a list.\n\
            /// It goes on.\n\
            fn f() {}\n\
            // It is added later.\n\
            //\n\
            // Those are not.\n\
            /// One that waits.\n\
            \n\
            /// One thing that has a name. It waits.\n\
            /// Its name.";
        let lines: Vec<usize> = findings(text).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 4, 6]);
        let alone = "/// One that waits.\nfn f() {}\n/// Items.\nfn g() {}";
        assert_eq!(kinds(alone), [(Kind::Openings, 1)]);
    }
}
