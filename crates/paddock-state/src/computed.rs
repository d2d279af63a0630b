//! `/keeper`: what ClickHouse asks its keeper about itself, computed when it is read.
//!
//! Nothing of it is in the tree, so no list of the root shows it. What has no answer here is asked of the tree, where
//! no client can create it.

use std::borrow::Cow;
use std::fmt::Write as _;

use paddock_proto::jute::Writer;
use paddock_proto::{Bracketed, ErrorCode, MemberRole, Read, Stat};
use paddock_tree::{COMPUTED, Tree};

/// A bit for each of ClickHouse's feature flags from the highest on: filtered lists, multi reads, checks of absence,
/// creates if not there, recursive removals, watches in multi reads, checks of stats, persistent watches; creates with
/// stats, removals that may fail, lists with stats and data, recursive lists, TTLs, this limit of requests.
const FEATURE_FLAGS: [u8; 2] = [0b1111_1111, 0b1111_1100];
/// ClickHouse's names of the feature flags, in their order.
const FEATURES: [&str; 14] = [
    "FILTERED_LIST",
    "MULTI_READ",
    "CHECK_NOT_EXISTS",
    "CREATE_IF_NOT_EXISTS",
    "REMOVE_RECURSIVE",
    "MULTI_WATCHES",
    "CHECK_STAT",
    "PERSISTENT_WATCHES",
    "CREATE_WITH_STATS",
    "TRY_REMOVE",
    "LIST_WITH_STAT_AND_DATA",
    "GET_CHILDREN_RECURSIVE",
    "TTL",
    "MAX_REQUEST_SIZE",
];
/// For clients from before the flags: they may read many znodes at once.
pub const API_VERSION: &str = "2";
/// ClickHouse takes a smaller limit for an error.
const REQUEST_BYTES_MIN: i32 = 1024;
const NAMES: [&str; 5] = ["api_version", "availability_zone", "config", "feature_flags", "max_request_size"];

/// ClickHouse's names of its feature flags, and whether there is the feature.
pub fn feature_flags() -> impl Iterator<Item = (&'static str, bool)> {
    let is_set = |bit: usize| FEATURE_FLAGS[bit / 8] & (0x80 >> (bit % 8)) != 0;
    FEATURES.iter().enumerate().map(move |(bit, name)| (*name, is_set(bit)))
}

/// Facts that a member is configured to tell of itself.
#[derive(Clone, Debug, Default)]
pub struct MemberFacts {
    /// The largest request that it takes.
    pub request_bytes_max: Option<i32>,
    /// Place where it stands, so that clients can prefer members that are near.
    pub availability_zone: Option<String>,
}

/// Appends the body of the reply, if the read is of a computed znode.
pub(crate) fn read(
    read: &Read<'_>,
    tree: &Tree,
    facts: &MemberFacts,
    out: &mut Vec<u8>,
) -> Option<Result<(), ErrorCode>> {
    let (Read::Exists { path, .. }
    | Read::GetData { path, .. }
    | Read::GetChildren { path, .. }
    | Read::GetChildren2 { path, .. }
    | Read::FilteredList { path, .. }
    | Read::FilteredListWithStatsAndData { path, .. }) = read
    else {
        return None;
    };
    let name = path.strip_prefix(COMPUTED)?;
    let nodes = Nodes { tree, facts };
    let (data, children) = match name.strip_prefix('/') {
        Some(name) => (nodes.data(name)?, Vec::new()),
        None if name.is_empty() => (Cow::default(), nodes.children()),
        None => return None,
    };
    let stat = stat(&data, children.len());
    match read {
        Read::GetData { .. } => out.put_buffer(Some(&data)),
        Read::Exists { .. } => {}
        _ => {
            out.put_count(children.len());
            children.iter().for_each(|(name, _)| out.put_string(name));
        }
    }
    if !matches!(read, Read::GetChildren { .. }) {
        stat.encode(out);
    }
    if let Read::FilteredListWithStatsAndData { with_stats, with_data, .. } = *read {
        let all = &children[..];
        let (stats, data) = (if with_stats { all } else { &[] }, if with_data { all } else { &[] });
        out.put_count(stats.len());
        stats.iter().for_each(|(_, data)| self::stat(data, 0).encode(out));
        out.put_count(data.len());
        data.iter().for_each(|(_, data)| out.put_buffer(Some(data)));
    }
    Some(Ok(()))
}

struct Nodes<'a> {
    tree: &'a Tree,
    facts: &'a MemberFacts,
}

impl Nodes<'_> {
    fn data(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        match name {
            "api_version" => Some(API_VERSION.as_bytes().into()),
            "availability_zone" => Some(self.facts.availability_zone.clone()?.into_bytes().into()),
            "config" => Some(config(self.tree).into_bytes().into()),
            "feature_flags" => Some(FEATURE_FLAGS[..].into()),
            "max_request_size" => {
                let bytes = self.facts.request_bytes_max.filter(|bytes| *bytes >= REQUEST_BYTES_MIN)?;
                Some(bytes.to_string().into_bytes().into())
            }
            _ => None,
        }
    }

    fn children(&self) -> Vec<(&'static str, Cow<'static, [u8]>)> {
        NAMES.iter().filter_map(|name| Some((*name, self.data(name)?))).collect()
    }
}

/// The members in ClickHouse Keeper's form; nothing for a member alone.
fn config(tree: &Tree) -> String {
    let mut text = String::new();
    for member in tree.ensemble().iter().flat_map(|ensemble| &ensemble.members) {
        let role = match member.role {
            MemberRole::Participant => "participant",
            MemberRole::Observer => "learner",
        };
        let _ = writeln!(
            text,
            "server.{}={}:{};{role};1",
            member.id,
            Bracketed(&member.host),
            member.quorum_port
        );
    }
    text
}

/// No client has made it, at no time.
fn stat(data: &[u8], children: usize) -> Stat {
    Stat { data_length: data.len() as i32, num_children: children as i32, ..Stat::default() }
}
