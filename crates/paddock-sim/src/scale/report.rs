//! Report of a measurement.

use std::fmt;

use super::costs::Spent;
use super::ensemble::Measured;
use super::load::Tally;
use super::shape::Shape;

#[derive(Debug)]
pub(super) struct ScaleReport {
    pub(super) shape: Shape,
    /// Without clients that ask for anything.
    pub(super) idle: Measured,
    pub(super) busy: Measured,
    pub(super) tally: Tally,
}

impl Measured {
    fn sum(&self) -> Spent {
        let mut sum = Spent::default();
        self.members.iter().for_each(|member| sum += *member);
        sum
    }

    fn seconds(&self) -> f64 {
        self.span.0 as f64 / 1e6
    }

    /// Hundredths of its core for which a member was busy.
    fn percent(&self, spent_ns: u64, core: f64) -> f64 {
        spent_ns as f64 / core / (self.span.0 as f64 * 1e3) * 100.0
    }

    fn busiest(&self) -> u64 {
        self.members.iter().map(Spent::total_ns).max().unwrap_or_default()
    }
}

impl fmt::Display for ScaleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScaleReport { shape, idle, busy, tally } = self;
        let (members, core) = (f64::from(shape.members), shape.core);
        let (sum, answered) = (busy.sum(), tally.answered.max(1) as f64);
        let rate = tally.answered as f64 / busy.seconds();
        let mut latencies = tally.latencies_us.clone();
        latencies.sort_unstable();
        let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).map_or(0, |us| *us);
        writeln!(
            f,
            "{} members with {core} of a core, {} groups, {} replicas of each but the home group's; {} clients with {} under way ({:?})",
            shape.members, shape.groups, shape.replicas, shape.sessions, shape.in_flight, shape.load
        )?;
        writeln!(f, "answered            {rate:.0}/s, latency p50 {} us, p99 {} us", at(0.5), at(0.99))?;
        let mean = busy.percent(sum.total_ns(), core) / members;
        writeln!(
            f,
            "busy                {mean:.0}% of a member's core, {:.0}% of the busiest one's",
            busy.percent(busy.busiest(), core)
        )?;
        let each = |ns: u64| ns as f64 / answered / 1e3;
        writeln!(
            f,
            "time of all members {:.2} us for each: {:.2} engine, {:.2} workers, {:.2} system",
            each(sum.total_ns()),
            each(sum.engine_ns),
            each(sum.front_ns),
            each(sum.system_ns)
        )?;
        writeln!(
            f,
            "between members     {:.3} packets, {:.3} messages, {:.0} bytes for each",
            sum.packets as f64 / answered,
            sum.letters as f64 / answered,
            sum.letter_bytes as f64 / answered
        )?;
        let per_member = |count: u64| count as f64 / busy.seconds() / members;
        writeln!(
            f,
            "each member         {:.0} syncs/s, {:.0} entries/s of the home group, {:.0} of others",
            per_member(sum.syncs),
            per_member(sum.home_entries),
            per_member(sum.group_entries)
        )?;
        let resting = idle.sum();
        writeln!(
            f,
            "without clients     {:.2}% of a member's core, {:.2}% of the busiest one's, {:.0} packets/s from each",
            idle.percent(resting.total_ns(), core) / members,
            idle.percent(idle.busiest(), core),
            resting.packets as f64 / idle.seconds() / members
        )
    }
}
