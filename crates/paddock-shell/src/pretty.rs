//! Data and names as a person likes to read them.

use serde::de::IgnoredAny;

/// A JSON object or array with indents. Its names, numbers and strings stay as they were written, and in their order.
pub(crate) fn indented_json(text: &str) -> Option<String> {
    let is_nested = text.trim_start().starts_with(['{', '[']);
    if !is_nested || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return None;
    }
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut blanks = InString::default();
    let chars = text.chars().filter(|&c| blanks.step(c) || !c.is_whitespace());
    let mut in_string = InString::default();
    let mut last = ' ';
    for c in chars {
        let is_text = in_string.step(c);
        match c {
            _ if is_text => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        let is_empty = matches!((last, c), ('{', '}') | ('[', ']'));
        if !is_text && !is_empty && matches!(c, '}' | ']') || matches!(last, '{' | '[' | ',') && !is_empty {
            let indent = if matches!(c, '{' | '[') && !is_text { depth - 1 } else { depth };
            out.push('\n');
            out.push_str(&"  ".repeat(indent));
        }
        out.push(c);
        if c == ':' && !is_text {
            out.push(' ');
        }
        last = if is_text { '"' } else { c };
    }
    Some(out)
}

/// Knows of each character if it belongs to a string.
#[derive(Default)]
struct InString {
    is_open: bool,
    is_escaped: bool,
}

impl InString {
    fn step(&mut self, c: char) -> bool {
        let was_open = self.is_open;
        match (self.is_open, self.is_escaped, c) {
            (true, true, _) => self.is_escaped = false,
            (true, false, '\\') => self.is_escaped = true,
            (_, _, '"') => self.is_open = !self.is_open,
            _ => {}
        }
        was_open || self.is_open
    }
}

/// Explains the name of a part of ClickHouse's MergeTree tables: `partition_first_last_level[_mutation]`.
pub(crate) fn part_name(name: &str) -> Option<String> {
    let fields: Vec<&str> = name.split('_').collect();
    let (partition, numbers) = fields.split_first()?;
    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let (first, last, level, mutation) = match numbers[..] {
        [first, last, level] => (first, last, level, None),
        [first, last, level, mutation] => (first, last, level, Some(mutation)),
        _ => return None,
    };
    if partition.is_empty() || first > last {
        return None;
    }
    let mutation = mutation.map(|mutation| format!(", mutation {mutation}")).unwrap_or_default();
    Some(format!("partition {partition}, blocks {first} to {last}, level {level}{mutation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_other_text_is_not() {
        for (text, expected) in [
            ("{\"b\":1,\"a\":[2, 3]}", "{\n  \"b\": 1,\n  \"a\": [\n    2,\n    3\n  ]\n}"),
            (r#" {"b" : 1.00, "b":{}, "c":[] } "#, "{\n  \"b\": 1.00,\n  \"b\": {},\n  \"c\": []\n}"),
            (r#"["{a, \"b: ]", [[1]]]"#, "[\n  \"{a, \\\"b: ]\",\n  [\n    [\n      1\n    ]\n  ]\n]"),
        ] {
            assert_eq!(indented_json(text).unwrap(), expected, "{text}");
        }
        for text in ["", "1", "\"x\"", "{", "plain"] {
            assert_eq!(indented_json(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_parts_are_explained() {
        assert_eq!(part_name("202401_1_5_2").unwrap(), "partition 202401, blocks 1 to 5, level 2");
        assert_eq!(part_name("all_0_0_0_7").unwrap(), "partition all, blocks 0 to 0, level 0, mutation 7");
        for name in ["a", "a_1", "a_5_1_0", "a_b_1_0", "_1_1_0", "all_1_2_3_4_5"] {
            assert_eq!(part_name(name), None, "{name}");
        }
    }
}
