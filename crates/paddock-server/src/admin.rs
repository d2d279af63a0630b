//! The HTTP interface of a member for those who operate it: all its routes, and who may ask for what.
//!
//! Renderers print the facts of [`Status`](crate::reports::status::Status) and of the same functions as the four-letter words;
//! nothing is counted here.

mod authorization;
mod browsers;
mod commands;
mod ensemble;
mod follow;
mod groups;
mod health;
mod hosts;
mod keeper;
mod keeper_client;
mod log_entries;
mod logins;
mod orders;
mod page;
mod parts;
mod rate_limit;
mod requester;
mod settings;
mod shed;
mod snapshot;
mod starting;
mod storage;
mod stream_places;
#[cfg(test)]
mod tests;
mod visibility;

use std::borrow::Cow;
use std::time::Duration;

pub(crate) use parts::Admin;
pub(crate) use settings::{HttpAddresses, keys, ports};
pub(crate) use starting::{STARTING_ROUTES, Starting};

use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap};
use paddock_http::{Context, Request, RequiredProof, Response, Route};
use serde_json::json;

use crate::reports::metrics::{self, MetricsFormat};

/// All routes. The order counts: the first one that fits answers. A `GET` changes nothing; what every other method asks for is an order.
pub(crate) const ROUTES: &[Route<Admin>] = &[
    Route::get(health::READY, health::ready).everywhere(),
    Route::get("/alive", health::alive).everywhere(),
    Route::get("/live", health::alive).everywhere(),
    Route::get(settings::METRICS, metrics_page).everywhere(),
    Route::get("/commands", commands::list),
    Route::post("/commands/restore", commands::refuse_restore).judges_orders().leaves_body(),
    Route::post("/commands/rest", commands::refuse_restore).judges_orders().leaves_body(),
    Route::post("/commands/shed_connections", shed::shed_connections).takes(shed::SHARE_BYTES_MAX),
    Route::post("/commands/shed", shed::shed_connections).takes(shed::SHARE_BYTES_MAX),
    Route::post("/commands/stat_reset", orders::reset_stats),
    Route::post("/commands/srst", orders::reset_stats),
    Route::post("/commands/connection_stat_reset", orders::reset_connections),
    Route::post("/commands/crst", orders::reset_connections),
    Route::post("/commands/observer_connection_stat_reset", orders::reset_observers),
    Route::post("/commands/orst", orders::reset_observers),
    Route::post("/commands/set_trace_mask", orders::set_trace_mask),
    Route::post("/commands/stmk", orders::set_trace_mask),
    Route::get("/commands/*", commands::run),
    Route::post("/api/v1/lead/yield", yield_lead).for_administrators(),
    Route::post("/api/v1/lead/request", request_lead).for_administrators(),
    Route::post("/api/v1/snapshot", order_snapshot).for_administrators(),
    Route::get("/api/v1/snapshot", snapshot::send).for_administrators(),
    Route::get("/api/v1/changes", follow::follow).for_administrators(),
    Route::get("/api/v1/log", log_entries::send).for_administrators(),
    Route::get("/api/v1/groups", groups::groups),
    Route::post("/api/v1/groups/split", groups::split).for_administrators().takes(groups::PATH_BYTES_MAX),
    Route::post("/api/v1/groups/join", groups::join).for_administrators().takes(groups::PATH_BYTES_MAX),
    Route::post("/api/v1/groups/move", groups::move_slots).for_administrators().takes(groups::PATH_BYTES_MAX),
    Route::get("/api/v1/commands", keeper::command),
    Route::get("/api/v1/commands/*", keeper::command),
    Route::post("/api/v1/commands", keeper::command).judges_orders().takes(keeper::COMMAND_BYTES_MAX),
    Route::post("/api/v1/commands/*", keeper::command).judges_orders().takes(keeper::COMMAND_BYTES_MAX),
    Route::get("/api/v1/storage", storage::get),
    Route::get("/api/v1/storage/*", storage::get),
    Route::post("/api/v1/storage/*", storage::create).for_administrators().takes(page::CHANGE_BYTES_MAX),
    Route::new("PUT", "/api/v1/storage/*", storage::set).for_administrators().takes(page::CHANGE_BYTES_MAX),
    Route::new("DELETE", "/api/v1/storage/*", storage::delete).for_administrators(),
    Route::get("/", page::page).for_links(),
    Route::get("/dashboard", page::page).for_links(),
    Route::get("/dashboard/content", keeper::dashboard_content),
    Route::get("/api/overview", page::overview),
    Route::get("/api/children", page::children),
    Route::get("/api/znode", page::znode),
    Route::get("/api/data", page::data),
    Route::get("/api/sessions", page::sessions),
    Route::get("/api/session", page::session),
    Route::get("/api/activity", page::activity),
    Route::get("/api/history", page::history),
    Route::get("/api/login", page::login),
    Route::post("/api/create", page::create).for_administrators().takes(page::CHANGE_BYTES_MAX),
    Route::post("/api/set", page::set_data).for_administrators().takes(page::CHANGE_BYTES_MAX),
    Route::post("/api/delete", page::delete).for_administrators().takes(page::CHANGE_BYTES_MAX),
    Route::post("/api/acl", page::set_acl).for_administrators().takes(page::CHANGE_BYTES_MAX),
];

impl Context for Admin {
    fn canonical<'a>(&self, path: &'a str) -> Cow<'a, str> {
        settings::canonical(&self.shared.settings().admin, path)
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.shared.settings().admin.idle_timeout_ms)
    }

    fn admit_host(&self, headers: &HeaderMap) -> Result<(), Response> {
        hosts::admit(&self.shared.settings(), headers)
    }

    fn admit(&self, proof: RequiredProof, request: &Request) -> Result<(), Response> {
        browsers::admit(&self.shared, proof, request)?;
        logins::admit(self, request)?;
        authorization::admit(&self.shared, proof.access, request)
    }
}

/// With `names=clickhouse`, or where a setting says so, under ClickHouse Keeper's names; with `names=zookeeper` under ZooKeeper's.
fn metrics_page(admin: &Admin, request: Request) -> Response {
    let format = MetricsFormat::accepted(request.header(ACCEPT));
    let has_keeper_names = match request.parameter("names") {
        Some(names) => names == "clickhouse",
        None => admin.shared.settings().admin.has_keeper_names,
    };
    let page = if has_keeper_names {
        metrics::clickhouse_page(&admin.shared, format)
    } else {
        metrics::page(&admin.shared, format)
    };
    Response::of(format.content_type(), page)
}

/// Hands the lead over to another member.
fn yield_lead(admin: &Admin, _: Request) -> Response {
    order(admin.operator.yield_lead(), "This member does not lead")
}

/// Asks the leader to hand the lead over to this member.
fn request_lead(admin: &Admin, _: Request) -> Response {
    order(admin.operator.request_lead(), "This member cannot lead, or knows of no leader")
}

/// Orders a snapshot and does not wait for it.
fn order_snapshot(admin: &Admin, _: Request) -> Response {
    Response::json(&json!({ "last_entry": admin.operator.order_snapshot() }))
}

/// 202 for an order that was given, 409 and the reason for one that could not be.
fn order(is_given: bool, reason: &str) -> Response {
    if is_given {
        Response::json(&json!({ "status": "ok" })).with_status(StatusCode::ACCEPTED)
    } else {
        Response::json(&json!({ "error": reason })).with_status(StatusCode::CONFLICT)
    }
}
