//! Answers as text that two servers must agree on.
//!
//! Made alike here, and nowhere else: times and zxids count only by whether they are set, and the zxids of a Stat by their order;
//! sessions have the id that this member gave; lists that ZooKeeper keeps in hash tables are sorted.

use paddock_proto::jute::Reader;
use paddock_proto::{Acl, DecodeError, ErrorCode, Id, OpCode, Stat};

/// Longest data that is shown whole.
const SHOWN_BYTES: usize = 200;

/// Names the sessions of one side.
pub(super) type SessionName<'a> = &'a dyn Fn(i64) -> String;

/// The reply to an operation, from behind its length.
pub(super) fn reply(op: i32, frame: &[u8], name: SessionName<'_>) -> String {
    let mut r = Reader::new(frame);
    let header = (|| Ok::<_, DecodeError>((r.i32()?, r.i64()?, r.i32()?)))();
    match header {
        Err(_) => "no reply".to_owned(),
        Ok((_, _, 0)) => body(op, r.rest(), name),
        Ok((_, _, error)) => code(error),
    }
}

/// A watch event, from behind its length.
pub(super) fn event(frame: &[u8]) -> String {
    let mut r = Reader::new(frame.get(16..).unwrap_or_default());
    let event = (|| Ok::<_, DecodeError>((r.i32()?, r.i32()?, string(&mut r)?)))();
    event.map_or("an event that cannot be read".to_owned(), |(kind, state, path)| {
        format!("event type={kind} state={state} path={path}")
    })
}

fn body(op: i32, body: &[u8], name: SessionName<'_>) -> String {
    let mut r = Reader::new(body);
    match fields(op, &mut r, name) {
        Err(error) => format!("{} bytes that cannot be read ({error})", body.len()),
        Ok(text) if r.is_empty() => format!("ok {text}"),
        Ok(text) => format!("ok {text} and {} more bytes", r.rest().len()),
    }
}

fn fields(op: i32, r: &mut Reader<'_>, name: SessionName<'_>) -> Result<String, DecodeError> {
    let Some(op) = OpCode::from_code(op) else { return Ok(String::new()) };
    Ok(match op {
        OpCode::Create | OpCode::Sync => string(r)?,
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            format!("{} {}", string(r)?, stat(r, name)?)
        }
        OpCode::SetData | OpCode::SetAcl | OpCode::Exists => stat(r, name)?,
        OpCode::GetData => format!("{} {}", string(r)?, stat(r, name)?),
        OpCode::GetAcl => format!("{} {}", acl(r)?, stat(r, name)?),
        OpCode::GetChildren | OpCode::GetEphemerals => strings(r)?,
        OpCode::GetChildren2 => format!("{} {}", strings(r)?, stat(r, name)?),
        OpCode::GetAllChildrenNumber | OpCode::AddWatch => r.i32()?.to_string(),
        OpCode::WhoAmI => {
            let mut identities = r.list(Id::decode)?;
            identities.sort();
            format!("{identities:?}")
        }
        OpCode::Multi | OpCode::MultiRead => results(r, name)?,
        _ => String::new(),
    })
}

fn results(r: &mut Reader<'_>, name: SessionName<'_>) -> Result<String, DecodeError> {
    const ERROR: i32 = -1;
    let mut text = String::new();
    loop {
        let (op, is_end, error) = (r.i32()?, r.bool()?, r.i32()?);
        if is_end {
            return Ok(text);
        }
        let result = if op == ERROR { code(r.i32()?) } else { fields(op, r, name)? };
        text += &format!("[type={op} error={error} {result}]");
    }
}

fn stat(r: &mut Reader<'_>, name: SessionName<'_>) -> Result<String, DecodeError> {
    let stat = Stat::decode(r)?;
    let Stat { version, cversion, aversion, data_length, num_children, .. } = stat;
    let zxids = [stat.czxid.0, stat.mzxid.0, stat.pzxid.0];
    let [czxid, mzxid, pzxid] = zxids.map(|zxid| rank(zxid, &zxids));
    let time = |ms: i64| if ms == 0 { "unset" } else { "set" };
    Ok(format!(
        "czxid={czxid} mzxid={mzxid} pzxid={pzxid} version={version} cversion={cversion} aversion={aversion} owner={} \
         length={data_length} children={num_children} ctime={} mtime={}",
        name(stat.ephemeral_owner.0),
        time(stat.ctime_ms),
        time(stat.mtime_ms),
    ))
}

/// Number of different zxids of a Stat that are not above this one; 0 for none.
fn rank(zxid: i64, of: &[i64; 3]) -> usize {
    if zxid == 0 {
        return 0;
    }
    let mut below: Vec<i64> = of.iter().copied().filter(|other| *other != 0 && *other <= zxid).collect();
    below.sort_unstable();
    below.dedup();
    below.len()
}

fn code(code: i32) -> String {
    ErrorCode::from_code(code).map_or_else(|| format!("error {code}"), |error| format!("{error:?}"))
}

fn string(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    Ok(match r.buffer()? {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > SHOWN_BYTES => {
            format!("[{} bytes, CRC {:08x}]", bytes.len(), crc32c::crc32c(bytes))
        }
        Some(bytes) => format!("\"{}\"", bytes.escape_ascii()),
    })
}

fn strings(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    let mut strings = r.list(string)?;
    strings.sort();
    Ok(format!("[{}]", strings.join(", ")))
}

fn acl(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    let mut entries = r.list(Acl::decode)?;
    entries.sort();
    let entries = entries.iter().map(|Acl { perms, id }| format!("{}:{:?}:{}", id.scheme, id.id, perms.0));
    Ok(format!("[{}]", entries.collect::<Vec<_>>().join(", ")))
}
