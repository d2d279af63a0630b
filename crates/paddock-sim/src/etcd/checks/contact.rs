//! Contact of front ends with etcd: connections go on because of it, so it must not be claimed.

use crate::checks::{Checked, ensure};

const CHECKER: &str = "contact";
/// A front end that etcd has refused something for want of space goes by its open stream for this time, in milliseconds: a call's time and
/// the pause before the next try.
const WITHOUT_SPACE_MS: u64 = 6000;

/// Times at which etcd made its revisions.
#[derive(Debug, Default)]
pub(crate) struct EtcdContactCheck {
    /// The newest revision of each millisecond that has one.
    made: Vec<(u64, i64)>,
}

impl EtcdContactCheck {
    pub(super) fn note(&mut self, revision: i64, now_ms: u64) {
        match self.made.last_mut() {
            Some((made_ms, newest)) if *made_ms == now_ms => *newest = revision,
            _ => self.made.push((now_ms, revision)),
        }
    }

    /// The newest revision that etcd had made before that time.
    fn newest_before(&self, time_ms: u64) -> i64 {
        let before = self.made.partition_point(|(made_ms, _)| *made_ms < time_ms);
        before.checked_sub(1).map_or(0, |last| self.made[last].1)
    }

    /// A front end says that its state was etcd's at that time, and shows this revision.
    pub(crate) fn check(
        &self,
        front: usize,
        confirmed_ms: u64,
        shown: i64,
        refused_ms: Option<u64>,
    ) -> Checked {
        let is_without_space =
            refused_ms.is_some_and(|refused_ms| confirmed_ms < refused_ms + WITHOUT_SPACE_MS);
        if shown == 0 {
            // A front end that has not read anything yet serves no client.
            return Ok(());
        }
        let newest = self.newest_before(confirmed_ms);
        ensure!(
            shown >= newest || is_without_space,
            CHECKER,
            "front end {front} says that its state was etcd's at {confirmed_ms} ms, when etcd was at revision {newest}, and \
             shows {shown}"
        );
        Ok(())
    }
}
