//! Characters that a value must not have: those that would end it or its line, and those that a terminal obeys.

/// The text with `\t`, `\n`, `\r` or `\u{…}` in place of such characters, and two backslashes in place of one.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\\' || is_obeyed(c) {
            // Errors for which the library has no letter are written by their numbers.
            match c {
                '\\' | '\t' | '\n' | '\r' => out.extend(c.escape_default()),
                c => out.extend(c.escape_unicode()),
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// True for control characters, ends of lines and paragraphs, and those that turn the direction of what follows.
fn is_obeyed(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || turns
}
