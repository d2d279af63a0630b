//! Requests of clients, and answers and events that they were told, in the order of time.

use paddock_model::Wish;
use paddock_proto::{EventKind, Id, ReplyHeader, SessionId, Xid, Zxid};

use super::super::watching::Watching;
use crate::answer_limits::AnswerLimits;
use crate::ask::AskedRequest;

/// All that clients did, in the order in which they did it.
#[derive(Debug, Default)]
pub(crate) struct History {
    moments: Vec<PastMoment>,
}

#[derive(Debug)]
pub(crate) struct PastMoment {
    pub(crate) client: usize,
    pub(crate) session: SessionId,
    pub(crate) what: Happening,
}

#[derive(Debug)]
pub(crate) enum Happening {
    /// A connection serves the session from now on, with these identities; these watches are to be set again.
    Begins {
        ids: Vec<Id>,
        watching: Box<Watching>,
    },
    /// The member has taken an identity that was shown; these are the connection's now.
    Identified {
        /// Largest zxid of any group when the answer came: a group may have been ahead of the home group when the member took it.
        latest: Zxid,
        ids: Vec<Id>,
    },
    /// A write was asked for.
    Asks {
        xid: Xid,
        wish: Wish,
    },
    Told {
        kind: EventKind,
        path: String,
        zxid: Zxid,
    },
    Answered(Box<AnsweredRequest>),
    /// Nothing more comes.
    Rests,
}

#[derive(Debug)]
pub(crate) struct AnsweredRequest {
    pub(crate) request: AskedRequest,
    pub(crate) header: ReplyHeader,
    pub(crate) body: Vec<u8>,
    pub(crate) limits: AnswerLimits,
    /// Largest zxid of any group when the answer came.
    pub(crate) latest: Zxid,
    /// A read is to show what is newest, as a sync would.
    pub(crate) is_newest: bool,
}

impl History {
    pub(crate) fn note(&mut self, client: usize, session: SessionId, what: Happening) {
        self.moments.push(PastMoment { client, session, what });
    }

    /// Number of moments so far.
    pub(crate) fn len(&self) -> usize {
        self.moments.len()
    }

    pub(crate) fn moments(&self) -> impl Iterator<Item = &PastMoment> {
        self.moments.iter()
    }
}
