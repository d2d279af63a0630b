//! ZooKeeper's commands that change what a member counts. ZooKeeper carries them out for anyone who sends a `GET`, which any page can
//! have a browser do. Here they are for administrators, by `POST`.

use std::sync::atomic::Ordering::Relaxed;

use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_replica::Role;

use super::authorization;
use super::commands::{Failure, Fields, NOT_SERVING, answer, get_trace_mask};
use super::parts::Admin;

pub(super) fn reset_stats(admin: &Admin, request: Request) -> Response {
    answer(
        "stat_reset",
        serving(admin, &request).map(|()| admin.shared.statistics.clients.reset()).map(|()| Fields::new()),
    )
}

pub(super) fn reset_connections(admin: &Admin, request: Request) -> Response {
    let reset = serving(admin, &request).map(|()| admin.shared.statistics.clients.reset_conns());
    answer("connection_stat_reset", reset.map(|()| Fields::new()))
}

/// Connections of observers are not counted apart here, so there is nothing to be reset.
pub(super) fn reset_observers(admin: &Admin, request: Request) -> Response {
    answer("observer_connection_stat_reset", serving(admin, &request).map(|()| Fields::new()))
}

pub(super) fn set_trace_mask(admin: &Admin, request: Request) -> Response {
    answer("set_trace_mask", set_mask(admin, &request))
}

fn set_mask(admin: &Admin, request: &Request) -> Result<Fields, Failure> {
    authorization::administrator(&admin.shared, request)?;
    let wrong = |found: &str| {
        Failure::new(StatusCode::OK, format!("setTraceMask requires long traceMask argument{found}"))
    };
    let mask = request.parameter("traceMask").ok_or_else(|| wrong(""))?;
    let mask = mask.parse().map_err(|_| wrong(&format!(", got {mask}")))?;
    admin.shared.statistics.clients.trace_mask.store(mask, Relaxed);
    get_trace_mask(admin, request)
}

/// Lets an administrator pass while there is a leader, as ZooKeeper's commands want it.
fn serving(admin: &Admin, request: &Request) -> Result<(), Failure> {
    authorization::administrator(&admin.shared, request)?;
    match admin.shared.engine.role() {
        Role::Looking => Err(Failure::new(StatusCode::OK, NOT_SERVING)),
        _ => Ok(()),
    }
}
