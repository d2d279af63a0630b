//! Lists of sessions, ephemeral znodes and watches, which may be long: they are read in slices, and no request waits for more than one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use paddock_member::Clock as _;
use paddock_proto::SessionId;
use paddock_state::ConnId;
use paddock_tree::EphemeralCursor;

use crate::shared::Shared;

/// True for a path that the requester is told.
pub(crate) type Sees<'a> = &'a dyn Fn(&str) -> bool;

/// Sessions or ephemeral znodes that are read while the state is locked once.
const PER_SLICE: usize = 512;

/// Sessions that own ephemeral znodes, with those of their paths that are told, in order.
pub(crate) fn ephemerals(shared: &Shared, sees: Sees<'_>) -> BTreeMap<SessionId, Vec<String>> {
    let mut all: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
    let mut cursor = EphemeralCursor::default();
    loop {
        let slice = shared.state.read().tree().ephemerals_behind(&mut cursor, PER_SLICE);
        if slice.is_empty() {
            break;
        }
        for (session, path) in slice.into_iter().filter(|(_, path)| sees(path)) {
            all.entry(session).or_default().push(path);
        }
    }
    all.values_mut().for_each(|paths| paths.sort_unstable());
    all
}

/// Every session of the ensemble, by the time at which it expires unless it is heard again, in milliseconds of the monotonic clock
/// and rounded up to a tick. A member knows when its own clients were heard; sessions of other members stand where they would if
/// they had been heard just now.
pub(crate) fn sessions(shared: &Shared) -> BTreeMap<u64, Vec<SessionId>> {
    let now = shared.clock.now();
    let heard = heard_ms(shared);
    let tick_ms = u64::from(shared.config.tick_ms).max(1);
    let mut by_expiry: BTreeMap<u64, Vec<SessionId>> = BTreeMap::new();
    let mut last = None;
    loop {
        let slice = shared.state.read().tree().sessions_behind(last, PER_SLICE);
        let Some((newest, _)) = slice.last() else { return by_expiry };
        last = Some(*newest);
        for (session, timeout_ms) in slice {
            let since_ms = heard.get(&session).map_or(0, |heard_ms| (now.wall_ms - heard_ms).max(0)) as u64;
            let expires_ms =
                (now.monotonic_ms + u64::from(timeout_ms.unsigned_abs())).saturating_sub(since_ms);
            by_expiry.entry((expires_ms / tick_ms + 1) * tick_ms).or_default().push(session);
        }
    }
}

/// Sessions of this member's connections, and when each was answered last, in milliseconds since 1970.
fn heard_ms(shared: &Shared) -> HashMap<SessionId, i64> {
    let conns = shared.statistics.clients.conns();
    let heard = conns.iter().map(|(_, conn)| {
        let heard_ms = conn.last_response_ms.load(Relaxed).max(conn.established_ms);
        (SessionId(conn.session.load(Relaxed)), heard_ms)
    });
    heard.filter(|(session, _)| *session != SessionId::NONE).collect()
}

/// Watched znodes that are told, and the sessions of this member that watch them.
pub(crate) fn watches_by_path(shared: &Shared, sees: Sees<'_>) -> BTreeMap<Arc<str>, BTreeSet<SessionId>> {
    let watchers = watchers(shared);
    let mut all = BTreeMap::new();
    each_watched_path(shared, |path, conns| {
        let sessions: BTreeSet<SessionId> =
            conns.iter().filter_map(|conn| watchers.get(conn).copied()).collect();
        if !sessions.is_empty() && sees(&path) {
            all.insert(path, sessions);
        }
    });
    all
}

/// Sessions of this member and those znodes that they watch which are told.
pub(crate) fn watches_by_session(shared: &Shared, sees: Sees<'_>) -> BTreeMap<SessionId, BTreeSet<Arc<str>>> {
    let watchers = watchers(shared);
    let mut all: BTreeMap<SessionId, BTreeSet<Arc<str>>> = BTreeMap::new();
    each_watched_path(shared, |path, conns| {
        if !sees(&path) {
            return;
        }
        for session in conns.iter().filter_map(|conn| watchers.get(conn)) {
            all.entry(*session).or_default().insert(path.clone());
        }
    });
    all
}

fn each_watched_path(shared: &Shared, mut each: impl FnMut(Arc<str>, Vec<ConnId>)) {
    for slice in 0.. {
        let Some(paths) = shared.state.read().state().watches().paths(slice) else { return };
        paths.into_iter().for_each(|(path, conns)| each(path, conns));
    }
}

/// Connections that watch, and their sessions.
fn watchers(shared: &Shared) -> HashMap<ConnId, SessionId> {
    let mut all = HashMap::new();
    for slice in 0.. {
        let Some(watchers) = shared.state.read().state().watches().watchers(slice) else { break };
        all.extend(watchers);
    }
    all
}
