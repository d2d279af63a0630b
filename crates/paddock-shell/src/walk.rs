//! A walk over a subtree, parents first and children by name, with requests for the next znodes on their way.

use paddock_client::{Client, Error, ErrorCode, Pending, Stat};

use crate::failure::ShellFailure;
use crate::paths;

/// Znodes that are asked for before their turn.
const AHEAD: usize = 64;

pub(crate) struct Walk<'a> {
    client: &'a Client,
    root: String,
    /// Znodes below this many steps are not asked for.
    depth_max: usize,
    /// Znodes to come, the next one last.
    waiting: Vec<Visit>,
    /// Paths that the session may not read.
    unreadable: Vec<String>,
}

struct Visit {
    path: String,
    depth: usize,
    asked: Option<Pending<paddock_client::Children>>,
}

/// A znode on the way.
pub(crate) struct Visited {
    pub path: String,
    /// Steps below the root of the walk.
    pub depth: usize,
    /// None if the session may not read it.
    pub stat: Option<Stat>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(client: &'a Client, root: &str, depth_max: usize) -> Walk<'a> {
        let waiting = vec![Visit { path: root.to_owned(), depth: 0, asked: None }];
        Walk { client, root: root.to_owned(), depth_max, waiting, unreadable: Vec::new() }
    }

    /// The next znode. One that has gone since its parent was asked is passed over.
    pub(crate) async fn next(&mut self) -> Result<Option<Visited>, ShellFailure> {
        loop {
            let client = self.client;
            for waiting in self.waiting.iter_mut().rev().take(AHEAD) {
                waiting.asked.get_or_insert_with(|| client.get_children2(&waiting.path));
            }
            let Some(Visit { path, depth, asked }) = self.waiting.pop() else { return Ok(None) };
            match asked.expect("the next znode was asked for").await {
                Ok(children) => {
                    if depth < self.depth_max {
                        self.push(&path, depth, children.names);
                    }
                    return Ok(Some(Visited { path, depth, stat: Some(children.stat) }));
                }
                Err(Error::Refused { code: ErrorCode::NoNode, .. }) if path != self.root => {}
                Err(Error::Refused { code: ErrorCode::NoAuth, .. }) if path != self.root => {
                    self.unreadable.push(path.clone());
                    return Ok(Some(Visited { path, depth, stat: None }));
                }
                Err(error) => return Err(ShellFailure::at(&path)(error)),
            }
        }
    }

    fn push(&mut self, parent: &str, depth: usize, mut names: Vec<String>) {
        names.sort_unstable_by(|a, b| b.cmp(a));
        let waiting =
            |name: String| Visit { path: paths::child(parent, &name), depth: depth + 1, asked: None };
        self.waiting.extend(names.into_iter().map(waiting));
    }

    /// Fails if something could not be read: what was printed is not all.
    pub(crate) fn finish(self) -> Result<(), ShellFailure> {
        match self.unreadable.as_slice() {
            [] => Ok(()),
            [first, rest @ ..] => {
                let others =
                    if rest.is_empty() { String::new() } else { format!(" and {} others", rest.len()) };
                Err(ShellFailure::Refused(format!(
                    "{first}{others} may not be read: show an identity with addauth, or --auth"
                )))
            }
        }
    }

    /// Every path of the walk.
    pub(crate) async fn paths(client: &Client, root: &str) -> Result<Vec<String>, ShellFailure> {
        let mut walk = Walk::new(client, root, usize::MAX);
        let mut paths = Vec::new();
        while let Some(visited) = walk.next().await? {
            paths.push(visited.path);
        }
        walk.finish()?;
        Ok(paths)
    }
}
