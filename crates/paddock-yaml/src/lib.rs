//! A YAML file as a tree that knows its lines.
//!
//! Made for files in the manner of ClickHouse's configuration: a mapping may give a key several times, and the order of
//! its entries is kept. What the entries mean is for who reads them.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Counted from 1.
    pub line: usize,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// As it is written, without its quotes; empty if there is none.
    Scalar(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    /// Line of the key.
    pub line: usize,
    pub value: Node,
}

/// Errors for which a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not YAML: {message}")]
pub struct Malformed {
    pub line: usize,
    message: String,
}

/// Reads the one document of a file.
pub fn parse(text: &str) -> Result<Node, Malformed> {
    let mut tree = Tree::default();
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => tree.on_event(event, span.start.line())?,
            Err(error) => {
                let (line, message) = (error.marker().line(), error.info().to_string());
                return Err(Malformed { line, message });
            }
        }
    }
    Ok(tree.root.unwrap_or(Node { line: 1, value: Value::Mapping(Vec::new()) }))
}

/// The tree while its events come in.
#[derive(Default)]
struct Tree {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
}

/// A sequence or mapping whose end has not come yet.
struct Open {
    line: usize,
    anchor: usize,
    /// The key whose value comes next, in a mapping.
    key: Option<(String, usize)>,
    value: Value,
}

impl Tree {
    fn on_event(&mut self, event: Event<'_>, line: usize) -> Result<(), Malformed> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let absent = style == ScalarStyle::Plain && matches!(&*text, "~" | "null");
                let text = if absent { String::new() } else { text.into_owned() };
                self.add(Node { line, value: Value::Scalar(text) }, anchor)
            }
            Event::Alias(anchor) => {
                let unknown =
                    || Malformed { line, message: "alias of something that has not ended yet".to_string() };
                let node = self.anchors.get(&anchor).ok_or_else(unknown)?.clone();
                self.add(node, 0)
            }
            Event::SequenceStart(anchor, _) => self.open(line, anchor, Value::Sequence(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(line, anchor, Value::Mapping(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Malformed { line, message: "a second document".to_string() })
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, line: usize, anchor: usize, value: Value) -> Result<(), Malformed> {
        self.open.push(Open { line, anchor, key: None, value });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Malformed> {
        let Open { line, anchor, value, .. } = self.open.pop().expect("the parser ends only what it began");
        let value = match value {
            Value::Mapping(entries) => Value::Mapping(merge(entries)),
            value => value,
        };
        self.add(Node { line, value }, anchor)
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Malformed> {
        // Anchors are numbered from 1; 0 is none.
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.value {
            Value::Sequence(items) => items.push(node),
            Value::Mapping(entries) => match open.key.take() {
                Some((key, line)) => entries.push(Entry { key, line, value: node }),
                None => open.key = Some(key_of(node)?),
            },
            Value::Scalar(_) => unreachable!("a scalar is never open"),
        }
        Ok(())
    }
}

fn key_of(node: Node) -> Result<(String, usize), Malformed> {
    match node.value {
        Value::Scalar(key) => Ok((key, node.line)),
        _ => Err(Malformed { line: node.line, message: "a key must be a plain word".to_string() }),
    }
}

/// Puts what `<<` refers to behind the mapping's own entries, but for the keys that it has itself.
fn merge(entries: Vec<Entry>) -> Vec<Entry> {
    let (merges, mut own): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| entry.key == "<<");
    let inherited = merges.into_iter().flat_map(|entry| match entry.value.value {
        Value::Mapping(entries) => entries,
        Value::Sequence(items) => items.into_iter().flat_map(mapping_entries).collect(),
        Value::Scalar(_) => Vec::new(),
    });
    let added: Vec<Entry> =
        inherited.filter(|entry| own.iter().all(|known| known.key != entry.key)).collect();
    own.extend(added);
    own
}

fn mapping_entries(node: Node) -> Vec<Entry> {
    match node.value {
        Value::Mapping(entries) => entries,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in one line: `key@line=value`.
    fn show(node: &Node) -> String {
        match &node.value {
            Value::Scalar(text) => text.clone(),
            Value::Sequence(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
            Value::Mapping(entries) => {
                let entry = |e: &Entry| format!("{}@{}={}", e.key, e.line, show(&e.value));
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn check(text: &str, expected: &str) {
        let shown = parse(text).map_or_else(|error| format!("{}: {error}", error.line), |node| show(&node));
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_file_becomes_a_tree_with_lines() {
        check("a: 1\nb:\n  - x\n  - 'y z'\n", "{a@1=1, b@2=[x, y z]}");
        check("# nothing\n", "{}");
        check("a:\nb: ~\nc: '~'\n", "{a@1=, b@2=, c@3=~}");
    }

    #[test]
    fn a_key_may_come_twice() {
        check("node: {name: a}\n\nnode:\n  name: b\n", "{node@1={name@1=a}, node@3={name@4=b}}");
    }

    #[test]
    fn aliases_and_merges_are_followed() {
        check("a: &x {k: 1, l: 2}\nb: *x\n", "{a@1={k@1=1, l@1=2}, b@2={k@1=1, l@1=2}}");
        check("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3\n", "{a@1={k@1=1, l@1=2}, b@2={l@4=3, k@1=1}}");
    }

    #[test]
    fn what_is_not_yaml_is_named_with_its_line() {
        check("a: 1\nb: [1, 2\nc: 3\n", "3: not YAML: illegal placement of ':' indicator");
        check("a: 1\n---\nb: 2\n", "2: not YAML: a second document");
        check("a: 1\n[x]: 2\n", "2: not YAML: a key must be a plain word");
    }
}
