//! Rules for the path of a znode.

/// Errors of a string that is not a path. Clients get `BadArguments`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    #[error("path does not start with /")]
    NotAbsolute,
    #[error("path ends with /")]
    TrailingSlash,
    #[error("path has an empty, . or .. component")]
    BadComponent,
    #[error("path has the forbidden character {0:?}")]
    BadCharacter(char),
}

/// Checks `path` by ZooKeeper's rules: absolute, no empty, `.` or `..` component, no control character, surrogate,
/// private-use or special character. Characters beyond the basic plane are refused as ZooKeeper refuses them: it
/// looks at UTF-16 units and sees surrogates.
pub fn validate_path(path: &str) -> Result<(), InvalidPath> {
    if is_plain(path.as_bytes()) { Ok(()) } else { examine(path) }
}

/// True for nearly all valid paths: printable ASCII, without a component that begins with a dot.
fn is_plain(path: &[u8]) -> bool {
    let [b'/', inner @ ..] = path else { return false };
    // Without a way out at the first bad byte many bytes are looked at together.
    let are_printable = inner.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    let begins_badly = |(before, byte): (&u8, &u8)| *before == b'/' && matches!(byte, b'/' | b'.');
    let are_good = path.iter().zip(inner).fold(true, |all, pair| all & !begins_badly(pair));
    are_printable && are_good && inner.last() != Some(&b'/')
}

/// Checks a path character by character.
fn examine(path: &str) -> Result<(), InvalidPath> {
    let Some(inner) = path.strip_prefix('/') else { return Err(InvalidPath::NotAbsolute) };
    if inner.is_empty() {
        return Ok(());
    }
    if inner.ends_with('/') {
        return Err(InvalidPath::TrailingSlash);
    }
    if let Some(bad) = path.chars().find(|&c| is_forbidden(c)) {
        return Err(InvalidPath::BadCharacter(bad));
    }
    if inner.split('/').any(|component| matches!(component, "" | "." | "..")) {
        return Err(InvalidPath::BadComponent);
    }
    Ok(())
}

fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// The parent of `path` and the last component: `/a/b` gives `/a` and `b`, `/a` gives `/` and `a`.
/// `None` where there is no `/` at all and for the root, which has no parent.
pub fn parent_and_name(path: &str) -> Option<(&str, &str)> {
    match split_name(path)? {
        ("", "") => None,
        ("", name) => Some(("/", name)),
        split => Some(split),
    }
}

/// The path up to its last slash, and what follows: `/a` gives an empty path and `a`. `None` where there is no `/`.
#[inline]
pub fn split_name(path: &str) -> Option<(&str, &str)> {
    // Names are short: byte by byte is quicker than what looks at many at once.
    let slash = path.bytes().rposition(|byte| byte == b'/')?;
    Some((&path[..slash], &path[slash + 1..]))
}

/// True if `path` is `top` or lies below it. A slash at the end of `top` changes nothing. An empty path is nowhere.
pub fn is_at_or_below(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top.trim_end_matches('/'));
    !path.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_paths_are_fine() {
        for path in ["/", "/a", "/a/b-c_d.e", "/a b", "/ü/漢", "/...", "/.a"] {
            assert_eq!(validate_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for path in
            ["", "a", "/a/", "//", "//a", "/a//b", "/.", "/a/..", "/a/./b", "/\0", "/a\u{1f}", "/\u{7f}"]
        {
            assert!(validate_path(path).is_err(), "{path:?}");
        }
        for path in ["/\u{9f}", "/\u{e000}", "/\u{f8ff}", "/\u{fff0}", "/\u{ffff}", "/\u{1f600}"] {
            assert!(validate_path(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_glance_says_what_an_examination_does() {
        let alphabet = ["/", ".", "a", " ", "~", "\u{7f}", "\u{1f}", "ü", "\0"];
        let mut paths = vec![String::new()];
        for _ in 0..4 {
            let longer = paths.iter().flat_map(|path| alphabet.map(|next| format!("{path}{next}")));
            paths = longer.collect();
            paths.push(String::new());
            for path in &paths {
                assert_eq!(validate_path(path), examine(path), "{path:?}");
            }
        }
        assert!(paths.iter().any(|path| is_plain(path.as_bytes())));
    }

    #[test]
    fn a_path_is_at_itself_and_below_what_is_above() {
        for (path, top, expected) in [
            ("/a", "/a", true),
            ("/a/b", "/a", true),
            ("/a/b/c", "/a/b", true),
            ("/a/b", "/a/", true),
            ("/ab", "/a", false),
            ("/a", "/", true),
            ("/", "/", true),
            ("/", "/a", false),
            ("", "/", false),
        ] {
            assert_eq!(is_at_or_below(path, top), expected, "{path} at or below {top}");
        }
    }

    #[test]
    fn a_path_splits_at_its_last_slash() {
        assert_eq!(parent_and_name("/a/b"), Some(("/a", "b")));
        assert_eq!(parent_and_name("/a"), Some(("/", "a")));
        assert_eq!(parent_and_name("/a/"), Some(("/a", "")));
        assert_eq!(parent_and_name("/"), None);
        assert_eq!(parent_and_name("a"), None);
        assert_eq!(split_name("/a"), Some(("", "a")));
        assert_eq!(split_name("/ü/b"), Some(("/ü", "b")));
        assert_eq!(split_name("a"), None);
    }
}
