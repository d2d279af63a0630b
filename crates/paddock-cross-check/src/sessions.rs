//! Sessions of this member and their twins at the reference.

use std::collections::{HashMap, VecDeque};

use paddock_proto::{ConnectResponse, Password};

/// Sessions that have ended and are still known: who comes back to one is told the same by both sides.
const ENDED_MAX: usize = 10_000;

/// A session at the reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwinSession {
    pub(super) id: i64,
    pub(super) password: Password,
    /// Newest zxid that its client would have seen.
    pub(super) zxid: i64,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    twins: HashMap<i64, TwinSession>,
    /// Sessions of this member by those of the reference.
    own: HashMap<i64, i64>,
    /// Sessions of this member that have ended, the oldest first.
    ended: VecDeque<i64>,
}

impl Sessions {
    pub(super) fn add(&mut self, own: &ConnectResponse, reference: &ConnectResponse) {
        let zxid = self.twins.get(&own.session.0).map_or(0, |twin| twin.zxid);
        let twin = TwinSession { id: reference.session.0, password: reference.password, zxid };
        self.twins.insert(own.session.0, twin);
        self.own.insert(reference.session.0, own.session.0);
    }

    pub(super) fn twin(&self, own: i64) -> Option<TwinSession> {
        self.twins.get(&own).copied()
    }

    pub(super) fn saw(&mut self, own: i64, zxid: i64) {
        if let Some(twin) = self.twins.get_mut(&own) {
            twin.zxid = twin.zxid.max(zxid);
        }
    }

    /// The session is closed on both sides.
    pub(super) fn end(&mut self, own: i64) {
        self.ended.push_back(own);
        let oldest = if self.ended.len() > ENDED_MAX { self.ended.pop_front() } else { None };
        if let Some(twin) = oldest.and_then(|oldest| self.twins.remove(&oldest)) {
            self.own.remove(&twin.id);
        }
    }

    pub(super) fn name_of_own(&self, id: i64) -> String {
        name(id, self.twins.contains_key(&id).then_some(id))
    }

    pub(super) fn name_of_twin(&self, id: i64) -> String {
        name(id, self.own.get(&id).copied())
    }
}

fn name(id: i64, known: Option<i64>) -> String {
    match (id, known) {
        (0, _) => "none".to_owned(),
        (_, Some(own)) => format!("0x{own:x}"),
        (_, None) => "another".to_owned(),
    }
}
