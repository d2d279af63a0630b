//! Costs of sessions that do nothing: the server's resident memory at two numbers of them, and its processor time with the larger one.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use paddock_client::{ClientOptions, CreateMode};

use super::Idle;
use super::crowd::Crowd;
use super::figure_names::FigureValue;
use super::process::{cpu_s, resident_bytes};
use crate::BenchError;
use crate::prepare::{all, with_client};
use crate::report::units::Unit;

/// Before memory is looked at: what a server does with new sessions when it has nothing else to do is done by then.
const SETTLE: Duration = Duration::from_secs(1);

/// Figures of two numbers of sessions by the resident memory of all members together, in bytes, at each of them, and by the processor time in
/// seconds that they took with the larger number, if that was asked for. The memory for a watch has its part of its session's in it.
fn figures(plan: &Idle, resident_bytes: [u64; 2], cpu_s: Option<f64>) -> Vec<FigureValue> {
    let [few, many] = resident_bytes.map(|bytes| bytes as f64);
    let each = (many - few) / (plan.sessions[1] - plan.sessions[0]) as f64;
    let mut figures = vec![
        ("memory per idle session".to_owned(), Unit::Bytes, each),
        ("memory with few sessions".to_owned(), Unit::Bytes, few),
        ("memory with many sessions".to_owned(), Unit::Bytes, many),
    ];
    if let Some(cpu_s) = cpu_s {
        figures.push(("CPU with many sessions".to_owned(), Unit::Percent, 100.0 * cpu_s / plan.time_s));
    }
    if plan.watches > 1 {
        figures.push(("memory per watch".to_owned(), Unit::Bytes, each / plan.watches as f64));
    }
    figures
}

/// None if the user stopped it.
pub(super) fn measure(
    plan: &Idle,
    hosts: &[String],
    pids: &[u32],
    stop: &AtomicBool,
) -> Result<Option<Vec<FigureValue>>, BenchError> {
    let path = |session: usize, number: usize| {
        format!("/idle-{}-{number}", if plan.same_znodes { 0 } else { session })
    };
    with_client(hosts, ClientOptions::default(), async |client| {
        let owners = if plan.same_znodes { 1 } else { plan.sessions[1] };
        let znodes = (0..owners).flat_map(|session| (0..plan.watches).map(move |number| (session, number)));
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
    let mut cpu = None;
    if plan.time_s > 0.0 {
        let before = cpu_s(pids);
        thread::sleep(Duration::from_secs_f64(plan.time_s));
        cpu = Some(cpu_s(pids) - before);
    }
    Ok(Some(figures(plan, resident, cpu)))
}

#[cfg(test)]
mod tests {
    use super::{Idle, figures};

    fn idle(watches: usize, same_znodes: bool) -> Idle {
        Idle { sessions: [10, 60], watches, same_znodes, time_s: 10.0 }
    }

    #[test]
    fn growth_is_shared_out() {
        let of = |watches| figures(&idle(watches, true), [5_000, 30_000], Some(0.05));
        assert_eq!((of(1).len(), of(1)[0].2), (4, 500.0));
        assert_eq!((of(100)[3].2, of(100)[4].2), (0.5, 5.0), "percent of a core, and bytes of a watch");
    }

    #[test]
    fn it_says_what_it_is() {
        assert_eq!(idle(0, false).to_string(), "10 to 60 idle sessions without a watch");
        assert_eq!(idle(1, false).to_string(), "10 to 60 idle sessions with a watch each");
        let same = idle(9, true).to_string();
        assert_eq!(same, "10 to 60 idle sessions with 9 watches each, of the same znodes");
    }
}
