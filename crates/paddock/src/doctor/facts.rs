//! Facts that the checks judge. They are gathered once, and a check only computes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use paddock_proto::EnsembleMember;

/// All that was gathered.
#[derive(Debug, Default)]
pub(crate) struct DoctorFacts {
    pub(crate) servers: Vec<ServerFacts>,
    /// Members that the ensemble names; empty for a server alone, and if none could be asked.
    pub(crate) members: Vec<EnsembleMember>,
    /// The tree as a walk saw it, or the reason for which there was none; `None` if none was wanted.
    pub(crate) tree: Option<Result<TreeFacts, String>>,
    /// This machine, if it was to be looked at.
    pub(crate) machine: Option<MachineFacts>,
    /// Time by this machine's clock, in seconds since 1970.
    pub(crate) now_s: u64,
    /// The newest zxid that a server had at the beginning, and the time in milliseconds that lagging servers were given to reach it.
    pub(crate) newest: Option<(i64, u64)>,
}

/// Facts that one server tells, and those of the way to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFacts {
    /// `host:port` for clients.
    pub(crate) address: String,
    /// Reason for which it does not answer.
    pub(crate) unreachable: Option<String>,
    /// Part in its ensemble in ZooKeeper's words; `None` while it does not serve.
    pub(crate) mode: Option<String>,
    /// Reason that a server gives for not being ready.
    pub(crate) not_ready: Option<String>,
    pub(crate) version: Option<String>,
    /// The newest transaction it had applied at the last look.
    pub(crate) zxid: Option<i64>,
    /// Numbers by the names of ZooKeeper's `mntr` without `zk_`, and by those of Prometheus. A label stands behind in braces.
    pub(crate) metrics: BTreeMap<String, f64>,
    /// Settings by the names of ZooKeeper's `conf`.
    pub(crate) settings: BTreeMap<String, String>,
    /// Connections by the address of the client.
    pub(crate) connections: BTreeMap<String, u64>,
    pub(crate) clock: Option<ClockFacts>,
    /// End of the certificate that it has shown, in seconds since 1970.
    pub(crate) certificate_end_s: Option<u64>,
    /// Address of its HTTP interface, and the reason for which that does not answer.
    pub(crate) http: (String, Option<String>),
}

/// A server's clock against this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockFacts {
    /// Milliseconds that it is ahead.
    pub(crate) ahead_ms: i64,
    /// Milliseconds by which that may be wrong either way.
    pub(crate) error_ms: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TreeFacts {
    pub(crate) znodes: u64,
    /// True if the walk ended before it had seen all.
    pub(crate) is_partial: bool,
    /// Znodes that the session may not read.
    pub(crate) unreadable: u64,
    /// Znodes with many children, the largest first.
    pub(crate) directories: Vec<DirectoryFacts>,
    /// Paths with large data and its bytes, the largest first.
    pub(crate) values: Vec<(String, u64)>,
}

/// A znode with many children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryFacts {
    pub(crate) path: String,
    pub(crate) children: u64,
    /// Bytes of the reply that lists them.
    pub(crate) listing_bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MachineFacts {
    /// Descriptors that a process started from here may raise its limit to; `None` is no limit.
    pub(crate) descriptors_max: Option<u64>,
    /// Bytes of swap, and those in use.
    pub(crate) swap: (u64, u64),
    /// The mode of transparent huge pages: `always`, `madvise` or `never`.
    pub(crate) huge_pages: Option<String>,
    /// True if the system says that its clock is synchronised; `None` if it does not tell.
    pub(crate) clock_synchronised: Option<bool>,
    pub(crate) directories: Vec<DiskFacts>,
    /// Servers that run here.
    pub(crate) processes: Vec<ProcessFacts>,
    /// Certificates that the settings name, with their ends in seconds since 1970 or the reason for which they cannot be read.
    pub(crate) certificates: Vec<(&'static str, Result<Option<u64>, String>)>,
}

/// A directory for data or for the log, and its file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskFacts {
    pub(crate) path: PathBuf,
    /// Bytes that are free, and all of them; `None` if the directory cannot be looked at.
    pub(crate) bytes: Option<(u64, u64)>,
    /// Files that can be made, and that there may be; 0 of 0 where the file system has no such number.
    pub(crate) files: (u64, u64),
    /// Kind of the file system, such as `ext4`.
    pub(crate) filesystem: String,
    /// Bytes of the files in it.
    pub(crate) used_bytes: u64,
}

/// A server's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessFacts {
    pub(crate) pid: u32,
    /// The server's kind, in a word.
    pub(crate) name: &'static str,
    /// Open descriptors, and the limit; `None` where this user may not see them.
    pub(crate) descriptors: Option<(u64, u64)>,
    /// Bytes in swap.
    pub(crate) swapped_bytes: u64,
}

impl ServerFacts {
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).copied()
    }

    /// Values of a metric by their labels.
    pub(crate) fn labelled<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.metrics.iter().filter_map(move |(key, value)| {
            let label = key.strip_prefix(name)?.strip_prefix('{')?.strip_suffix('}')?;
            Some((label, *value))
        })
    }

    /// True if it answers and serves.
    pub(crate) fn serves(&self) -> bool {
        self.unreachable.is_none() && self.mode.is_some()
    }

    pub(crate) fn leads(&self) -> bool {
        self.mode.as_deref() == Some("leader")
    }
}
