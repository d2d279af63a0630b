//! Destination of the spans of traced requests.

use std::str::FromStr;

use ureq::http::Uri;

/// Under an endpoint, where spans are posted to.
const TRACES: &str = "v1/traces";

/// Export of spans, by OpenTelemetry's protocol over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// Endpoint that takes the spans.
    pub endpoint: TracesEndpoint,
    /// Name of the member beside other services; all members of an ensemble have the same.
    pub service_name: String,
}

impl Tracing {
    /// Service name, if none is set.
    pub const SERVICE_NAME: &str = "paddock";
}

/// The URL to which spans are posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesEndpoint(String);

/// Errors of a text that names no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error(
        "https is not spoken here: name an endpoint with http, such as a collector on this machine that passes spans on"
    )]
    /// TLS, which is not offered.
    Https,
    /// Something else than a URL.
    #[error("expected a URL, such as http://127.0.0.1:4318")]
    NoUrl,
}

impl TracesEndpoint {
    /// The endpoint of a collector, which has a place of its own for traces.
    pub fn below(collector: &str) -> Result<TracesEndpoint, EndpointError> {
        TracesEndpoint::new(&format!("{}/{TRACES}", collector.trim_end_matches('/')))
    }

    /// The whole URL.
    pub fn new(url: &str) -> Result<TracesEndpoint, EndpointError> {
        let uri = Uri::from_str(url).map_err(|_| EndpointError::NoUrl)?;
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        match uri.scheme_str() {
            Some("https") => Err(EndpointError::Https),
            Some("http") if has_host => Ok(TracesEndpoint(url.to_owned())),
            _ => Err(EndpointError::NoUrl),
        }
    }

    /// The URL as it was given.
    pub fn url(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_posted_below_a_collector() {
        for collector in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
            let endpoint = TracesEndpoint::below(collector).unwrap();
            assert_eq!(endpoint.url(), "http://127.0.0.1:4318/v1/traces");
        }
        assert_eq!(TracesEndpoint::new("http://otel/x").unwrap().url(), "http://otel/x");
        assert_eq!(TracesEndpoint::below("http://[::1]/otlp").unwrap().url(), "http://[::1]/otlp/v1/traces");
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        assert_eq!(TracesEndpoint::below("https://otel:4318"), Err(EndpointError::Https));
        for bad in ["", "otel", "otel:4318", "127.0.0.1:4318", "http://", "grpc://otel:4317", "http://a b/"] {
            assert_eq!(TracesEndpoint::below(bad), Err(EndpointError::NoUrl), "{bad}");
        }
    }
}
