//! Memory of sessions that do nothing: the server's resident memory at two numbers of them.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use paddock_client::{ClientOptions, CreateMode};

use super::Idle;
use super::crowd::Crowd;
use super::figure_names::FigureValue;
use super::process::resident_bytes;
use crate::BenchError;
use crate::prepare::{all, with_client};
use crate::report::units::Unit;

/// Before memory is looked at: what a server does with new sessions when it has nothing else to do is done by then.
const SETTLE: Duration = Duration::from_secs(1);

/// Figures of two numbers of sessions by the resident memory of all members together, in bytes, at each of them.
fn figures(sessions: [usize; 2], resident_bytes: [u64; 2]) -> Vec<FigureValue> {
    let [few, many] = resident_bytes.map(|bytes| bytes as f64);
    let each = (many - few) / (sessions[1] - sessions[0]) as f64;
    vec![
        ("memory per idle session".to_owned(), Unit::Bytes, each),
        ("memory with few sessions".to_owned(), Unit::Bytes, few),
        ("memory with many sessions".to_owned(), Unit::Bytes, many),
    ]
}

/// None if the user stopped it.
pub(super) fn measure(
    plan: &Idle,
    hosts: &[String],
    pids: &[u32],
    stop: &AtomicBool,
) -> Result<Option<Vec<FigureValue>>, BenchError> {
    let path = |session: usize, number: usize| format!("/idle-{session}-{number}");
    with_client(hosts, ClientOptions::default(), async |client| {
        let znodes =
            (0..plan.sessions[1]).flat_map(|session| (0..plan.watches).map(move |number| (session, number)));
        let create = |(session, number)| client.create(&path(session, number), b"", CreateMode::Persistent);
        all(znodes.map(create), Err).await
    })?;
    let mut crowd = Crowd::new(hosts)?;
    let (mut open, mut resident) = (0, [0; 2]);
    for (count, bytes) in plan.sessions.into_iter().zip(&mut resident) {
        if !(crowd.grow(count, stop)? && crowd.watch(open, 0..plan.watches, path, stop)?) {
            return Ok(None);
        }
        open = count;
        crowd.check()?;
        thread::sleep(SETTLE);
        *bytes = resident_bytes(pids)?;
    }
    Ok(Some(figures(plan.sessions, resident)))
}

#[cfg(test)]
mod tests {
    use super::{Idle, figures};

    #[test]
    fn growth_is_shared_out() {
        assert_eq!(figures([10, 60], [5_000, 30_000])[0].2, 500.0);
    }

    #[test]
    fn it_says_what_it_is() {
        let of = |watches| Idle { sessions: [10, 60], watches }.to_string();
        assert_eq!(of(0), "10 to 60 idle sessions without a watch");
        assert_eq!(of(1), "10 to 60 idle sessions with a watch each");
    }
}
