//! Lag and rate of a copy, for the line of progress.

use std::time::{Duration, Instant};

use paddock_files::WorkingCopy;
use paddock_proto::Zxid;

const EPOCH_SHIFT: u32 = 32;
const COUNTER_MASK: i64 = 0xffff_ffff;
/// Time over which a rate is taken.
const RATE_OVER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Meter {
    proposed: Zxid,
    transactions: u64,
    /// Count and time at the beginning of the present second.
    began: (u64, Instant),
    per_second: u64,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { proposed: Zxid(0), transactions: 0, began: (0, Instant::now()), per_second: 0 }
    }
}

impl Meter {
    pub(super) fn count(&mut self) {
        self.transactions += 1;
    }

    /// Notes the last transaction that the leader has proposed.
    pub(super) fn propose(&mut self, zxid: Zxid) {
        self.proposed = zxid;
    }

    /// Transactions that the leader has proposed and that are not here. An epoch begins with none.
    pub(super) fn lag(&self, last: Zxid) -> u64 {
        let same_epoch = self.proposed.0 >> EPOCH_SHIFT == last.0 >> EPOCH_SHIFT;
        let behind = if same_epoch { self.proposed.0 - last.0 } else { self.proposed.0 & COUNTER_MASK };
        behind.max(0) as u64
    }

    pub(super) fn status(&mut self, copy: &WorkingCopy) -> String {
        let (count, time) = self.began;
        let elapsed = time.elapsed();
        if elapsed >= RATE_OVER {
            self.per_second = ((self.transactions - count) as f64 / elapsed.as_secs_f64()) as u64;
            self.began = (self.transactions, Instant::now());
        }
        let (zxid, znodes, sessions) = (copy.zxid(), copy.znode_count(), copy.session_count());
        let (lag, rate) = (self.lag(zxid), self.per_second);
        format!("zxid {zxid}, {lag} behind, {rate} transactions/s; {znodes} znodes, {sessions} sessions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_is_no_lag() {
        let mut meter = Meter::default();
        let mut lag = |proposed, last| {
            meter.propose(Zxid(proposed));
            meter.lag(Zxid(last))
        };
        assert_eq!(lag(0x2_0000_0005, 0x2_0000_0003), 2);
        assert_eq!(lag(0x3_0000_0000, 0x2_0000_0003), 0);
        assert_eq!(lag(0x3_0000_0002, 0x2_0000_0003), 2);
        assert_eq!(lag(0x2_0000_0002, 0x2_0000_0003), 0);
    }
}
