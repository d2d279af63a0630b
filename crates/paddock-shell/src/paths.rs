//! Paths as they are typed: relative ones begin where the shell stands.

use paddock_proto::{parent_and_name, validate_path};

use crate::failure::ShellFailure;

/// The absolute path of `typed`, seen from `from`. `.` and `..` are steps, and a slash at the end is left out.
pub(crate) fn resolve(from: &str, typed: &str) -> Result<String, ShellFailure> {
    let mut steps: Vec<&str> = Vec::new();
    let start = if typed.starts_with('/') { "" } else { from };
    for step in start.split('/').chain(typed.split('/')) {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    let path = format!("/{}", steps.join("/"));
    validate_path(&path).map_err(|error| ShellFailure::Usage(format!("{typed:?} is no path: {error}")))?;
    Ok(path)
}

pub(crate) fn child(parent: &str, name: &str) -> String {
    if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// The last step of a path, and all before it.
pub(crate) fn parted(path: &str) -> Option<(&str, &str)> {
    parent_and_name(path)
}

/// True if the whole name fits the pattern, in which `*` is any text and `?` any character.
pub(crate) fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut n, mut p) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                star = Some((p, n));
                p += 1;
            }
            (Some(c), _) if *c == '?' || *c == name[n] => (n, p) = (n + 1, p + 1),
            // The last star takes one character more.
            (_, Some((at, taken))) => {
                star = Some((at, taken + 1));
                (n, p) = (taken + 1, at + 1);
            }
            _ => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_where_the_shell_stands() {
        for (from, typed, expected) in [
            ("/", "a", "/a"),
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "..", "/a"),
            ("/a/b", "../../../x", "/x"),
            ("/a/b", "/x/", "/x"),
            ("/a/b", ".", "/a/b"),
            ("/a", "/", "/"),
        ] {
            assert_eq!(resolve(from, typed).unwrap(), expected, "{typed} from {from}");
        }
        assert!(resolve("/", "a\0b").is_err());
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (name, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a*", true),
            ("abc", "*c", true),
            ("abc", "a?c", true),
            ("abc", "b", false),
            ("abc", "*b*", true),
            ("aXbXc", "a*b*c", true),
            ("", "*", true),
            ("ab", "a", false),
        ] {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }
}
