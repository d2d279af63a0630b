//! Paths of requests, for statistics of those that take long.

use paddock_proto::OpCode;
use paddock_proto::jute::Reader;

/// Bytes of a path that are kept.
const PATH_BYTES_MAX: usize = 512;
/// Bytes of a multi in front of its first path.
const MULTI_HEADER_BYTES: usize = 9;

/// The path that the body of a request is about, the first one of a multi, cut off where it is very long; empty if there is none.
#[inline]
pub(crate) fn path_of(op: i32, body: &[u8]) -> &[u8] {
    let ahead = if op == OpCode::Multi.code() { MULTI_HEADER_BYTES } else { 0 };
    let body = body.get(ahead..).filter(|_| op > 0).unwrap_or_default();
    let path = Reader::new(body).buffer().ok().flatten().unwrap_or_default();
    if path.first() == Some(&b'/') { &path[..path.len().min(PATH_BYTES_MAX)] } else { &[] }
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Writer as _;

    use super::*;

    #[test]
    fn a_request_is_about_its_first_path() {
        let mut create = Vec::new();
        create.put_string("/a/b");
        create.put_buffer(Some(b"data"));
        assert_eq!(path_of(1, &create), b"/a/b");
        assert_eq!(path_of(14, &[&[0; MULTI_HEADER_BYTES], &create[..]].concat()), b"/a/b");
        assert_eq!(path_of(-10, &create), b"");
        assert_eq!(path_of(1, &create[..3]), b"");
        let mut scheme = Vec::new();
        scheme.put_string("digest");
        assert_eq!(path_of(5, &scheme), b"");
        let mut long = Vec::new();
        long.put_string(&format!("/{}", "x".repeat(1000)));
        assert_eq!(path_of(1, &long).len(), PATH_BYTES_MAX);
    }
}
