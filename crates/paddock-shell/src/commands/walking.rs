//! Commands that look at whole subtrees.

use std::collections::BTreeMap;

use serde_json::json;

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::output::{Colour, harmless};
use crate::paths;
use crate::shell::Shell;
use crate::walk::{Visited, Walk};

/// Draws a line for each znode, indented by its depth.
pub(crate) async fn tree(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let root = shell.path(arguments.at(0))?;
    let depth_max = arguments.number("L")?.unwrap_or(usize::MAX);
    let client = shell.client()?;
    let mut walk = Walk::new(&client, &root, depth_max);
    while let Some(Visited { path, depth, stat }) = walk.next().await? {
        let name = if depth == 0 { path.as_str() } else { paths::parted(&path).map_or("", |(_, name)| name) };
        let out = &shell.output;
        if out.is_json() {
            let children = stat.map(|stat| stat.num_children);
            out.line(&json!({ "path": path, "depth": depth, "num_children": children }).to_string())?;
            continue;
        }
        let has_children = stat.is_some_and(|stat| stat.num_children > 0);
        let name = if has_children { out.coloured(Colour::Blue, name) } else { harmless(name) };
        out.coloured_line(&format!("{}{name}", "  ".repeat(depth)))?;
    }
    walk.finish()
}

pub(crate) async fn find(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let (root, pattern) = match arguments.at(1) {
        Some(pattern) => (arguments.at(0), pattern),
        None => (None, arguments.at(0).expect("the table wants one")),
    };
    let root = shell.path(root)?;
    let client = shell.client()?;
    let mut walk = Walk::new(&client, &root, usize::MAX);
    while let Some(Visited { path, .. }) = walk.next().await? {
        if paths::parted(&path).is_some_and(|(_, name)| paths::fits(name, pattern)) {
            shell.output.show(|| json!(path), || path.clone())?;
        }
    }
    walk.finish()
}

/// Data and znodes of a subtree.
#[derive(Clone, Copy, Default)]
struct Weight {
    bytes: i64,
    znodes: u64,
}

pub(crate) async fn du(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let root = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let mut walk = Walk::new(&client, &root, usize::MAX);
    let mut total = Weight::default();
    let mut children: BTreeMap<String, Weight> = BTreeMap::new();
    let mut child = String::new();
    while let Some(Visited { path, depth, stat }) = walk.next().await? {
        if depth == 1 {
            child.clone_from(&path);
        }
        let bytes = stat.map_or(0, |stat| i64::from(stat.data_length));
        let below = (depth > 0).then(|| children.entry(child.clone()).or_default());
        for weight in [Some(&mut total), below].into_iter().flatten() {
            weight.bytes += bytes;
            weight.znodes += 1;
        }
    }
    let mut lines: Vec<(String, Weight)> = children.into_iter().collect();
    lines.sort_by_key(|(_, weight)| std::cmp::Reverse((weight.bytes, weight.znodes)));
    lines.push((root, total));
    for (path, Weight { bytes, znodes }) in lines {
        let json = || json!({ "path": path, "bytes": bytes, "znodes": znodes });
        shell.output.show(json, || format!("{bytes}\t{znodes}\t{path}"))?;
    }
    walk.finish()
}

/// Counts what lies below each znode: a walk comes to parents first, so that counts are added up from its end.
pub(crate) async fn big_family(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let root = shell.path(arguments.at(0))?;
    let most = arguments.number_at(1)?.unwrap_or(10);
    let client = shell.client()?;
    let mut walk = Walk::new(&client, &root, usize::MAX);
    let mut families: Vec<(String, u64)> = Vec::new();
    // Places of the ancestors of the znode that was visited last.
    let mut ancestors: Vec<usize> = Vec::new();
    while let Some(Visited { path, depth, .. }) = walk.next().await? {
        ancestors.truncate(depth);
        ancestors.iter().for_each(|&place| families[place].1 += 1);
        ancestors.push(families.len());
        families.push((path, 0));
    }
    families.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (path, count) in families.into_iter().take(most) {
        shell.output.show(|| json!({ "path": path, "descendants": count }), || format!("{path}\t{count}"))?;
    }
    walk.finish()
}

pub(crate) async fn super_nodes(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let threshold: i32 = arguments.number_at(0)?.expect("the table wants one");
    let root = shell.path(arguments.at(1))?;
    let client = shell.client()?;
    let mut walk = Walk::new(&client, &root, usize::MAX);
    while let Some(Visited { path, stat, .. }) = walk.next().await? {
        let Some(children) = stat.map(|stat| stat.num_children).filter(|count| *count >= threshold) else {
            continue;
        };
        shell
            .output
            .show(|| json!({ "path": path, "num_children": children }), || format!("{path}\t{children}"))?;
    }
    walk.finish()
}

pub(crate) async fn count(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let root = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let mut walk = Walk::new(&client, &root, usize::MAX);
    let mut count = 0_u64;
    while let Some(visited) = walk.next().await? {
        count += u64::from(visited.depth > 0);
    }
    shell.output.show(|| json!(count), || count.to_string())?;
    walk.finish()
}
