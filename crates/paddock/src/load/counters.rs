//! Counters of sequential children. A server counts the children that were ever made, and has no other way to be told.

use paddock_client::{CreateMode, ErrorCode, Multi};

use super::failure::LoadFailure;
use super::target::{LoadTarget, ON_THEIR_WAY};
use crate::diff::seen::creates;
use crate::moving::ProgressLine;

/// Name of the child that is made and deleted.
const RAISING: &str = "paddock-load-counter";
/// Children that one request makes and deletes.
const AT_ONCE: i64 = 100;
/// Requests on their way at a time.
const REQUESTS: usize = 8;

/// The counter that a znode had at the source.
pub(super) struct Counter {
    pub(super) line: u64,
    pub(super) path: String,
    pub(super) wanted: i64,
}

/// Counters that are behind those of the source, each with the number of children that it lacks.
pub(super) async fn behind(
    target: &LoadTarget<'_>,
    counters: Vec<Counter>,
    ahead: &mut u64,
) -> Result<Vec<(Counter, i64)>, LoadFailure> {
    let mut behind = Vec::new();
    let mut counters = counters.into_iter().peekable();
    while counters.peek().is_some() {
        let asked: Vec<_> = counters
            .by_ref()
            .take(ON_THEIR_WAY)
            .map(|counter| {
                let stat = target.client.exists(&counter.path);
                (counter, stat)
            })
            .collect();
        for (counter, stat) in asked {
            let has = match stat.await {
                Ok(stat) => creates(&stat),
                // Nothing was written: this is a trial.
                Err(error) if error.code() == Some(ErrorCode::NoNode) => 0,
                Err(error) => return Err(target.failed(counter.line, &counter.path, error)),
            };
            let by = counter.wanted - has;
            *ahead += u64::from(by < 0);
            if by > 0 {
                behind.push((counter, by));
            }
        }
    }
    Ok(behind)
}

/// Makes and deletes the children that are lacking.
pub(super) async fn raise(
    target: &LoadTarget<'_>,
    behind: &[(Counter, i64)],
    progress: &mut ProgressLine,
) -> Result<(), LoadFailure> {
    let all: i64 = behind.iter().map(|(_, by)| by).sum();
    let mut done = 0;
    for (counter, by) in behind {
        let parent = if counter.path == "/" { "" } else { &counter.path };
        let child = format!("{parent}/{RAISING}");
        let mut left = *by;
        while left > 0 {
            let mut sent = Vec::new();
            while left > 0 && sent.len() < REQUESTS {
                let count = left.min(AT_ONCE);
                let step =
                    |multi: Multi, _| multi.create(&child, b"", CreateMode::Persistent).delete(&child, None);
                sent.push((count, target.client.multi(&(0..count).fold(Multi::new(), step))));
                left -= count;
            }
            for (count, answer) in sent {
                answer.await.map_err(|error| target.failed(counter.line, &counter.path, error))?;
                done += count;
                progress.show_text(|| format!("{}: counters raised by {done} of {all}", target.servers));
            }
        }
    }
    Ok(())
}
