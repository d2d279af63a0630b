//! A write as it lies in the log.
//!
//! Everything a member needs to reach the same outcome as every other travels with the request: the session, the
//! leader's time, and who the client is. Nothing else decides.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, GroupsCommand, IdList, MemberNumber, OpCode, SessionId, Write};

/// One write, decoded from its bytes and borrowing from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Command<'a> {
    /// `SessionId::NONE` for the service's own writes.
    pub session: SessionId,
    /// The leader's wall clock.
    pub time_ms: i64,
    /// The member that took the write from its client. It is not in the command's bytes: those of one member travel
    /// together.
    pub member: MemberNumber,
    /// Identities of the client when it asked.
    pub ids: IdList<'a>,
    /// Limits of quotas count, because the member that took the write enforces them.
    pub enforces_quotas: bool,
    /// A body that cannot be decoded is refused at apply, and takes a zxid like every refusal.
    pub write: Result<Write<'a>, DecodeError>,
}

/// Bit of the operation's code in a command for which limits of quotas count. No operation that a quota could refuse has a code
/// as large, or a negative one.
const QUOTAS_ENFORCED: i32 = 1 << 30;

impl<'a> Command<'a> {
    /// Offset of the time in the encoded command, so that the leader can stamp it.
    pub const TIME_OFFSET: usize = 8;

    /// Bytes of an encoded command beside its identities and its request's body.
    const FIXED_BYTES: usize = 8 + 8 + 4;

    /// Size of the wire form.
    pub fn encoded_len(ids: IdList<'_>, body: &[u8]) -> usize {
        Command::FIXED_BYTES + ids.wire().len() + body.len()
    }

    /// Appends the wire form: session, time, identities, operation, and the request's body to the end.
    pub fn encode(
        session: SessionId,
        time_ms: i64,
        ids: IdList<'_>,
        op: OpCode,
        body: &[u8],
        out: &mut Vec<u8>,
    ) {
        out.put_i64(session.0);
        out.put_i64(time_ms);
        out.extend_from_slice(ids.wire());
        out.put_i32(op.code());
        out.extend_from_slice(body);
    }

    /// A command between groups, of a session or of none, with these identities.
    pub fn between_groups(session: SessionId, ids: IdList<'_>, command: &GroupsCommand<'_>) -> Vec<u8> {
        let mut body = Vec::with_capacity(command.encoded_len_about());
        command.encode(&mut body);
        let mut bytes = Vec::with_capacity(Command::encoded_len(ids, &body));
        Command::encode(session, 0, ids, GroupsCommand::OP, &body, &mut bytes);
        bytes
    }

    /// Marks an encoded command of a client with these identities, so that limits of quotas count for it.
    pub fn enforce_quotas(ids: IdList<'_>, bytes: &mut [u8]) {
        let at = Command::TIME_OFFSET + 8 + ids.wire().len();
        let code = bytes[at..].first_chunk_mut::<4>().expect("a command has an operation");
        let op = i32::from_be_bytes(*code);
        if op > 0 {
            *code = (op | QUOTAS_ENFORCED).to_be_bytes();
        }
    }

    /// Fails only when the envelope is broken: such bytes were never written by `encode`.
    pub fn decode(bytes: &'a [u8]) -> Result<Command<'a>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let session = SessionId(reader.i64()?);
        let time_ms = reader.i64()?;
        let ids = IdList::decode(&mut reader)?;
        let (op, enforces_quotas) = operation(&mut reader)?;
        let write = Write::decode(op, reader.rest());
        Ok(Command { session, time_ms, member: 0, ids, enforces_quotas, write })
    }

    /// The request in an encoded command as its client sent it: its operation, and its body.
    pub fn request(bytes: &'a [u8]) -> Result<(OpCode, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.i64().and_then(|_session| reader.i64())?;
        IdList::decode(&mut reader)?;
        let (op, _) = operation(&mut reader)?;
        Ok((op, reader.rest()))
    }

    /// The session that the command ends, if it is not refused.
    pub fn ended_session(&self) -> Option<SessionId> {
        match self.write {
            Ok(Write::CloseSession) => Some(self.session),
            Ok(Write::ExpireSession { session }) => Some(session),
            _ => None,
        }
    }

    /// The znode that an encoded command is about, if it is about one that should be there: without the rest of it.
    pub fn known_path(bytes: &'a [u8]) -> Option<&'a str> {
        use OpCode::{Delete, SetAcl, SetData};
        let mut reader = Reader::new(bytes);
        reader.i64().and_then(|_session| reader.i64()).ok()?;
        IdList::decode(&mut reader).ok()?;
        let (op, _) = operation(&mut reader).ok()?;
        if matches!(op, SetData | Delete | SetAcl) { reader.string().ok() } else { None }
    }

    /// The session of an encoded command.
    pub fn session_of(bytes: &[u8]) -> SessionId {
        SessionId(Reader::new(bytes).i64().unwrap_or_default())
    }

    /// True if an encoded command is about a znode that `is_such` names.
    pub fn is_about(bytes: &[u8], is_such: impl Fn(&str) -> bool) -> bool {
        let Ok((op, body)) = Command::request(bytes) else { return false };
        let Ok(write) = Write::decode(op, body) else { return false };
        let mut found = false;
        crate::write_paths::for_each_path(&write, &mut |path| found |= is_such(path));
        found
    }

    /// This command, taken from its client by `member`.
    pub fn taken_by(self, member: MemberNumber) -> Command<'a> {
        Command { member, ..self }
    }
}

/// The operation, and if limits of quotas count.
fn operation(reader: &mut Reader<'_>) -> Result<(OpCode, bool), DecodeError> {
    let code = reader.i32()?;
    let enforces_quotas = code > 0 && code & QUOTAS_ENFORCED != 0;
    let code = if enforces_quotas { code & !QUOTAS_ENFORCED } else { code };
    let unknown = DecodeError::UnknownValue { field: "operation", value: code };
    Ok((OpCode::from_code(code).ok_or(unknown)?, enforces_quotas))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paddock_proto::Id;

    #[test]
    fn a_command_comes_back_as_encoded() {
        let ids = IdList::encode(&[Id::new("digest", "a:b")]);
        let ids = IdList::decode(&mut Reader::new(&ids)).unwrap();
        let mut body = Vec::new();
        body.put_string("/a");
        body.put_i32(-1);
        let mut bytes = Vec::new();
        Command::encode(SessionId(7), 99, ids, OpCode::Delete, &body, &mut bytes);
        assert_eq!(bytes.len(), Command::encoded_len(ids, &body));
        assert_eq!(bytes[Command::TIME_OFFSET..][..8], 99i64.to_be_bytes());

        assert_eq!(Command::request(&bytes), Ok((OpCode::Delete, &body[..])));
        assert_eq!(Command::known_path(&bytes), Some("/a"));
        assert!((0..bytes.len() - 4).all(|end| Command::known_path(&bytes[..end]).is_none()));
        let command = Command::decode(&bytes).unwrap();
        assert_eq!((command.session, command.time_ms, command.ids), (SessionId(7), 99, ids));
        assert_eq!(command.write, Ok(Write::Delete { path: "/a", version: -1 }));
        assert!(!command.enforces_quotas);

        Command::enforce_quotas(ids, &mut bytes);
        assert_eq!(Command::known_path(&bytes), Some("/a"));
        let marked = Command::decode(&bytes).unwrap();
        assert!(marked.enforces_quotas);
        assert_eq!(marked.write, Ok(Write::Delete { path: "/a", version: -1 }));
    }

    #[test]
    fn operations_of_sessions_are_the_same_with_quotas() {
        for op in [OpCode::CreateSession, OpCode::CloseSession] {
            let mut bytes = Vec::new();
            Command::encode(SessionId(7), 0, IdList::NONE, op, &[0; 4], &mut bytes);
            let before = bytes.clone();
            Command::enforce_quotas(IdList::NONE, &mut bytes);
            assert_eq!(bytes, before);
        }
    }

    #[test]
    fn a_broken_body_is_kept_as_an_error_and_a_broken_envelope_is_one() {
        let mut bytes = Vec::new();
        Command::encode(SessionId(7), 99, IdList::NONE, OpCode::Delete, b"??", &mut bytes);
        assert_eq!(Command::decode(&bytes).unwrap().write, Err(DecodeError::Truncated));
        for end in 0..24 {
            assert!(Command::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
