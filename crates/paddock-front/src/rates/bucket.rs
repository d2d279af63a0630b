//! Use that a tenant has made of its rates lately, as the times at which that is paid off.

use super::Rates;

/// Time of a rate that a tenant may use at once, beyond it: clients ask in bursts.
const BURST_US: u64 = 250_000;

/// For each rate the time, in microseconds of the monotonic clock, at which all that was used is paid off.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    requests_us: u64,
    bytes_us: u64,
    soft_requests_us: u64,
    soft_bytes_us: u64,
}

impl Buckets {
    /// Time in milliseconds until the next request may be taken.
    pub(super) fn wait_ms(&self, rates: &Rates, now_ms: u64) -> u64 {
        let now_us = now_ms * 1000;
        let debt = |paid_us: u64, rate: Option<u64>| {
            rate.map_or(0, |_| paid_us.saturating_sub(now_us).saturating_sub(BURST_US))
        };
        debt(self.requests_us, rates.requests).max(debt(self.bytes_us, rates.bytes)).div_ceil(1000)
    }

    /// Pays for a request of these bytes. True if it is above a soft limit.
    pub(super) fn pay(&mut self, rates: &Rates, bytes: u64, now_ms: u64) -> bool {
        let now_us = now_ms * 1000;
        let pay = |paid_us: &mut u64, rate: Option<u64>, amount: u64| {
            let Some(rate) = rate else { return false };
            let from_us = (*paid_us).max(now_us);
            *paid_us = from_us.saturating_add(amount.saturating_mul(1_000_000) / rate.max(1));
            from_us - now_us > BURST_US
        };
        pay(&mut self.requests_us, rates.requests, 1);
        pay(&mut self.bytes_us, rates.bytes, bytes);
        let is_above = pay(&mut self.soft_requests_us, rates.requests_soft, 1);
        // What is above a soft limit is counted, and is no debt.
        self.soft_requests_us = self.soft_requests_us.min(now_us + 2 * BURST_US);
        let is_large = pay(&mut self.soft_bytes_us, rates.bytes_soft, bytes);
        self.soft_bytes_us = self.soft_bytes_us.min(now_us + 2 * BURST_US);
        is_above | is_large
    }

    /// True if nothing that was used lately counts any more.
    pub(super) fn is_full(&self, now_ms: u64) -> bool {
        let Buckets { requests_us, bytes_us, soft_requests_us, soft_bytes_us } = *self;
        [requests_us, bytes_us, soft_requests_us, soft_bytes_us]
            .iter()
            .all(|paid_us| *paid_us <= now_ms * 1000)
    }
}
