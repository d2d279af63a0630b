//! The znodes that are there before the first request.

use std::collections::HashSet;

use fastrand::Rng;

use super::fields::{Field, KeeperFields, Keys};
use super::names::Names;
use super::values::{Size, Text};
use crate::BenchError;
use crate::workload::PreparedZnode;

/// A znode below another one, and what is below itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SetupNode {
    pub name: Text,
    pub data: Text,
    /// Number of such znodes, each with its own children.
    pub repeat: u64,
    /// The set of paths that these znodes belong to.
    pub tag: Option<String>,
    pub children: Vec<SetupNode>,
}

impl SetupNode {
    pub(super) fn is_named(&self, name: &str) -> bool {
        matches!(&self.name, Text::Fixed(own) if own == name)
    }
}

const SETUP_KEYS: Keys = Keys { once: &[], many: &["node"] };
const NODE_KEYS: Keys = Keys { once: &["name", "data", "repeat", "tag"], many: &["node"] };

pub(super) fn read(setup: Field<'_>) -> Result<Vec<SetupNode>, BenchError> {
    let nodes = read_nodes(&setup.fields(&SETUP_KEYS)?)?;
    match nodes.iter().find(|node| node.is_named("zookeeper")) {
        Some(_) => {
            Err(setup.error("`zookeeper` is the server's own znode; give the node another name".to_string()))
        }
        None => Ok(nodes),
    }
}

fn read_nodes(parent: &KeeperFields<'_>) -> Result<Vec<SetupNode>, BenchError> {
    let mut nodes: Vec<SetupNode> = Vec::new();
    let mut names = HashSet::new();
    for (_, field) in parent.many() {
        let node = read_node(*field)?;
        if let Text::Fixed(name) = &node.name
            && !names.insert(name.clone())
        {
            return Err(field.error(format!("a node `{name}` is already here")));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

fn read_node(field: Field<'_>) -> Result<SetupNode, BenchError> {
    let fields = field.fields(&NODE_KEYS)?;
    let repeat = match fields.one("repeat") {
        Some(repeat) => repeat.count()?,
        None => 1,
    };
    Ok(SetupNode {
        name: read_name(fields.needed("name")?, repeat)?,
        data: fields.one("data").map(Text::read).transpose()?.unwrap_or_default(),
        repeat,
        tag: fields.one("tag").map(|tag| tag.text().map(str::to_string)).transpose()?,
        children: read_nodes(&fields)?,
    })
}

fn read_name(field: Field<'_>, repeat: u64) -> Result<Text, BenchError> {
    let name = Text::read(field)?;
    match &name {
        Text::Fixed(_) if repeat > 1 => {
            Err(field.error("a node that is repeated needs a `random_string` as its name".to_string()))
        }
        Text::Fixed(name)
            if name.contains('/') || paddock_proto::validate_path(&format!("/{name}")).is_err() =>
        {
            Err(field.error(format!("`{name}` cannot be a znode's name")))
        }
        Text::Fixed(name) if name.is_empty() => Err(field.error("a node needs a name".to_string())),
        Text::Random(size) if size.min() == 0 => {
            Err(field.error("a name needs at least one letter".to_string()))
        }
        _ => Ok(name),
    }
}

/// The nodes below `path`, if setup surely makes it: through fixed names.
pub(super) fn children<'a>(nodes: &'a [SetupNode], path: &str) -> Option<&'a [SetupNode]> {
    path.split('/').filter(|name| !name.is_empty()).try_fold(nodes, |nodes, name| {
        nodes.iter().find(|node| node.is_named(name)).map(|node| node.children.as_slice())
    })
}

pub(super) fn has_tag(nodes: &[SetupNode], tag: &str) -> bool {
    nodes
        .iter()
        .any(|node| node.repeat > 0 && (node.tag.as_deref() == Some(tag) || has_tag(&node.children, tag)))
}

/// All znodes of a setup, parents first; the same ones for the same seed.
pub(super) struct Expansion<'a> {
    rng: Rng,
    levels: Vec<Level<'a>>,
}

/// The znodes below one parent.
struct Level<'a> {
    parent: String,
    nodes: &'a [SetupNode],
    /// The node whose turn it is, and how many of it there are already.
    node: usize,
    copies: u64,
    names: Names,
}

impl<'a> Expansion<'a> {
    pub(super) fn new(nodes: &'a [SetupNode], seed: u64) -> Expansion<'a> {
        let mut rng = Rng::with_seed(seed);
        let names = Names::new(rng.u64(..), 0, 1);
        Expansion { rng, levels: vec![Level { parent: String::new(), nodes, node: 0, copies: 0, names }] }
    }
}

impl<'a> Iterator for Expansion<'a> {
    type Item = (&'a SetupNode, PreparedZnode);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(node) = level.nodes.get(level.node) else {
                self.levels.pop();
                continue;
            };
            if level.copies == node.repeat {
                (level.node, level.copies) = (level.node + 1, 0);
                continue;
            }
            level.copies += 1;
            let path = level.path_of(node, &mut self.rng);
            let mut data = Vec::new();
            node.data.draw(&mut self.rng, &mut data);
            if !node.children.is_empty() {
                let names = Names::new(self.rng.u64(..), 0, 1);
                let parent = path.clone();
                self.levels.push(Level { parent, nodes: &node.children, node: 0, copies: 0, names });
            }
            return Some((node, PreparedZnode { path, data }));
        }
    }
}

impl Level<'_> {
    fn path_of(&mut self, node: &SetupNode, rng: &mut Rng) -> String {
        let name = match &node.name {
            Text::Fixed(name) => name.clone(),
            Text::Random(size) => self.random_name(*size, rng),
        };
        format!("{}/{name}", self.parent)
    }

    fn random_name(&mut self, size: Size, rng: &mut Rng) -> String {
        loop {
            let mut name = String::new();
            self.names.append(size.draw(rng), rng, &mut name);
            if !self.nodes.iter().any(|sibling| sibling.is_named(&name)) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn check(text: &str, expected: &str) {
        let file = Path::new("f.yaml");
        let root = paddock_yaml::parse(text).unwrap();
        let keys = Keys { once: &["setup"], many: &[] };
        let nodes = KeeperFields::of_file(file, &root, &keys).and_then(|f| f.needed("setup")).and_then(read);
        let shown = match &nodes {
            Ok(nodes) => {
                Expansion::new(nodes, 1).map(|(_, znode)| shape(&znode)).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    /// The path with the number of letters in the place of each random name.
    fn shape(znode: &PreparedZnode) -> String {
        let names = znode.path.split('/').skip(1);
        let names = names.map(|name| if name.len() > 8 { name.len().to_string() } else { name.to_string() });
        format!("/{}:{}", names.collect::<Vec<_>>().join("/"), znode.data.len())
    }

    #[test]
    fn nodes_become_znodes_parents_first() {
        check("setup:\n", "");
        check("setup: {node: {name: a, node: {name: b, data: x}}, node: {name: c}}", "/a:0 /a/b:1 /c:0");
        check(
            "setup: {node: {name: a, node: {name: {random_string: {size: 9}}, repeat: 2, node: [{name: x}]}}}",
            "/a:0 /a/9:0 /a/9/x:0 /a/9:0 /a/9/x:0",
        );
    }

    #[test]
    fn a_wrong_node_is_named_with_its_line() {
        check("setup:\n  node:\n    data: x", "f.yaml:2: `name` is missing");
        check("setup:\n  node: {name: a}\n  node: {name: a}", "f.yaml:3: a node `a` is already here");
        check("setup:\n  node: {name: a/b}", "f.yaml:2: `a/b` cannot be a znode's name");
        check("setup:\n  node: {name: ''}", "f.yaml:2: a node needs a name");
        check(
            "setup:\n  node:\n    repeat: 2\n    name: a",
            "f.yaml:4: a node that is repeated needs a `random_string` as its name",
        );
        check(
            "setup:\n  node: {name: {random_string: {size: 0}}}",
            "f.yaml:2: a name needs at least one letter",
        );
        check(
            "setup:\n  node: {name: zookeeper}",
            "f.yaml:1: `zookeeper` is the server's own znode; give the node another name",
        );
        check("setup:\n  nod: {name: a}", "f.yaml:2: unknown key `nod`; did you mean `node`?");
    }

    #[test]
    fn a_seed_gives_the_same_znodes_and_no_two_alike() {
        let text = Text::Random(Size::Fixed(2));
        let node =
            SetupNode { name: text.clone(), data: text, repeat: 3000, tag: None, children: Vec::new() };
        let expand =
            |seed| Expansion::new(std::slice::from_ref(&node), seed).map(|(_, z)| z).collect::<Vec<_>>();
        assert_eq!(expand(1), expand(1));
        assert_ne!(expand(1), expand(2));
        assert_eq!(expand(1).iter().map(|znode| &znode.path).collect::<HashSet<_>>().len(), 3000);
    }
}
