//! The ensemble and this member at a glance, and the counters of which the page draws its charts.

use paddock_http::{Request, Response};
use paddock_member::Clock as _;
use paddock_os::process;
use paddock_proto::{EnsembleMember, MemberNumber, MemberRole};
use paddock_statistics::request_times::{BUCKETS, RequestTimes};
use serde_json::{Map, Value, json};

use super::hexadecimal;
use crate::admin::health::{Obstacle, obstacle};
use crate::admin::parts::Admin;
use crate::engine::member_profile::MemberProfile;
use crate::reports::status::{self, Status, role_name};
use crate::shared::Shared;
use crate::version::version_and_date;

pub(crate) fn overview(admin: &Admin, _: Request) -> Response {
    let shared = &*admin.shared;
    let (status, role) = (Status::of(shared), shared.engine.role());
    let now = shared.clock.now();
    let (members, change) = members(shared, &status);
    let (request_us, stage_us) = RequestTimes::BOUNDS_US;
    let all = |times: Vec<(&'static str, [u64; BUCKETS])>| -> Map<String, Value> {
        times.into_iter().map(|(name, counts)| (name.to_owned(), json!(counts))).collect()
    };
    Response::json(&json!({
        "member": shared.config.member,
        "role": role_name(role),
        "obstacle": obstacle(shared, role).map(|Obstacle { kind, text }| json!({ "kind": kind, "text": text })),
        "version": version_and_date(),
        "uptime_ms": status.uptime_ms,
        "time_ms": now.wall_ms,
        "leader": status.standing.leader,
        "leads_for_ms": status.leads_for_ms,
        "term": status.standing.term,
        "feature_level": status.standing.feature_level.0,
        "groups": status.standing.groups,
        "groups_led": status.standing.groups_led,
        "zxid": hexadecimal(status.zxid.0),
        "log": {
            "last_entry": status.standing.last_entry,
            "committed": status.standing.committed,
            "applied": status.standing.applied,
        },
        "members": members,
        "change": change,
        "counts": {
            "znodes": status.znodes,
            "ephemerals": status.ephemerals,
            "watches": status.watches,
            "sessions": status.sessions,
            "connections": status.connections,
            "outstanding": status.outstanding,
        },
        "bytes": bytes(shared, &status),
        "totals": {
            "received": status.received,
            "sent": status.sent,
            "fsyncs": status.fsyncs,
            "rejected": status.connections_rejected,
            "auth_failed": status.auth_failed,
            "differing": status.differing,
        },
        "bounds": { "request_us": request_us, "stage_us": stage_us },
        "operations": all(shared.statistics.times.operations().map(|(name, times)| (name, times.counts)).collect()),
        "stages": all(shared.statistics.times.stages().map(|(name, times)| (name, times.counts)).collect()),
    }))
}

/// Memory and disk. Sizes of directories are asked of the file system.
fn bytes(shared: &Shared, status: &Status) -> Value {
    let (disk_free, disk_size) = process::disk_bytes(&shared.config.data_dir);
    json!({
        "tree": status.data_bytes,
        "memory": process::resident_bytes(),
        "log": status::log_bytes(shared),
        "data": status::data_bytes(shared),
        "disk_free": disk_free,
        "disk_size": disk_size,
        "client_buffers": status.client_buffer_bytes,
        "client_buffers_max": shared.limits.counters.buffers.max(),
    })
}

/// The members of the ensemble as this member knows them, and those to be if the membership is changing.
fn members(shared: &Shared, status: &Status) -> (Vec<Value>, Option<Vec<MemberNumber>>) {
    let state = shared.state.read();
    let Some(ensemble) = state.state().tree().ensemble() else { return (Vec::new(), None) };
    let members: Vec<EnsembleMember> = ensemble.members.clone();
    let change = ensemble.target.as_ref().map(|target| target.iter().map(|member| member.id).collect());
    drop(state);
    (members.iter().map(|member| one(member, shared, status)).collect(), change)
}

fn one(member: &EnsembleMember, shared: &Shared, status: &Status) -> Value {
    let id = member.id;
    let is_self = member.id == shared.config.member;
    let standing = status.standing.followers.iter().find(|follower| follower.member == id);
    let leads = status.standing.leader == Some(id);
    let told = status.standing.profiles.iter().find(|(member, _)| *member == id);
    let profile = if is_self {
        Some(MemberProfile::of(shared))
    } else {
        told.and_then(|(_, profile)| MemberProfile::decode(profile).ok())
    };
    let contact = shared.statistics.contacts.of(member.id);
    // A leader hears more than that the link is up.
    let is_lost = standing.is_some_and(|follower| !follower.is_heard);
    let answers = contact.is_some_and(|contact| contact.answers) && !is_lost;
    let since_ms = contact.filter(|contact| contact.answers == answers).map(|contact| contact.since_ms);
    let lag = standing.map(|follower| status.standing.last_entry.saturating_sub(follower.matched));
    json!({
        "id": id,
        "host": member.host,
        "role": if member.role == MemberRole::Observer { "observer" } else { "participant" },
        "is_self": is_self,
        "leads": leads,
        "answers": (!is_self).then_some(answers),
        "answers_since_ms": since_ms,
        "lag": if is_self && leads { Some(0) } else { lag },
        "lag_ms": if is_self && leads { Some(0) } else { standing.map(|follower| follower.lag_ms) },
        "gets_snapshot": standing.is_some_and(|follower| follower.gets_snapshot),
        "version": profile.as_ref().map(|profile| &profile.version),
        "disk_free": profile.as_ref().map(|profile| profile.disk_free),
        "disk_size": profile.as_ref().map(|profile| profile.disk_size),
        "page": profile.as_ref().and_then(|profile| profile.page_at(&member.host)),
    })
}
