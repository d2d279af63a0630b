//! Loading: all keys are read, page by page in one revision, into a state that then takes the place of the one before.

use paddock_proto::Zxid;
use paddock_state::{Now, Outboxes, State};

use super::{Engine, LoadingPhase, Watching};
use crate::calls::Purpose;
use crate::contract::{Answer, Call, CallError, Effects};
use crate::mirror::Mirror;
use crate::page_size::PageSize;
use crate::revisions::KeyEvent;

/// Time in milliseconds before a read that failed is begun again.
const PAUSE_MS: u64 = 500;

#[derive(Debug)]
pub(super) struct Loading {
    state: State,
    /// Revision of the read; 0 before the first page.
    revision: i64,
    /// First key of the next page; `None` for the first page.
    next: Option<Vec<u8>>,
    page_size: PageSize,
    is_asked: bool,
    not_before_ms: u64,
    asked_ms: u64,
}

impl Loading {
    pub(super) fn new(not_before_ms: u64) -> Loading {
        Loading {
            state: State::default(),
            revision: 0,
            next: None,
            page_size: PageSize::default(),
            is_asked: false,
            not_before_ms,
            asked_ms: 0,
        }
    }
}

impl Engine {
    /// Asks for the next page, if none is on its way.
    pub(super) fn read_if_due(&mut self, now: Now, effects: &mut Effects) {
        let LoadingPhase::Loading(loading) = &mut self.phase else { return };
        if loading.is_asked || now.monotonic_ms < loading.not_before_ms {
            return;
        }
        if loading.revision == 0 {
            loading.asked_ms = now.monotonic_ms;
        }
        loading.is_asked = true;
        let (first, end) = self.options.keys.range();
        let start = loading.next.clone().unwrap_or(first);
        let call = Call::Read { start, end, revision: loading.revision, limit: loading.page_size.keys() };
        self.calls.make(call, Purpose::Page, effects);
    }

    pub(super) fn on_page(
        &mut self,
        now: Now,
        result: Result<Answer, CallError>,
        state: &mut State,
        out: &mut Outboxes,
        effects: &mut Effects,
    ) {
        let LoadingPhase::Loading(loading) = &mut self.phase else { return };
        loading.is_asked = false;
        match result {
            Ok(Answer::Page { revision, pairs, is_last }) => {
                let Some(last) = self.take_page(now, revision, &pairs) else { return };
                if is_last {
                    self.finish_loading(now, state, out)
                } else {
                    self.read_on(last)
                }
                self.read_if_due(now, effects);
            }
            Err(CallError::Lost(reason)) => {
                tracing::debug!(reason, "a page of etcd's keys is asked for again");
                loading.page_size.was_lost();
                loading.not_before_ms = now.monotonic_ms + Engine::TICK_MS;
            }
            Err(error) => {
                tracing::warn!(%error, "etcd's keys were not read; trying again");
                self.begin_loading(now, PAUSE_MS);
            }
            Ok(answer) => unreachable!("a page is answered by a page, not by {answer:?}"),
        }
    }

    /// Installs a page and returns its last key; `None` if the keys are no state.
    fn take_page(&mut self, now: Now, revision: i64, pairs: &[KeyEvent]) -> Option<Option<Vec<u8>>> {
        let LoadingPhase::Loading(loading) = &mut self.phase else { return None };
        loading.revision = revision;
        let bytes = |pair: &KeyEvent| pair.key.len() + pair.value.as_ref().map_or(0, Vec::len);
        loading.page_size.came(pairs.len(), pairs.iter().map(bytes).sum());
        let nobody = &mut Outboxes::new(1);
        match self.mirror.install(&mut loading.state, revision, pairs, nobody) {
            Ok(_) => Some(pairs.last().map(|pair| pair.key.clone())),
            Err(error) => {
                tracing::error!(error = error_chain(&error), "etcd's keys are no state; reading them again");
                self.begin_loading(now, 2 * PAUSE_MS);
                None
            }
        }
    }

    fn read_on(&mut self, last: Option<Vec<u8>>) {
        if let (LoadingPhase::Loading(loading), Some(last)) = (&mut self.phase, last) {
            loading.next = Some([&last[..], b"\0"].concat());
        }
    }

    fn finish_loading(&mut self, now: Now, state: &mut State, out: &mut Outboxes) {
        let LoadingPhase::Loading(loading) = std::mem::replace(&mut self.phase, LoadingPhase::Following)
        else {
            return;
        };
        let Loading { state: loaded, revision, asked_ms, .. } = *loading;
        state.replace(loaded.into_tree());
        self.installed = revision;
        self.contact.begin(asked_ms);
        self.counts.loads += 1;
        self.watch = Watching {
            generation: self.watch.generation,
            first_revision: revision + 1,
            ..Watching::default()
        };
        for (session, timeout_ms) in state.tree().sessions() {
            if state.tree().session_owner(session) == Some(Mirror::MEMBER) {
                self.leases.add(session, timeout_ms, now.monotonic_ms);
            }
        }
        let znodes = state.tree().node_count();
        tracing::info!(zxid = %Zxid(revision), znodes, "read the state from etcd");
        // Those who were served before the state was read anew.
        self.leases.serving.end_all().into_iter().for_each(|conn| out.close(conn));
    }

    /// Reads everything anew. Whatever was under way is given up.
    pub(super) fn begin_loading(&mut self, now: Now, pause_ms: u64) {
        self.phase = LoadingPhase::Loading(Box::new(Loading::new(now.monotonic_ms + pause_ms)));
        let options = &self.options;
        self.mirror = Mirror::new(options.keys.clone(), options.front, options.limits);
        self.calls.forget_all();
        self.contact.forget();
        self.watch.generation += 1;
        (self.watch.is_ordered, self.watch.is_open) = (true, false);
    }

    /// The state cannot be followed any more: watches may have missed something, and writes may have been carried out unseen. All
    /// connections are closed, and their clients come back.
    pub(super) fn reset(&mut self, now: Now, state: &State, out: &mut Outboxes) {
        let mut conns = self.leases.serving.end_all();
        conns.extend(self.lanes.conns());
        conns.into_iter().for_each(|conn| self.close(conn, state, out));
        self.flights.clear();
        self.syncs.clear();
        self.leases.clear();
        self.expiring.clear();
        self.closing.clear();
        self.lanes.settle();
        self.begin_loading(now, 0);
    }
}

/// An error and its causes.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line += &format!(": {error}");
        cause = error.source();
    }
    line
}
