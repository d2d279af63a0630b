//! Time of one append and sync on a real disk, for batches of several sizes.
//!
//! `cargo run --release -p paddock-storage --example log_latency [directory]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paddock_storage::{GroupNumber, Index, Log, LogOptions, OsDisk, Record, Term};

const PAYLOAD: [u8; 100] = [7; 100];
const ROUNDS: usize = 3000;

fn main() -> Result<(), Box<dyn Error>> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = parent.join(format!("paddock-log-latency-{}", std::process::id()));
    let measured = measure(&dir);
    std::fs::remove_dir_all(&dir)?;
    measured
}

fn measure(dir: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let mut log = Log::open(Arc::new(OsDisk), dir, LogOptions::default(), &mut |_: Record<'_>| {})?;
    while log.housekeeper().run()? {}
    let mut index = Index(0);
    println!("batch      p50      p99   entries/s");
    for batch in [1, 64, 1000] {
        let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            // Segments are prepared outside the measured time, as another thread would do it.
            while log.room() < 1 << 20 && log.housekeeper().run()? {}
            let start = Instant::now();
            for _ in 0..batch {
                index = index.next();
                log.append(Record::Entry { group: GroupNumber(0), term: Term(1), index, payload: &PAYLOAD });
            }
            log.sync()?;
            times.push(start.elapsed());
            log.release(GroupNumber(0), index);
        }
        let total: Duration = times.iter().sum();
        times.sort_unstable();
        let (p50, p99) = (times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
        let rate = (batch * ROUNDS) as f64 / total.as_secs_f64();
        println!("{batch:5} {:>5} us {:>5} us {rate:>11.0}", p50.as_micros(), p99.as_micros());
    }
    Ok(())
}
