//! Prefetch of the znodes that the reads which have come together are about, before they are taken one by one.

use paddock_proto::jute::Reader;
use paddock_proto::{OpCode, RequestHeader, frame};
use paddock_tree::Tree;
use smallvec::SmallVec;

/// Number of znodes that are looked at ahead of the first read.
const PATHS_MAX: usize = Tree::LOOK_AHEAD_PATHS;

/// The paths of the reads in these frames; none if the first one is no read. Xids may have more bytes than a member knows.
#[inline]
pub(crate) fn paths(mut bytes: &[u8], xid_bytes_ahead: usize) -> SmallVec<[&str; PATHS_MAX]> {
    let mut paths = SmallVec::new();
    while let Ok(Some((frame, len))) = frame::split(bytes, i32::MAX)
        && paths.len() < PATHS_MAX
    {
        match frame.get(xid_bytes_ahead..).and_then(path_of_read) {
            Some(path) => paths.push(path),
            None if paths.is_empty() => break,
            None => {}
        }
        bytes = &bytes[len..];
    }
    paths
}

/// A read of one znode begins with its path, behind its header.
fn path_of_read(frame: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(frame);
    let op = OpCode::from_code(RequestHeader::decode(&mut reader).ok()?.op)?;
    if is_read_of_one(op) { reader.string().ok() } else { None }
}

/// True if this asks about one znode.
#[inline]
pub(crate) fn is_read_of_one(op: OpCode) -> bool {
    use OpCode::{Exists, GetAcl, GetChildren, GetChildren2, GetData};
    matches!(op, Exists | GetData | GetAcl | GetChildren | GetChildren2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(op: OpCode, path: &str) -> Vec<u8> {
        let mut body = vec![0, 0, 0, 1];
        body.extend_from_slice(&(op as i32).to_be_bytes());
        body.extend_from_slice(&(path.len() as u32).to_be_bytes());
        body.extend_from_slice(path.as_bytes());
        body.push(0);
        [&(body.len() as u32).to_be_bytes()[..], &body].concat()
    }

    #[test]
    fn paths_of_reads_are_found_behind_a_read() {
        let frames =
            [frame(OpCode::GetData, "/a"), frame(OpCode::Delete, "/b"), frame(OpCode::Exists, "/c/d")];
        let bytes = frames.concat();
        assert_eq!(paths(&bytes, 0)[..], ["/a", "/c/d"]);
        assert_eq!(paths(&bytes[..bytes.len() - 1], 0)[..], ["/a"], "the last is not there yet");
        assert_eq!(paths(&bytes[frames[0].len()..], 0)[..], [""; 0], "a write comes first");
    }

    #[test]
    fn xids_may_be_wider() {
        let narrow = frame(OpCode::GetData, "/a");
        let wide = [&(narrow.len() as u32).to_be_bytes()[..], &[0; 4], &narrow[4..]].concat();
        assert_eq!(paths(&wide, 4)[..], ["/a"]);
        assert_eq!(paths(&wide, 0)[..], [""; 0]);
    }

    #[test]
    fn any_bytes_will_do() {
        let bytes = frame(OpCode::GetChildren, "/a/b/c");
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] = 0xFF;
            paths(&bytes, 0);
            paths(&bytes[at..], 0);
        }
    }

    #[test]
    fn there_are_no_more_than_are_taken_at_a_time() {
        let bytes = frame(OpCode::GetData, "/a").repeat(PATHS_MAX + 10);
        assert_eq!(paths(&bytes, 0).len(), PATHS_MAX);
    }
}
