//! Spans as OpenTelemetry's protocol has them in JSON, and what an endpoint answers.

use std::borrow::Cow;

use paddock_proto::{ErrorCode, MemberNumber};
use serde::Serialize;

use super::{Ending, Span};

/// Kind of a span on the side that serves.
const SERVER: u8 = 2;
const STATUS_ERROR: u8 = 2;
/// The trace is sampled, and it is known that the parent is of another process.
const FLAGS: u32 = 0x301;
/// ZooKeeper's codes above it mean that something went wrong; those below are answers to what was asked.
const API_ERROR: i32 = -100;

/// Maker of the spans, the same for all of one process.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Resource {
    attributes: Vec<Attribute<'static>>,
}

impl Resource {
    pub(super) fn new(service_name: &str, member: MemberNumber) -> Resource {
        Resource {
            attributes: vec![
                text("service.name", service_name.to_owned()),
                text("service.version", env!("CARGO_PKG_VERSION")),
                text("service.instance.id", member.to_string()),
            ],
        }
    }
}

/// Encodes spans as they are posted.
pub(super) fn encode(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let scope = Scope { name: "paddock", version: env!("CARGO_PKG_VERSION") };
    let scope_spans = [ScopeSpans { scope, spans: spans.iter().map(EncodedSpan::of).collect() }];
    let request = ExportRequest { resource_spans: [ResourceSpans { resource, scope_spans }] };
    serde_json::to_vec(&request).expect("text and numbers are JSON")
}

/// Number of spans that an endpoint has refused although it says yes, and its reason.
pub(super) fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = partial.get("rejectedSpans")?;
    // A number of 64 bits is a text in JSON, but not everyone writes it so.
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).filter(|count| *count > 0)?;
    let why = partial.get("errorMessage").and_then(|why| why.as_str()).unwrap_or("it does not say why");
    Some((count, why.to_owned()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportRequest<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: &'a Resource,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Vec<EncodedSpan<'a>>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EncodedSpan<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace_state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    flags: u32,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Serialize)]
struct Status {
    code: u8,
    message: String,
}

#[derive(Clone, Debug, Serialize)]
struct Attribute<'a> {
    key: &'static str,
    value: Value<'a>,
}

#[derive(Clone, Debug, Serialize)]
enum Value<'a> {
    #[serde(rename = "stringValue")]
    Text(Cow<'a, str>),
    #[serde(rename = "intValue")]
    Number(String),
}

fn text<'a>(key: &'static str, value: impl Into<Cow<'a, str>>) -> Attribute<'a> {
    Attribute { key, value: Value::Text(value.into()) }
}

/// 64 bits are more than a number in JSON can have, so it is a text there.
fn number(key: &'static str, value: impl Into<i64>) -> Attribute<'static> {
    Attribute { key, value: Value::Number(value.into().to_string()) }
}

impl EncodedSpan<'_> {
    fn of(span: &Span) -> EncodedSpan<'_> {
        let name = span.name();
        let mut attributes = vec![
            text("zookeeper.operation", name.clone()),
            text("zookeeper.session", span.session.to_string()),
            number("zookeeper.xid", span.xid),
            text("client.address", span.client.to_string()),
        ];
        attributes.extend(span.path.as_deref().map(|path| text("zookeeper.path", path)));
        let status = describe(span.ending, &mut attributes);
        EncodedSpan {
            trace_id: format!("{:032x}", span.context.trace_id),
            span_id: hex(span.id),
            trace_state: &span.context.state,
            parent_span_id: Some(span.context.parent).filter(|parent| *parent != 0).map(hex),
            flags: FLAGS,
            name,
            kind: SERVER,
            start_time_unix_nano: span.start_ns.to_string(),
            end_time_unix_nano: span.end_ns.to_string(),
            attributes,
            status,
        }
    }
}

fn hex(span: u64) -> String {
    format!("{span:016x}")
}

/// Describes the end of a request. A refusal that ZooKeeper's recipes live with, such as of a znode that is there already, is no
/// failure of the member.
fn describe(ending: Ending, attributes: &mut Vec<Attribute<'_>>) -> Option<Status> {
    let failed = |message: String| Some(Status { code: STATUS_ERROR, message });
    match ending {
        Ending::Unanswered => {
            attributes.push(text("error.type", "UNANSWERED"));
            failed("the connection ended before the reply".into())
        }
        Ending::Replied { zxid, error } => {
            attributes.push(text("zookeeper.zxid", zxid.to_string()));
            let error = error?;
            attributes.push(text("error.type", error_name(error)));
            attributes.push(number("zookeeper.error_code", error.code()));
            if error.code() > API_ERROR { failed(error_name(error)) } else { None }
        }
    }
}

/// As Java's client calls it.
fn error_name(error: ErrorCode) -> String {
    format!("{error:?}").to_uppercase()
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Writer;
    use paddock_proto::{OpCode, Zxid};
    use serde_json::json;

    use super::*;
    use crate::span::tests::begin;

    fn encoded(span: Span) -> serde_json::Value {
        let request = encode(&Resource::new("paddock", 3), &[span]);
        serde_json::from_slice(&request).expect("it is JSON")
    }

    fn get_data(ending: Ending) -> Span {
        let mut span = *begin(OpCode::GetData.code(), |out| out.put_string("/a"));
        (span.id, span.ending) = (0xdef, ending);
        (span.start_ns, span.end_ns) = (1_700_000_000_000_000_001, 1_700_000_000_000_000_002);
        span
    }

    #[test]
    fn a_span_is_what_the_protocol_says() {
        let zxid = Zxid(0x1f);
        let version = env!("CARGO_PKG_VERSION");
        let expected = json!({"resourceSpans": [{
            "resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": "paddock"}},
                {"key": "service.version", "value": {"stringValue": version}},
                {"key": "service.instance.id", "value": {"stringValue": "3"}},
            ]},
            "scopeSpans": [{
                "scope": {"name": "paddock", "version": version},
                "spans": [{
                    "traceId": "00000000000000000000000000000abc",
                    "spanId": "0000000000000def",
                    "traceState": "a=1",
                    "parentSpanId": "000000000000004d",
                    "flags": 0x301,
                    "name": "getData",
                    "kind": 2,
                    "startTimeUnixNano": "1700000000000000001",
                    "endTimeUnixNano": "1700000000000000002",
                    "attributes": [
                        {"key": "zookeeper.operation", "value": {"stringValue": "getData"}},
                        {"key": "zookeeper.session", "value": {"stringValue": "0x9"}},
                        {"key": "zookeeper.xid", "value": {"intValue": "5"}},
                        {"key": "client.address", "value": {"stringValue": "127.0.0.1"}},
                        {"key": "zookeeper.path", "value": {"stringValue": "/a"}},
                        {"key": "zookeeper.zxid", "value": {"stringValue": "0x1f"}},
                    ],
                }],
            }],
        }]});
        assert_eq!(encoded(get_data(Ending::Replied { zxid, error: None })), expected);
    }

    #[test]
    fn a_trace_without_a_span_of_the_client_has_its_root_here() {
        let mut span = get_data(Ending::Unanswered);
        (span.context.parent, span.context.state) = (0, String::new());
        let encoded = encoded(span);
        let span = encoded["resourceSpans"][0]["scopeSpans"][0]["spans"][0].as_object().unwrap();
        assert!(!span.contains_key("parentSpanId") && !span.contains_key("traceState"), "{span:?}");
    }

    #[track_caller]
    fn check_ending(ending: Ending, kind: &str, code: Option<&str>, failed: bool) {
        let encoded = encoded(get_data(ending));
        let span = &encoded["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let attribute = |name: &str| {
            let found = span["attributes"].as_array().unwrap().iter().find(|pair| pair["key"] == name);
            found.map(|found| found["value"].clone())
        };
        assert_eq!(attribute("error.type"), Some(json!({ "stringValue": kind })));
        assert_eq!(attribute("zookeeper.error_code"), code.map(|code| json!({ "intValue": code })));
        assert_eq!(span["status"]["code"] == 2, failed);
    }

    #[test]
    fn only_what_went_wrong_is_a_failure() {
        let replied = |error| Ending::Replied { zxid: Zxid(1), error: Some(error) };
        check_ending(replied(ErrorCode::NoNode), "NONODE", Some("-101"), false);
        check_ending(replied(ErrorCode::Unimplemented), "UNIMPLEMENTED", Some("-6"), true);
        check_ending(Ending::Unanswered, "UNANSWERED", None, true);
    }

    #[test]
    fn an_answer_may_refuse_some() {
        for (answer, expected) in [
            ("", None),
            ("{}", None),
            (r#"{"partialSuccess":{}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"0","errorMessage":"a hint"}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"late"}}"#, Some((2, "late"))),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, Some((3, "it does not say why"))),
        ] {
            let expected = expected.map(|(count, why): (u64, &str)| (count, why.to_owned()));
            assert_eq!(rejected(answer.as_bytes()), expected, "{answer}");
        }
    }
}
