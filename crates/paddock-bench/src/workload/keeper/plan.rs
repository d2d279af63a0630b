//! A file's requests with all that is known before the run: which paths there are, and which sets of paths grow.
//!
//! Paths come from *pools*. A pool has a fixed part, the same for all lanes, and sets that a lane fills with what it
//! creates. A lane sees only its own creations, and only they are removed: as its requests are carried out in order, it
//! never asks for a znode that is not there, however many requests it has in flight.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fastrand::Rng;

use super::requests::{PathSource, Paths, RequestKind, Single, Weighted};
use super::setup::{Expansion, SetupNode};
use super::values::{Size, Text};

#[derive(Debug)]
pub(super) struct KeeperPlan {
    pub(super) requests: Choices<PlannedRequest>,
    /// Number of sets that each lane fills.
    pub(super) sets: usize,
    /// Names that setup has given to siblings of what is created.
    pub(super) taken: HashSet<String>,
    /// Znodes that setup makes directly below the root.
    pub(super) roots: Vec<String>,
}

/// Entries of which one is chosen by weight.
#[derive(Debug)]
pub(super) struct Choices<T> {
    pub(super) entries: Vec<(u64, T)>,
}

#[derive(Debug)]
pub(super) enum PlannedRequest {
    Single(Leaf),
    Multi { size: Option<Size>, reads: bool, parts: Choices<Leaf> },
}

#[derive(Debug)]
pub(super) enum Leaf {
    Create { parents: Pool, name_length: Size, data: Text, remove_factor: f64, into: Option<usize> },
    Set { paths: Pool, data: Text },
    Get { paths: Pool, watch: f64 },
    List { paths: Pool, watch: f64 },
}

#[derive(Debug)]
pub(super) struct Pool {
    parts: Vec<PoolPart>,
}

#[derive(Debug)]
struct PoolPart {
    fixed: Arc<[String]>,
    /// The set that is behind the fixed paths.
    set: Option<usize>,
}

impl KeeperPlan {
    pub(super) fn new(nodes: &[SetupNode], requests: &[Weighted<RequestKind>], seed: u64) -> KeeperPlan {
        let singles: Vec<&Single> = requests.iter().flat_map(|request| request.request.singles()).collect();
        let mut maker = Maker::new(nodes, &singles, seed);
        let entries = requests.iter().map(|request| (request.weight, maker.step(&request.request))).collect();
        let taken = taken_names(nodes, &singles, &maker.fixed, seed);
        KeeperPlan { requests: Choices { entries }, sets: maker.sets, taken, roots: maker.roots }
    }
}

impl<T> Choices<T> {
    /// One of the entries that are ready, or nothing if none is.
    pub(super) fn choose(&self, rng: &mut Rng, ready: impl Fn(&T) -> bool) -> Option<&T> {
        let ready = || self.entries.iter().filter(|(_, entry)| ready(entry));
        let sum: u64 = ready().map(|(weight, _)| weight).sum();
        if sum == 0 {
            return None;
        }
        let mut left = rng.u64(0..sum);
        for (weight, entry) in ready() {
            match left.checked_sub(*weight) {
                None => return Some(entry),
                Some(rest) => left = rest,
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

impl Pool {
    pub(super) fn is_empty(&self, made: &[Vec<String>]) -> bool {
        self.parts.iter().all(|part| part.len(made) == 0)
    }

    /// Any of the paths; the pool must not be empty.
    pub(super) fn draw<'a>(&'a self, made: &'a [Vec<String>], rng: &mut Rng) -> &'a str {
        let mut index = rng.usize(0..self.parts.iter().map(|part| part.len(made)).sum());
        for part in &self.parts {
            match index.checked_sub(part.len(made)) {
                None => return part.get(index, made),
                Some(rest) => index = rest,
            }
        }
        unreachable!("the index is below the sum of the lengths")
    }
}

impl PoolPart {
    fn len(&self, made: &[Vec<String>]) -> usize {
        self.fixed.len() + self.set.map_or(0, |set| made[set].len())
    }

    fn get<'a>(&'a self, index: usize, made: &'a [Vec<String>]) -> &'a str {
        match self.fixed.get(index) {
            Some(path) => path,
            None => {
                &made[self.set.expect("an index beyond the fixed paths is in the set")]
                    [index - self.fixed.len()]
            }
        }
    }
}

/// Turns what the file says into what lanes need.
struct Maker {
    fixed: FixedPaths,
    /// The sets that are read, by what they are called in the file.
    shared: HashMap<Paths, usize>,
    sets: usize,
    roots: Vec<String>,
}

impl Maker {
    fn new(nodes: &[SetupNode], singles: &[&Single], seed: u64) -> Maker {
        let (fixed, roots) = fixed_paths(nodes, singles, seed);
        let mut maker = Maker { fixed, shared: HashMap::new(), sets: 0, roots };
        for output in singles.iter().filter_map(|single| single.output()) {
            if singles.iter().any(|single| uses(single, &output)) && !maker.shared.contains_key(&output) {
                let set = maker.new_set();
                maker.shared.insert(output, set);
            }
        }
        maker
    }

    fn new_set(&mut self) -> usize {
        self.sets += 1;
        self.sets - 1
    }

    fn step(&mut self, request: &RequestKind) -> PlannedRequest {
        match request {
            RequestKind::Single(single) => PlannedRequest::Single(self.leaf(single)),
            RequestKind::Multi { size, parts } => PlannedRequest::Multi {
                size: *size,
                reads: parts.iter().all(|part| part.request.is_read()),
                parts: Choices {
                    entries: parts.iter().map(|part| (part.weight, self.leaf(&part.request))).collect(),
                },
            },
        }
    }

    fn leaf(&mut self, single: &Single) -> Leaf {
        match single {
            Single::Create { parents, name_length, data, remove_factor, .. } => Leaf::Create {
                // Only what setup made: a removal must never meet a znode that got children.
                parents: self.pool(parents, false),
                name_length: *name_length,
                data: data.clone(),
                remove_factor: *remove_factor,
                into: self.set_for(single),
            },
            Single::Set { paths, data } => Leaf::Set { paths: self.pool(paths, true), data: data.clone() },
            Single::Get { paths, watch_probability } => {
                Leaf::Get { paths: self.pool(paths, true), watch: *watch_probability }
            }
            Single::List { paths, watch_probability } => {
                Leaf::List { paths: self.pool(paths, true), watch: *watch_probability }
            }
        }
    }

    fn set_for(&mut self, create: &Single) -> Option<usize> {
        match create.output() {
            Some(output) => self.shared.get(&output).copied(),
            None if removes(create) => Some(self.new_set()),
            None => None,
        }
    }

    fn pool(&self, sources: &[PathSource], with_made: bool) -> Pool {
        let part = |PathSource { paths, .. }: &PathSource| PoolPart {
            fixed: self.fixed[paths].clone(),
            set: self.shared.get(paths).copied().filter(|_| with_made),
        };
        Pool { parts: sources.iter().map(part).collect() }
    }
}

fn removes(single: &Single) -> bool {
    matches!(single, Single::Create { remove_factor, .. } if *remove_factor > 0.0)
}

/// True if a request needs to know the contents of a set.
fn uses(single: &Single, set: &Paths) -> bool {
    match single {
        Single::Create { .. } => removes(single) && single.output().as_ref() == Some(set),
        _ => single.sources().iter().any(|source| source.paths == *set),
    }
}

/// For each source of the requests, the paths that it has before the run.
type FixedPaths = HashMap<Paths, Arc<[String]>>;

fn fixed_paths(nodes: &[SetupNode], singles: &[&Single], seed: u64) -> (FixedPaths, Vec<String>) {
    let (mut paths, mut roots) = (HashMap::new(), Vec::new());
    for PathSource { paths: source, .. } in singles.iter().flat_map(|single| single.sources()) {
        let named = match source {
            Paths::Is(path) => vec![path.clone()],
            Paths::ChildrenOf(_) | Paths::Tagged(_) => Vec::new(),
        };
        paths.insert(source.clone(), named);
    }
    for (node, znode) in Expansion::new(nodes, seed) {
        let (parent, _) = paddock_proto::parent_and_name(&znode.path).expect("setup never makes the root");
        if parent == "/" {
            roots.push(znode.path.clone());
        }
        let tags = node.tag.iter().map(|tag| Paths::Tagged(tag.clone()));
        for set in tags.chain([Paths::ChildrenOf(parent.to_string())]) {
            if let Some(members) = paths.get_mut(&set) {
                members.push(znode.path.clone());
            }
        }
    }
    (paths.into_iter().map(|(source, members)| (source, members.into())).collect(), roots)
}

/// The names below all parents of creates that setup uses already.
fn taken_names(nodes: &[SetupNode], singles: &[&Single], fixed: &FixedPaths, seed: u64) -> HashSet<String> {
    let creates = singles.iter().filter(|single| matches!(single, Single::Create { .. }));
    let parents: HashSet<&str> = creates
        .flat_map(|create| create.sources())
        .flat_map(|source| fixed[&source.paths].iter().map(String::as_str))
        .collect();
    if parents.is_empty() {
        return HashSet::new();
    }
    let znodes = Expansion::new(nodes, seed).map(|(_, znode)| znode.path);
    znodes
        .filter_map(|path| {
            let (parent, name) = paddock_proto::parent_and_name(&path)?;
            parents.contains(parent).then(|| name.to_string())
        })
        .collect()
}
