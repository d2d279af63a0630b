//! The end of a run: nothing goes wrong any more, and everything that was begun has to come to an end.

use super::front_end::FrontEnd;
use super::world::{CLIENTS, FRONT_ENDS, World};
use crate::checks::{Checked, ensure};

const CHECKER: &str = "healing";
/// Time that passes while all is quiet, in milliseconds: longer than sessions and their leases live.
const QUIET_MS: u64 = 30_000;
/// Time in which clients that come back have to be served, in milliseconds: less than a request may wait for etcd.
const SERVED_MS: u64 = 6000;
/// Deliveries after which those who are never content have had enough of a round.
const DELIVERIES_MAX: usize = 200;
/// Creates of each client.
const CREATES: u64 = 5;

impl World {
    /// Ends the faults, and sees to it that everything is well.
    pub(super) fn heal(&mut self) -> Checked {
        self.note(format_args!("nothing goes wrong any more"));
        self.has_faults = false;
        self.store.is_full = false;
        for at in &mut self.fronts {
            (at.asleep, at.cut_off, at.cut_off_until_ms) = (0, 0, 0);
        }
        while !self.late.is_empty() {
            self.deliver_late()?;
        }
        while !self.strangers.is_empty() {
            self.leave_as_stranger(0)?;
        }
        let end_ms = self.now_ms() + QUIET_MS;
        while self.now_ms() < end_ms {
            self.round()?;
        }
        self.compare()?;
        self.check_followers()?;
        self.check_watches()?;
        self.checks.check_ephemerals()?;
        self.serve()?;
        self.starve()?;
        self.serve()?;
        self.compare()
    }

    /// Everything that is on its way arrives, and both front ends have a tick.
    pub(super) fn round(&mut self) -> Checked {
        for front in 0..FRONT_ENDS {
            for _ in 0..DELIVERIES_MAX {
                let FrontEnd { calls, answers, .. } = &self.fronts[front];
                if calls.is_empty() && answers.is_empty() && !self.has_events(front) {
                    break;
                }
                self.deliver_call(front)?;
                if self.has_events(front) {
                    self.deliver_watch(front)?;
                }
            }
            // The stream is open, if there is one.
            self.deliver_watch(front)?;
            self.tick(front)?;
        }
        Ok(())
    }

    fn check_followers(&self) -> Checked {
        for (front, at) in self.fronts.iter().enumerate() {
            let (revision, newest) = (at.state.tree().zxid().0, self.checks.newest());
            let under_way = at.engine.transactions_under_way();
            ensure!(under_way == 0, CHECKER, "front end {front} has {under_way} transactions under way");
            let is_following = at.engine.is_following() && revision >= newest;
            ensure!(
                is_following,
                CHECKER,
                "front end {front} is at revision {revision}, and etcd at {newest}"
            );
        }
        for (number, client) in self.clients.iter().enumerate() {
            let is_quiet = client.waiting.is_empty() && (client.conn.is_none() || client.is_connected);
            ensure!(is_quiet, CHECKER, "client {number} waits for {:?}", client.waiting);
        }
        Ok(())
    }

    /// All clients come back, and write at the same time.
    fn serve(&mut self) -> Checked {
        let wanted: Vec<u64> = self.clients.iter().map(|client| client.acknowledged + CREATES).collect();
        let mut last_conns = [None; CLIENTS];
        let end_ms = self.now_ms() + SERVED_MS;
        while self.now_ms() < end_ms {
            for at in 0..CLIENTS {
                let client = &self.clients[at];
                if client.is_connected {
                    last_conns[at] = client.conn;
                }
                if client.conn.is_none() {
                    let lost = last_conns[at];
                    ensure!(
                        lost.is_none(),
                        CHECKER,
                        "client {at} lost connection {lost:?} though all is well"
                    );
                    self.connect(at)?;
                } else if client.waiting.is_empty() && client.acknowledged < wanted[at] {
                    self.create(at)?;
                }
            }
            self.round()?;
        }
        for (number, (client, wanted)) in self.clients.iter().zip(wanted).enumerate() {
            ensure!(
                client.acknowledged >= wanted,
                CHECKER,
                "client {number} has {} writes of {wanted}, and waits for {:?}",
                client.acknowledged,
                client.waiting
            );
        }
        Ok(())
    }
}
