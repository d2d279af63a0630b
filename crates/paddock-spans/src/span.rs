//! One span: a request from the moment in which a worker took it to its reply.

use std::net::IpAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use paddock_proto::jute::{DecodeError, Reader};
use paddock_proto::{ErrorCode, OpCode, SessionId, Zxid};

use super::TraceContext;

/// Bytes of a path that are told. Most are much shorter, and many spans may wait at once.
const PATH_BYTES_MAX: usize = 1024;

/// A request with a tracing context.
#[derive(Clone, Debug)]
pub struct Span {
    pub(crate) context: TraceContext,
    pub(crate) id: u64,
    /// `None` if it is not known here.
    pub(crate) op: Option<OpCode>,
    /// First string of the request, if it is a path.
    pub(crate) path: Option<String>,
    pub(crate) session: SessionId,
    pub(crate) xid: i64,
    pub(crate) client: IpAddr,
    /// In nanoseconds since 1970.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) ending: Ending,
    began: Instant,
}

/// End of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a reply.
    Replied { zxid: Zxid, error: Option<ErrorCode> },
    /// The connection ended first.
    Unanswered,
}

impl Ending {
    /// As the last of these whole frames says, in the member's form: there may be events in front of a reply.
    pub fn of_reply(mut frames: &[u8]) -> Ending {
        let mut ending = Ending::Unanswered;
        while let Some((len, rest)) = frames.split_first_chunk() {
            let (frame, rest) = rest.split_at(i32::from_be_bytes(*len) as usize);
            ending = Ending::of_header(frame).expect("a reply is as long as its header");
            frames = rest;
        }
        ending
    }

    fn of_header(frame: &[u8]) -> Result<Ending, DecodeError> {
        let mut reader = Reader::new(frame);
        let (_xid, zxid, error) = (reader.i32()?, reader.i64()?, reader.i32()?);
        Ok(Ending::Replied { zxid: Zxid(zxid), error: ErrorCode::from_code(error) })
    }
}

impl Span {
    /// Begins with a request that has just come, or `None` if it has no header.
    pub fn begin(
        context: TraceContext,
        request: &[u8],
        wide_xids: bool,
        session: SessionId,
        client: IpAddr,
    ) -> Option<Box<Span>> {
        let mut reader = Reader::new(request);
        let xid = if wide_xids { reader.i64() } else { reader.i32().map(i64::from) };
        let op = OpCode::from_code(reader.i32().ok()?);
        let path = op.filter(|op| begins_with_path(*op)).and_then(|_| reader.string().ok());
        // A clock that is set between begin and end would turn them around.
        let start_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Some(Box::new(Span {
            context,
            id: fastrand::u64(1..),
            op,
            path: path.map(|path| path[..path.floor_char_boundary(PATH_BYTES_MAX)].to_owned()),
            session,
            xid: xid.ok()?,
            client,
            start_ns,
            end_ns: start_ns,
            ending: Ending::Unanswered,
            began: Instant::now(),
        }))
    }

    pub(super) fn end(&mut self, ending: Ending) {
        self.end_ns = self.start_ns + self.began.elapsed().as_nanos() as u64;
        self.ending = ending;
    }

    /// Name of the request.
    pub(crate) fn name(&self) -> String {
        let Some(op) = self.op else { return "unknown".into() };
        let mut name = format!("{op:?}");
        name[..1].make_ascii_lowercase();
        name
    }
}

fn begins_with_path(op: OpCode) -> bool {
    !matches!(
        op,
        OpCode::Ping
            | OpCode::Auth
            | OpCode::Sasl
            | OpCode::Multi
            | OpCode::MultiRead
            | OpCode::Reconfig
            | OpCode::SetWatches
            | OpCode::SetWatches2
            | OpCode::WhoAmI
            | OpCode::CreateSession
            | OpCode::CloseSession
            | OpCode::ResumeSession
            | OpCode::ExpireSession
            | OpCode::FoundEnsemble
            | OpCode::SettleReconfig
            | OpCode::SetSecret
            | OpCode::BindSession
            | OpCode::BetweenGroups
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use paddock_proto::jute::Writer;
    use paddock_proto::{Xid, frame};

    use super::*;

    pub(crate) fn begin(op: i32, body: impl FnOnce(&mut Vec<u8>)) -> Box<Span> {
        let context = TraceContext { trace_id: 0xabc, parent: 77, state: "a=1".into() };
        let mut request = Vec::new();
        request.put_i32(5);
        request.put_i32(op);
        body(&mut request);
        Span::begin(context, &request, false, SessionId(9), [127, 0, 0, 1].into()).expect("it has a header")
    }

    #[test]
    fn a_span_knows_what_was_asked() {
        let span = begin(OpCode::GetData.code(), |out| out.put_string("/a"));
        assert_eq!((span.name().as_str(), span.path.as_deref(), span.xid), ("getData", Some("/a"), 5));
        let long = format!("/{}", "ä".repeat(1000));
        let span = begin(OpCode::Create.code(), |out| out.put_string(&long));
        assert_eq!((span.name().as_str(), span.path.as_deref()), ("create", Some(&long[..1023])));
        assert_eq!(begin(OpCode::Create.code(), |out| out.put_i32(i32::MAX)).path, None);
        assert_eq!(begin(999, |out| out.put_string("/a")).name(), "unknown");
    }

    #[test]
    fn what_is_no_path_is_not_told() {
        for op in [OpCode::Auth, OpCode::Sasl, OpCode::Multi, OpCode::Ping, OpCode::Reconfig] {
            assert_eq!(begin(op.code(), |out| out.put_string("secret")).path, None, "{op:?}");
        }
    }

    #[test]
    fn a_request_with_a_wide_xid_has_a_long_header() {
        let context = TraceContext { trace_id: 1, parent: 1, state: String::new() };
        let begin = |request: &[u8]| Span::begin(context.clone(), request, true, SessionId(9), [0; 4].into());
        let mut request = Vec::new();
        request.put_i64(5 << 32);
        assert!(begin(&request).is_none());
        request.put_i32(OpCode::Ping.code());
        let span = begin(&request).expect("it has a header");
        assert_eq!((span.xid, span.op), (5 << 32, Some(OpCode::Ping)));
    }

    #[test]
    fn the_last_frame_is_the_reply() {
        let mut frames = Vec::new();
        assert_eq!(Ending::of_reply(&frames), Ending::Unanswered);
        for (xid, zxid, error) in [(Xid::NOTIFICATION, 8, None), (Xid(1), 9, Some(ErrorCode::NoNode))] {
            let header = paddock_proto::ReplyHeader { xid, zxid: Zxid(zxid), error };
            frame::write(&mut frames, |out| header.encode(out));
            assert_eq!(Ending::of_reply(&frames), Ending::Replied { zxid: Zxid(zxid), error });
        }
    }
}
