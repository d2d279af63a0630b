//! How much memory many znodes take: the server's resident memory before and after they were created.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use paddock_client::{Client, ClientOptions, CreateMode, Error};
use serde::{Deserialize, Serialize};

use super::Znodes;
use super::process::system;
use crate::BenchError;
use crate::sample::process_resident_bytes;

const IN_FLIGHT: usize = 2000;
/// After how many znodes progress is told.
const STRIDE: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryReport {
    pub znodes: usize,
    /// Of all members together, when only the parents were there.
    pub resident_bytes_before: u64,
    pub resident_bytes_after: u64,
    pub elapsed_s: f64,
}

impl MemoryReport {
    pub fn bytes_per_znode(&self) -> f64 {
        (self.resident_bytes_after as f64 - self.resident_bytes_before as f64) / self.znodes as f64
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
        let names = (0..plan.parents).map(parent);
        create(&client, names, b"", stop, &mut |_| {}).await.map_err(failed)?;
        let resident_bytes_before = resident_bytes(pids)?;
        let started = Instant::now();
        let names = (0..plan.znodes).map(|number| path(plan, number));
        let value = vec![b'x'; plan.value_bytes];
        let created = create(&client, names, &value, stop, told).await.map_err(failed)?;
        if created < plan.znodes {
            return Ok(None);
        }
        let elapsed_s = started.elapsed().as_secs_f64();
        let resident_bytes_after = resident_bytes(pids)?;
        client.close().await.map_err(failed)?;
        Ok(Some(MemoryReport { znodes: plan.znodes, resident_bytes_before, resident_bytes_after, elapsed_s }))
    })
}

fn parent(number: usize) -> String {
    format!("/memory-{number}")
}

fn path(plan: &Znodes, number: usize) -> String {
    format!("{}/{number:0width$}", parent(number % plan.parents), width = plan.name_bytes)
}

/// Creates znodes in this order until all are there or the user stops it; how many there are.
async fn create(
    client: &Client,
    paths: impl Iterator<Item = String>,
    value: &[u8],
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<usize, Error> {
    let mut waiting = VecDeque::new();
    let mut created = 0;
    for path in paths {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        waiting.push_back(client.create(&path, value, CreateMode::Persistent));
        if waiting.len() == IN_FLIGHT {
            waiting.pop_front().expect("it was just counted").await?;
            created += 1;
            if created % STRIDE == 0 {
                told(created);
            }
        }
    }
    for pending in waiting {
        pending.await?;
        created += 1;
    }
    told(created);
    Ok(created)
}

fn resident_bytes(pids: &[u32]) -> Result<u64, BenchError> {
    let of = |pid: &u32| {
        let gone = || io::Error::other("it tells no resident memory: the process has ended");
        let file = format!("/proc/{pid}/status");
        process_resident_bytes(*pid).ok_or_else(|| BenchError::file("read", file)(gone()))
    };
    pids.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_length_that_was_asked_for() {
        let plan = Znodes { znodes: 1000, value_bytes: 100, name_bytes: 13, parents: 10 };
        assert_eq!(path(&plan, 123), "/memory-3/0000000000123");
    }

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
