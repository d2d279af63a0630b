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
}
