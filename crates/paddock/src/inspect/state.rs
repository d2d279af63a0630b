//! `paddock inspect state`: what a member would begin with, and what weighs most in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use paddock_config::printable;
use paddock_member::{DirectoryLook, inspect_directory, read_snapshot};
use paddock_replica::{Cluster, EntryPart, apply_and_tell, member_number};
use paddock_storage::OsDisk;
use paddock_tree::{ItemStream, SplitPoint, Tree};
use serde_json::{Map, Value, json};

use super::common::{InspectFailure, lock, print, unknown};
use super::{foreign, snapshot};
use crate::moving::MovingFailure;

/// Look into the state after all that is there
///
/// Everything is read and verified: identity, every snapshot, the log, and that they go together. A directory that a start would refuse is
/// refused here, with the same words.
#[derive(Debug, clap::Args)]
pub(super) struct StateArgs {
    /// Data directory of Paddock, ZooKeeper or ClickHouse Keeper (its snapshots), or a snapshot file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Directory of the transaction log, if it is another one
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Number of the heaviest paths that are shown
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
    /// Raft group to look into, if the member has several; 0 is the home group
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    group: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &StateArgs) -> Result<(), MovingFailure> {
    if !args.path.is_dir() {
        let tree = match foreign::read_snapshot(&args.path)? {
            Some(found) => found.tree,
            None => read_snapshot(&OsDisk, &args.path)?,
        };
        return Ok(show(args, StateFacts::default(), &tree)?);
    }
    let _lock = lock(&args.path)?;
    if paddock_member::is_data_dir(&OsDisk, &args.path) {
        let mut look = inspect_directory(&OsDisk, &args.path, args.log_dir.as_deref(), args.group, false)?;
        let mut account = StateFacts::of(&look);
        let DirectoryLook { log, base, tree, .. } = &mut look;
        log.for_each_entry(&OsDisk, &mut |entry| {
            if entry.index > base.0 {
                apply_and_tell(tree, entry, &mut |_, part| {
                    if let EntryPart::Membership(text) = part {
                        account.put("last change of members", json!(printable(text)));
                    }
                });
            }
        })?;
        show(args, account, &look.tree)?;
        let damaged = look.snapshots.iter().filter(|file| file.content.is_err()).count();
        return match damaged {
            0 => Ok(()),
            _ => Err(InspectFailure::DamagedSnapshots { damaged, count: look.snapshots.len() }.into()),
        };
    }
    match foreign::read(&args.path, args.log_dir.as_deref())? {
        Some(found) => {
            let mut account = StateFacts::default();
            account.put("files", json!(found.system));
            found.account().into_iter().for_each(|(name, value)| account.put(name, value));
            show(args, account, &found.tree)?;
            Ok(found.judge()?)
        }
        None => Err(unknown(&args.path)),
    }
}

/// Facts by name, in the order in which they are printed.
#[derive(Default)]
struct StateFacts {
    facts: Vec<(&'static str, Value)>,
}

impl StateFacts {
    fn of(look: &DirectoryLook) -> StateFacts {
        let mut account = StateFacts::default();
        account.put("member", json!(look.identity.member));
        let cluster = match look.identity.cluster {
            Cluster::None => Value::Null,
            Cluster::Proposed(id) => json!(format!("{id:016x} (proposed)")),
            Cluster::Known(id) => json!(format!("{id:016x}")),
        };
        account.put("ensemble", cluster);
        let hard_state = &look.log.hard_state;
        account.put("term", json!(hard_state.term));
        account.put("vote", json!(member_number(hard_state.vote)));
        account.put("committed at least", json!(hard_state.commit));
        account.put("incarnation", json!(hard_state.incarnation));
        let newest = look.snapshots.iter().rev().find_map(|file| file.content.as_ref().ok());
        account.put("snapshot's entry", json!(newest.map(|content| content.meta.index.0)));
        if let Some(membership) = newest.and_then(|content| content.membership.as_ref()) {
            account.put("snapshot's members", json!(snapshot::in_words(membership)));
        }
        for file in look.snapshots.iter().filter_map(|file| file.content.as_ref().err()) {
            account.put("damaged snapshot", json!(paddock_tls::with_causes(file)));
        }
        account.put("last entry", json!(look.log.last().unwrap_or(look.base).0));
        account.put("log's segments", json!(look.log.files.segments.len()));
        account.put("log's bytes", json!(look.log.files.segments.iter().map(|(_, end)| end).sum::<u64>()));
        account.put("log ends in an unfinished write", json!(look.log.files.torn));
        account
    }

    fn put(&mut self, name: &'static str, value: Value) {
        self.facts.retain(|(known, _)| *known != name || name == "damaged snapshot");
        self.facts.push((name, value));
    }
}

fn show(args: &StateArgs, mut account: StateFacts, tree: &Tree) -> Result<(), InspectFailure> {
    account.put("zxid", json!(format!("0x{:x}", tree.zxid().0)));
    account.put("znodes", json!(tree.node_count()));
    account.put("ephemerals", json!(tree.ephemeral_count()));
    account.put("sessions", json!(tree.sessions().count()));
    account.put("bytes of paths and data", json!(tree.data_bytes()));
    if let Some(ensemble) = tree.ensemble() {
        account.put("configuration", json!(ensemble.text()));
    }
    if args.group > 0 {
        account.put("group", json!(args.group));
        account.put("items of its stream applied", json!(tree.received_items()));
    }
    if tree.groups().count() > 1 {
        account.put("groups", json!(tree.groups().count()));
        account.put("split points", split_points(tree));
        account.put("streams to groups", streams(tree));
    }
    let [by_bytes, by_size, by_children] = heaviest(tree, args.top);
    if args.json {
        let named = |(name, value): (&str, Value)| (name.replace(' ', "_").replace('\'', ""), value);
        let mut object: Map<String, Value> = Map::new();
        for (name, value) in account.facts {
            let (name, value) = named((name, value));
            match object.get_mut(&name) {
                Some(Value::Array(values)) => values.push(value),
                _ if name == "damaged_snapshot" => drop(object.insert(name, json!([value]))),
                _ => drop(object.insert(name, value)),
            }
        }
        let list = |paths: Vec<(u64, String)>| {
            paths.into_iter().map(|(weight, path)| json!([path, weight])).collect::<Vec<_>>()
        };
        object.insert("subtrees_by_bytes".to_owned(), list(by_bytes).into());
        object.insert("znodes_by_bytes".to_owned(), list(by_size).into());
        object.insert("znodes_by_children".to_owned(), list(by_children).into());
        return print(&Value::Object(object).to_string());
    }
    for (name, value) in account.facts {
        let text = match value {
            Value::Null => "none".to_owned(),
            Value::String(text) => text.trim_end().replace('\n', "\n                                  "),
            value => value.to_string(),
        };
        print(&format!("{name:<32}  {text}"))?;
    }
    for (title, paths) in [
        ("Subtrees with most bytes of data", by_bytes),
        ("Znodes with most bytes of data", by_size),
        ("Znodes with most children", by_children),
    ] {
        print(&format!("\n{title}"))?;
        for (weight, path) in paths {
            print(&format!("{weight:>14}  {}", printable(&path)))?;
        }
    }
    Ok(())
}

/// A line for each split point: its path, and its runs of slots with their groups.
fn split_points(tree: &Tree) -> Value {
    let line = |(path, point): (&str, &SplitPoint)| {
        let runs =
            point.slots().runs().map(|(first, last, group)| format!("{first}-{last} in group {group}"));
        let missing = if point.is_there() { "" } else { " (no such znode)" };
        format!("{}{missing}: slots {}\n", printable(path), runs.collect::<Vec<_>>().join(", "))
    };
    let lines: String = tree.split_points().iter().map(line).collect();
    if lines.is_empty() { Value::Null } else { json!(lines) }
}

/// A line for each group to which something was decided.
fn streams(tree: &Tree) -> Value {
    let line = |(group, stream): (u32, &ItemStream)| {
        format!("group {group}: {} items, {} acknowledged\n", stream.last(), stream.acknowledged())
    };
    let lines: String = tree.streams().iter().map(line).collect();
    if lines.is_empty() { Value::Null } else { json!(lines) }
}

/// The heaviest of some paths, bounded in number.
struct Heaviest {
    count: usize,
    heap: BinaryHeap<Reverse<(u64, Reverse<String>)>>,
}

impl Heaviest {
    fn of(count: usize) -> Heaviest {
        Heaviest { count, heap: BinaryHeap::new() }
    }

    fn put(&mut self, weight: u64, path: &str) {
        let is_light =
            self.heap.len() == self.count && self.heap.peek().is_none_or(|least| weight <= least.0.0);
        if weight == 0 || is_light {
            return;
        }
        self.heap.push(Reverse((weight, Reverse(path.to_owned()))));
        if self.heap.len() > self.count {
            self.heap.pop();
        }
    }

    fn sorted(self) -> Vec<(u64, String)> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|Reverse((weight, Reverse(path)))| (weight, path)).collect()
    }
}

/// Subtrees by bytes, znodes by bytes, and znodes by children. The walk shows parents before children, in the order of paths.
fn heaviest(tree: &Tree, count: usize) -> [Vec<(u64, String)>; 3] {
    let [mut by_bytes, mut by_size, mut by_children] = [(); 3].map(|()| Heaviest::of(count));
    // Subtrees on the way to the znode of the walk, with what they weigh so far.
    let mut open: Vec<(String, u64)> = Vec::new();
    let mut walk = tree.znodes();
    let mut close = |open: &mut Vec<(String, u64)>| {
        let (path, weight) = open.pop().expect("a subtree is open");
        by_bytes.put(weight, &path);
        if let Some((_, above)) = open.last_mut() {
            *above += weight;
        }
    };
    while let Some((path, znode)) = walk.next_znode() {
        let bytes = znode.data.map_or(0, <[u8]>::len) as u64;
        by_size.put(bytes, path);
        by_children.put(znode.children.into(), path);
        while open.last().is_some_and(|(above, _)| !paddock_proto::is_at_or_below(path, above)) {
            close(&mut open);
        }
        open.push((path.to_owned(), bytes));
    }
    while !open.is_empty() {
        close(&mut open);
    }
    [by_bytes.sorted(), by_size.sorted(), by_children.sorted()]
}
