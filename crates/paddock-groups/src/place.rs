//! Places of requests: which group answers one, or what else has to be done for it.

use std::collections::BTreeSet;

use paddock_proto::{Dialect, OpCode, Read, Request, SetWatches, WatchRequest, Write, Zxid};
use paddock_tree::{Command, SplitPoints, for_each_path, is_statistics};

use crate::view::Groups;

/// Place of a request among the groups of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPlace {
    /// One group, by a map that became what it is with this zxid.
    One { group: u32, map: Zxid },
    /// All groups answer together.
    All,
    /// A write of several groups.
    Several,
    /// All groups are asked how far they have come.
    Sync,
    /// A znode is on its way from one group to another: the request waits.
    OnTheWay,
}

impl RequestPlace {
    pub(crate) const HOME: RequestPlace = RequestPlace::One { group: 0, map: Zxid(0) };

    fn of_path(points: &SplitPoints, path: &str) -> RequestPlace {
        if points.is_leaving(path) {
            return RequestPlace::OnTheWay;
        }
        let (group, map) = points.place_of(path);
        RequestPlace::One { group, map }
    }

    /// The place of what is asked in both places together; `otherwise` if they differ.
    fn with(self, other: RequestPlace, otherwise: RequestPlace) -> RequestPlace {
        match (self, other) {
            (RequestPlace::OnTheWay, _) | (_, RequestPlace::OnTheWay) => RequestPlace::OnTheWay,
            (RequestPlace::One { group, map }, RequestPlace::One { group: same, map: later })
                if group == same =>
            {
                RequestPlace::One { group, map: map.max(later) }
            }
            _ => otherwise,
        }
    }

    /// Place of a write, which is encoded as a command.
    pub(crate) fn of_write(groups: &Groups<'_>, command: &[u8]) -> RequestPlace {
        let Ok((op, body)) = Command::request(command) else { return RequestPlace::HOME };
        // What cannot be read is refused by the group that gets it.
        let Ok(write) = Write::decode(op, body) else { return RequestPlace::HOME };
        let mut place: Option<RequestPlace> = None;
        for_each_path(&write, &mut |path| {
            let own = RequestPlace::of_path(groups.points(), path);
            place = Some(place.map_or(own, |place| place.with(own, RequestPlace::Several)));
        });
        place.unwrap_or(RequestPlace::HOME)
    }

    /// Place of a request that changes nothing.
    pub(crate) fn of_read(groups: &Groups<'_>, op: OpCode, body: &[u8], dialect: Dialect) -> RequestPlace {
        match Request::decode(op, body, dialect) {
            Ok(Request::Sync { .. }) => RequestPlace::Sync,
            Ok(Request::Read(read)) => RequestPlace::of_one_read(groups, &read),
            Ok(Request::Watch(WatchRequest::Set(_))) => RequestPlace::All,
            Ok(Request::Watch(WatchRequest::Add { path, .. })) if groups.points().are_spread_below(path) => {
                RequestPlace::All
            }
            Ok(Request::Watch(WatchRequest::Add { path, .. })) => {
                RequestPlace::of_path(groups.points(), path)
            }
            _ => RequestPlace::HOME,
        }
    }

    fn of_one_read(groups: &Groups<'_>, read: &Read<'_>) -> RequestPlace {
        let points = groups.points();
        match read {
            Read::GetEphemerals { .. } => RequestPlace::All,
            // Each group has its own.
            Read::GetData { path, .. } if is_statistics(path) && groups.know_quotas() => RequestPlace::All,
            Read::MultiRead(reads) => {
                let places = reads.iter().map(|read| RequestPlace::of_one_read(groups, read));
                places
                    .reduce(|place, other| place.with(other, RequestPlace::All))
                    .unwrap_or(RequestPlace::HOME)
            }
            Read::GetAllChildrenNumber { path } | Read::ListRecursive { path, .. } => {
                if points.are_spread_below(path) {
                    RequestPlace::All
                } else {
                    RequestPlace::of_path(points, path)
                }
            }
            Read::Exists { path, .. }
            | Read::GetData { path, .. }
            | Read::GetAcl { path }
            | Read::GetChildren { path, .. }
            | Read::GetChildren2 { path, .. }
            | Read::FilteredList { path, .. }
            | Read::FilteredListWithStatsAndData { path, .. } => {
                let is_spread = points.get(path).is_some_and(|point| !point.slots().is_home());
                if is_spread { RequestPlace::All } else { RequestPlace::of_path(points, path) }
            }
        }
    }
}

/// Groups in which something can happen that the watches of a request tell of.
pub(crate) fn watched_groups(
    groups: &Groups<'_>,
    op: OpCode,
    body: &[u8],
    dialect: Dialect,
) -> BTreeSet<u32> {
    let points = groups.points();
    let below = |path: &&str| {
        if points.are_spread_below(path) { RequestPlace::All } else { RequestPlace::of_path(points, path) }
    };
    let places: Vec<RequestPlace> = match Request::decode(op, body, dialect) {
        Ok(Request::Watch(WatchRequest::Set(set))) => {
            let SetWatches { data, exist, child, persistent, persistent_recursive, .. } = set;
            let on_znodes = data.iter().chain(&exist).map(|path| RequestPlace::of_path(points, path));
            on_znodes.chain(child.iter().chain(&persistent).chain(&persistent_recursive).map(below)).collect()
        }
        _ if sets_watch(op, body, dialect) => vec![RequestPlace::of_read(groups, op, body, dialect)],
        _ => Vec::new(),
    };
    let mut found = BTreeSet::new();
    for place in places {
        match place {
            RequestPlace::One { group, .. } => drop(found.insert(group)),
            _ => found.extend(groups.numbers()),
        }
    }
    found
}

/// Znodes of which a request watches the children.
pub(crate) fn watched_lists(op: OpCode, body: &[u8], dialect: Dialect) -> Vec<String> {
    let paths: Vec<&str> = match Request::decode(op, body, dialect) {
        Ok(Request::Read(read)) => watched_list(&read).into_iter().collect(),
        Ok(Request::Watch(WatchRequest::Set(watches))) => watches.child.to_vec(),
        _ => Vec::new(),
    };
    paths.into_iter().map(str::to_owned).collect()
}

/// The znode whose children a read watches.
pub(crate) fn watched_list<'a>(read: &Read<'a>) -> Option<&'a str> {
    match read {
        Read::GetChildren { path, watch: true }
        | Read::GetChildren2 { path, watch: true }
        | Read::FilteredList { path, watch: true, .. }
        | Read::FilteredListWithStatsAndData { path, watch: true, .. } => Some(path),
        _ => None,
    }
}

/// True if a request sets a watch.
pub(crate) fn sets_watch(op: OpCode, body: &[u8], dialect: Dialect) -> bool {
    match Request::decode(op, body, dialect) {
        Ok(Request::Read(
            Read::Exists { watch, .. }
            | Read::GetData { watch, .. }
            | Read::GetChildren { watch, .. }
            | Read::GetChildren2 { watch, .. }
            | Read::FilteredList { watch, .. }
            | Read::FilteredListWithStatsAndData { watch, .. },
        )) => watch,
        Ok(Request::Watch(WatchRequest::Set(_) | WatchRequest::Add { .. })) => true,
        _ => false,
    }
}
