//! Faults of a run: calls that are lost, late, slow or refused, streams that say nothing, and what etcd and front ends suffer.

use paddock_etcd::{Call, CallError, CallId, Input};

use super::front_end::{FrontEnd, SlowAnswer};
use super::world::{FRONT_ENDS, World};
use crate::checks::Checked;

/// Time that passes from tick to tick while a front end is cut off for longer than a lease lives, in milliseconds.
const OUTAGE_TICK_MS: u64 = 250;
/// A front end gives up a call that has no answer by then, as the server does, in milliseconds.
const CALL_TIMEOUT_MS: u64 = 4000;
/// Steps of a stall that ends only with its stream.
const FOR_EVER: u64 = u64::MAX;

impl World {
    /// True if a fault strikes.
    pub(super) fn strikes(&mut self, one_in: u64) -> bool {
        let strikes = self.has_faults && self.chance.one_in(one_in);
        self.faults += u64::from(strikes);
        strikes
    }

    pub(super) fn go_wrong(&mut self, front: usize) {
        self.trouble_etcd();
        self.trouble_front_end(front);
        for at in &mut self.fronts {
            (at.asleep, at.cut_off) = (at.asleep.saturating_sub(1), at.cut_off.saturating_sub(1));
            at.stalled -= u64::from(at.stalled > 0 && at.stalled != FOR_EVER);
        }
    }

    fn trouble_etcd(&mut self) {
        if self.chance.one_in(self.weather.foreign) {
            self.store.write_elsewhere();
        }
        if self.strikes(self.weather.compaction) {
            self.note(format_args!("etcd compacts"));
            self.store.compact();
        }
        if self.strikes(self.weather.alarm) {
            self.scarce = self.chance.between(50, 800);
            self.note(format_args!("etcd has no space"));
        }
        self.scarce = self.scarce.saturating_sub(1);
        self.store.is_full = self.scarce > 0;
        if self.strikes(self.weather.denial) {
            self.denying = self.chance.between(5, 100);
            self.note(format_args!("etcd refuses calls"));
        }
        self.denying = self.denying.saturating_sub(1);
    }

    fn trouble_front_end(&mut self, front: usize) {
        if self.strikes(self.weather.kill) {
            self.kill(front);
        }
        if self.strikes(self.weather.sleep) {
            self.fronts[front].asleep = self.chance.between(50, 800);
            self.note(format_args!("front end {front} sleeps"));
        }
        if self.strikes(self.weather.cut) {
            self.fronts[front].cut_off = self.chance.between(50, 800);
            self.note(format_args!("front end {front} is cut off"));
        }
        if self.strikes(self.weather.outage) {
            self.begin_outage(front);
        }
        if self.strikes(self.weather.stall) {
            self.fronts[front].stalled = *self.chance.pick(&[100, 600, FOR_EVER]);
            self.note(format_args!("the watch stream of front end {front} says nothing"));
        }
    }

    /// Leases of sessions that begin live for 9 s or 14 s.
    fn begin_outage(&mut self, front: usize) {
        let until_ms = self.now_ms() + self.chance.between(8000, 18_000);
        let is_of_all = self.chance.one_in(2);
        let all = if is_of_all { 0..FRONT_ENDS } else { front..front + 1 };
        for front in all {
            self.fronts[front].cut_off_until_ms = until_ms;
            self.note(format_args!("front end {front} is cut off until {until_ms}"));
        }
    }

    /// Time that a tick takes, in milliseconds.
    pub(super) fn tick_ms(&self) -> u64 {
        let now_ms = self.now_ms();
        let is_long = self.fronts.iter().any(|at| now_ms < at.cut_off_until_ms);
        if is_long { OUTAGE_TICK_MS.max(self.weather.tick_ms) } else { self.weather.tick_ms }
    }

    /// A call of a front end comes to etcd, and its answer back.
    pub(super) fn deliver_call(&mut self, front: usize) -> Checked {
        let now_ms = self.now_ms();
        let FrontEnd { calls, answers, asleep, .. } = &self.fronts[front];
        if *asleep > 0 {
            return Ok(());
        }
        if !answers.is_empty() && (calls.is_empty() || self.chance.one_in(2)) {
            return self.deliver_slow_answer(front);
        }
        let FrontEnd { calls, .. } = &mut self.fronts[front];
        if calls.is_empty() {
            return Ok(());
        }
        let (id, call) = calls.swap_remove(self.chance.index(calls.len()));
        if self.fronts[front].is_cut_off(now_ms) || self.strikes(self.weather.call_lost) {
            return self.lose_call(front, id, call);
        }
        let denial = self.denial(&call);
        let answer = denial.map_or_else(|| self.store.answer(&call, now_ms), Err);
        self.note(format_args!("front end {front}: {call:?}: {answer:?}"));
        self.checks.observe(&self.store, now_ms)?;
        if self.strikes(self.weather.slow_answer) {
            self.fronts[front].answers.push(SlowAnswer { id, result: answer, since_ms: now_ms });
            return Ok(());
        }
        let is_lost = self.strikes(self.weather.call_lost);
        let answer = if is_lost { Err(CallError::Lost("on its way back".into())) } else { answer };
        self.input(front, Input::Answer(id, answer))
    }

    /// An answer that took its time arrives, unless its call was given up.
    fn deliver_slow_answer(&mut self, front: usize) -> Checked {
        let now_ms = self.now_ms();
        let at = &mut self.fronts[front];
        let SlowAnswer { id, result, since_ms } = at.answers.swap_remove(self.chance.index(at.answers.len()));
        let is_lost = at.is_cut_off(now_ms) || now_ms > since_ms + CALL_TIMEOUT_MS;
        let result = if is_lost { Err(CallError::Lost("on its way back".into())) } else { result };
        self.note(format_args!("front end {front}: answer {id:?} of {since_ms} arrives: {result:?}"));
        self.input(front, Input::Answer(id, result))
    }

    /// The error of a call that etcd refuses, whatever it is about and without looking at it, if it does so now.
    fn denial(&mut self, call: &Call) -> Option<CallError> {
        if self.denying == 0 || !self.has_faults {
            return None;
        }
        let is_transaction = matches!(call, Call::Transact(_));
        Some(match self.chance.below(3) {
            0 => CallError::Lost("etcdserver: request timed out".into()),
            1 if is_transaction => CallError::TooLarge("etcdserver: request is too large".into()),
            _ => CallError::Refused("etcdserver: permission denied".into()),
        })
    }

    fn lose_call(&mut self, front: usize, id: CallId, call: Call) -> Checked {
        self.note(format_args!("front end {front}: {call:?} is lost"));
        if self.chance.one_in(self.weather.call_late) {
            self.late.push(call);
        }
        self.input(front, Input::Answer(id, Err(CallError::Lost("on its way to etcd".into()))))
    }

    pub(super) fn deliver_late(&mut self) -> Checked {
        let at = self.chance.index(self.late.len());
        let call = self.late.swap_remove(at);
        let answer = self.store.answer(&call, self.now_ms());
        self.note(format_args!("late: {call:?}: {answer:?}"));
        self.checks.observe(&self.store, self.now_ms())
    }

    /// The process of a front end is killed, and another one starts. Some of its calls are still on their way.
    fn kill(&mut self, front: usize) {
        self.note(format_args!("front end {front} is killed"));
        let new = self.new_front();
        let old = std::mem::replace(&mut self.fronts[front], new);
        for (_, call) in old.calls {
            if self.chance.one_in(self.weather.call_late) {
                self.late.push(call);
            }
        }
        self.strangers.retain(|(at, _)| *at != front);
        self.clients.iter_mut().filter(|client| client.front == front).for_each(|client| {
            client.disconnected();
        });
    }
}
