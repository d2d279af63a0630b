//! Failures of a multi read: unlike a multi, it answers each part for itself and is never refused as a whole.

use paddock_proto::OpCode;
use paddock_proto::jute::{DecodeError, Reader};

use super::ServerReply;

/// The type of a result that is an error.
const ERROR_OP: i32 = -1;
const STAT_BYTES: usize = 68;

/// The error of the answer, or else of the first part that has one; 0 if all went well.
pub(crate) fn error(answer: &ServerReply<'_>) -> i32 {
    // An answer that cannot be read is as bad as one that says so.
    match answer.error {
        0 => first_error(answer.body).unwrap_or(paddock_proto::ErrorCode::MarshallingError.code()),
        error => error,
    }
}

fn first_error(body: &[u8]) -> Result<i32, DecodeError> {
    let r = &mut Reader::new(body);
    loop {
        let (op, done, _) = (r.i32()?, r.bool()?, r.i32()?);
        if done {
            return Ok(0);
        }
        match OpCode::from_code(op) {
            _ if op == ERROR_OP => match r.i32()? {
                0 => {}
                error => return Ok(error),
            },
            Some(OpCode::GetData) => {
                r.buffer()?;
                r.bytes(STAT_BYTES)?;
            }
            Some(OpCode::GetChildren) => {
                r.strings()?;
            }
            _ => return Err(DecodeError::UnknownValue { field: "result of multi read", value: op }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use paddock_proto::{Dialect, ErrorCode, MultiResult, jute::Writer};

    use super::super::Operation;
    use super::*;

    fn check(write: impl Fn(&mut Vec<u8>), expected: i32) {
        let mut body = Vec::new();
        write(&mut body);
        let answer = ServerReply { operation: Operation(0), error: 0, body: &body, now: Instant::now() };
        assert_eq!(error(&answer), expected);
    }

    fn good_parts(out: &mut Vec<u8>) {
        MultiResult::encode_read_header(OpCode::GetData, out);
        out.put_buffer(Some(b"x"));
        out.extend_from_slice(&[0; STAT_BYTES]);
        MultiResult::encode_read_header(OpCode::GetChildren, out);
        out.put_count(1);
        out.put_string("child");
    }

    #[test]
    fn the_first_error_counts() {
        check(
            |out| {
                good_parts(out);
                MultiResult::encode_end(out);
            },
            0,
        );
        check(
            |out| {
                good_parts(out);
                MultiResult::encode_read_error(Dialect::ZooKeeper, OpCode::GetData, ErrorCode::NoNode, out);
                MultiResult::encode_end(out);
            },
            ErrorCode::NoNode.code(),
        );
        check(good_parts, ErrorCode::MarshallingError.code());
    }
}
