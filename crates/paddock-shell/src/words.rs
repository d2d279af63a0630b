//! Words of a line: parted by blanks, with quotes and backslashes as a POSIX shell has them.

/// A word, and whether it was quoted: a quoted one is never a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub is_quoted: bool,
}

impl Word {
    /// A word as a command line's argument, which a shell has already taken apart.
    pub fn plain(text: impl Into<String>) -> Word {
        Word { text: text.into(), is_quoted: false }
    }
}

/// A line that cannot be taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    #[error("a {0} is not closed: close it, or put a backslash before it")]
    OpenQuote(char),
    #[error("nothing stands behind the last backslash: write two for one")]
    OpenEscape,
}

/// Splits a line. A word that begins with `#` is the beginning of a comment.
pub fn split(line: &str) -> Result<Vec<Word>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '#') if word.is_none() => break,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_with(|| Word::plain("")).is_quoted = true;
            }
            (None | Some('"'), '\\') => {
                let escaped = chars.next().ok_or(SplitError::OpenEscape)?;
                let word = word.get_or_insert_with(|| Word::plain(""));
                // Within quotes only what would end them, or a backslash, has to be escaped.
                if quote.is_some() && !matches!(escaped, '"' | '\\') {
                    word.text.push('\\');
                }
                word.text.push(escaped);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_with(|| Word::plain("")).text.push(c),
        }
    }
    if let Some(open) = quote {
        return Err(SplitError::OpenQuote(open));
    }
    words.extend(word);
    Ok(words)
}

/// True if a password may stand in a line, however its command is written.
pub(crate) fn shows_secret(line: &str) -> bool {
    let names_it = |text: &str| text.to_ascii_lowercase().contains("addauth");
    names_it(line) || split(line).is_ok_and(|words| words.first().is_some_and(|word| names_it(&word.text)))
}

/// The word at the end of a line that is being typed: the place where it begins, and the text that it stands for so far.
pub(crate) fn unfinished(line: &str) -> (usize, String) {
    let mut start = line.len();
    let mut text: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        if text.is_none() && !c.is_whitespace() {
            start = at;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                text.get_or_insert_default();
            }
            (None | Some('"'), '\\') => text.get_or_insert_default().extend(chars.next().map(|(_, c)| c)),
            (None, c) if c.is_whitespace() => (text, start) = (None, line.len()),
            (_, c) => text.get_or_insert_default().push(c),
        }
    }
    (start, text.unwrap_or_default())
}

/// A text as one word of a line.
pub(crate) fn escaped(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars() {
        let begins_comment = c == '#' && word.is_empty();
        if begins_comment || c.is_whitespace() || matches!(c, '"' | '\'' | '\\') {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let words = split(line).unwrap();
        assert_eq!(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), expected, "{line}");
    }

    #[test]
    fn words_are_parted_by_blanks_outside_quotes() {
        check("", &[]);
        check("  get\t/a  ", &["get", "/a"]);
        check("create /a \"two words\"", &["create", "/a", "two words"]);
        check("create /a 'a \"b\" \\n'", &["create", "/a", "a \"b\" \\n"]);
        check("set /a \"say \\\"x\\\" \\n\"", &["set", "/a", "say \"x\" \\n"]);
        check("set /a b\\ c", &["set", "/a", "b c"]);
        check("create /a \"\"", &["create", "/a", ""]);
        check("get /a#b # and /c", &["get", "/a#b"]);
        check("# nothing", &[]);
    }

    #[test]
    fn the_word_that_is_being_typed_is_found() {
        for (line, start, text) in [
            ("", 0, ""),
            ("ge", 0, "ge"),
            ("get ", 4, ""),
            ("get /a", 4, "/a"),
            ("get \"/a b", 4, "/a b"),
            ("get /a\\ b", 4, "/a b"),
            ("get '/x' /ä", 9, "/ä"),
            ("get /a\\", 4, "/a"),
        ] {
            assert_eq!(unfinished(line), (start, text.to_owned()), "{line}");
        }
    }

    #[test]
    fn an_escaped_name_is_one_word_again() {
        for name in ["plain", "two words", "#x", "a#b", "it's", "say \"x\"", "back\\slash", "\u{3000}"] {
            let line = format!("get {}", escaped(name));
            assert_eq!(split(&line).unwrap()[1].text, name);
            assert_eq!(unfinished(&line).1, name);
        }
    }

    #[test]
    fn a_quoted_word_is_no_flag() {
        let words = split("set /a \"-s\" -s").unwrap();
        assert!(words[2].is_quoted);
        assert!(!words[3].is_quoted);
    }

    #[test]
    fn what_is_left_open_is_refused() {
        assert_eq!(split("get \"/a"), Err(SplitError::OpenQuote('"')));
        assert_eq!(split("get '/a"), Err(SplitError::OpenQuote('\'')));
        assert_eq!(split("get /a\\"), Err(SplitError::OpenEscape));
    }

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
