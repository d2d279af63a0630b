//! Letters between a guest and the host of one group.

use bytes::Bytes;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, Dialect, Id, IdList, OpCode, SessionId, Xid, Zxid};
use paddock_state::{Client, ConnId};
use paddock_tree::{AppliedItem, MultiOutcome, RelayedAnswer};

use crate::parts::{GroupPart, PartQuery, buffer, put_result, result, unknown};

/// Bytes of the letter about a request, but for the client's identities and the request itself.
const REQUEST_BYTES: usize = 1 + 8 + 8 + 1 + 4 + 8 + 4 + 8 + 1 + 4 + 4;

/// Bytes of the letter about a reply, but for the reply itself.
const REPLY_BYTES: usize = 1 + 8 + 8 + 4;

/// A letter of a guest.
#[derive(Clone, Debug)]
pub(crate) enum GuestLetter {
    /// A request of a client. The group has to lack nothing up to `needs`, and for a write to know the session as it is.
    Request { client: Client, xid: Xid, needs: Zxid, standing: SessionStanding, what: GuestRequest },
    /// Parts of an answer as of a stamp.
    Parts { client: Client, as_of: Zxid, queries: Vec<PartQuery> },
    /// The outcome of a multi over groups, once it is settled here.
    Outcome { session: SessionId, multi: i64 },
    /// Asks to be told when the group takes the session's writes through its present owner.
    Attend { session: SessionId, standing: SessionStanding },
    /// A command that no connection waits for, once the group holds nothing for a multi.
    Submit { session: SessionId, command: Vec<u8> },
    /// The guest waits for the group to lack nothing up to a stamp.
    Level { at_least: Zxid },
    /// A client does not watch a path any more.
    Unwatch { conn: ConnId, path: String },
    /// A connection is gone.
    Gone { conn: ConnId },
}

/// A session as the guest's replica of the home group has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionStanding {
    pub(crate) moves: u32,
    /// Zxid of that replica: a later one that does not have the session has seen its end.
    pub(crate) home: Zxid,
}

impl SessionStanding {
    fn encode(self, out: &mut Vec<u8>) {
        out.put_i32(self.moves as i32);
        out.put_i64(self.home.0);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<SessionStanding, DecodeError> {
        Ok(SessionStanding { moves: reader.i32()? as u32, home: Zxid(reader.i64()?) })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuestRequest {
    Write { op: OpCode, command: Bytes },
    Read { op: OpCode, body: Bytes },
}

impl GuestRequest {
    fn bytes(&self) -> &[u8] {
        match self {
            GuestRequest::Write { command, .. } => command,
            GuestRequest::Read { body, .. } => body,
        }
    }
}

/// A letter of a host. `number` is that of the guest's letter that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostLetter {
    /// All that was handed over for the guest before is settled: what it asks for on this line can be done.
    Welcome {
        zxid: Zxid,
        level: Zxid,
    },
    /// The answer to a request: whole frames. The group's zxid was this one then.
    Reply {
        number: u64,
        zxid: Zxid,
        bytes: Vec<u8>,
    },
    Parts {
        number: u64,
        parts: Vec<GroupPart>,
    },
    Outcome {
        number: u64,
        outcome: MultiOutcome,
    },
    /// The group takes the session's writes, or the command was taken, or the request can never be carried out. The group's zxid was this one then.
    Done {
        number: u64,
        zxid: Zxid,
    },
    /// An event of a watch of a connection: a whole frame.
    Event {
        conn: ConnId,
        bytes: Vec<u8>,
    },
    /// A connection is to be closed: some of its requests are not answered. Those that may yet be carried out are done when that is over.
    Close {
        conn: ConnId,
    },
    /// The group has carried out a write that was relayed to it, of a session of this guest.
    Relayed {
        answer: RelayedAnswer,
    },
    /// Answers to relayed writes may be lost: another state has taken the place of the group's.
    LostAnswers,
    /// The group has come so far, behind all that was said before. It has applied these items since it was told last.
    Level {
        zxid: Zxid,
        level: Zxid,
        items: Vec<AppliedItem>,
    },
}

impl GuestLetter {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(match self {
            GuestLetter::Request { client, what, .. } => {
                REQUEST_BYTES + client.ids().wire().len() + what.bytes().len()
            }
            _ => 0,
        });
        match self {
            GuestLetter::Request { client, xid, needs, standing, what } => {
                out.push(0);
                put_client(&mut out, client);
                out.put_i32(xid.0);
                out.put_i64(needs.0);
                standing.encode(&mut out);
                let (is_write, op) = match what {
                    GuestRequest::Write { op, .. } => (true, op),
                    GuestRequest::Read { op, .. } => (false, op),
                };
                out.put_bool(is_write);
                out.put_i32(op.code());
                out.put_buffer(Some(what.bytes()));
            }
            GuestLetter::Parts { client, as_of, queries } => {
                out.push(1);
                put_client(&mut out, client);
                out.put_i64(as_of.0);
                out.put_count(queries.len());
                queries.iter().for_each(|query| query.encode(&mut out));
            }
            GuestLetter::Outcome { session, multi } => {
                out.push(2);
                out.put_i64(session.0);
                out.put_i64(*multi);
            }
            GuestLetter::Attend { session, standing } => {
                out.push(3);
                out.put_i64(session.0);
                standing.encode(&mut out);
            }
            GuestLetter::Submit { session, command } => {
                out.push(4);
                out.put_i64(session.0);
                out.put_buffer(Some(command));
            }
            GuestLetter::Level { at_least } => {
                out.push(5);
                out.put_i64(at_least.0);
            }
            GuestLetter::Unwatch { conn, path } => {
                out.push(6);
                out.put_i64(conn.to_u64() as i64);
                out.put_string(path);
            }
            GuestLetter::Gone { conn } => {
                out.push(7);
                out.put_i64(conn.to_u64() as i64);
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<GuestLetter, DecodeError> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        Ok(match reader.u8()? {
            0 => {
                let client = client(reader)?;
                let (xid, needs) = (Xid(reader.i32()?), Zxid(reader.i64()?));
                let (standing, is_write) = (SessionStanding::decode(reader)?, reader.bool()?);
                let (code, bytes) = (reader.i32()?, Bytes::from(buffer(reader)?));
                let op = OpCode::from_code(code)
                    .ok_or(DecodeError::UnknownValue { field: "operation", value: code })?;
                let what = if is_write {
                    GuestRequest::Write { op, command: bytes }
                } else {
                    GuestRequest::Read { op, body: bytes }
                };
                GuestLetter::Request { client, xid, needs, standing, what }
            }
            1 => {
                let (client, as_of) = (client(reader)?, Zxid(reader.i64()?));
                GuestLetter::Parts { client, as_of, queries: reader.list(PartQuery::decode)? }
            }
            2 => GuestLetter::Outcome { session: session(reader)?, multi: reader.i64()? },
            3 => {
                let (session, standing) = (session(reader)?, SessionStanding::decode(reader)?);
                GuestLetter::Attend { session, standing }
            }
            4 => GuestLetter::Submit { session: session(reader)?, command: buffer(reader)? },
            5 => GuestLetter::Level { at_least: Zxid(reader.i64()?) },
            6 => GuestLetter::Unwatch { conn: conn(reader)?, path: reader.string()?.to_owned() },
            7 => GuestLetter::Gone { conn: conn(reader)? },
            other => return Err(unknown("letter of a guest", other)),
        })
    }

    /// The session whose letters are taken one behind the other.
    pub(crate) fn session(&self) -> Option<SessionId> {
        match self {
            GuestLetter::Request { client, .. } | GuestLetter::Parts { client, .. } => Some(client.session),
            GuestLetter::Attend { session, .. } | GuestLetter::Submit { session, .. } => Some(*session),
            // What a multi has come to is known whatever else waits.
            GuestLetter::Outcome { .. }
            | GuestLetter::Level { .. }
            | GuestLetter::Unwatch { .. }
            | GuestLetter::Gone { .. } => None,
        }
    }
}

impl HostLetter {
    /// The letter [`HostLetter::Reply`], without a copy of the reply.
    pub(crate) fn encode_reply(number: u64, zxid: Zxid, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(REPLY_BYTES + bytes.len());
        out.push(1);
        out.put_i64(number as i64);
        out.put_i64(zxid.0);
        out.put_buffer(Some(bytes));
        out
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut begin = |tag: u8, number: u64| {
            out.push(tag);
            out.put_i64(number as i64);
        };
        match self {
            HostLetter::Welcome { zxid, level } => {
                begin(0, zxid.0 as u64);
                out.put_i64(level.0);
            }
            HostLetter::Reply { number, zxid, bytes } => {
                return HostLetter::encode_reply(*number, *zxid, bytes);
            }
            HostLetter::Parts { number, parts } => {
                begin(2, *number);
                out.put_count(parts.len());
                parts.iter().for_each(|part| part.encode(&mut out));
            }
            HostLetter::Outcome { number, outcome } => {
                begin(3, *number);
                outcome.encode(&mut out);
            }
            HostLetter::Done { number, zxid } => {
                begin(4, *number);
                out.put_i64(zxid.0);
            }
            HostLetter::Event { conn, bytes } => {
                begin(5, conn.to_u64());
                out.put_buffer(Some(bytes));
            }
            HostLetter::Close { conn } => begin(7, conn.to_u64()),
            HostLetter::Relayed { answer: RelayedAnswer { session, decided, zxid, result } } => {
                begin(8, session.0 as u64);
                out.put_i64(decided.0);
                out.put_i64(zxid.0);
                put_result(&mut out, result, |out, body| out.put_buffer(Some(body)));
            }
            HostLetter::LostAnswers => begin(9, 0),
            HostLetter::Level { zxid, level, items } => {
                begin(6, zxid.0 as u64);
                out.put_i64(level.0);
                out.put_count(items.len());
                for item in items {
                    out.put_i64(item.zxid.0);
                    out.put_i64(item.decided.0);
                }
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<HostLetter, DecodeError> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        let (tag, number) = (reader.u8()?, reader.i64()? as u64);
        Ok(match tag {
            0 => HostLetter::Welcome { zxid: Zxid(number as i64), level: Zxid(reader.i64()?) },
            1 => HostLetter::Reply { number, zxid: Zxid(reader.i64()?), bytes: buffer(reader)? },
            2 => HostLetter::Parts { number, parts: reader.list(GroupPart::decode)? },
            3 => HostLetter::Outcome { number, outcome: MultiOutcome::decode(reader)? },
            4 => HostLetter::Done { number, zxid: Zxid(reader.i64()?) },
            5 => HostLetter::Event { conn: ConnId::from_u64(number), bytes: buffer(reader)? },
            6 => {
                let level = Zxid(reader.i64()?);
                let item = |reader: &mut Reader<'_>| {
                    Ok(AppliedItem { zxid: Zxid(reader.i64()?), decided: Zxid(reader.i64()?) })
                };
                HostLetter::Level { zxid: Zxid(number as i64), level, items: reader.list(item)? }
            }
            7 => HostLetter::Close { conn: ConnId::from_u64(number) },
            8 => {
                let (session, decided) = (SessionId(number as i64), Zxid(reader.i64()?));
                let (zxid, result) = (Zxid(reader.i64()?), result(reader, buffer)?);
                HostLetter::Relayed { answer: RelayedAnswer { session, decided, zxid, result } }
            }
            9 => HostLetter::LostAnswers,
            other => return Err(unknown("letter of a host", other)),
        })
    }
}

fn put_client(out: &mut Vec<u8>, client: &Client) {
    out.put_i64(client.conn.to_u64() as i64);
    out.put_i64(client.session.0);
    out.put_bool(client.dialect == Dialect::ClickHouse);
    out.extend_from_slice(client.ids().wire());
}

fn client(reader: &mut Reader<'_>) -> Result<Client, DecodeError> {
    let (conn, session) = (conn(reader)?, session(reader)?);
    let dialect = if reader.bool()? { Dialect::ClickHouse } else { Dialect::ZooKeeper };
    let ids = IdList::decode(reader)?;
    let ids: Vec<Id> = ids.iter().map(|(scheme, id)| Id::new(scheme, id)).collect();
    Ok(Client::new(conn, session, &ids).with_dialect(dialect))
}

fn conn(reader: &mut Reader<'_>) -> Result<ConnId, DecodeError> {
    Ok(ConnId::from_u64(reader.i64()? as u64))
}

fn session(reader: &mut Reader<'_>) -> Result<SessionId, DecodeError> {
    Ok(SessionId(reader.i64()?))
}

#[cfg(test)]
mod tests {
    use paddock_proto::ErrorCode;
    use paddock_tree::MultiEnd;

    use super::*;

    #[test]
    fn letters_of_a_guest_come_as_they_were_sent() {
        let conn = ConnId::new(3, 4);
        let client = Client::new(conn, SessionId(5), &[Id::new("digest", "a:b")]);
        let client = client.with_dialect(Dialect::ClickHouse);
        let request = |what| GuestLetter::Request {
            client: client.clone(),
            xid: Xid(6),
            needs: Zxid(7),
            standing: SessionStanding { moves: 8, home: Zxid(9) },
            what,
        };
        let queries = vec![PartQuery::Data { path: "/a".to_owned() }];
        let letters = [
            request(GuestRequest::Write { op: OpCode::Create, command: vec![1, 2].into() }),
            request(GuestRequest::Read { op: OpCode::GetData, body: vec![3].into() }),
            GuestLetter::Parts { client: client.clone(), as_of: Zxid(9), queries },
            GuestLetter::Outcome { session: SessionId(1), multi: 2 },
            GuestLetter::Attend {
                session: SessionId(1),
                standing: SessionStanding { moves: 2, home: Zxid(3) },
            },
            GuestLetter::Submit { session: SessionId(1), command: vec![4] },
            GuestLetter::Level { at_least: Zxid(3) },
            GuestLetter::Unwatch { conn, path: "/b".to_owned() },
            GuestLetter::Gone { conn },
        ];
        for letter in letters {
            let bytes = letter.encode();
            let again = GuestLetter::decode(&bytes).unwrap();
            assert_eq!((format!("{again:?}"), again.encode()), (format!("{letter:?}"), bytes.clone()));
            (0..bytes.len()).for_each(|length| assert!(GuestLetter::decode(&bytes[..length]).is_err()));
        }
        assert!(GuestLetter::decode(&[99]).is_err());
    }

    #[test]
    fn letters_of_a_host_come_as_they_were_sent() {
        let outcome = MultiOutcome { multi: 3, zxid: Zxid(4), end: MultiEnd::Done(vec![(1, vec![2])]) };
        let relayed =
            |result| RelayedAnswer { session: SessionId(1), decided: Zxid(2), zxid: Zxid(3), result };
        let items = vec![AppliedItem { zxid: Zxid(5), decided: Zxid(6) }];
        let letters = [
            HostLetter::Welcome { zxid: Zxid(1), level: Zxid(2) },
            HostLetter::Reply { number: 1, zxid: Zxid(3), bytes: vec![2] },
            HostLetter::Parts { number: 1, parts: vec![GroupPart::Znode(None)] },
            HostLetter::Outcome { number: 1, outcome },
            HostLetter::Done { number: 1, zxid: Zxid(3) },
            HostLetter::Event { conn: ConnId::new(1, 2), bytes: vec![3] },
            HostLetter::Close { conn: ConnId::new(1, 2) },
            HostLetter::Relayed { answer: relayed(Ok(vec![1, 2])) },
            HostLetter::Relayed { answer: relayed(Err(ErrorCode::NoNode)) },
            HostLetter::LostAnswers,
            HostLetter::Level { zxid: Zxid(1), level: Zxid(2), items },
        ];
        for letter in letters {
            let bytes = letter.encode();
            assert_eq!(HostLetter::decode(&bytes).as_ref(), Ok(&letter));
            (0..bytes.len()).for_each(|length| assert!(HostLetter::decode(&bytes[..length]).is_err()));
        }
        assert!(HostLetter::decode(&[99, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
