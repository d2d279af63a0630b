//! Answers over HTTP before there is a state: the member lives, and is not ready.
//!
//! Each one ends its connection, so that the next request finds whatever the member can answer by then.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderMap, REFRESH, RETRY_AFTER};
use paddock_http::{Context, Request, RequiredProof, Response, Route};
use paddock_replica::Role;
use paddock_statistics::server_metrics::StartProgress;
use serde_json::json;

use super::{health, hosts, settings};
use crate::Config;
use crate::reports::status::role_name;

/// Routes until there is a state.
pub(crate) const STARTING_ROUTES: &[Route<Starting>] = &[
    Route::get(health::READY, ready).everywhere(),
    Route::get("/alive", alive).everywhere(),
    Route::get("/live", alive).everywhere(),
    Route::get("/*", not_yet).everywhere(),
    Route::post("/*", not_yet).leaves_body(),
    Route::new("PUT", "/*", not_yet).leaves_body(),
    Route::new("DELETE", "/*", not_yet).leaves_body(),
];

/// A member that starts.
#[derive(Debug)]
pub(crate) struct Starting {
    config: Config,
    progress: Arc<StartProgress>,
}

impl Starting {
    pub(crate) fn new(config: Config, progress: Arc<StartProgress>) -> Starting {
        Starting { config, progress }
    }

    fn reason(&self) -> String {
        match self.progress.last() {
            Some(step) => format!("replaying: {} ({} {})", step.work, step.done, step.unit),
            None => "replaying: the start has just begun".to_owned(),
        }
    }
}

impl Context for Starting {
    fn canonical<'a>(&self, path: &'a str) -> Cow<'a, str> {
        settings::canonical(&self.config.admin, path)
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.config.admin.idle_timeout_ms)
    }

    fn admit_host(&self, headers: &HeaderMap) -> Result<(), Response> {
        hosts::admit(&self.config, headers)
    }

    /// Nothing is told here that needs a proof, and no order is carried out.
    fn admit(&self, _: RequiredProof, _: &Request) -> Result<(), Response> {
        Ok(())
    }
}

fn ready(starting: &Starting, _: Request) -> Response {
    let mut details =
        json!({ "role": role_name(Role::Looking), "hasLeader": false, "reason": starting.reason() });
    if let Some(step) = starting.progress.last() {
        details["progress"] = json!({ "work": step.work, "done": step.done, "unit": step.unit });
    }
    let answer = Response::json(&json!({ "details": details, "status": "fail" }));
    answer.with_status(StatusCode::SERVICE_UNAVAILABLE).with_header(CONNECTION, "close")
}

fn alive(_: &Starting, _: Request) -> Response {
    Response::text(StatusCode::OK, "ok\n").with_header(CONNECTION, "close")
}

fn not_yet(starting: &Starting, _: Request) -> Response {
    let text = format!("The member starts, and has nothing to show yet: {}\n", starting.reason());
    // A browser asks again by itself.
    Response::text(StatusCode::SERVICE_UNAVAILABLE, text)
        .with_header(CONNECTION, "close")
        .with_header(REFRESH, "1")
        .with_header(RETRY_AFTER, "1")
}
