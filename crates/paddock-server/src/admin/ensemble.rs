//! Commands of ZooKeeper's AdminServer about the ensemble: who leads, who votes, who observes, and how far this member is.

use hyper::StatusCode;
use paddock_http::Request;
use paddock_proto::EnsembleMember;
use paddock_replica::Role;
use paddock_replica::raft_id;
use serde_json::{Value, json};

use super::commands::{Failure, Fields, fields};
use super::parts::Admin;
use crate::reports::status;
use crate::shared::Shared;

pub(super) fn leader(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let shared = &admin.shared;
    let (role, leader) = (shared.engine.role(), shared.engine.standing().leader);
    let (Some(leader), false) = (leader, role == Role::Alone) else {
        return Err(Failure::new(StatusCode::OK, "server is not initialized"));
    };
    let host = status::members(shared).into_iter().find(|member| member.id == leader);
    let host = host.map_or(String::new(), |member| member.host);
    fields(json!({ "is_leader": role == Role::Leader, "leader_id": leader, "leader_ip": host }))
}

pub(super) fn observers(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let standing = admin.shared.engine.standing();
    let observers: Vec<Value> = standing
        .followers
        .iter()
        .filter(|follower| !follower.has_vote && follower.is_heard)
        .map(|follower| json!({ "server_id": follower.member, "synced": !follower.gets_snapshot }))
        .collect();
    let synced = observers.iter().filter(|observer| observer["synced"] == true).count();
    fields(json!({ "synced_observers": synced, "observers": observers }))
}

pub(super) fn voting_view(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let shared = &admin.shared;
    let voters = status::members(shared).into_iter().filter(|member| has_vote(shared, member));
    let view: Fields = voters
        .map(|member| {
            let described = json!({
                "server_addresses": [address(&member, member.quorum_port)],
                "election_addresses": [address(&member, member.election_port)],
                "client_address": client_address(shared, &member).unwrap_or_default(),
                "learner_type": member.role.to_string(),
            });
            (member.id.to_string(), described)
        })
        .collect();
    fields(json!({ "current_config": view }))
}

/// Raft's term stands for nothing here: epoch and counter are the halves of the zxid, as ZooKeeper tells them.
pub(super) fn zabstate(admin: &Admin, _: &Request) -> Result<Fields, Failure> {
    let shared = &admin.shared;
    let role = shared.engine.role();
    let own = status::members(shared).into_iter().find(|member| member.id == shared.config.member);
    let Some(own) = own else {
        return fields(json!({ "voting": false, "zabstate": "" }));
    };
    let zxid = shared.state.read().tree().zxid().0;
    fields(json!({
        "myid": own.id,
        "is_leader": role == Role::Leader,
        "quorum_address": addresses(&own, own.quorum_port),
        "election_address": addresses(&own, own.election_port),
        "client_address": client_address(shared, &own),
        "voting": has_vote(shared, &own),
        "last_zxid": format!("{zxid:#x}"),
        "zab_epoch": zxid >> 32,
        "zab_counter": zxid & 0xffff_ffff,
        "zabstate": if matches!(role, Role::Looking | Role::ReadOnly) { "election" } else { "broadcast" },
    }))
}

fn has_vote(shared: &Shared, member: &EnsembleMember) -> bool {
    shared.state.read().membership().voters.contains(&raft_id(member.id))
}

/// Address where clients connect to a member; `None` if that is not known here.
fn client_address(shared: &Shared, member: &EnsembleMember) -> Option<String> {
    match &member.client {
        Some(client) => Some(format!("{}:{}", client.address.as_deref().unwrap_or("0.0.0.0"), client.port)),
        None => {
            (member.id == shared.config.member).then(|| shared.config.late_names.shown(shared.config.listen))
        }
    }
}

fn address(member: &EnsembleMember, port: u16) -> String {
    format!("{}:{port}", member.host)
}

/// The only address of a member for its peers, in every form that ZooKeeper has for the several that a server may have there.
fn addresses(member: &EnsembleMember, port: u16) -> Value {
    let only = address(member, port);
    json!({
        "empty": false,
        "all_addresses": [only],
        "wildcard_addresses": [format!("0.0.0.0:{port}")],
        "all_ports": [port],
        "all_host_strings": [member.host],
        "reachable_address": only,
        "all_reachable_addresses": [only],
        "all_reachable_addresses_or_all": [only],
        "reachable_or_one": only,
        "one": only,
    })
}
