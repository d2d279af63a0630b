//! Destination of spans: what a file says of it counts before OpenTelemetry's own variables.
//!
//! These variables are not Paddock's, and may be meant for everything that runs on a machine. So one that is of no use here
//! is warned of, and does not keep a member from starting.

use std::path::Path;

use paddock_server::{TracesEndpoint, Tracing};

use super::environment::Environment;
use super::remark::{Location, Remarks};
use super::value::{self, Value};

/// The whole URL for traces; it counts before the other one.
pub(super) const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
pub(super) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
pub(super) const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// Turns everything off.
pub(super) const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Settings of a file for spans.
#[derive(Debug)]
pub(super) struct TracingDraft {
    pub(super) endpoint: TracesEndpoint,
    pub(super) service_name: Option<String>,
}

pub(super) fn settle(
    said: Option<TracingDraft>,
    environment: &Environment,
    remarks: &mut Remarks,
) -> Option<Tracing> {
    if environment.variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return None;
    }
    let (endpoint, service_name) = match said {
        Some(said) => (said.endpoint, said.service_name),
        None => (endpoint_of(environment, remarks)?, None),
    };
    let named = service_name.as_deref().or_else(|| environment.variable(SERVICE_NAME));
    Some(Tracing { endpoint, service_name: named.unwrap_or(Tracing::SERVICE_NAME).to_owned() })
}

fn endpoint_of(environment: &Environment, remarks: &mut Remarks) -> Option<TracesEndpoint> {
    let traces = environment.variable(TRACES_ENDPOINT).map(|url| (TRACES_ENDPOINT, TracesEndpoint::new(url)));
    let all = || environment.variable(ENDPOINT).map(|url| (ENDPOINT, TracesEndpoint::below(url)));
    let (variable, endpoint) = traces.or_else(all)?;
    match endpoint {
        Ok(endpoint) => {
            remarks.origins.note("tracing.endpoint", variable);
            Some(endpoint)
        }
        Err(why) => {
            remarks.push(Location::new(Path::new(variable)).warning(format!("no spans are exported: {why}")));
            None
        }
    }
}

/// The endpoint of a collector.
pub(super) fn endpoint(value: &impl Value) -> Result<TracesEndpoint, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{why}, found {}", value.shown());
    let text = value.text().unwrap_or_default();
    TracesEndpoint::below(text).map_err(|why| wrong(&why))
}

pub(super) fn service_name(value: &impl Value) -> Result<String, String> {
    let name = value.text().filter(|text| !text.is_empty());
    name.map(str::to_owned).ok_or_else(|| value::wrong("the name of a service", value))
}

#[cfg(test)]
mod tests;
