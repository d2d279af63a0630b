//! One request of a history: asked of a server, and as a line that the checker reads.

use paddock_client::{Client, CreateMode, Error, ErrorCode};
use serde_json::{Value, json};

/// Few, so that clients meet. Those of other libraries have as many (`torture`).
pub(super) const KEYS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedRequest {
    Create { value: i64 },
    Set { value: i64, version: Option<i32> },
    Delete { version: Option<i32> },
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordedAnswer {
    /// With the version behind it, of a set or a read.
    Done {
        value: Option<i64>,
        version: Option<i32>,
    },
    Refused(ErrorCode),
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) client: usize,
    pub(super) path: String,
    pub(super) request: RecordedRequest,
    pub(super) start_ns: i64,
    /// None: it is not known whether it was carried out, or when it will be.
    pub(super) end: Option<(i64, RecordedAnswer)>,
}

impl Operation {
    pub(super) fn to_json(&self) -> Value {
        let (op, value, expected) = match self.request {
            RecordedRequest::Create { value } => ("create", Some(value), None),
            RecordedRequest::Set { value, version } => ("set", Some(value), version),
            RecordedRequest::Delete { version } => ("delete", None, version),
            RecordedRequest::Read => ("read", None, None),
        };
        let answer = self.end.as_ref().map(|(end_ns, answer)| match answer {
            RecordedAnswer::Done { value, version } => {
                json!({"end": end_ns, "code": "ok", "value": value, "version": version})
            }
            RecordedAnswer::Refused(code) => json!({"end": end_ns, "code": format!("{code:?}")}),
        });
        json!({
            "client": self.client, "key": self.path, "op": op, "value": value, "expected": expected,
            "start": self.start_ns, "answer": answer,
        })
    }
}

pub(super) async fn perform(
    client: &Client,
    path: &str,
    request: RecordedRequest,
) -> Result<RecordedAnswer, Error> {
    let text = |value: i64| value.to_string().into_bytes();
    let result = match request {
        RecordedRequest::Create { value } => {
            let created = client.create(path, &text(value), CreateMode::Persistent).await;
            created.map(|_| RecordedAnswer::Done { value: None, version: None })
        }
        RecordedRequest::Set { value, version } => {
            let stat = client.set_data(path, &text(value), version).await;
            stat.map(|stat| RecordedAnswer::Done { value: None, version: Some(stat.version) })
        }
        RecordedRequest::Delete { version } => {
            client.delete(path, version).await.map(|()| RecordedAnswer::Done { value: None, version: None })
        }
        RecordedRequest::Read => {
            let (sync, data) = (client.sync(path), client.get_data(path));
            match (sync.await, data.await) {
                // Without its sync it is another kind of read.
                (Err(error), _) => Err(error),
                (Ok(_), data) => data.map(|data| {
                    let text = String::from_utf8(data.bytes.unwrap_or_default());
                    let value =
                        text.ok().and_then(|text| text.trim().parse().ok()).expect("all data are numbers");
                    RecordedAnswer::Done { value: Some(value), version: Some(data.stat.version) }
                }),
            }
        }
    };
    match result {
        Err(Error::Refused {
            code: code @ (ErrorCode::NoNode | ErrorCode::NodeExists | ErrorCode::BadVersion),
            ..
        }) => Ok(RecordedAnswer::Refused(code)),
        // The session's new connection was faster than what was on its way from the former one.
        Err(Error::Refused { code: ErrorCode::SessionMoved, .. }) => Err(Error::ConnectionLost),
        result => result,
    }
}

pub(super) fn version_after(request: RecordedRequest, answer: &RecordedAnswer) -> Option<i32> {
    match (request, answer) {
        (RecordedRequest::Create { .. }, RecordedAnswer::Done { .. }) => Some(0),
        (_, RecordedAnswer::Done { version, .. }) => *version,
        _ => None,
    }
}

pub(super) fn path(key: usize) -> String {
    format!("/register-{key}")
}
