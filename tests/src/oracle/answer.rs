//! Answers, as text that two servers must agree on.
//!
//! Left out or made alike here, and nowhere else:
//! - times: only whether one is set;
//! - session ids: the number under which the sequence opened the session;
//! - zxids: the distance from where the sequence began (on fresh servers the number itself);
//! - the order of children, of ephemerals, of whoAmI's identities and of the entries into which ZooKeeper expands the
//!   `auth` scheme: it keeps them in hash tables.

use std::collections::BTreeMap;

use paddock_proto::jute::Reader;
use paddock_proto::{Acl, DecodeError, ErrorCode, Id, OpCode, Password, Stat, Zxid};

use super::identities::OracleIdentity;

/// Names that one server gave out and that are taken out of its answers.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The zxid where the sequence began.
    pub base: i64,
    /// The ids of the sessions in the order in which the sequence opened them.
    pub sessions: Vec<i64>,
    /// The passwords that their clients were given.
    pub passwords: BTreeMap<i64, Password>,
    /// The identities of their clients: Paddock gives a session to no other client.
    pub identities: BTreeMap<i64, OracleIdentity>,
    /// The zxid after each step so far, if zxids that clients tell the server go by steps; otherwise they are distances.
    pub steps: Option<Vec<i64>>,
}

impl Names {
    /// The zxid that a client tells the server.
    pub(super) fn shown(&self, relative: i64) -> i64 {
        match &self.steps {
            Some(steps) if relative > 0 => steps.get(relative as usize).copied().unwrap_or(i64::MAX),
            _ => relative.saturating_add(self.base),
        }
    }

    pub fn zxid(&self, zxid: i64) -> String {
        match zxid {
            ..=0 => zxid.to_string(),
            _ => format!("+{}", zxid - self.base),
        }
    }

    pub fn session(&self, id: i64) -> String {
        if id == 0 {
            return "none".into();
        }
        match self.sessions.iter().position(|&known| known == id) {
            Some(number) => format!("s{number}"),
            None => format!("unknown 0x{id:x}"),
        }
    }

    fn stat(&self, stat: &Stat) -> String {
        let Stat { version, cversion, aversion, data_length, num_children, .. } = stat;
        let zxid = |zxid: Zxid| self.zxid(zxid.0);
        let time = |ms: i64| if ms == 0 { "unset" } else { "set" };
        format!(
            "czxid={} mzxid={} pzxid={} version={version} cversion={cversion} aversion={aversion} owner={} \
             length={data_length} children={num_children} ctime={} mtime={}",
            zxid(stat.czxid),
            zxid(stat.mzxid),
            zxid(stat.pzxid),
            self.session(stat.ephemeral_owner.0),
            time(stat.ctime_ms),
            time(stat.mtime_ms),
        )
    }

    /// A reply to `op` behind its header. Every byte is accounted for.
    pub fn body(&self, op: i32, body: &[u8]) -> String {
        let mut reader = Reader::new(body);
        let text = self.fields(op, &mut reader);
        let rest = reader.rest();
        match text {
            Err(error) => format!("undecodable ({error}): \"{}\"", body.escape_ascii()),
            Ok(text) if rest.is_empty() => text,
            Ok(text) => format!("{text} and {} more bytes: \"{}\"", rest.len(), rest.escape_ascii()),
        }
    }

    fn fields(&self, op: i32, r: &mut Reader<'_>) -> Result<String, DecodeError> {
        let Some(op) = OpCode::from_code(op) else { return Ok(String::new()) };
        Ok(match op {
            OpCode::Create | OpCode::Sync => string(r)?,
            OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
                format!("{} {}", string(r)?, self.read_stat(r)?)
            }
            OpCode::SetData | OpCode::SetAcl | OpCode::Exists => self.read_stat(r)?,
            OpCode::GetData => format!("{} {}", buffer(r)?, self.read_stat(r)?),
            OpCode::GetAcl => format!("{} {}", acl(r)?, self.read_stat(r)?),
            OpCode::GetChildren | OpCode::GetEphemerals => strings(r)?,
            OpCode::GetChildren2 => format!("{} {}", strings(r)?, self.read_stat(r)?),
            OpCode::GetAllChildrenNumber | OpCode::AddWatch => r.i32()?.to_string(),
            OpCode::WhoAmI => {
                let mut identities = r.list(Id::decode)?;
                identities.sort();
                format!("{identities:?}")
            }
            OpCode::Multi | OpCode::MultiRead => self.results(r)?,
            _ => String::new(),
        })
    }

    fn read_stat(&self, r: &mut Reader<'_>) -> Result<String, DecodeError> {
        Ok(self.stat(&Stat::decode(r)?))
    }

    fn results(&self, r: &mut Reader<'_>) -> Result<String, DecodeError> {
        const ERROR: i32 = -1;
        let mut text = String::new();
        loop {
            let (op, done, error) = (r.i32()?, r.bool()?, r.i32()?);
            if done {
                return Ok(format!("{text}\n        end type={op} error={error}"));
            }
            let result = match op {
                ERROR => format!("error {}", code(r.i32()?)),
                op => self.fields(op, r)?,
            };
            text.push_str(&format!("\n        type={op} error={error} {result}"));
        }
    }
}

/// The name of an error code.
pub fn code(code: i32) -> String {
    match ErrorCode::from_code(code) {
        Some(error) => format!("{error:?}"),
        None => code.to_string(),
    }
}

fn string(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    Ok(r.buffer()?.map_or("null".into(), |bytes| format!("\"{}\"", bytes.escape_ascii())))
}

fn buffer(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    string(r)
}

fn strings(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    let mut strings = r.list(string)?;
    strings.sort();
    Ok(format!("[{}]", strings.join(", ")))
}

fn acl(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    let mut entries = r.list(Acl::decode)?;
    if entries.iter().filter(|entry| matches!(&*entry.id.scheme, "digest" | "sasl" | "x509")).count() > 1 {
        entries.sort();
    }
    let entries = entries.iter().map(|Acl { perms, id }| format!("{}:{:?}:{}", id.scheme, id.id, perms.0));
    Ok(format!("[{}]", entries.collect::<Vec<_>>().join(", ")))
}
