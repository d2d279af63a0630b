//! Samples of the resources that the server's processes use, taken once a second by a thread of its own.
//!
//! A process of this machine is read in /proc, one elsewhere by its Prometheus page; the number of fsyncs comes from that
//! page or from the four-letter word `mntr`. What a source does not tell is absent, not zero.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::report::{ProcessUse, Sample, ServerUse};
use crate::{BenchError, SampleSource};

const INTERVAL: Duration = Duration::from_secs(1);
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

pub(crate) struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Vec<ProcessUse>>,
}

/// A source as it is asked.
#[derive(Clone, Debug)]
enum Probe {
    Process(u32),
    Metrics(String),
    Words(SocketAddr),
}

impl Sampler {
    /// Takes the first samples before it returns. Refuses sources that tell nothing.
    pub(crate) fn start(sources: &[SampleSource], servers: &[SocketAddr]) -> Result<Sampler, BenchError> {
        let mut probes = Vec::new();
        for source in sources {
            probes.push(check(source)?);
        }
        if sources.iter().any(|source| matches!(source, SampleSource::Pid(_))) {
            // Optional: not every server answers this word.
            probes.extend(servers.iter().map(|server| Probe::Words(*server)));
        }
        let start = Instant::now();
        let mut uses: Vec<ProcessUse> =
            probes.iter().map(|probe| ProcessUse { source: probe.name(), samples: Vec::new() }).collect();
        take(&probes, &mut uses, start);
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let watch = move || watch(&probes, uses, start, &stopped);
        let thread = thread::Builder::new()
            .name("bench-sampler".into())
            .spawn(watch)
            .map_err(|source| BenchError::System { action: "start the sampling thread", source })?;
        Ok(Sampler { stop, thread })
    }

    /// Takes the last samples.
    pub(crate) fn finish(self, requests: u64) -> Option<ServerUse> {
        drop(self.stop);
        let processes = self.thread.join().expect("the sampling thread does not panic");
        (!processes.is_empty()).then(|| sum(processes, requests))
    }
}

fn watch(
    probes: &[Probe],
    mut uses: Vec<ProcessUse>,
    start: Instant,
    stop: &Receiver<()>,
) -> Vec<ProcessUse> {
    let mut next = start + INTERVAL;
    while stop.recv_deadline(next) == Err(RecvTimeoutError::Timeout) {
        take(probes, &mut uses, start);
        next += INTERVAL;
    }
    take(probes, &mut uses, start);
    uses.retain(|process| process.samples.iter().any(Sample::tells_anything));
    uses
}

fn take(probes: &[Probe], uses: &mut [ProcessUse], start: Instant) {
    for (probe, process) in probes.iter().zip(uses) {
        let at_s = start.elapsed().as_secs_f64();
        process.samples.push(probe.sample(at_s));
    }
}

fn check(source: &SampleSource) -> Result<Probe, BenchError> {
    let probe = match source {
        SampleSource::Pid(pid) => Probe::Process(*pid),
        SampleSource::Metrics(url) => Probe::Metrics(url.clone()),
    };
    if probe.sample(0.0).tells_anything() {
        return Ok(probe);
    }
    Err(BenchError::Usage(match source {
        SampleSource::Pid(pid) => {
            format!("there is no process {pid} on this machine whose use could be read (--pid)")
        }
        SampleSource::Metrics(url) => {
            format!("{url} is no Prometheus page with process_cpu_seconds_total or the like (--metrics-url)")
        }
    }))
}

impl Probe {
    fn name(&self) -> String {
        match self {
            Probe::Process(pid) => format!("pid {pid}"),
            Probe::Metrics(url) => url.clone(),
            Probe::Words(server) => format!("mntr of {server}"),
        }
    }

    fn sample(&self, at_s: f64) -> Sample {
        let nothing = Sample { at_s, cpu_s: None, resident_bytes: None, fsyncs: None };
        match self {
            Probe::Process(pid) => {
                Sample { cpu_s: process_cpu_s(*pid), resident_bytes: process_resident_bytes(*pid), ..nothing }
            }
            Probe::Metrics(url) => match page(url) {
                Some(page) => Sample {
                    cpu_s: first_metric(&page, &["process_cpu_seconds_total"]),
                    resident_bytes: first_metric(&page, RESIDENT).map(|bytes| bytes as u64),
                    fsyncs: first_metric(&page, FSYNCS).map(|count| count as u64),
                    ..nothing
                },
                None => nothing,
            },
            Probe::Words(server) => Sample { fsyncs: mntr_fsyncs(*server), ..nothing },
        }
    }
}

/// As Prometheus clients and ClickHouse name them.
const RESIDENT: &[&str] = &["process_resident_memory_bytes", "ClickHouseAsyncMetrics_MemoryResident"];
/// As ZooKeeper and ClickHouse name them.
const FSYNCS: &[&str] = &["fsynctime_count", "zk_fsynctime_count", "ClickHouseProfileEvents_FileSync"];

impl Sample {
    fn tells_anything(&self) -> bool {
        self.cpu_s.is_some() || self.resident_bytes.is_some() || self.fsyncs.is_some()
    }
}

/// User and system time.
pub(crate) fn process_cpu_s(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, spaces too.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

pub(crate) fn process_resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn page(url: &str) -> Option<String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(ANSWER_WITHIN)).build();
    ureq::Agent::new_with_config(config).get(url).call().ok()?.body_mut().read_to_string().ok()
}

fn first_metric(page: &str, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| metric(page, name))
}

/// The value of a metric without labels, or the sum over all its labels.
fn metric(page: &str, name: &str) -> Option<f64> {
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let rest = match rest.strip_prefix('{') {
            Some(labels) => labels.rsplit_once('}')?.1,
            None => rest.strip_prefix(' ')?,
        };
        rest.split_whitespace().next()?.parse::<f64>().ok()
    });
    values.reduce(|sum, value| sum + value)
}

fn mntr_fsyncs(server: SocketAddr) -> Option<u64> {
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&server, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(b"mntr")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().ok()?;
    answer.lines().find_map(|line| line.strip_prefix("zk_cnt_fsynctime\t")?.trim().parse().ok())
}

fn sum(processes: Vec<ProcessUse>, requests: u64) -> ServerUse {
    let cpu_s = total(&processes, |process| used(process, |sample| sample.cpu_s));
    let fsyncs = total(&processes, |process| used(process, |sample| sample.fsyncs.map(|count| count as f64)));
    ServerUse {
        cpu_us_per_request: cpu_s.filter(|_| requests > 0).map(|cpu_s| cpu_s * 1e6 / requests as f64),
        resident_bytes_peak: residents(&processes).max(),
        resident_bytes_after: residents(&processes).last(),
        fsyncs: fsyncs.map(|count| count as u64),
        processes,
    }
}

fn total(processes: &[ProcessUse], part: impl Fn(&ProcessUse) -> Option<f64>) -> Option<f64> {
    processes.iter().filter_map(part).reduce(|sum, one| sum + one)
}

/// Growth of a counter between the first and the last sample that tell it.
fn used(process: &ProcessUse, counter: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let mut told = process.samples.iter().filter_map(counter);
    let first = told.next()?;
    Some(told.next_back().unwrap_or(first) - first)
}

/// The sum over the processes each time that they were looked at.
fn residents(processes: &[ProcessUse]) -> impl Iterator<Item = u64> {
    let count = processes.iter().map(|process| process.samples.len()).max().unwrap_or(0);
    (0..count).filter_map(|number| {
        let told = processes.iter().filter_map(|process| process.samples.get(number)?.resident_bytes);
        told.reduce(|sum, bytes| sum + bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(samples: &[(f64, u64)]) -> ProcessUse {
        let sample = |&(cpu_s, bytes): &(f64, u64)| Sample {
            at_s: 0.0,
            cpu_s: Some(cpu_s),
            resident_bytes: Some(bytes),
            fsyncs: None,
        };
        ProcessUse { source: "pid 1".into(), samples: samples.iter().map(sample).collect() }
    }

    #[test]
    fn processes_add_up() {
        let all = sum(
            vec![process(&[(1.0, 10), (2.0, 40)]), process(&[(5.0, 10), (5.5, 20), (6.0, 5)])],
            1_000_000,
        );
        assert_eq!(all.cpu_us_per_request, Some(2.0));
        assert_eq!(all.resident_bytes_peak, Some(60));
        assert_eq!(all.resident_bytes_after, Some(5));
        assert_eq!(all.fsyncs, None);
    }

    #[test]
    fn this_process_has_used_something() {
        let sample = Probe::Process(std::process::id()).sample(0.0);
        assert!(sample.resident_bytes > Some(100_000));
        assert!(sample.cpu_s.is_some());
        assert!(matches!(check(&SampleSource::Pid(u32::MAX)), Err(BenchError::Usage(_))));
    }

    #[test]
    fn metrics_are_read_with_and_without_labels() {
        let page = "# HELP a text\na_total 3.5\na 1e3\nb{x=\"}\"} 2\nb{x=\"2\"} 4 1700000000\nbc 9\n";
        assert_eq!(metric(page, "a"), Some(1000.0));
        assert_eq!(metric(page, "a_total"), Some(3.5));
        assert_eq!(metric(page, "b"), Some(6.0));
        assert_eq!(metric(page, "c"), None);
    }
}
