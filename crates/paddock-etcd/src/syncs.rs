//! Syncs: connections that wait until the state is as new as etcd was when they asked.

use paddock_state::ConnId;

#[derive(Debug, Default)]
pub(crate) struct Syncs {
    /// They wait for a question to etcd that has not left yet.
    waiting: Vec<ConnId>,
    /// The question is under way for these, since that time.
    asked: Option<(u64, Vec<ConnId>)>,
    /// etcd was at this revision, and the watch stream has not come as far.
    behind: Vec<Behind>,
    /// The last question got no answer: the next one waits for a tick.
    has_failed: bool,
}

#[derive(Debug)]
struct Behind {
    revision: i64,
    since_ms: u64,
    conns: Vec<ConnId>,
}

impl Syncs {
    pub(crate) fn add(&mut self, conn: ConnId) {
        self.waiting.push(conn);
    }

    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if a question can leave at once.
    pub(crate) fn may_ask(&self) -> bool {
        self.are_waiting() && !self.is_asking() && !self.has_failed
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// The question leaves now, for all that wait.
    pub(crate) fn ask(&mut self, now_ms: u64) {
        self.has_failed = false;
        self.asked = Some((now_ms, std::mem::take(&mut self.waiting)));
    }

    /// etcd was at this revision. Returns the time of the question.
    pub(crate) fn answer(&mut self, revision: i64, now_ms: u64) -> Option<u64> {
        let (asked_ms, conns) = self.asked.take()?;
        if !conns.is_empty() {
            self.behind.push(Behind { revision, since_ms: now_ms, conns });
        }
        Some(asked_ms)
    }

    /// Nothing is known of the question: it is to be asked again.
    pub(crate) fn fail(&mut self) {
        self.has_failed = true;
        if let Some((_, mut conns)) = self.asked.take() {
            conns.append(&mut self.waiting);
            self.waiting = conns;
        }
    }

    /// Takes the connections that see a state of this revision, and wait for none that is newer.
    pub(crate) fn reached(&mut self, revision: i64) -> Vec<ConnId> {
        self.take(|behind| behind.revision <= revision)
    }

    /// Takes the connections that have waited for the watch stream since before that time, and do not wait any more.
    pub(crate) fn behind_since(&mut self, before_ms: u64) -> Vec<ConnId> {
        self.take(|behind| behind.since_ms <= before_ms)
    }

    fn take(&mut self, is_taken: impl Fn(&Behind) -> bool) -> Vec<ConnId> {
        let taken = self.behind.extract_if(.., |behind| is_taken(behind));
        taken.flat_map(|behind| behind.conns).collect()
    }

    /// True if some have waited for the watch stream since before that time: etcd's revision may be that of a foreign key.
    pub(crate) fn are_behind(&self, before_ms: u64) -> bool {
        self.behind.iter().any(|behind| behind.since_ms <= before_ms)
    }

    /// True if this connection waits for an answer.
    pub(crate) fn has(&self, conn: ConnId) -> bool {
        let asked = self.asked.iter().flat_map(|(_, conns)| conns);
        let behind = self.behind.iter().flat_map(|behind| &behind.conns);
        self.waiting.iter().chain(asked).chain(behind).any(|waiting| *waiting == conn)
    }

    /// Gives all up.
    pub(crate) fn clear(&mut self) {
        *self = Syncs::default();
    }
}
