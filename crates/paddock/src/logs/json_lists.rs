//! Lists of numbers in a line of JSON. The library writes a list, such as the numbers of members, as the text of one.

use std::borrow::Cow;

/// Stands between a name and a text. Within a text quotation marks are escaped, so it is nowhere else.
const BETWEEN: &str = "\":\"";

/// The line with lists of numbers in place of their texts.
pub(super) fn with_lists(line: &str) -> Cow<'_, str> {
    let mut rest = line;
    let mut changed = String::new();
    while let Some(at) = rest.find(BETWEEN) {
        let (before, text) = rest.split_at(at + BETWEEN.len());
        let end = text.find('"').unwrap_or(text.len());
        match numbers(&text[..end]) {
            Some(numbers) => {
                // Without the two quotation marks.
                changed += &before[..before.len() - 1];
                changed += &format!("[{numbers}]");
                rest = text[end..].strip_prefix('"').unwrap_or_default();
            }
            None => {
                changed += before;
                rest = text;
            }
        }
    }
    if changed.is_empty() {
        return Cow::Borrowed(line);
    }
    Cow::Owned(changed + rest)
}

/// Content of a list or a set of numbers.
fn numbers(text: &str) -> Option<&str> {
    let list = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = list.or_else(|| text.strip_prefix('{').and_then(|text| text.strip_suffix('}')))?;
    let is_number = |part: &str| part.parse::<u64>().is_ok_and(|number| number.to_string() == part);
    (inner.is_empty() || inner.split(", ").all(is_number)).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_lists() {
        let check = |line: &str, expected: &str| {
            assert_eq!(with_lists(line), expected);
            let _: serde_json::Value = serde_json::from_str(&with_lists(line)).expect("it is JSON");
        };
        check(
            r#"{"voters":"[1, 2, 3]","learners":"{}","a":"[1]"}"#,
            r#"{"voters":[1, 2, 3],"learners":[],"a":[1]}"#,
        );
        for same in [
            r#"{"a":"1","b":"[1, x]","c":"[01]","d":"{a: 1}","e":5,"f":"[1"}"#,
            r#"{"message":"x\":\"[1]\"","b":"y"}"#,
            "{}",
        ] {
            check(same, same);
        }
        check(r#"{"a":"x\":\"[1]\"","b":"[2]"}"#, r#"{"a":"x\":\"[1]\"","b":[2]}"#);
    }
}
