//! Requests that no client library would send.

use paddock_chance::Chance;
use paddock_proto::OpCode;

use super::sequence::OracleCall;

/// Breaks a good request: its end is missing, something follows it, or a length in it is false. An auth packet that
/// cannot be read ends the connection.
pub(super) fn spoil(chance: &mut Chance, mut call: OracleCall) -> OracleCall {
    let bytes = &mut call.body.bytes;
    let remark = match chance.index(4) {
        0 | 1 if !bytes.is_empty() => {
            let length = chance.index(bytes.len());
            bytes.truncate(length);
            call.ends_connection |= call.op == OpCode::Auth.code();
            format!("cut to {length} bytes")
        }
        2 if bytes.len() >= 4 && !call.relative_zxid => {
            let length = *chance.pick(&[-2, i32::MIN, i32::MAX, 1 << 20]);
            bytes[..4].copy_from_slice(&length.to_be_bytes());
            format!("first four bytes say {length}")
        }
        _ => {
            bytes.extend_from_slice(b"more");
            "and four more bytes".into()
        }
    };
    // A body that lost its beginning has no zxid to adjust.
    call.relative_zxid &= call.body.bytes.len() >= 8;
    call.body = call.body.remark(&remark);
    call
}

/// A frame that is too short for a request header, or ends inside it.
pub(super) fn frame_without_header(chance: &mut Chance) -> Vec<u8> {
    let length = chance.index(8);
    let mut frame = (length as i32).to_be_bytes().to_vec();
    frame.extend((0..length).map(|_| chance.word() as u8));
    frame
}
