//! Answers say what the model says. A write is answered with the outcome of that very write, and only once; a read with
//! what was true at the zxid that stands over the answer.

use std::collections::BTreeSet;

use paddock_model::{Asker, Question, Wish};
use paddock_proto::jute::Reader;
use paddock_proto::{ErrorCode, Id, ReplyHeader, SessionId, Zxid};

use super::truth::Truth;
use super::{Checked, ensure};
use crate::answer_limits::AnswerLimits;

const WRITES: &str = "answers to writes";
const READS: &str = "answers to reads";

/// Writes that have been acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    zxids: BTreeSet<Zxid>,
}

impl Acknowledged {
    pub(crate) fn check_write(
        &mut self,
        truth: &Truth,
        session: SessionId,
        wish: &Wish,
        header: ReplyHeader,
        body: &[u8],
    ) -> Checked {
        let zxid = header.zxid;
        let Some(happened) = truth.at(zxid) else {
            ensure!(false, WRITES, "{wish:?} is acknowledged with zxid {zxid}, which nobody has applied");
            unreachable!("that is false");
        };
        if let (Wish::Reconfig { .. }, Wish::SettleReconfig { error }) = (wish, &happened.call.wish) {
            return check_change_of_members(truth, (session, wish), *error, header, body);
        }
        let call = &happened.call;
        ensure!(
            (call.session, &call.wish) == (session, wish),
            WRITES,
            "{wish:?} of session {session} is acknowledged with zxid {zxid}, which is {:?} of session {}",
            call.wish,
            call.session
        );
        ensure!(self.zxids.insert(zxid), WRITES, "zxid {zxid} is acknowledged twice");
        let is_early = matches!(wish, Wish::Reconfig { .. }) && happened.outcome.result.is_ok();
        ensure!(!is_early, WRITES, "a change of members is answered before it is in force");
        let mut expected = Vec::new();
        let error = match &happened.outcome.result {
            Ok(reply) => {
                reply.encode(&mut expected);
                None
            }
            Err(error) => Some(*error),
        };
        ensure!(
            (header.error, body) == (error, &expected[..]),
            WRITES,
            "{wish:?} at zxid {zxid} is answered {:?} {body:?}; it came to {:?}",
            header.error,
            happened.outcome.result
        );
        Ok(())
    }
}

/// The answer to a change of members: it is in force, or was given up.
fn check_change_of_members(
    truth: &Truth,
    asked: (SessionId, &Wish),
    error: Option<ErrorCode>,
    header: ReplyHeader,
    body: &[u8],
) -> Checked {
    let zxid = header.zxid;
    let begun = truth.change_of_members_before(zxid);
    ensure!(
        begun.is_some_and(|begun| (begun.call.session, &begun.call.wish) == asked),
        WRITES,
        "{asked:?} is answered at zxid {zxid}, where {begun:?} is settled"
    );
    ensure!(
        header.error == error,
        WRITES,
        "a change of members came to {error:?} and is told {:?}",
        header.error
    );
    let question = Question::GetData { path: "/zookeeper/config".to_owned() };
    // A client that may change the members is shown what they are.
    let asker = Asker { session: asked.0, ids: vec![Id::new("super", "")] };
    match error {
        Some(_) => Ok(()),
        None => check_read(truth, &asker, &question, (header, body), AnswerLimits::default()).map(drop),
    }
}

/// Returns what was answered: nothing, or an error.
pub(crate) fn check_read(
    truth: &Truth,
    asker: &Asker,
    question: &Question,
    (header, body): (ReplyHeader, &[u8]),
    limits: AnswerLimits,
) -> Checked<Result<(), ErrorCode>> {
    let Some(model) = truth.model_at(header.zxid) else {
        ensure!(false, READS, "{question:?} is answered at zxid {}, which nobody has applied", header.zxid);
        unreachable!("that is false");
    };
    let expected = model.read(question, asker);
    if header.error == Some(ErrorCode::BadArguments) && limits.refuse(&expected) {
        return Ok(Err(ErrorCode::BadArguments));
    }
    let answer = match header.error {
        Some(error) => Ok(Err(error)),
        None => question.decode_answer(&mut Reader::new(body)).map(Ok),
    };
    ensure!(
        answer.as_ref() == Ok(&expected),
        READS,
        "{question:?} at zxid {} is answered {answer:?}; it should be {expected:?}",
        header.zxid
    );
    Ok(expected.map(drop))
}
