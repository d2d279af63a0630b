//! Several operations in one request.

use std::borrow::Cow;

use paddock_proto::jute::{Reader, Writer as _};
use paddock_proto::{Acl, CreateMode, DecodeError, ErrorCode, OpCode, Stat, WriteReply, encode};

use crate::Data;
use crate::pending::{Reply, Undecoded};
use crate::results::{read_data, read_strings};

/// Writes that happen together or not at all, in the order in which they are added. [`Client::multi`](crate::Client::multi) sends them in one request; there, too, a version of
/// `None` is any.
///
/// ```no_run
/// # async fn example(client: paddock_client::Client) -> Result<(), paddock_client::Error> {
/// use paddock_client::{CreateMode, Multi};
///
/// let moved = Multi::new().check("/from", Some(3)).delete("/from", None).create("/to", b"", CreateMode::Persistent);
/// client.multi(&moved).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Multi {
    body: Vec<u8>,
}

impl Multi {
    /// No operation yet. A server answers an empty multi with an empty list.
    pub fn new() -> Multi {
        Multi::default()
    }

    /// Adds [`Client::create`](crate::Client::create). Not for a mode with a TTL: no server could read the multi.
    pub fn create(mut self, path: &str, data: &[u8], mode: CreateMode) -> Multi {
        encode::create_open(self.operation(encode::create_op(mode)), path, Some(data), mode);
        self
    }

    /// Adds [`Client::create_with_acl`](crate::Client::create_with_acl).
    pub fn create_with_acl(mut self, path: &str, data: &[u8], acl: &[Acl], mode: CreateMode) -> Multi {
        encode::create(self.operation(encode::create_op(mode)), path, Some(data), acl, mode);
        self
    }

    /// Adds the making of a znode of any kind, with data that may be null. `ttl_ms`, in milliseconds, is for the modes with a TTL alone;
    /// `None` is for all others.
    pub fn create_any(
        mut self,
        path: &str,
        data: Option<&[u8]>,
        acl: &[Acl],
        mode: CreateMode,
        ttl_ms: Option<i64>,
    ) -> Multi {
        let body = self.operation(if ttl_ms.is_some() { OpCode::CreateTtl } else { encode::create_op(mode) });
        encode::create(body, path, data, acl, mode);
        if let Some(ttl_ms) = ttl_ms {
            body.put_i64(ttl_ms);
        }
        self
    }

    /// Adds [`Client::delete`](crate::Client::delete).
    pub fn delete(mut self, path: &str, version: Option<i32>) -> Multi {
        encode::path_and_version(self.operation(OpCode::Delete), path, version.unwrap_or(-1));
        self
    }

    /// Adds [`Client::set_data`](crate::Client::set_data).
    pub fn set_data(mut self, path: &str, data: &[u8], version: Option<i32>) -> Multi {
        encode::set_data(self.operation(OpCode::SetData), path, Some(data), version.unwrap_or(-1));
        self
    }

    /// Fails the multi unless the znode exists and has this version.
    pub fn check(mut self, path: &str, version: Option<i32>) -> Multi {
        encode::path_and_version(self.operation(OpCode::Check), path, version.unwrap_or(-1));
        self
    }

    fn operation(&mut self, op: OpCode) -> &mut Vec<u8> {
        encode::multi_operation(&mut self.body, op);
        &mut self.body
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode_all(out, &self.body);
    }
}

/// Reads that see the same state, each with its own result, for [`Client::multi_read`](crate::Client::multi_read).
#[derive(Clone, Debug, Default)]
pub struct MultiRead {
    body: Vec<u8>,
}

impl MultiRead {
    /// No read yet.
    pub fn new() -> MultiRead {
        MultiRead::default()
    }

    /// Adds a read of the data and Stat of `path`: [`ReadReply::Data`].
    pub fn get_data(mut self, path: &str) -> MultiRead {
        self.operation(OpCode::GetData, path);
        self
    }

    /// Adds a read of the names of the children of `path`: [`ReadReply::Children`].
    pub fn get_children(mut self, path: &str) -> MultiRead {
        self.operation(OpCode::GetChildren, path);
        self
    }

    fn operation(&mut self, op: OpCode, path: &str) {
        encode::multi_operation(&mut self.body, op);
        encode::path_and_watch(&mut self.body, path, false);
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode_all(out, &self.body);
    }
}

/// The result of one read of a `MultiRead`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadReply {
    /// The result of `get_data`.
    Data(Data),
    /// The names of the children, in no order.
    Children(Vec<String>),
    /// The reason for which this read has no result; the others have theirs.
    Refused(ErrorCode),
}

fn encode_all(out: &mut Vec<u8>, operations: &[u8]) {
    out.extend_from_slice(operations);
    encode::multi_end(out);
}

pub(crate) fn decode(reply: Reply) -> Result<Vec<WriteReply<'static>>, Undecoded> {
    let results = decode_all(&reply.body, read_write_result)?;
    // Before the culprit stand operations without a fault of their own, behind it some that were not tried.
    if let Some((index, code)) = results.iter().enumerate().find_map(culprit) {
        return Err(Undecoded::MultiFailed { index, code });
    }
    Ok(results.into_iter().filter_map(Result::ok).collect())
}

fn culprit(
    (index, result): (usize, &Result<WriteReply<'static>, Option<ErrorCode>>),
) -> Option<(usize, ErrorCode)> {
    result.as_ref().err().copied().flatten().map(|code| (index, code))
}

pub(crate) fn decode_read(reply: Reply) -> Result<Vec<ReadReply>, Undecoded> {
    Ok(decode_all(&reply.body, |op, reader| match op {
        Some(OpCode::GetData) => read_data(reader).map(ReadReply::Data),
        Some(OpCode::GetChildren) => read_strings(reader).map(ReadReply::Children),
        Some(other) => Err(unknown_result(other.code())),
        None => {
            let code = read_error(reader)?;
            Ok(ReadReply::Refused(code.ok_or(unknown_result(0))?))
        }
    })?)
}

/// Reads results up to the end mark; `item` gets the operation, or `None` for an error.
fn decode_all<T>(
    body: &[u8],
    item: impl Fn(Option<OpCode>, &mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    const ERROR: i32 = -1;
    let mut reader = Reader::new(body);
    let mut results = Vec::new();
    loop {
        let (op, done, _error) = (reader.i32()?, reader.bool()?, reader.i32()?);
        if done {
            return Ok(results);
        }
        let op = match op {
            ERROR => None,
            op => Some(OpCode::from_code(op).ok_or(unknown_result(op))?),
        };
        results.push(item(op, &mut reader)?);
    }
}

type WriteResult = Result<WriteReply<'static>, Option<ErrorCode>>;

fn read_write_result(op: Option<OpCode>, reader: &mut Reader<'_>) -> Result<WriteResult, DecodeError> {
    let Some(op) = op else { return read_error(reader).map(Err) };
    let path = |reader: &mut Reader<'_>| reader.string().map(|path| Cow::Owned(path.to_string()));
    Ok(Ok(match op {
        OpCode::Create => WriteReply::Created { path: path(reader)? },
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            WriteReply::CreatedWithStat { path: path(reader)?, stat: Stat::decode(reader)? }
        }
        OpCode::SetData => WriteReply::Changed { stat: Stat::decode(reader)? },
        OpCode::Delete | OpCode::Check => WriteReply::Done,
        other => return Err(unknown_result(other.code())),
    }))
}

fn read_error(reader: &mut Reader<'_>) -> Result<Option<ErrorCode>, DecodeError> {
    match reader.i32()? {
        0 => Ok(None),
        code => {
            let unknown = DecodeError::UnknownValue { field: "error code", value: code };
            ErrorCode::from_code(code).map(Some).ok_or(unknown)
        }
    }
}

fn unknown_result(value: i32) -> DecodeError {
    DecodeError::UnknownValue { field: "result in multi", value }
}
