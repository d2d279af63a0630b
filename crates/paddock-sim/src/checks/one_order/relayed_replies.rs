//! Replies to writes that the home group has relayed, of which members have the bodies.

use paddock_model::Wish;
use paddock_proto::jute::Reader;
use paddock_proto::{DecodeError, ErrorCode, MultiResult, OpCode, Stat, WriteReply};

/// Operation of the result of a multi that is an error.
const ERROR_OP: i32 = -1;

/// The body of the reply to a write.
pub(super) fn read_reply(wish: &Wish, body: &[u8]) -> Result<WriteReply<'static>, DecodeError> {
    let reader = &mut Reader::new(body);
    match wish {
        Wish::Multi(wishes) => {
            let results = wishes.iter().map(|wish| read_result(wish, reader));
            results.collect::<Result<Vec<_>, _>>().map(WriteReply::Multi)
        }
        wish => read_single(wish, reader),
    }
}

fn read_result(wish: &Wish, reader: &mut Reader<'_>) -> Result<MultiResult<'static>, DecodeError> {
    let (op, _is_end, _error) = (reader.i32()?, reader.bool()?, reader.i32()?);
    if op == ERROR_OP {
        let code = reader.i32()?;
        return Ok(MultiResult::Failed(ErrorCode::from_code(code)));
    }
    Ok(MultiResult::Done(wish.op(), read_single(wish, reader)?))
}

fn read_single(wish: &Wish, reader: &mut Reader<'_>) -> Result<WriteReply<'static>, DecodeError> {
    let path = |reader: &mut Reader<'_>| Ok::<_, DecodeError>(reader.string()?.to_owned().into());
    Ok(match wish.op() {
        OpCode::Create | OpCode::CreateIfNotExists => WriteReply::Created { path: path(reader)? },
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            WriteReply::CreatedWithStat { path: path(reader)?, stat: Stat::decode(reader)? }
        }
        OpCode::SetData | OpCode::SetAcl => WriteReply::Changed { stat: Stat::decode(reader)? },
        _ => WriteReply::Done,
    })
}
