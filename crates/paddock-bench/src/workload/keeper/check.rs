//! The check that the requests of a file can find the znodes that they need.

use std::path::Path;

use super::requests::{PathSource, Paths, RequestKind, Single, Weighted};
use super::setup::{self, SetupNode};
use crate::BenchError;

/// `line` is where the requests begin.
pub(super) fn check(
    file: &Path,
    line: usize,
    nodes: &[SetupNode],
    requests: &[Weighted<RequestKind>],
) -> Result<(), BenchError> {
    let singles: Vec<&Single> = requests.iter().flat_map(|request| request.request.singles()).collect();
    let outputs: Vec<Paths> = singles.iter().filter_map(|single| single.output()).collect();
    for single in &singles {
        for source in single.sources() {
            let found =
                is_set_up(nodes, &source.paths) || (!is_create(single) && outputs.contains(&source.paths));
            if !found {
                let message = missing(&source.paths, is_create(single));
                return Err(BenchError::InFile { file: file.to_path_buf(), line: source.line.0, message });
            }
        }
    }
    if requests.iter().any(|request| request.weight > 0 && can_be_first(nodes, &request.request)) {
        return Ok(());
    }
    let message = "no request can be the first: each needs a znode that another one creates".to_string();
    Err(BenchError::InFile { file: file.to_path_buf(), line, message })
}

/// True if there are such paths before the first request. What the file names itself is taken to be there.
fn is_set_up(nodes: &[SetupNode], paths: &Paths) -> bool {
    match paths {
        Paths::Is(_) => true,
        Paths::ChildrenOf(parent) => setup::children(nodes, parent)
            .is_some_and(|children| children.iter().any(|child| child.repeat > 0)),
        Paths::Tagged(tag) => setup::has_tag(nodes, tag),
    }
}

fn can_be_first(nodes: &[SetupNode], request: &RequestKind) -> bool {
    let ready =
        |single: &Single| single.sources().iter().any(|PathSource { paths, .. }| is_set_up(nodes, paths));
    match request {
        RequestKind::Single(single) => ready(single),
        RequestKind::Multi { size, parts } => {
            parts.iter().any(|part| (part.weight > 0 || size.is_none()) && ready(&part.request))
        }
    }
}

fn is_create(single: &Single) -> bool {
    matches!(single, Single::Create { .. })
}

fn missing(paths: &Paths, for_create: bool) -> String {
    let what = match paths {
        Paths::Is(path) => format!("`{path}`"),
        Paths::ChildrenOf(parent) => format!("anything below `{parent}`"),
        Paths::Tagged(tag) => format!("anything with the tag `{tag}`"),
    };
    // A parent that a create made could be removed while it has children.
    if for_create {
        format!("`setup` does not create {what}, and a create needs parents that it does")
    } else {
        format!("neither `setup` nor a create makes {what}")
    }
}
