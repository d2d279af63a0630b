//! The outcome of a write, read from its reply.

use paddock_proto::jute::Reader;
use paddock_proto::{DecodeError, OpCode, ReplyHeader, Stat, Write, frame};

/// The outcome of a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The operation was carried out; the path of the znode that it has made, if it has.
    Done(Option<String>),
    /// All operations were carried out; what each has made.
    Multi(Vec<Option<String>>),
    Refused,
}

/// The outcome of a write by frames of which the last is its reply, in ZooKeeper's dialect.
pub(super) fn outcome_of(write: &Write<'_>, frames: &[u8]) -> Outcome {
    last_frame(frames).and_then(|reply| decode(write, reply).ok()).unwrap_or(Outcome::Refused)
}

fn last_frame(mut frames: &[u8]) -> Option<&[u8]> {
    let mut last = None;
    while let Ok(Some((frame, len))) = frame::split(frames, i32::MAX) {
        (last, frames) = (Some(frame), &frames[len..]);
    }
    last
}

fn decode(write: &Write<'_>, reply: &[u8]) -> Result<Outcome, DecodeError> {
    let mut reader = Reader::new(reply);
    if ReplyHeader::decode(&mut reader)?.error.is_some() {
        return Ok(Outcome::Refused);
    }
    match write {
        Write::Create(_) => Ok(Outcome::Done(Some(reader.string()?.to_owned()))),
        Write::Multi(writes) => {
            let results: Result<Vec<_>, _> = writes.iter().map(|_| result(&mut reader)).collect();
            Ok(results?.into_iter().collect::<Option<Vec<_>>>().map_or(Outcome::Refused, Outcome::Multi))
        }
        _ => Ok(Outcome::Done(None)),
    }
}

/// Result of one operation of a multi; `None` if the multi was refused.
fn result(reader: &mut Reader<'_>) -> Result<Option<Option<String>>, DecodeError> {
    let (code, _is_end, error) = (reader.i32()?, reader.bool()?, reader.i32()?);
    let Some(op) = OpCode::from_code(code).filter(|_| error == 0) else { return Ok(None) };
    Ok(Some(match op {
        OpCode::Create | OpCode::CreateIfNotExists => Some(reader.string()?.to_owned()),
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            let path = reader.string()?.to_owned();
            Stat::decode(reader)?;
            Some(path)
        }
        OpCode::SetData => {
            Stat::decode(reader)?;
            None
        }
        _ => None,
    }))
}
