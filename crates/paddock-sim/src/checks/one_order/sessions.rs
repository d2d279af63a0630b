//! A client and its session, as they are judged.

use paddock_model::{Asker, Question, Wish};
use paddock_proto::jute::Reader;
use paddock_proto::{ErrorCode, EventKind, Id, ReplyHeader, SessionId, Zxid};

use super::super::watching::{SetAgain, Watching};
use super::super::{Checked, ensure};
use super::answers::{comparable, paths_of};
use super::history::{AnsweredRequest, Happening, PastMoment};
use super::order::{OneOrder, PlacedWrite};
use super::seen_positions::SeenPositions;
use crate::answer_limits::AnswerLimits;
use crate::ask::Ask;

const CHECKER: &str = "one order";
const ANSWERS: &str = "answers in one order";

#[derive(Debug, Default)]
pub(super) struct JudgedClient {
    session: SessionId,
    ids: Vec<Id>,
    watching: Watching,
    /// The session has seen no less than what stands up to here.
    position: usize,
    /// Likewise, when it was answered last: a client does not remember what it was told by events.
    answered: usize,
    /// Events of this connection with their positions. The last is the newest.
    told: Vec<(usize, EventKind, String)>,
    /// Position of the last write that was answered.
    written: usize,
}

impl JudgedClient {
    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn judge(
        &mut self,
        order: &OneOrder,
        shown: &mut SeenPositions,
        number: usize,
        moment: &PastMoment,
    ) -> Checked {
        match &moment.what {
            Happening::Asks { .. } => Ok(()),
            Happening::Begins { ids, watching } => {
                self.begin(moment.session, ids, watching);
                Ok(())
            }
            Happening::Identified { latest, ids } => {
                // Events of changes up to here, the one of this zxid among them, go by the former identities, or by these, if a host tells of them later. Their answer has no zxid: it shows nothing, and may overtake them.
                let here = Zxid(order.before(latest.next()) as i64);
                self.watching.play_until_shown(order, here, (&self.ids, ids));
                self.ids = ids.clone();
                Ok(())
            }
            Happening::Rests => self.show_position(order, order.len()),
            Happening::Told { kind, path, zxid } => self.be_told(order, *kind, path, *zxid),
            Happening::Answered(answered) => {
                self.be_answered(order, shown, number, answered)?;
                self.answered = self.position;
                Ok(())
            }
        }
    }

    fn begin(&mut self, session: SessionId, ids: &[Id], watching: &Watching) {
        if session == self.session {
            self.position = self.answered;
            self.watching.know_as(watching);
            self.watching.lose_connection();
            self.watching.rewind();
        } else {
            *self = JudgedClient { session, ..JudgedClient::default() };
        }
        (self.ids, self.told) = (ids.to_vec(), Vec::new());
    }

    /// Something that shows this zxid: events before it were told. Of what has the same zxid in several groups not all need be shown.
    fn show(&mut self, order: &OneOrder, zxid: Zxid) -> Checked {
        self.show_position(order, order.before(zxid))
    }

    fn show_position(&mut self, order: &OneOrder, position: usize) -> Checked {
        let shown = self.watching.show(order, Zxid(position as i64), &self.ids);
        shown.map_err(|mut violation| {
            let due = self.watching.first_due().and_then(|due| order.write_at(due.0 as usize));
            let due = due.map_or_else(String::new, PlacedWrite::to_string);
            violation.what.push_str(&format!(" (a position), of {due}"));
            violation
        })
    }

    fn be_told(&mut self, order: &OneOrder, kind: EventKind, path: &str, zxid: Zxid) -> Checked {
        if zxid == Zxid::NONE {
            return self.watching.tell(order, zxid, kind, path, &self.ids);
        }
        // One event tells of the first change, and may have the zxid of another; those of a watch that stays have their own. Of a watch of which it is not known whether the member holds it,
        // no change was due.
        let tells_all = self.watching.has_begun(kind, path);
        let is_open = self.watching.is_setting() || self.watching.is_uncertain(kind, path) || tells_all;
        let due = order.changed_with(zxid, (kind, path), |position, times| {
            self.times_told(position, kind, path) >= if tells_all { times } else { 1 }
        });
        let due = due.filter(|due| is_open || self.watching.may_be_late(*due, kind, path));
        let due = due.or_else(|| self.watching.next_due(order, kind, path, &self.ids));
        let Some(due) = due else {
            ensure!(false, CHECKER, "{kind:?} of {path} is told at {zxid}, and is no event of a watch");
            return Ok(());
        };
        self.watching.tell(order, due, kind, path, &self.ids)?;
        let position = due.0 as usize;
        let newest = self.told.last().map_or(0, |(position, ..)| *position);
        ensure!(
            position >= newest,
            CHECKER,
            "{kind:?} of {path} at position {position} is told behind an event at {newest}"
        );
        self.told.push((position, kind, path.to_owned()));
        if order.write_at(position).is_some_and(|placed| placed.place <= zxid) {
            self.position = self.position.max(position);
        }
        Ok(())
    }

    /// Events of this connection with this position.
    fn told_at(&self, position: usize) -> impl Iterator<Item = &(usize, EventKind, String)> {
        let first = self.told.partition_point(|(told, ..)| *told < position);
        self.told[first..].iter().take_while(move |(told, ..)| *told == position)
    }

    fn times_told(&self, position: usize, kind: EventKind, path: &str) -> usize {
        self.told_at(position).filter(|(_, told, of)| (*told, of.as_str()) == (kind, path)).count()
    }

    fn be_answered(
        &mut self,
        order: &OneOrder,
        shown: &mut SeenPositions,
        number: usize,
        answered: &AnsweredRequest,
    ) -> Checked {
        let AnsweredRequest { request, header, body, limits, .. } = answered;
        if header.error == Some(ErrorCode::NotReadOnly) {
            return Ok(());
        }
        // A client that closes its session waits for nothing any more.
        if !matches!(request.ask, Ask::SetWatches { .. } | Ask::Write(Wish::CloseSession)) {
            self.show(order, header.zxid)?;
        }
        match &request.ask {
            Ask::Write(wish) => match request.ask.as_logged() {
                Some(logged) => {
                    let before = |group: u32| shown.acknowledged_before(group, request.asked_at);
                    let found = self.find_write(order, (wish, &logged), *header, body, before)?;
                    let Some((position, group)) = found else { return Ok(()) };
                    if *wish != Wish::CloseSession {
                        self.show_position(order, position)?;
                    }
                    shown.acknowledge(group, number, position);
                }
                None => ensure!(
                    header.error == Some(ErrorCode::MarshallingError),
                    ANSWERS,
                    "{wish:?} is answered {:?}",
                    header.error
                ),
            },
            Ask::Read { question, watch } => {
                if answered.is_newest {
                    // Each znode is linearizable by itself.
                    let before = shown.before(request.asked_at);
                    let newest = paths_of(question)
                        .map_or(before, |paths| order.last_touching(&paths, before, request.asked_at));
                    self.position = self.position.max(newest);
                }
                let asker = Asker { session: self.session, ids: request.ids.clone() };
                self.find_read(order, (question, &asker), (*header, body), *limits)?;
                if *watch {
                    self.set_watch(order, question, &asker, *header, body)?;
                }
            }
            Ask::Sync => self.position = self.position.max(shown.before(request.asked_at)),
            Ask::SetWatches { relative_zxid } => {
                // Nothing that the session was shown has to be told any more, also if it has the zxid of the answer.
                let now = Zxid(order.before(header.zxid).max(self.position) as i64);
                let since = Zxid(order.before(*relative_zxid) as i64);
                let again = SetAgain {
                    relative_zxid: *relative_zxid,
                    since,
                    now,
                    watches_per_turn: answered.limits.watches_per_turn,
                    latest: now.max(Zxid(order.before(answered.latest.next()) as i64)),
                };
                self.watching.set_again(&again, order, &request.ids)?;
            }
            Ask::AddWatch { path, mode } => {
                ensure!(header.error.is_none(), ANSWERS, "{:?} is answered {:?}", request.ask, header.error);
                let by = self.position.max(order.before(answered.latest.next()));
                self.watching.watch_mode_by(path, *mode, Zxid(by as i64));
            }
            Ask::WhoAmI | Ask::CheckWatches { .. } | Ask::RemoveWatches { .. } => {}
        }
        Ok(())
    }

    /// The write that is answered: the session's next one like it, behind what its group had acknowledged before it was asked for, as `before` says. One that the
    /// session has asked for earlier, and was not answered, may be the same; if that cannot be what is answered now, a later one is. Returns its position and its group, but of a change of members.
    fn find_write(
        &mut self,
        order: &OneOrder,
        (wish, logged): (&Wish, &Wish),
        header: ReplyHeader,
        body: &[u8],
        before: impl Fn(u32) -> usize,
    ) -> Checked<Option<(usize, u32)>> {
        let zxid = header.zxid;
        if matches!(wish, Wish::Reconfig { .. }) {
            // A change of members is answered when it is in force or given up, with another command.
            return Ok(None);
        }
        let own = order.of_session(self.session).filter(|position| *position > self.written);
        let is_it = |position: &usize| {
            order.write_at(*position).is_some_and(|PlacedWrite { write, place, group, .. }| {
                // A write that was left on the way elsewhere is refused there, and not answered.
                let is_left =
                    matches!(write.result, Err(ErrorCode::SessionMoved | ErrorCode::SessionExpired))
                        && header.error != write.result.as_ref().err().copied();
                let is_like = write.call.wish == *logged && write.portion.is_none();
                is_like && *place <= zxid && *position > before(*group) && !is_left
            })
        };
        let alike: Vec<usize> = own.filter(is_it).collect();
        let has_come_to_it = |position: &&usize| {
            order
                .write_at(**position)
                .is_some_and(|placed| answer_of(placed) == (header.error, body.to_vec()))
        };
        let is_in_turn = |position: &&usize| self.is_in_turn(order, **position);
        let fitting = alike.iter().filter(has_come_to_it);
        let found = fitting.clone().find(is_in_turn).or(fitting.clone().next()).or(alike.first());
        let Some(position) = found.copied() else {
            // What the home group was to relay it refuses itself, if another connection has taken the session over: no group has it.
            let is_taken_over = |position: usize| {
                let placed = order.write_at(position);
                placed.is_some_and(|placed| matches!(placed.write.call.wish, Wish::ResumeSession { .. }))
            };
            let later = order.of_session(self.session).filter(|position| *position > self.written);
            if header.error == Some(ErrorCode::SessionMoved) && later.into_iter().any(is_taken_over) {
                return Ok(None);
            }
            ensure!(
                false,
                ANSWERS,
                "{wish:?} is answered with zxid {zxid}, which is no such write in any group behind what was acknowledged before it was asked for"
            );
            return Ok(None);
        };
        let placed = order.write_at(position).expect("that was just looked at");
        ensure!(
            (header.error, body.to_vec()) == answer_of(placed),
            ANSWERS,
            "{wish:?} at zxid {zxid} is answered {:?} {body:?}; it came to {:?}",
            header.error,
            placed.write.result
        );
        ensure!(
            self.is_in_turn(order, position),
            CHECKER,
            "{wish:?} answered with zxid {zxid} stands at position {position} (place {}); before it was answered the session had seen what stands at {}",
            placed.place,
            self.describe(order)
        );
        self.position = self.position.max(position);
        self.written = position;
        Ok(Some((position, placed.group)))
    }

    /// True if the session has not been shown, before the answer to a write at this position, what stands behind it.
    fn is_in_turn(&self, order: &OneOrder, position: usize) -> bool {
        let place = order.write_at(position).map(|placed| placed.place);
        // An event of its own change comes in front of the answer, perhaps of answers to what was asked for before, and so may one of a write that has the same zxid in another group.
        let is_seen_behind = order.write_at(self.position).is_some_and(|seen| Some(seen.place) > place);
        let is_told = self.told_at(position).next().is_some();
        (position > self.answered || is_told) && !is_seen_behind
    }

    fn find_read(
        &mut self,
        order: &OneOrder,
        (question, asker): (&Question, &Asker),
        (header, body): (ReplyHeader, &[u8]),
        limits: AnswerLimits,
    ) -> Checked {
        let found = answer(question, header, body, order.split_points())?;
        let is_right = |position: &usize| {
            self.reads_at(order, *position, question, asker) == found
                || header.error == Some(ErrorCode::BadArguments)
                    && limits.refuse(&order.state(*position).read(question, asker))
        };
        let candidates = match paths_of(question) {
            Some(paths) => order.touching(&paths, self.position),
            None => (self.position + 1..=order.len()).collect(),
        };
        let right = std::iter::once(self.position).chain(candidates).find(is_right);
        ensure!(
            right.is_some(),
            ANSWERS,
            "{question:?} is answered {found:?} (zxid {}), which is true nowhere behind what the session had seen: {}; there it is {:?}, and in the end {:?}",
            header.zxid,
            self.describe(order),
            self.reads_at(order, self.position, question, asker),
            self.reads_at(order, order.len(), question, asker)
        );
        let right = right.unwrap_or_default();
        if right > self.position {
            // The answer shows it.
            self.show_position(order, right)?;
        }
        self.position = right;
        Ok(())
    }

    fn reads_at(
        &self,
        order: &OneOrder,
        position: usize,
        question: &Question,
        asker: &Asker,
    ) -> Result<paddock_model::Answer, ErrorCode> {
        comparable(question, order.state(position).read(question, asker), order.split_points())
    }

    /// A watch counts from the zxid of the answer on, at which the answer is right: all that its groups did with that zxid is shown. Where the znode has become
    /// what it was before, that may be true twice.
    fn set_watch(
        &mut self,
        order: &OneOrder,
        question: &Question,
        asker: &Asker,
        header: ReplyHeader,
        body: &[u8],
    ) -> Checked {
        let found = answer(question, header, body, order.split_points())?;
        let first = self.position.max(order.before(header.zxid));
        let last = first.max(order.before(header.zxid.next()));
        let is_right = |at: &usize| self.reads_at(order, *at, question, asker) == found;
        let right = (first..=last).rev().find(is_right);
        // A group can have had the zxid, and shown it, before the item of an earlier decision came to it.
        let right = right.or_else(|| (self.position..first).rev().find(is_right));
        let sets = match question {
            Question::Exists { .. } => matches!(found, Ok(_) | Err(ErrorCode::NoNode)),
            Question::GetData { .. } | Question::GetChildren { .. } | Question::GetChildren2 { .. } => {
                found.is_ok()
            }
            _ => false,
        };
        if !sets {
            return Ok(());
        }
        ensure!(
            right.is_some(),
            ANSWERS,
            "{question:?} sets a watch and is answered {found:?} at zxid {}, up to which it has become {:?}",
            header.zxid,
            self.reads_at(order, last, question, asker)
        );
        let right = right.unwrap_or(first);
        self.show_position(order, right)?;
        // The home group, by whose zxid identities are shown, may be ahead of what the answer shows.
        self.watching.watch_since(order, Zxid(right as i64), &self.ids, |watching| {
            match (question, &found) {
                (Question::Exists { path }, Err(_)) => watching.watch_exist(path),
                (Question::Exists { path } | Question::GetData { path }, _) => watching.watch_data(path),
                (Question::GetChildren { path } | Question::GetChildren2 { path }, _) => {
                    watching.watch_children(path);
                }
                _ => {}
            }
        });
        Ok(())
    }

    fn describe(&self, order: &OneOrder) -> String {
        let last = order.write_at(self.position).map(PlacedWrite::to_string);
        format!(
            "position {} of {}, {}",
            self.position,
            order.len(),
            last.unwrap_or_else(|| "nothing".to_owned())
        )
    }
}

/// The error and the body with which a write is answered.
fn answer_of(placed: &PlacedWrite) -> (Option<ErrorCode>, Vec<u8>) {
    match &placed.write.result {
        Ok(reply) => {
            let mut body = Vec::new();
            reply.encode(&mut body);
            (None, body)
        }
        Err(error) => (Some(*error), Vec::new()),
    }
}

fn answer(
    question: &Question,
    header: ReplyHeader,
    body: &[u8],
    split_points: &[String],
) -> Checked<Result<paddock_model::Answer, ErrorCode>> {
    let answer = match header.error {
        Some(error) => Err(error),
        None => {
            let decoded = question.decode_answer(&mut Reader::new(body));
            ensure!(decoded.is_ok(), ANSWERS, "the answer to {question:?} cannot be read: {body:?}");
            Ok(decoded.expect("that was just looked at"))
        }
    };
    Ok(comparable(question, answer, split_points))
}
