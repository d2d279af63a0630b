//! Replies to the requests of an observer's clients, which come back as transactions: who asked, and what is to be answered.
//!
//! A transaction says everything that a reply needs but the Stats, which are those of its moment: within a multi a znode may have several.

use std::borrow::Cow;

use paddock_proto::jute::Reader;
use paddock_proto::{ErrorCode, MultiResult, OpCode, SessionId, Stat, WriteReply};
use paddock_tree::Draft;

use crate::error::Problem;
use crate::transaction::Body;

const ERROR: i32 = -1;
const MULTI: i32 = 14;

/// Request that a transaction came of.
#[derive(Debug)]
pub(crate) struct Asked {
    session: SessionId,
    xid: i32,
    outcome: AnsweredOutcome,
}

#[derive(Debug)]
enum AnsweredOutcome {
    Refused(i32),
    Done(i32),
    /// Types of the parts, with the error of those that are one.
    Multi(Vec<(i32, Option<i32>)>),
}

/// Path that an operation was about, and the znode's Stat behind it.
#[derive(Debug)]
pub(crate) struct Replied {
    path: String,
    stat: Option<Stat>,
}

/// Request, and what it is answered with.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) asked: (SessionId, i32),
    pub(crate) answer: Result<Vec<u8>, ErrorCode>,
}

impl Replied {
    /// Facts for an operation's reply, once it was carried out.
    pub(crate) fn after(body: &Body<'_>, draft: &Draft) -> Replied {
        let path = match *body {
            Body::Create { path, .. } | Body::SetData { path, .. } | Body::SetAcl { path, .. } => path,
            _ => return Replied { path: String::new(), stat: None },
        };
        Replied { path: path.to_owned(), stat: draft.find(path).map(|node| draft.stat(node)) }
    }

    fn reply(self, kind: i32) -> Result<WriteReply<'static>, ErrorCode> {
        let Replied { path, stat } = self;
        // A znode that the transaction did not make is one that the source has and the copy has not.
        let stat = stat.ok_or(ErrorCode::RuntimeInconsistency);
        let path = Cow::Owned(path);
        Ok(match kind {
            1 => WriteReply::Created { path },
            15 | 19 | 21 => WriteReply::CreatedWithStat { path, stat: stat? },
            5 | 7 => WriteReply::Changed { stat: stat? },
            _ => WriteReply::Done,
        })
    }
}

impl Asked {
    pub(crate) fn decode(entry: &[u8]) -> Result<Asked, Problem> {
        let mut reader = Reader::new(entry);
        let (session, xid) = (SessionId(reader.i64()?), reader.i32()?);
        let (_zxid, _time, kind) = (reader.i64()?, reader.i64()?, reader.i32()?);
        let outcome = match kind {
            ERROR => AnsweredOutcome::Refused(reader.i32()?),
            MULTI => AnsweredOutcome::Multi(reader.list(|reader| {
                let (kind, record) = (reader.i32()?, reader.buffer()?.unwrap_or_default());
                let error = if kind == ERROR { Some(Reader::new(record).i32()?) } else { None };
                Ok((kind, error))
            })?),
            kind => AnsweredOutcome::Done(kind),
        };
        Ok(Asked { session, xid, outcome })
    }

    /// The answer, from what each operation left behind; of a multi that failed that is not looked at.
    pub(crate) fn answer(self, replies: Vec<Replied>) -> Answered {
        let Asked { session, xid, outcome } = self;
        let reply = match outcome {
            AnsweredOutcome::Refused(code) => {
                Err(ErrorCode::from_code(code).unwrap_or(ErrorCode::RuntimeInconsistency))
            }
            AnsweredOutcome::Done(kind) => {
                replies.into_iter().next().map_or(Ok(WriteReply::Done), |reply| reply.reply(kind))
            }
            AnsweredOutcome::Multi(parts) => multi(parts, replies),
        };
        let answer = reply.map(|reply| {
            let mut body = Vec::new();
            reply.encode(&mut body);
            body
        });
        Answered { asked: (session, xid), answer }
    }
}

fn multi(parts: Vec<(i32, Option<i32>)>, replies: Vec<Replied>) -> Result<WriteReply<'static>, ErrorCode> {
    if parts.iter().any(|(_, error)| error.is_some()) {
        let failed = |(_, error): (i32, Option<i32>)| {
            MultiResult::Failed(
                error.map(|code| ErrorCode::from_code(code).unwrap_or(ErrorCode::RuntimeInconsistency)),
            )
        };
        return Ok(WriteReply::Multi(parts.into_iter().map(failed).collect()));
    }
    let done = parts.into_iter().zip(replies).map(|((kind, _), reply)| {
        let op = OpCode::from_code(kind).ok_or(ErrorCode::RuntimeInconsistency)?;
        Ok(MultiResult::Done(op, reply.reply(kind)?))
    });
    Ok(WriteReply::Multi(done.collect::<Result<_, ErrorCode>>()?))
}

#[cfg(test)]
mod tests {
    use paddock_proto::Zxid;
    use paddock_proto::jute::Writer;

    use super::*;
    use crate::replay;
    use crate::transaction::Transaction;

    fn entry(kind: i32, record: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_i64(7);
        out.put_i32(-5);
        out.put_i64(0x1_0000_0002);
        out.put_i64(99);
        out.put_i32(kind);
        out.extend_from_slice(record);
        out
    }

    fn created(path: &str) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(path);
        out.put_buffer(Some(b"x"));
        out.extend_from_slice(paddock_proto::AclList::OPEN.wire());
        out.put_bool(false);
        out.put_i32(1);
        out
    }

    fn changed(path: &str, version: i32) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(path);
        out.put_buffer(Some(b"new"));
        out.put_i32(version);
        out
    }

    fn answer_to(entry: &[u8]) -> Result<Vec<u8>, ErrorCode> {
        let (mut draft, mut replies) = (Draft::new(), Vec::new());
        let transaction = Transaction::decode(entry).unwrap();
        let mut after = |draft: &Draft, body: &Body<'_>| replies.push(Replied::after(body, draft));
        replay::apply(&mut draft, &transaction, &mut after).unwrap();
        let answered = Asked::decode(entry).unwrap().answer(replies);
        assert_eq!(answered.asked, (SessionId(7), -5));
        answered.answer
    }

    fn parts(parts: &[(i32, Vec<u8>)]) -> Vec<u8> {
        let mut record = Vec::new();
        record.put_count(parts.len());
        for (kind, part) in parts {
            record.put_i32(*kind);
            record.put_buffer(Some(part));
        }
        record
    }

    #[test]
    fn a_reply_is_that_of_the_request_that_came_back() {
        let mut path = Vec::new();
        path.put_string("/a");
        assert_eq!(answer_to(&entry(1, &created("/a"))), Ok(path.clone()));
        let with_stat = answer_to(&entry(15, &created("/a"))).unwrap();
        assert_eq!(with_stat[..path.len()], path);
        let stat = Stat::decode(&mut Reader::new(&with_stat[path.len()..])).unwrap();
        assert_eq!((stat.czxid, stat.data_length), (Zxid(0x1_0000_0002), 1));
        assert_eq!(answer_to(&entry(2, &path)), Ok(Vec::new()));
        assert_eq!(answer_to(&entry(-1, &(-101i32).to_be_bytes())), Err(ErrorCode::NoNode));
    }

    #[test]
    fn each_part_of_a_multi_has_the_stat_of_its_moment() {
        let record = parts(&[
            (1, created("/a")),
            (5, changed("/a", 1)),
            (5, changed("/a", 2)),
            (13, changed("/a", 2)),
        ]);
        let body = answer_to(&entry(14, &record)).unwrap();
        let stats: Vec<i32> = versions(&body);
        assert_eq!(stats, [1, 2]);
    }

    /// Versions in the setData results of a multi.
    fn versions(body: &[u8]) -> Vec<i32> {
        let (mut reader, mut versions) = (Reader::new(body), Vec::new());
        loop {
            let (op, done, _error) = (reader.i32().unwrap(), reader.bool().unwrap(), reader.i32().unwrap());
            match op {
                _ if done => return versions,
                1 => drop(reader.string().unwrap()),
                5 => versions.push(Stat::decode(&mut reader).unwrap().version),
                13 => {}
                other => panic!("operation {other}"),
            }
        }
    }

    #[test]
    fn a_failed_multi_tells_which_part_failed() {
        let record = parts(&[
            (1, created("/a")),
            (-1, (-101i32).to_be_bytes().to_vec()),
            (-1, (-2i32).to_be_bytes().to_vec()),
        ]);
        let mut expected = Vec::new();
        WriteReply::Multi(vec![
            MultiResult::Failed(None),
            MultiResult::Failed(Some(ErrorCode::NoNode)),
            MultiResult::Failed(Some(ErrorCode::RuntimeInconsistency)),
        ])
        .encode(&mut expected);
        assert_eq!(answer_to(&entry(14, &record)), Ok(expected));
    }
}
