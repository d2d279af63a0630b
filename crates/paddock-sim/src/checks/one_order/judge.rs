//! Judgement of a run: in the order of time, what each client was told is held against one order.
//!
//! A session sees prefixes of the order that grow. Of each it is known that it is no shorter than a *position*: the smallest one that is not before the last, and at which the answer is right. Were
//! there any growing prefixes that explain all answers, those positions would be among them.

use std::collections::BTreeMap;

use super::super::Checked;
use super::history::{Happening, History, PastMoment};
use super::order::OneOrder;
use super::seen_positions::SeenPositions;
use super::sessions::JudgedClient;
use crate::checks::happened::Happened;
use crate::checks::once::Once;
use paddock_proto::ErrorCode;
use paddock_tree::Outcome;

/// Judges all that clients were told.
pub(super) fn judge(order: &OneOrder, history: &History) -> Checked {
    check_once(order, history)?;
    let mut clients: BTreeMap<usize, JudgedClient> = BTreeMap::new();
    let mut shown = SeenPositions::default();
    for (number, moment) in history.moments().enumerate() {
        let client = clients.entry(moment.client).or_default();
        let judged = client.judge(order, &mut shown, number, moment);
        judged.map_err(|mut violation| {
            let PastMoment { client, session, .. } = moment;
            violation.what = format!("client {client}, session {session}: {}", violation.what);
            violation
        })?;
        shown.note(number, client.position());
    }
    Ok(())
}

/// Every write of a session counts once at most, and those that count do so in the order in which they were asked for.
fn check_once(order: &OneOrder, history: &History) -> Checked {
    let mut once = Once::default();
    for PastMoment { session, what, .. } in history.moments() {
        if let Happening::Asks { xid, wish } = what {
            once.ask(*session, *xid, wish);
        }
    }
    for PastMoment { session, what, .. } in history.moments() {
        if let Happening::Answered(answered) = what
            && answered.header.error == Some(ErrorCode::NotReadOnly)
            && answered.request.ask.as_logged().is_some()
        {
            once.refuse(*session, answered.request.xid)?;
        }
    }
    for placed in order.writes() {
        let write = &placed.write;
        // Commands of no session tell of sessions that have expired: what ends them again does nothing.
        if write.portion.is_some() || super::order::joins_groups(&write.call) {
            continue;
        }
        let outcome =
            Outcome { zxid: write.stamp, result: write.result.clone(), changes: Default::default() };
        once.happened(&Happened { goes_on: false, index: 0, term: 0, call: write.call.clone(), outcome })?;
    }
    Ok(())
}
