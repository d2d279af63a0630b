//! Memory of many znodes: the server's resident memory before and after they were created.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode};

use super::figure_names::{FigureValue, MEMORY_AFTER, MEMORY_PER_ZNODE, RUNTIME};
use super::process::resident_bytes;
use crate::BenchError;
use crate::prepare::{all, with_client};
use crate::report::units::Unit;
use crate::workload::tree::{Filling, Values, Znodes};

/// After how many znodes progress is told.
const STRIDE: usize = 10_000;

/// Figures of `znodes` znodes by the resident memory of all members together, in bytes, when only their parents were there and
/// when they were.
fn figures(znodes: usize, before: u64, after: u64, elapsed_s: f64) -> Vec<FigureValue> {
    let (before, after) = (before as f64, after as f64);
    vec![
        (MEMORY_PER_ZNODE.to_owned(), Unit::Bytes, (after - before) / znodes as f64),
        ("memory before".to_owned(), Unit::Bytes, before),
        (MEMORY_AFTER.to_owned(), Unit::Bytes, after),
        (RUNTIME.to_owned(), Unit::Seconds, elapsed_s),
    ]
}

/// None if the user stopped it.
pub(super) fn measure(
    plan: &Znodes,
    hosts: &[String],
    pids: &[u32],
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<Option<Vec<FigureValue>>, BenchError> {
    let tree = Filling::Alike { znodes: plan.clone(), values: Values::Same };
    let measured = with_client(hosts, ClientOptions::default(), async |client| {
        if !plan.below.is_empty() {
            let created = client.create(&plan.below, b"", CreateMode::Persistent).await;
            created.map(drop).or_else(if_there)?;
        }
        create_directories(&client, &tree).await?;
        let before = resident_bytes(pids);
        let started = Instant::now();
        let is_whole = create(&client, &tree, stop, told).await?;
        Ok((is_whole, started.elapsed().as_secs_f64(), before, resident_bytes(pids)))
    });
    let (is_whole, elapsed_s, before, after) = measured?;
    let figures = figures(plan.znodes, before?, after?, elapsed_s);
    Ok(is_whole.then_some(figures))
}

/// Creates the znodes and their directories; false if the user stopped it.
pub(super) fn load(
    tree: &Filling,
    hosts: &[String],
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<bool, BenchError> {
    with_client(hosts, ClientOptions::default(), async |client| {
        create_directories(&client, tree).await?;
        create(&client, tree, stop, told).await
    })
}

/// A znode that is to be created is there: a command that prepares the server may have made it.
fn if_there(error: Error) -> Result<(), Error> {
    if error.code() == Some(ErrorCode::NodeExists) { Ok(()) } else { Err(error) }
}

async fn create_directories(client: &Client, tree: &Filling) -> Result<(), Error> {
    let create = |path: String| client.create(&path, b"", CreateMode::Persistent);
    all(tree.directories().map(create), Err).await
}

/// Creates the znodes; true if the user has not stopped it.
async fn create(
    client: &Client,
    tree: &Filling,
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<bool, Error> {
    let is_stopped = || stop.load(Ordering::Relaxed);
    let requests = (0..tree.count()).take_while(|_| !is_stopped()).map(|number| {
        if (number + 1).is_multiple_of(STRIDE) {
            told(number + 1);
        }
        client.create(&tree.path(number), &tree.value(number, number), CreateMode::Persistent)
    });
    all(requests, Err).await?;
    Ok(!is_stopped())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_shared_out() {
        assert_eq!(figures(10, 500, 1500, 1.0)[0].2, 100.0);
    }
}
