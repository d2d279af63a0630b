//! Typed reading of a `paddock_yaml::Node`, with refusals that name file, line and key.
//!
//! Wherever a key may come several times, a sequence in its place means the same, and so does a key with a number or a
//! word behind it: `node`, `node_2`, `node-small`.

use std::path::Path;
use std::time::Duration;

use paddock_yaml::{Entry, Node, Value};

use crate::BenchError;

/// The keys that a mapping may have.
pub(crate) struct Keys {
    pub(crate) once: &'static [&'static str],
    pub(crate) many: &'static [&'static str],
}

/// A mapping whose keys are all known.
#[derive(Debug)]
pub(crate) struct KeeperFields<'a> {
    file: &'a Path,
    line: usize,
    once: Vec<(&'static str, Field<'a>)>,
    many: Vec<(&'static str, Field<'a>)>,
}

/// A value and the key that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    file: &'a Path,
    key: &'a str,
    node: &'a Node,
    /// Line of the key.
    pub(crate) line: usize,
}

impl<'a> KeeperFields<'a> {
    /// The mapping that a whole file is.
    pub(crate) fn of_file(
        file: &'a Path,
        node: &'a Node,
        keys: &Keys,
    ) -> Result<KeeperFields<'a>, BenchError> {
        Field { file, key: "the file", node, line: node.line }.fields(keys)
    }

    pub(crate) fn one(&self, key: &str) -> Option<Field<'a>> {
        self.once.iter().find(|(name, _)| *name == key).map(|(_, field)| *field)
    }

    pub(crate) fn needed(&self, key: &str) -> Result<Field<'a>, BenchError> {
        self.one(key).ok_or_else(|| self.error(format!("`{key}` is missing")))
    }

    /// Every value of every key that may come several times, in the order of the file.
    pub(crate) fn many(&self) -> &[(&'static str, Field<'a>)] {
        &self.many
    }

    pub(crate) fn error(&self, message: String) -> BenchError {
        self.error_at(self.line, message)
    }

    pub(crate) fn error_at(&self, line: usize, message: String) -> BenchError {
        BenchError::InFile { file: self.file.to_path_buf(), line, message }
    }

    fn add(&mut self, keys: &Keys, entry: &'a Entry) -> Result<(), BenchError> {
        let field = Field { file: self.file, key: &entry.key, node: &entry.value, line: entry.line };
        if let Some(name) = keys.once.iter().copied().find(|name| *name == entry.key) {
            if self.one(name).is_some() {
                return Err(field.error(format!("`{name}` is given twice")));
            }
            self.once.push((name, field));
            return Ok(());
        }
        let name = keys.many.iter().copied().find(|name| is_one_of_many(&entry.key, name));
        // `connection_timout_ms` is a slip rather than one more connection.
        let is_slip =
            |name: &str| name != entry.key && keys.once.iter().any(|once| is_near(&entry.key, once));
        let Some(name) = name.filter(|name| !is_slip(name)) else {
            return Err(field.error(unknown_key(&entry.key, keys)));
        };
        self.many.extend(field.items().into_iter().map(|item| (name, item)));
        Ok(())
    }
}

impl<'a> Field<'a> {
    pub(crate) fn error(&self, message: String) -> BenchError {
        BenchError::InFile { file: self.file.to_path_buf(), line: self.line, message }
    }

    pub(crate) fn key(&self) -> &'a str {
        self.key
    }

    fn wrong(&self, wanted: &str) -> BenchError {
        let found = match &self.node.value {
            Value::Scalar(text) if text.is_empty() => "nothing".to_string(),
            Value::Scalar(text) => format!("`{text}`"),
            Value::Sequence(_) => "a list".to_string(),
            Value::Mapping(_) => "a mapping".to_string(),
        };
        self.error(format!("`{}` must be {wanted}, not {found}", self.key))
    }

    /// The value as a mapping; no value is an empty one.
    pub(crate) fn fields(&self, keys: &Keys) -> Result<KeeperFields<'a>, BenchError> {
        let entries = match &self.node.value {
            Value::Mapping(entries) => entries.as_slice(),
            Value::Scalar(text) if text.is_empty() => &[],
            _ => return Err(self.wrong("a mapping")),
        };
        let mut fields =
            KeeperFields { file: self.file, line: self.line, once: Vec::new(), many: Vec::new() };
        for entry in entries {
            fields.add(keys, entry)?;
        }
        Ok(fields)
    }

    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// The items of a list; anything else is a list of one.
    fn items(self) -> Vec<Field<'a>> {
        match &self.node.value {
            Value::Sequence(nodes) => {
                nodes.iter().flat_map(|node| Field { node, line: node.line, ..self }.items()).collect()
            }
            _ => vec![self],
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, BenchError> {
        match &self.node.value {
            Value::Scalar(text) => Ok(text),
            _ => Err(self.wrong("a word")),
        }
    }

    pub(crate) fn count(&self) -> Result<u64, BenchError> {
        self.parse("a whole number, 0 or more")
    }

    pub(crate) fn size(&self) -> Result<usize, BenchError> {
        self.parse("a whole number, 0 or more")
    }

    /// A number from 0 to 1.
    pub(crate) fn share(&self) -> Result<f64, BenchError> {
        let wanted = "a number from 0 to 1";
        let share: f64 = self.parse(wanted)?;
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(self.wrong(wanted)) }
    }

    pub(crate) fn seconds(&self) -> Result<Duration, BenchError> {
        let wanted = "a number of seconds, 0 or more";
        Duration::try_from_secs_f64(self.parse(wanted)?).map_err(|_| self.wrong(wanted))
    }

    pub(crate) fn flag(&self) -> Result<bool, BenchError> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn parse<T: std::str::FromStr>(&self, wanted: &str) -> Result<T, BenchError> {
        match &self.node.value {
            Value::Scalar(text) => text.trim().parse().map_err(|_| self.wrong(wanted)),
            _ => Err(self.wrong(wanted)),
        }
    }
}

fn is_one_of_many(key: &str, name: &str) -> bool {
    let Some(rest) = key.strip_prefix(name) else { return false };
    rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '_' | '-'))
}

fn distance(key: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(key, name)
}

fn is_near(key: &str, name: &str) -> bool {
    distance(key, name) <= 1 + name.len() / 4
}

fn unknown_key(key: &str, keys: &Keys) -> String {
    let known = || keys.once.iter().chain(keys.many).copied();
    match known().min_by_key(|name| distance(key, name)) {
        Some(nearest) if is_near(key, nearest) => {
            format!("unknown key `{key}`; did you mean `{nearest}`?")
        }
        _ => format!("unknown key `{key}`; known here: {}", known().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys =
        Keys { once: &["count", "flag", "share", "inner", "connection_timeout_ms"], many: &["connection"] };

    fn check(text: &str, read: impl Fn(&KeeperFields<'_>) -> Result<String, BenchError>, expected: &str) {
        let file = Path::new("f.yaml");
        let node = paddock_yaml::parse(text).unwrap();
        let read = KeeperFields::of_file(file, &node, &KEYS).and_then(|fields| read(&fields));
        assert_eq!(read.unwrap_or_else(|error| error.to_string()), expected, "{text}");
    }

    fn count(fields: &KeeperFields<'_>) -> Result<String, BenchError> {
        fields.needed("count")?.count().map(|count| count.to_string())
    }

    #[test]
    fn values_are_read_as_what_they_should_be() {
        check("count: 7", count, "7");
        check("count: '7'", count, "7");
        check("flag: yes", |f| Ok(f.needed("flag")?.flag()?.to_string()), "true");
        check("share: 0.25", |f| Ok(f.needed("share")?.share()?.to_string()), "0.25");
    }

    #[test]
    fn many_values_come_in_any_form() {
        let many = |f: &KeeperFields<'_>| {
            let texts: Result<Vec<&str>, _> = f.many().iter().map(|(_, field)| field.text()).collect();
            Ok(texts?.join(" "))
        };
        let text = "connection: a\nconnection: [b, [c]]\nconnection_timeout_ms: 1\nconnection_4: d\n";
        check(text, many, "a b c d");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        check("\ncount: x", count, "f.yaml:2: `count` must be a whole number, 0 or more, not `x`");
        check("count: [1]", count, "f.yaml:1: `count` must be a whole number, 0 or more, not a list");
        check("count:", count, "f.yaml:1: `count` must be a whole number, 0 or more, not nothing");
        check("flag: true", count, "f.yaml:1: `count` is missing");
        check("count: 1\ncount: 2", count, "f.yaml:2: `count` is given twice");
        check("coutn: 1", count, "f.yaml:1: unknown key `coutn`; did you mean `count`?");
        check(
            "zzz: 1",
            count,
            "f.yaml:1: unknown key `zzz`; known here: count, flag, share, inner, connection_timeout_ms, connection",
        );
        check("- a", count, "f.yaml:1: `the file` must be a mapping, not a list");
        let share = |f: &KeeperFields<'_>| Ok(f.needed("share")?.share()?.to_string());
        check("share: 1.5", share, "f.yaml:1: `share` must be a number from 0 to 1, not `1.5`");
    }
}
