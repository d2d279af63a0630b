//! A walk over the tree for what is large in it. It reads Stats and lists alone, never data.

use std::time::{Duration, Instant};

use paddock_client::{Children, Client, Error, ErrorCode, Pending};

use super::facts::{DirectoryFacts, TreeFacts};

/// Znodes that are asked for at a time.
const ON_THEIR_WAY: usize = 256;
/// Paths of each kind that are kept.
const KEPT: usize = 10;
/// A znode with fewer children is not kept.
const CHILDREN_MIN: u64 = 10_000;
/// Data of fewer bytes is not kept.
const VALUE_BYTES_MIN: u64 = 100 << 10;

/// Walks for at most this time.
pub(super) async fn walk(client: &Client, within: Duration) -> Result<TreeFacts, Error> {
    let began = Instant::now();
    let mut facts = TreeFacts::default();
    let mut waiting = vec!["/".to_owned()];
    let mut asked: std::collections::VecDeque<(String, Pending<Children>)> = Default::default();
    loop {
        let room = ON_THEIR_WAY - asked.len();
        for path in waiting.drain(waiting.len().saturating_sub(room)..) {
            let pending = client.get_children2(&path);
            asked.push_back((path, pending));
        }
        let Some((path, pending)) = asked.pop_front() else { break };
        match pending.await {
            Ok(children) => {
                note(&mut facts, &path, &children);
                let parent = if path == "/" { "" } else { &path };
                waiting.extend(children.names.iter().map(|name| format!("{parent}/{name}")));
            }
            // The znode has gone meanwhile.
            Err(Error::Refused { code: ErrorCode::NoNode, .. }) => {}
            Err(Error::Refused { code: ErrorCode::NoAuth, .. }) => facts.unreadable += 1,
            Err(error) => return Err(error),
        }
        if began.elapsed() > within {
            facts.is_partial = true;
            break;
        }
    }
    facts.directories.sort_by_key(|directory| std::cmp::Reverse(directory.listing_bytes));
    facts.values.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    facts.directories.truncate(KEPT);
    facts.values.truncate(KEPT);
    Ok(facts)
}

fn note(facts: &mut TreeFacts, path: &str, found: &Children) {
    facts.znodes += 1;
    let (children, bytes) = (found.names.len() as u64, found.stat.data_length.max(0) as u64);
    // Each name has its length in front of it.
    let listing_bytes = found.names.iter().map(|name| name.len() as u64 + 4).sum();
    if children >= CHILDREN_MIN || listing_bytes >= VALUE_BYTES_MIN {
        facts.directories.push(DirectoryFacts { path: path.to_owned(), children, listing_bytes });
    }
    if bytes >= VALUE_BYTES_MIN {
        facts.values.push((path.to_owned(), bytes));
    }
}
