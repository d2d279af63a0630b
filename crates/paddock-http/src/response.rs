//! A response as the functions behind the routes make it.

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use serde::Serialize;

use super::body::{BodyWriter, ResponseBody};

/// A response: status, headers and body.
#[derive(Debug)]
pub struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: ResponseBody,
    pub(super) may_take_long: bool,
}

impl Response {
    fn new(status: StatusCode, content_type: &'static str, body: ResponseBody) -> Response {
        // Nothing here is what its bytes look like, and all of it is old in a moment.
        let headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        Response { status, headers, body, may_take_long: false }
    }

    /// A response with a body of some type, 200 unless `with_status` says otherwise.
    pub fn of(content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response::new(StatusCode::OK, content_type, ResponseBody::Whole(body.into().into()))
    }

    /// A response of plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Response {
        Response::of("text/plain; charset=utf-8", text.into()).with_status(status)
    }

    /// A value as JSON.
    pub fn json(value: &impl Serialize) -> Response {
        let text = serde_json::to_vec(value).expect("a value of the member can be written as JSON");
        Response::of("application/json", text)
    }

    /// JSON with each field on a line of its own, for people who read it.
    pub fn pretty_json(value: &impl Serialize) -> Response {
        let mut text =
            serde_json::to_vec_pretty(value).expect("a value of the member can be written as JSON");
        text.push(b'\n');
        Response::of("application/json", text)
    }

    /// A response whose body is written while it leaves, by the owner of the writer.
    pub fn stream(content_type: &'static str) -> (BodyWriter, Response) {
        let (writer, body) = BodyWriter::new();
        (writer, Response::new(StatusCode::OK, content_type, body))
    }

    /// The status code.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Changes the status code.
    pub fn with_status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }

    /// Adds a header. A value that cannot stand in one is left out.
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Response {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Lets the requester read for as long as it takes, if bytes go on leaving: an administrator, at a route that is for others, too.
    pub fn may_take_long(mut self) -> Response {
        self.may_take_long = true;
        self
    }

    pub(super) fn into_hyper(self) -> hyper::Response<ResponseBody> {
        let mut response = hyper::Response::new(self.body);
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}
