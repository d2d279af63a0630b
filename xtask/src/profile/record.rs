//! One workload under perf: a fresh server, a load beside it, and samples from the middle of the measurement.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use super::samples;
use super::{Times, Workload};
use crate::layout::Layout;
use crate::process::{Error, Program, last_lines};

/// No multiple of what else happens a hundred or a thousand times in a second.
const SAMPLES_PER_SECOND: &str = "997";

/// The server has no frame pointers, so perf copies the top of the stack and reads it later.
const CALL_GRAPH: &str = "dwarf,16384";

/// The result of one profiled run.
pub(super) struct Recording {
    /// Samples as `perf script` prints them.
    pub(super) script: String,
    pub(super) costs: Costs,
}

/// The bench's figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) requests_per_second: f64,
    /// For each request.
    pub(super) server_cpu_us: f64,
    pub(super) load_cpu_us: f64,
}

impl Costs {
    fn read(result: &str) -> Option<Costs> {
        let result: serde_json::Value = serde_json::from_str(result).ok()?;
        Some(Costs {
            requests_per_second: result["requests_per_second"].as_f64()?,
            server_cpu_us: result["server"]["cpu_us_per_request"].as_f64()?,
            load_cpu_us: result["client_cpu_us_per_request"].as_f64()?,
        })
    }

    /// Number of cores that server and load keep busy together.
    pub(super) fn cores(&self) -> f64 {
        (self.server_cpu_us + self.load_cpu_us) * self.requests_per_second / 1e6
    }
}

/// An error unless perf is here and may look into the kernel, too. Without the kernel's part half of a table would be missing.
pub(super) fn check_perf() -> Result<(), Error> {
    if !Program::new("perf").arg("--version").succeeds() {
        return Err(Error::new(
            "perf does not run: install it (Debian: apt-get install linux-perf; Ubuntu: linux-tools-generic)",
        ));
    }
    let setting = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    let is_root = rustix::process::geteuid().is_root();
    match what_to_set(is_root, setting("perf_event_paranoid"), setting("kptr_restrict")) {
        Some(advice) => Err(Error::new(advice)),
        None => Ok(()),
    }
}

fn what_to_set(is_root: bool, paranoid: i32, kptr_restrict: i32) -> Option<String> {
    (!is_root && (paranoid > 1 || kptr_restrict > 0)).then(|| {
        format!(
            "perf may not look into the kernel (kernel.perf_event_paranoid is {paranoid}, kernel.kptr_restrict is \
             {kptr_restrict}): run `sudo sysctl kernel.perf_event_paranoid=1 kernel.kptr_restrict=0`, or this as root"
        )
    })
}

/// Plays the workload and leaves in `directory` what it was made of.
pub(super) fn record(
    layout: &Layout,
    workload: &Workload,
    times: &Times,
    directory: &Path,
) -> Result<Recording, Error> {
    let data = directory.join("data");
    let server = ProfiledServer::start(layout, &data, &directory.join("server.log"))?;
    let result = directory.join("bench.json");
    let mut bench = server.load(layout, workload, times, &result)?;
    bench.wait_for_warm_up()?;
    let samples = directory.join("perf.data");
    perf_record(&server, times, &samples, &directory.join("perf.log"))?;
    bench.finish()?;
    drop(server);
    fs::remove_dir_all(&data).map_err(Error::io("remove", &data))?;

    let script =
        Program::new("perf").args(["script", "--fields", samples::FIELDS, "--full-source-path", "--input"]);
    let script = script.arg(&samples).output()?;
    let result = fs::read_to_string(&result).map_err(Error::io("read", &result))?;
    let costs =
        Costs::read(&result).ok_or_else(|| Error::new("the bench did not say what CPU a request cost"))?;
    Ok(Recording { script, costs })
}

fn perf_record(server: &ProfiledServer, times: &Times, out: &Path, log: &Path) -> Result<(), Error> {
    let record = Program::new("perf").args(["record", "--quiet", "--event", "cpu-clock"]);
    let record = record.args(["--freq", SAMPLES_PER_SECOND, "--call-graph", CALL_GRAPH]);
    let record = record.arg("--pid").arg(server.process.id()).arg("--output").arg(out);
    // `perf` samples from the delay on until this command ends.
    let record = record.arg("--delay").arg(times.from.as_millis().to_string());
    record.args(["--", "sleep"]).arg(times.to.as_secs_f64().to_string()).log_to(log).run()
}

/// A member of its own that ends with this value.
struct ProfiledServer {
    process: OwnedProcess,
    address: String,
}

impl ProfiledServer {
    fn start(layout: &Layout, data: &Path, log: &Path) -> Result<ProfiledServer, Error> {
        let mut command = Command::new(layout.paddock());
        command.arg("server").arg("--data-dir").arg(data).args(["--listen", "127.0.0.1:0", "--log", "warn"]);
        // All sessions come from one address.
        command.env("ZOO_MAX_CLIENT_CNXNS", "0");
        let errors = File::create(log).map_err(Error::io("create", log))?;
        let mut process = OwnedProcess::start(command.stdout(Stdio::piped()).stderr(errors))?;
        let output = process.0.stdout.take().expect("it is piped");
        // The first line is meant for the one who starts a server: `paddock VERSION listens on ADDRESS`.
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(Error::io("read from", &layout.paddock()))?;
        match line.trim().rsplit_once("listens on ") {
            Some((_, address)) => Ok(ProfiledServer { process, address: address.to_owned() }),
            None => Err(Error::new(format!("the server does not listen: {}", last_lines(log, 20)))),
        }
    }

    fn load(
        &self,
        layout: &Layout,
        workload: &Workload,
        times: &Times,
        result: &Path,
    ) -> Result<ProfiledLoad, Error> {
        let result = File::create(result).map_err(Error::io("create", result))?;
        let seconds = |time: Duration| format!("{}ms", time.as_millis());
        let mut command = Command::new(layout.paddock());
        command.args(["bench", "run", workload.workload, "--hosts", &self.address, "--json"]);
        command.args(["--sessions", workload.sessions, "--window", workload.window]);
        command.args(["--warm-up", &seconds(times.warm_up), "--time", &seconds(times.time)]);
        command.args(["--pid", &self.process.id()]);
        command.args(workload.znodes.iter().flat_map(|znodes| ["--znodes", znodes]));
        let mut process = OwnedProcess::start(command.stdout(result).stderr(Stdio::piped()))?;
        let told = BufReader::new(process.0.stderr.take().expect("it is piped"));
        Ok(ProfiledLoad { process, told })
    }
}

/// A bench, and what it tells of its progress.
struct ProfiledLoad {
    process: OwnedProcess,
    told: BufReader<ChildStderr>,
}

impl ProfiledLoad {
    /// Waits until the bench has prepared its znodes, which takes an unknown time, and begins to warm up.
    fn wait_for_warm_up(&mut self) -> Result<(), Error> {
        let mut all = String::new();
        while !all.contains("warming up") {
            if self.told.read_line(&mut all).map_err(unheard)? == 0 {
                return Err(Error::new(format!("the bench ended before it measured:\n{all}")));
            }
        }
        Ok(())
    }

    /// Waits until it has ended.
    fn finish(mut self) -> Result<(), Error> {
        let mut rest = String::new();
        self.told.read_to_string(&mut rest).map_err(unheard)?;
        let status =
            self.process.0.wait().map_err(|error| Error::new(format!("wait for the bench: {error}")))?;
        if status.success() { Ok(()) } else { Err(Error::new(format!("the bench failed: {status}\n{rest}"))) }
    }
}

fn unheard(error: io::Error) -> Error {
    Error::new(format!("read what the bench tells: {error}"))
}

/// A process that does not outlive its owner.
struct OwnedProcess(Child);

impl OwnedProcess {
    fn start(command: &mut Command) -> Result<OwnedProcess, Error> {
        let child = command.stdin(Stdio::null()).spawn();
        child.map(OwnedProcess).map_err(|error| Error::new(format!("can't run {command:?}: {error}")))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        // The process may have ended already; then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_may_not_do_is_said() {
        assert_eq!(what_to_set(true, 4, 2), None);
        assert_eq!(what_to_set(false, 1, 0), None);
        let advice = what_to_set(false, 2, 0).unwrap();
        assert!(advice.contains("perf_event_paranoid is 2"), "{advice}");
        assert!(what_to_set(false, 1, 1).is_some());
    }

    #[test]
    fn the_bench_tells_what_a_request_costs() {
        let result = r#"{"requests_per_second": 1e5, "client_cpu_us_per_request": 8,
            "server": {"cpu_us_per_request": 4.5}}"#;
        let costs = Costs::read(result).unwrap();
        assert_eq!(costs, Costs { requests_per_second: 1e5, server_cpu_us: 4.5, load_cpu_us: 8.0 });
        assert_eq!(costs.cores(), 1.25);
        assert_eq!(Costs::read(r#"{"requests_per_second": 1, "server": null}"#), None);
    }
}
