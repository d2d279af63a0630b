//! Memory of sessions that do nothing: the server's resident memory at two numbers of them.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use paddock_proto::CreateMode;
use serde::{Deserialize, Serialize};

use super::Idle;
use super::crowd::Crowd;
use super::figure_names::FigureValue;
use super::line::Line;
use super::process::{resident_bytes, system};
use super::server::resolve;
use crate::BenchError;
use crate::report::units::Unit;
use crate::workload::Request;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleReport {
    pub sessions: [usize; 2],
    /// Resident memory of all members together in bytes, at each of the numbers.
    pub resident_bytes: [u64; 2],
}

/// Before memory is looked at: what a server does with new sessions when it has nothing else to do is done by then.
const SETTLE: Duration = Duration::from_secs(1);

impl IdleReport {
    pub fn bytes_per_session(&self) -> f64 {
        let [few, many] = self.resident_bytes.map(|bytes| bytes as f64);
        (many - few) / (self.sessions[1] - self.sessions[0]) as f64
    }

    pub(super) fn figures(&self) -> Vec<FigureValue> {
        vec![
            ("memory per idle session".to_owned(), Unit::Bytes, self.bytes_per_session()),
            ("memory with few sessions".to_owned(), Unit::Bytes, self.resident_bytes[0] as f64),
            ("memory with many sessions".to_owned(), Unit::Bytes, self.resident_bytes[1] as f64),
        ]
    }
}

/// None if the user stopped it.
pub(super) fn measure(
    plan: &Idle,
    hosts: &[String],
    pids: &[u32],
    stop: &AtomicBool,
) -> Result<Option<IdleReport>, BenchError> {
    let addresses = resolve(hosts)?;
    let path = |session: usize, number: usize| format!("/idle-{session}-{number}");
    let mut maker = Line::open(addresses[0])?;
    for session in 0..if plan.watches > 0 { plan.sessions[1] } else { 0 } {
        let create = |request: &mut Request<'_>, number| {
            request.create(&path(session, number), b"", CreateMode::Persistent);
        };
        maker.pipeline(0..plan.watches, create).map_err(system("create znodes to watch"))?;
    }
    let mut crowd = Crowd::new(&addresses);
    let mut report = IdleReport { sessions: plan.sessions, resident_bytes: [0; 2] };
    let mut open = 0;
    for (count, bytes) in plan.sessions.into_iter().zip(&mut report.resident_bytes) {
        if !(crowd.grow(count, stop)? && crowd.watch(open, 0..plan.watches, path, stop)?) {
            return Ok(None);
        }
        open = count;
        crowd.ping()?;
        thread::sleep(SETTLE);
        *bytes = resident_bytes(pids)?;
    }
    Ok(Some(report))
}

#[cfg(test)]
mod tests {
    use super::{Idle, IdleReport};

    #[test]
    fn growth_is_shared_out() {
        let report = IdleReport { sessions: [10, 60], resident_bytes: [5_000, 30_000] };
        assert_eq!(report.bytes_per_session(), 500.0);
    }

    #[test]
    fn it_says_what_it_is() {
        let of = |watches| Idle { sessions: [10, 60], watches }.to_string();
        assert_eq!(of(0), "10 to 60 idle sessions without a watch");
        assert_eq!(of(1), "10 to 60 idle sessions with a watch each");
    }
}
