//! XML as the tree that YAML is read into. An attribute is an entry whose key begins with `@`, as ClickHouse has it in
//! YAML.

use paddock_yaml::{Entry, Node, Value};
use roxmltree::Document;

/// The key of an element's own text, beside its attributes.
pub(super) const TEXT: &str = "#text";

/// The line, and what is wrong there.
pub(super) type Malformed = (usize, String);

/// Reads what is in the root element, whose name says nothing.
pub(super) fn parse(text: &str) -> Result<Node, Malformed> {
    let document = Document::parse(text)
        .map_err(|error| (error.pos().row as usize, format!("not XML: {error}").replace('\n', " ")))?;
    Ok(node(&document, document.root_element()))
}

fn node(document: &Document<'_>, element: roxmltree::Node<'_, '_>) -> Node {
    let line = document.text_pos_at(element.range().start).row as usize;
    let scalar = |text: &str| Node { line, value: Value::Scalar(text.trim().to_owned()) };
    let attributes = element.attributes().map(|attribute| Entry {
        key: format!("@{}", attribute.name()),
        line,
        value: scalar(attribute.value()),
    });
    let elements = element.children().filter(|child| child.is_element()).map(|child| {
        let value = node(document, child);
        Entry { key: child.tag_name().name().to_owned(), line: value.line, value }
    });
    let mut entries: Vec<Entry> = attributes.chain(elements).collect();
    let text = element.text().unwrap_or_default();
    if entries.is_empty() {
        scalar(text)
    } else {
        if !text.trim().is_empty() {
            entries.push(Entry { key: TEXT.to_owned(), line, value: scalar(text) });
        }
        Node { line, value: Value::Mapping(entries) }
    }
}
