//! Java's properties files, the syntax of `zoo.cfg`.
//!
//! A logical line is a key and a value with `=`, `:` or blanks between them. A backslash joins lines, or takes from the
//! next character its meaning. A key given twice has the value given last.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) key: String,
    pub(super) value: String,
    /// The first of its lines, counted from 1.
    pub(super) line: usize,
    /// The line of the value that this one replaces.
    pub(super) earlier: Option<usize>,
}

/// An escape that stands for no character.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) line: usize,
    pub(super) what: String,
}

/// The text of a file. Java reads Latin-1; we do so only if the bytes are not UTF-8, which Latin-1 text rarely is.
pub(super) fn decode(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| error.into_bytes().iter().map(|byte| char::from(*byte)).collect());
    // A byte order mark is that of an editor, and no part of the first key.
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

pub(super) fn parse(text: &str) -> Result<Vec<Property>, Malformed> {
    let mut properties: Vec<Property> = Vec::new();
    for (line, logical) in logical_lines(text) {
        let malformed = |what| Malformed { line, what };
        let (key, value) = split(&logical);
        let (key, value) = (unescape(key).map_err(malformed)?, unescape(value).map_err(malformed)?);
        let earlier = properties.iter().position(|earlier| earlier.key == key);
        let earlier = earlier.map(|at| properties.remove(at).line);
        properties.push(Property { key, value, line, earlier });
    }
    Ok(properties)
}

/// Lines with their number, joined where a backslash stands before the end. Blank lines and comments are left out.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut natural = text.split('\n').zip(1..);
    let mut lines = Vec::new();
    while let Some((start, number)) = natural.next() {
        let start = start.trim_start_matches(is_blank);
        if start.is_empty() || start.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = start.to_owned();
        while goes_on(&logical) {
            logical.pop();
            let Some((more, _)) = natural.next() else { break };
            logical.push_str(more.trim_start_matches(is_blank));
        }
        lines.push((number, logical));
    }
    lines
}

/// An odd number of backslashes: the last one is not escaped itself.
fn goes_on(line: &str) -> bool {
    let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    !backslashes.is_multiple_of(2)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// Key and value, both still escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c| {
        let ends = !escaped && (is_blank(c) || matches!(c, '=' | ':'));
        escaped = !escaped && c == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> Result<String, String> {
    // Java's characters are UTF-16: one that takes two of them is escaped as two.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let unescaped = match c {
            // A backslash before the end of the file is dropped.
            '\\' => match chars.next() {
                None => break,
                Some('u') => {
                    units.push(hex_unit(&mut chars)?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some(other) => other,
            },
            c => c,
        };
        units.extend_from_slice(unescaped.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).map_err(|_| "expected both halves of a surrogate pair after \\u".to_owned())
}

fn hex_unit(chars: &mut Peekable<Chars<'_>>) -> Result<u16, String> {
    let mut unit = 0;
    for _ in 0..4 {
        let digit = chars.next_if(char::is_ascii_hexdigit).and_then(|c| c.to_digit(16));
        let digit = digit.ok_or("expected four hexadecimal digits after \\u")?;
        unit = unit * 16 + digit as u16;
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str, usize)]) {
        let property = |(key, value, line): &(&str, &str, usize)| Property {
            key: (*key).into(),
            value: (*value).into(),
            line: *line,
            earlier: None,
        };
        let mut found = parse(text);
        found.iter_mut().flatten().for_each(|property| property.earlier = None);
        assert_eq!(found, Ok(expected.iter().map(property).collect()), "{text:?}");
    }

    #[test]
    fn key_and_value_are_parted_by_equals_colon_or_blanks() {
        for text in
            ["a=b", "a:b", "a b", "a\tb", " a = b", "\x0ca : b", "a   b", "a=b\n", "a=b\r\n", "a\\\n=\\\n  b"]
        {
            check(text, &[("a", "b", 1)]);
        }
    }

    #[test]
    fn only_the_first_separator_parts() {
        check("server.1=zoo1:2888:3888;2181", &[("server.1", "zoo1:2888:3888;2181", 1)]);
        check("digest=super:abc=", &[("digest", "super:abc=", 1)]);
        check("a = = b", &[("a", "= b", 1)]);
        check("a b = c", &[("a", "b = c", 1)]);
    }

    #[test]
    fn a_key_alone_has_an_empty_value() {
        check("a", &[("a", "", 1)]);
        check("a=", &[("a", "", 1)]);
        check("=b", &[("", "b", 1)]);
    }

    #[test]
    fn blank_lines_and_comments_are_left_out() {
        check("", &[]);
        check("\n  \n\t# x=1\n !y=2\n\na=b # c\n", &[("a", "b # c", 6)]);
    }

    #[test]
    fn a_comment_does_not_go_on_in_the_next_line() {
        check("# comment \\\na=b", &[("a", "b", 2)]);
    }

    #[test]
    fn a_backslash_joins_lines() {
        check("a=b,\\\n    c,\\\n  # d\ne=f", &[("a", "b,c,# d", 1), ("e", "f", 4)]);
        check("a=b\\\r\n c", &[("a", "bc", 1)]);
        check("a=b\\", &[("a", "b", 1)]);
        check("a=b\\\n\nc=d", &[("a", "b", 1), ("c", "d", 3)]);
        check("a=b\\\\\nc=d", &[("a", "b\\", 1), ("c", "d", 2)]);
    }

    #[test]
    fn escapes_are_resolved_in_keys_and_values() {
        check(r"a\=b\:c\ d=e", &[("a=b:c d", "e", 1)]);
        check(r"path=C\:\\zk\tx\n\r\f\q", &[("path", "C:\\zk\tx\n\r\x0cq", 1)]);
        check(r"a=\u00e4\u20AC\ud83d\ude00", &[("a", "ä€😀", 1)]);
        check(r"\u0061=b", &[("a", "b", 1)]);
    }

    #[test]
    fn an_escape_for_no_character_is_refused() {
        for (text, what) in [
            (r"a=\u12", "expected four hexadecimal digits after \\u"),
            (r"a=\u12x4", "expected four hexadecimal digits after \\u"),
            (r"a=\ud83d", "expected both halves of a surrogate pair after \\u"),
        ] {
            let text = format!("\n{text}");
            assert_eq!(parse(&text), Err(Malformed { line: 2, what: what.into() }), "{text}");
        }
    }

    #[test]
    fn the_last_of_two_values_counts() {
        check("a=1\nb=2\na=3", &[("b", "2", 2), ("a", "3", 3)]);
        let earlier: Vec<_> = parse("a=1\nb=2\na=3").unwrap().iter().map(|found| found.earlier).collect();
        assert_eq!(earlier, [None, Some(1)]);
    }

    #[test]
    fn a_file_is_utf_8_or_latin_1() {
        assert_eq!(decode("ä".as_bytes().to_vec()), "ä");
        assert_eq!(decode(vec![b'a', 0xe4]), "aä");
        assert_eq!(decode("\u{feff}1\n".as_bytes().to_vec()), "1\n", "without the mark of an editor");
    }
}
