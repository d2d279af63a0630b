//! The Raft groups of the ensemble, as this member has them, and the znodes whose children may be spread over them.

use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_proto::GroupsCommand;
use paddock_replica::OtherGroup;
use paddock_tree::{FeatureLevel, SLOTS, Tree, ZnodeKind};
use serde_json::{Value, json};

use super::parts::Admin;
use super::visibility::Viewer;
use crate::reports::status::Status;

/// Bytes of a path that an order may name.
pub(super) const PATH_BYTES_MAX: usize = 64 << 10;

/// Groups by rising number, and split points in the order of their paths, as far as the requester may see them.
pub(super) fn groups(admin: &Admin, request: Request) -> Response {
    let status = Status::of(&admin.shared);
    let viewer = Viewer::or_nobody(admin, &request);
    let state = admin.shared.state.read();
    let tree = state.state().tree();
    let points: Vec<(String, Value)> = tree
        .split_points()
        .iter()
        .map(|(path, point)| {
            let runs = point.slots().runs();
            let slots: Vec<Value> = runs
                .map(|(first, last, group)| json!({ "first": first, "last": last, "group": group }))
                .collect();
            let point = json!({
                "path": path,
                "is_there": point.is_there(),
                "version": point.version(),
                "slots": slots,
            });
            (path.to_owned(), point)
        })
        .collect();
    let last_item = |group: u32| tree.streams().to_group(group).map_or(0, |stream| stream.last());
    let others: Vec<(OtherGroup, u64)> =
        status.standing.other_groups.iter().map(|other| (*other, last_item(other.standing.number))).collect();
    let (znodes, bytes, count) = (tree.node_count(), tree.data_bytes(), tree.groups().count());
    let is_here = |group: &u32| others.iter().any(|(other, _)| other.standing.number == *group);
    let away: Vec<Value> = (1..count)
        .filter(|group| !is_here(group))
        .map(|group| {
            let replicas = tree.placed(group);
            json!({ "group": group, "host": tree.host_of(admin.shared.config.member, group), "replicas": replicas })
        })
        .collect();
    drop(state);
    let home = json!({
        "group": 0,
        "leader": status.standing.leader,
        "znodes": znodes,
        "bytes": bytes,
        "commands": status.standing.home_commands,
        "committed": status.standing.committed,
        "applied": status.standing.applied,
    });
    let others = others.into_iter().map(|(other, last_item)| {
        let OtherGroup { standing, znodes, data_bytes, received_items, commands } = other;
        json!({
            "group": standing.number,
            "leader": standing.leader,
            "znodes": znodes,
            "bytes": data_bytes,
            "commands": commands,
            "committed": standing.committed,
            "applied": standing.applied,
            "items": last_item,
            "items_applied": received_items,
        })
    });
    let seen = points.into_iter().filter(|(path, _)| viewer.sees(path)).map(|(_, point)| point);
    let groups: Vec<Value> = [home].into_iter().chain(others).collect();
    let split_points: Vec<Value> = seen.collect();
    Response::json(&json!({ "count": count, "groups": groups, "away": away, "split_points": split_points }))
}

/// Makes the znode a split point whose path is the body.
pub(super) fn split(admin: &Admin, request: Request) -> Response {
    let refusal = |tree: &Tree, path: &str| {
        if tree.groups().count() == 1 || tree.feature_level() < FeatureLevel::SPLIT_POINTS {
            return Some("there is one Raft group: set group_count on all members first".to_owned());
        }
        if tree.split_points().get(path).is_some() {
            return None;
        }
        tree.split_points().check(path).err().map(|error| error.to_string())
    };
    order(admin, &request, refusal, |path| GroupsCommand::Split { path })
}

/// Makes the split point an ordinary znode whose path is the body.
pub(super) fn join(admin: &Admin, request: Request) -> Response {
    let refusal = |tree: &Tree, path: &str| match tree.split_points().get(path) {
        None => Some(format!("{path} is no split point")),
        Some(point) if !point.slots().is_home() => {
            Some(format!("slots of {path} are in other groups than the home group"))
        }
        Some(_) => None,
    };
    order(admin, &request, refusal, |path| GroupsCommand::Join { path })
}

/// Moves slots of a split point, all of one group, to another one, as the body says: `path`, `first`, `last`, `group`.
pub(super) fn move_slots(admin: &Admin, request: Request) -> Response {
    let Ok(MoveOrder { path, first, last, group }) = serde_json::from_slice(&request.body) else {
        let reason = "the body is to be an object with path, first, last and group".to_owned();
        return refuse(StatusCode::BAD_REQUEST, reason);
    };
    let refusal = |tree: &Tree| {
        let Some(point) = tree.split_points().get(&path) else {
            return Some(format!("{path} is no split point"));
        };
        if !point.is_there() {
            return Some(format!("there is no znode {path}: create it first"));
        }
        if tree.znode(&path).is_some_and(|znode| matches!(znode.kind, ZnodeKind::Ephemeral(_))) {
            return Some(format!("{path} is ephemeral, and will have no children"));
        }
        if group >= tree.groups().count() {
            return Some(format!("there is no group {group}"));
        }
        if first > last || last >= SLOTS {
            return Some(format!("slots are numbers from 0 to {}", SLOTS - 1));
        }
        if point.leaving().is_some() {
            return Some(format!("other slots of {path} are on their way: try again when they have arrived"));
        }
        let from = point.slots().group(first);
        let is_another = |slot: &u16| point.slots().group(*slot) != from;
        let another = (first..=last).find(is_another);
        another.map(|slot| {
            format!("slots {first} and {slot} of {path} are in two groups: move those of one group at a time")
        })
    };
    let command = GroupsCommand::Move { path: &path, first, last, group };
    give(admin, refusal, &command)
}

/// The order to move slots.
#[derive(serde::Deserialize)]
struct MoveOrder {
    path: String,
    first: u16,
    last: u16,
    group: u32,
}

fn refuse(status: StatusCode, reason: String) -> Response {
    Response::json(&json!({ "error": reason })).with_status(status)
}

/// 202 for an order that was given, and 409 with the reason for one that this member knows to be impossible.
fn order<'a>(
    admin: &Admin,
    request: &'a Request,
    refusal: impl FnOnce(&Tree, &str) -> Option<String>,
    command: impl FnOnce(&'a str) -> GroupsCommand<'a>,
) -> Response {
    match str::from_utf8(&request.body) {
        Ok(path) => give(admin, |tree| refusal(tree, path), &command(path)),
        Err(_) => refuse(StatusCode::BAD_REQUEST, "the body is to be the path of a znode".to_owned()),
    }
}

fn give(
    admin: &Admin,
    refusal: impl FnOnce(&Tree) -> Option<String>,
    command: &GroupsCommand<'_>,
) -> Response {
    let reason = refusal(admin.shared.state.read().state().tree());
    match reason {
        Some(reason) => refuse(StatusCode::CONFLICT, reason),
        None if admin.operator.order_between_groups(command) => {
            Response::json(&json!({ "status": "ok" })).with_status(StatusCode::ACCEPTED)
        }
        None => refuse(StatusCode::CONFLICT, "nothing can be written here now".to_owned()),
    }
}
