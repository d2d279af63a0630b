//! Memory of many znodes: the server's resident memory before and after they were created.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use paddock_client::{Client, ClientOptions, CreateMode, Error};
use serde::{Deserialize, Serialize};

use super::figure_names::{FigureValue, MEMORY_AFTER, MEMORY_PER_ZNODE, RUNTIME};
use super::process::{resident_bytes, system};
use crate::BenchError;
use crate::report::units::Unit;
use crate::workload::tree::{Values, Znodes};

const IN_FLIGHT: usize = 2000;
/// After how many znodes progress is told.
const STRIDE: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryReport {
    pub znodes: usize,
    /// Resident memory of all members together in bytes, when only the parents were there.
    pub resident_bytes_before: u64,
    pub resident_bytes_after: u64,
    pub elapsed_s: f64,
}

impl MemoryReport {
    pub fn bytes_per_znode(&self) -> f64 {
        (self.resident_bytes_after as f64 - self.resident_bytes_before as f64) / self.znodes as f64
    }

    pub(super) fn figures(&self) -> Vec<FigureValue> {
        vec![
            (MEMORY_PER_ZNODE.to_owned(), Unit::Bytes, self.bytes_per_znode()),
            ("memory before".to_owned(), Unit::Bytes, self.resident_bytes_before as f64),
            (MEMORY_AFTER.to_owned(), Unit::Bytes, self.resident_bytes_after as f64),
            (RUNTIME.to_owned(), Unit::Seconds, self.elapsed_s),
        ]
    }
}

/// None if the user stopped it.
pub(super) fn measure(
    plan: &Znodes,
    hosts: &[String],
    pids: &[u32],
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<Option<MemoryReport>, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("prepare to connect"))?;
    let hosts = hosts.join(",");
    let failed = |source| BenchError::Setup { hosts: hosts.clone(), source };
    runtime.block_on(async {
        let client = Client::connect(&hosts, ClientOptions::default()).await.map_err(failed)?;
        create_parents(&client, plan).await.map_err(failed)?;
        let resident_bytes_before = resident_bytes(pids)?;
        let started = Instant::now();
        if !create(&client, plan, Values::Same, stop, told).await.map_err(failed)? {
            return Ok(None);
        }
        let elapsed_s = started.elapsed().as_secs_f64();
        let resident_bytes_after = resident_bytes(pids)?;
        client.close().await.map_err(failed)?;
        Ok(Some(MemoryReport { znodes: plan.znodes, resident_bytes_before, resident_bytes_after, elapsed_s }))
    })
}

/// Creates the znodes and their parents; false if the user stopped it.
pub(super) fn load(
    plan: &Znodes,
    values: Values,
    hosts: &[String],
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<bool, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("prepare to connect"))?;
    let hosts = hosts.join(",");
    let created = runtime.block_on(async {
        let client = Client::connect(&hosts, ClientOptions::default()).await?;
        create_parents(&client, plan).await?;
        let all = create(&client, plan, values, stop, told).await?;
        client.close().await?;
        Ok(all)
    });
    created.map_err(|source| BenchError::Setup { hosts, source })
}

async fn create_parents(client: &Client, plan: &Znodes) -> Result<(), Error> {
    let parents: Vec<_> = (0..plan.parents)
        .map(|number| client.create(&plan.parent(number), b"", CreateMode::Persistent))
        .collect();
    for pending in parents {
        pending.await?;
    }
    Ok(())
}

/// Creates the znodes; true if all are there, and the user has not stopped it.
async fn create(
    client: &Client,
    plan: &Znodes,
    values: Values,
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<bool, Error> {
    let mut waiting = VecDeque::new();
    let mut value = values.of(0, plan.value_bytes);
    for number in 0..plan.znodes {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if values != Values::Same {
            value = values.of(number, plan.value_bytes);
        }
        waiting.push_back(client.create(&plan.path(number), &value, CreateMode::Persistent));
        if waiting.len() == IN_FLIGHT {
            waiting.pop_front().expect("it was just counted").await?;
        }
        if (number + 1).is_multiple_of(STRIDE) {
            told(number + 1);
        }
    }
    for pending in waiting {
        pending.await?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_shared_out() {
        let report = MemoryReport {
            znodes: 10,
            resident_bytes_before: 500,
            resident_bytes_after: 1500,
            elapsed_s: 1.0,
        };
        assert_eq!(report.bytes_per_znode(), 100.0);
    }
}
