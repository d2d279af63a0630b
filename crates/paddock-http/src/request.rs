//! A request as the functions behind the routes see it.

use std::net::SocketAddr;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Uri};
use paddock_proto::Id;

/// A request whose route is known.
#[derive(Debug)]
pub struct Request {
    /// The method, as the client sent it.
    pub method: Method,
    /// Part of the path that a route's `*` stands for, decoded; empty for a route without one.
    pub rest: String,
    /// Parameters of the query in their order, decoded.
    pub query: Vec<(String, String)>,
    /// All headers.
    pub headers: HeaderMap,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Identities that the connection's certificate proves.
    pub certified: Vec<Id>,
    /// The body; empty for a route that reads none.
    pub body: Bytes,
}

impl Request {
    /// The first parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A header that is text.
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Parameters of a query. A part that is no text when it is decoded is left out.
pub(super) fn parameters(uri: &Uri) -> Vec<(String, String)> {
    let parts = uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
    parts
        .filter_map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let text = |part: &str| decode(&part.replace('+', " "));
            Some((text(key)?, text(value)?))
        })
        .collect()
}

/// Text with its percent signs resolved; `None` if that is no UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        bytes.push(match (first, behind) {
            (b'%', [high, low, ..]) => {
                rest = &behind[2..];
                let digit = |byte: u8| char::from(byte).to_digit(16);
                (digit(*high)? << 4 | digit(*low)?) as u8
            }
            (b'%', _) => return None,
            _ => *first,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_resolved() {
        for (text, expected) in [
            ("a", Some("a")),
            ("a%20b", Some("a b")),
            ("%C3%BC/%2f", Some("ü//")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%ff", None),
        ] {
            assert_eq!(decode(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_query_is_a_list_of_parameters() {
        let uri: Uri = "/x?a=1&b&c=x%26y+z&&d=%ff".parse().unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(parameters(&uri), [pair("a", "1"), pair("b", ""), pair("c", "x&y z")]);
        assert_eq!(parameters(&"/x".parse().unwrap()), []);
    }
}
