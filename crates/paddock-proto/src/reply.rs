//! Replies of a server.

use std::borrow::Cow;

use crate::jute::{DecodeError, Reader, Writer};
use crate::request::MultiHeader;
use crate::{Dialect, ErrorCode, OpCode, Stat, Xid, Zxid};

/// In front of every reply but the first. With an error, nothing follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    pub xid: Xid,
    pub zxid: Zxid,
    pub error: Option<ErrorCode>,
}

impl ReplyHeader {
    pub const BYTES: usize = 16;

    /// Header of a reply without an error.
    pub fn ok(xid: Xid, zxid: Zxid) -> ReplyHeader {
        ReplyHeader { xid, zxid, error: None }
    }

    /// Header of a refusal.
    pub fn refused(xid: Xid, zxid: Zxid, error: ErrorCode) -> ReplyHeader {
        ReplyHeader { xid, zxid, error: Some(error) }
    }

    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut wire = [0; ReplyHeader::BYTES];
        wire[..4].copy_from_slice(&self.xid.0.to_be_bytes());
        wire[4..12].copy_from_slice(&self.zxid.0.to_be_bytes());
        wire[12..].copy_from_slice(&self.error.map_or(0, ErrorCode::code).to_be_bytes());
        out.extend_from_slice(&wire);
    }

    pub fn decode(reader: &mut Reader<'_>) -> Result<ReplyHeader, DecodeError> {
        let (xid, zxid, code) = (Xid(reader.i32()?), Zxid(reader.i64()?), reader.i32()?);
        let error = match code {
            0 => None,
            value => {
                let unknown = DecodeError::UnknownValue { field: "error code", value };
                Some(ErrorCode::from_code(value).ok_or(unknown)?)
            }
        };
        Ok(ReplyHeader { xid, zxid, error })
    }
}

/// The body of the reply to a write that was carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteReply<'a> {
    /// delete, check and their kin, closeSession: the header says it all. createSession: the connect response does.
    Done,
    /// create, createIfNotExists: the path, with its suffix if it is sequential.
    Created { path: Cow<'a, str> },
    /// create2, createContainer, createTTL.
    CreatedWithStat { path: Cow<'a, str>, stat: Stat },
    /// setData, setACL.
    Changed { stat: Stat },
    /// A multi has results even if it failed: its header's error is always 0.
    Multi(Vec<MultiResult<'a>>),
}

/// The result of one operation of a multi.
#[derive(Clone, Debug, PartialEq)]
pub enum MultiResult<'a> {
    /// The operation as its request named it, and its reply.
    Done(OpCode, WriteReply<'a>),
    /// In a failed multi: `None` for the operations before the one that failed, which had no fault of their own.
    Failed(Option<ErrorCode>),
}

impl WriteReply<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            WriteReply::Done => {}
            WriteReply::Created { path } => out.put_string(path),
            WriteReply::CreatedWithStat { path, stat } => {
                out.put_string(path);
                stat.encode(out);
            }
            WriteReply::Changed { stat } => stat.encode(out),
            WriteReply::Multi(results) => {
                results.iter().for_each(|result| result.encode(out));
                MultiHeader::END.encode(out);
            }
        }
    }
}

impl MultiResult<'_> {
    /// Operation code of a result that is an error.
    const ERROR_OP: i32 = -1;

    /// Appends the result, as it stands among those of its multi.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            MultiResult::Done(op, reply) => {
                // createContainer and createTTL answer as create2 does.
                let op = match reply {
                    WriteReply::CreatedWithStat { .. } => OpCode::Create2,
                    _ => *op,
                };
                MultiHeader { op: op.code(), done: false, error: 0 }.encode(out);
                reply.encode(out);
            }
            MultiResult::Failed(error) => MultiResult::encode_error(*error, out),
        }
    }

    /// A failed operation of a multi.
    fn encode_error(error: Option<ErrorCode>, out: &mut Vec<u8>) {
        let error = error.map_or(0, ErrorCode::code);
        MultiHeader { op: MultiResult::ERROR_OP, done: false, error }.encode(out);
        out.put_i32(error);
    }

    /// A failed operation of a multi read. The two dialects cannot read each other's form.
    pub fn encode_read_error(dialect: Dialect, op: OpCode, error: ErrorCode, out: &mut Vec<u8>) {
        match dialect {
            Dialect::ZooKeeper => MultiResult::encode_error(Some(error), out),
            Dialect::ClickHouse => {
                let error = dialect.error(error).code();
                MultiHeader { op: op.code(), done: false, error }.encode(out);
            }
        }
    }

    /// In front of the body of one operation of a multi read.
    pub fn encode_read_header(op: OpCode, out: &mut Vec<u8>) {
        MultiHeader { op: op.code(), done: false, error: 0 }.encode(out);
    }

    /// After the last result.
    pub fn encode_end(out: &mut Vec<u8>) {
        MultiHeader::END.encode(out);
    }
}
