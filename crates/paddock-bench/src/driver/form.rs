//! The form of requests and replies on a session that asked for ClickHouse's extensions.
//!
//! Lanes write requests in ZooKeeper's form. What is written is brought into the session's form behind them, so that
//! workloads know nothing of it.

use paddock_proto::jute::{DecodeError, Reader, Writer};
use paddock_proto::{Extensions, Xid};

/// ClickHouse's own flag of a trace that concerns the coordination service, beside the one for sampled.
const TRACE_FLAGS: &str = "3";

/// Brings the request from `start` on into the form that was agreed.
pub(super) fn dress(extensions: Extensions, out: &mut Vec<u8>, start: usize) {
    if out.len() == start {
        return;
    }
    if extensions.wide_xids {
        widen(out, start);
    }
    if extensions.tracing {
        put_trace(out);
    }
}

/// Sets 64 bits in the place of the xid's 32.
fn widen(out: &mut Vec<u8>, start: usize) {
    let [len, xid] = [start, start + 4]
        .map(|at| i32::from_be_bytes(*out[at..].first_chunk().expect("a request is as long as its header")));
    let mut head = Vec::with_capacity(12);
    head.put_i32(len + 4);
    head.put_i64(xid.into());
    out.splice(start..start + 8, head);
}

/// A trace of its own for each request, as keeper-bench has it: with a random id and no span above it.
fn put_trace(out: &mut Vec<u8>) {
    let id = format!("{:032x}", fastrand::u128(1..));
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    out.push(1);
    out.extend_from_slice(format!("{}\n0\n\n{TRACE_FLAGS}\n", parts.join("-")).as_bytes());
}

/// The xid of a reply. Those that are sent have 32 bits.
pub(super) fn read_xid(extensions: Extensions, reader: &mut Reader<'_>) -> Result<Xid, DecodeError> {
    Ok(Xid(if extensions.wide_xids { reader.i64()? as i32 } else { reader.i32()? }))
}

#[cfg(test)]
mod tests {
    use paddock_proto::{OpCode, RequestHeader, frame};

    use super::*;

    fn dressed(extensions: Extensions, xid: Xid) -> Vec<u8> {
        let mut out = b"before".to_vec();
        frame::write(&mut out, |out| RequestHeader { xid, op: OpCode::Ping.code() }.encode(out));
        dress(extensions, &mut out, 6);
        assert_eq!(&out[..6], b"before");
        out.split_off(6)
    }

    #[test]
    fn a_wide_xid_keeps_its_sign() {
        let wide = Extensions { wide_xids: true, ..Extensions::default() };
        for xid in [7, -2] {
            let request = dressed(wide, Xid(xid));
            let (body, len) = frame::split(&request, 100).unwrap().expect("a whole frame");
            let mut reader = Reader::new(body);
            assert_eq!((reader.i64(), reader.i32(), reader.is_empty()), (Ok(xid.into()), Ok(11), true));
            assert_eq!(len, request.len());
            assert_eq!(read_xid(wide, &mut Reader::new(body)), Ok(Xid(xid)));
        }
    }

    #[test]
    fn each_request_has_a_trace_of_its_own() {
        let traced = Extensions { tracing: true, ..Extensions::default() };
        let trace = || String::from_utf8(dressed(traced, Xid(7)).split_off(12)).unwrap();
        let (one, other) = (trace(), trace());
        assert_ne!(one, other);
        let lines: Vec<&str> = one.strip_prefix('\u{1}').expect("there is one").split('\n').collect();
        assert_eq!((lines[0].len(), &lines[1..]), (36, &["0", "", "3", ""][..]));
    }

    #[test]
    fn without_extensions_and_without_a_request_nothing_changes() {
        assert_eq!(dressed(Extensions::default(), Xid(7)).len(), 12);
        let mut out = Vec::new();
        dress(Extensions { wide_xids: true, compression: true, tracing: true }, &mut out, 0);
        assert!(out.is_empty());
    }
}
