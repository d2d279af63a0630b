//! Facts of this machine, as the system tells them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use paddock_os::process::directory_bytes;
use rustix::process::{Resource, getrlimit};

use super::facts::{DiskFacts, MachineFacts, ProcessFacts};

/// The class that every ZooKeeper server runs.
const ZOOKEEPER: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// Looks at the machine, and at these directories.
pub(super) fn gather(directories: &[PathBuf]) -> MachineFacts {
    let root = Path::new("/");
    MachineFacts {
        descriptors_max: getrlimit(Resource::Nofile).maximum,
        swap: swap(root),
        huge_pages: huge_pages(root),
        clock_synchronised: clock_synchronised(),
        directories: directories.iter().map(|path| disk(root, path)).collect(),
        processes: processes(root),
        certificates: Vec::new(),
    }
}

/// Bytes of swap, and those in use.
fn swap(root: &Path) -> (u64, u64) {
    let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let [total, free] = ["SwapTotal:", "SwapFree:"].map(|name| kibibytes(&text, name));
    (total, total.saturating_sub(free))
}

/// Bytes in a line that has them in kB.
fn kibibytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    line.map_or(0, |kib: u64| kib * 1024)
}

/// The mode in brackets.
fn huge_pages(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("sys/kernel/mm/transparent_hugepage/enabled")).ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Asks those who keep the clock. The kernel tells only by a call that no safe interface has.
fn clock_synchronised() -> Option<bool> {
    let output = |program: &str, arguments: &[&str]| {
        let run = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
        run.ok()
            .filter(|output| output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match output("timedatectl", &["show", "--property=NTPSynchronized", "--value"]).as_deref() {
        Some("yes") => return Some(true),
        Some("no") => return Some(false),
        _ => {}
    }
    output("chronyc", &["-c", "tracking"]).map(|line| !line.ends_with("Not synchronised"))
}

fn disk(root: &Path, path: &Path) -> DiskFacts {
    let found = rustix::fs::statvfs(path).ok();
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    DiskFacts {
        path: path.to_owned(),
        bytes: found.as_ref().map(|disk| (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)),
        files: found.as_ref().map_or((0, 0), |disk| (disk.f_favail, disk.f_files)),
        filesystem: filesystem(root, &real),
        used_bytes: directory_bytes(path, None),
    }
}

/// Kind of the file system that a path is on: the last mount whose place is above it.
fn filesystem(root: &Path, path: &Path) -> String {
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mount = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let place = PathBuf::from(front.split(' ').nth(4)?);
        path.starts_with(&place).then(|| (place, back.split(' ').next().unwrap_or_default().to_owned()))
    };
    let above = mounts.lines().filter_map(mount).max_by_key(|(place, _)| place.components().count());
    above.map_or_else(String::new, |(_, kind)| kind)
}

/// Servers among the processes that this user can see.
fn processes(root: &Path) -> Vec<ProcessFacts> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let found = entries.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let arguments: Vec<_> = arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let name = server_name(&arguments)?;
        let limits = fs::read_to_string(entry.path().join("limits")).unwrap_or_default();
        let max = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
        let open = fs::read_dir(entry.path().join("fd")).ok().map(|list| list.count() as u64);
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let swapped_bytes = kibibytes(&status, "VmSwap:");
        Some(ProcessFacts { pid, name, descriptors: open.zip(max), swapped_bytes })
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn server_name(arguments: &[impl AsRef<str>]) -> Option<&'static str> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let program = Path::new(arguments.first()?).file_name()?.to_str()?;
    match program {
        "paddock" if arguments.contains(&"server") => Some("Paddock"),
        "java" if arguments.contains(&ZOOKEEPER) => Some("ZooKeeper"),
        "clickhouse-keeper" => Some("ClickHouse Keeper"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn what_the_system_tells_is_read() {
        let root = root(&[
            ("proc/meminfo", "MemTotal: 9 kB\nSwapTotal:  100 kB\nSwapFree: 60 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            (
                "proc/self/mountinfo",
                "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:4 / /data rw,x shared:1 - nfs4 host:/ rw\n",
            ),
            ("proc/17/cmdline", "/usr/bin/paddock\0server\0--config\0x\0"),
            ("proc/17/limits", "Limit  Soft Hard\nMax open files            1024      4096    files\n"),
            ("proc/17/status", "VmSwap:  8 kB\n"),
            ("proc/17/fd/0", ""),
            ("proc/18/cmdline", "/usr/bin/paddock\0shell\0"),
        ]);
        let root = root.path();
        assert_eq!(swap(root), (100 << 10, 40 << 10));
        assert_eq!(huge_pages(root).as_deref(), Some("madvise"));
        assert_eq!(filesystem(root, Path::new("/data/zk")), "nfs4");
        assert_eq!(filesystem(root, Path::new("/database")), "ext4");
        let server =
            ProcessFacts { pid: 17, name: "Paddock", descriptors: Some((1, 1024)), swapped_bytes: 8 << 10 };
        assert_eq!(processes(root), [server]);
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_disk() {
        let found = disk(Path::new("/"), Path::new("/no/such/directory"));
        assert_eq!((found.bytes, found.used_bytes), (None, 0));
    }
}
