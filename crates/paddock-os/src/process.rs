//! Files, memory and time of this process, as the system tells of them.

use std::path::Path;

/// The bytes in the files of a directory, those of `except` left out.
pub fn directory_bytes(dir: &Path, except: Option<&Path>) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() && Some(&*entry.path()) != except => {
                directory_bytes(&entry.path(), except)
            }
            Ok(data) if data.is_file() => data.len(),
            _ => 0,
        })
        .sum()
}

/// Bytes that are free on the disk of a directory, and its size; 0 where the system does not tell.
pub fn disk_bytes(dir: &Path) -> (u64, u64) {
    let bytes = |disk: rustix::fs::StatVfs| (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
    rustix::fs::statvfs(dir).map_or((0, 0), bytes)
}

/// Open files of this process, and how many it may open.
pub fn file_descriptors() -> (u64, u64) {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as u64);
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let max = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    (open, max)
}

/// Time that the processors have spent on this process, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident memory of this process in bytes; 0 where the system does not tell.
pub fn resident_bytes() -> u64 {
    memory_bytes("VmRSS:")
}

/// Memory of this process that is in swap, in bytes; 0 where the system does not tell.
pub fn swapped_bytes() -> u64 {
    memory_bytes("VmSwap:")
}

/// Bytes in a line of this process's status.
fn memory_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    kib.map_or(0, |kib: u64| kib * 1024)
}

/// Name of the user that runs this process, or its number where it has none.
pub fn user_name() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    let Some(number) = number else { return "?".into() };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| number.to_owned())
}
