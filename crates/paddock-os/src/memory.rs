//! Memory that the process may use, and memory that it gives back.

use std::fs;
use std::path::Path;

/// Memory that this process may use: that of its control group, of a group around it, or of the machine, whichever is the least. `root` is
/// where the system's directories are.
pub fn available_bytes(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = read("proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| kib * 1024);
    let groups = read("proc/self/cgroup");
    // `0::/a/b` is the only group of version 2, and `9:memory:/a/b` that of version 1 which counts memory. In a container the path may be
    // that of the machine outside: then only the group at the top is there.
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        match controllers {
            "" => Some(("sys/fs/cgroup", "memory.max", path)),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Some(("sys/fs/cgroup/memory", "memory.limit_in_bytes", path))
            }
            _ => None,
        }
    });
    let limits = limits.flat_map(|(top, file, path)| {
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        groups.map(|group| Path::new(top).join(group).join(file)).collect::<Vec<_>>()
    });
    let limits = limits.filter_map(|path| read(path.to_str()?).trim().parse::<u64>().ok());
    limits.chain(machine).min()
}

/// Gives pages of freed memory back to the system. The C library's allocator keeps them as long as something behind them in the same
/// arena is in use, which may be for ever.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "it is a call of the C library, which takes a number and may be made at any time on any thread"
)]
pub fn give_back() {
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    malloc_trim(0);
}

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a process on a system with these files.
    fn available(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        available_bytes(root.path())
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:        1024 kB\nMemFree:          12 kB\n");

    #[test]
    fn the_tightest_group_counts() {
        assert_eq!(available(&[MACHINE]), Some(1 << 20));
        let newer = [
            MACHINE,
            ("proc/self/cgroup", "0::/pod/member\n"),
            ("sys/fs/cgroup/pod/member/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/memory.max", "5000\n"),
        ];
        assert_eq!(available(&newer), Some(5000));
        let older = [
            MACHINE,
            ("proc/self/cgroup", "12:cpu:/x\n9:memory:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n"),
        ];
        assert_eq!(available(&older), Some(7000), "only the top is there");
        let unlimited = [
            MACHINE,
            ("proc/self/cgroup", "9:memory:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(available(&unlimited), Some(1 << 20));
        assert_eq!(available(&[]), None);
    }

    /// Without being told, the C library keeps all that is freed here: a page that is in use lies behind it.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn memory_that_is_free_behind_what_is_not_goes_back() {
        const PIECES: usize = 64 << 10;
        let resident_bytes = crate::process::resident_bytes;
        let mut pieces: Vec<_> = (0..PIECES).map(|_| vec![1u8; 1000].into_boxed_slice()).collect();
        let last = pieces.pop();
        drop(pieces);
        let before = resident_bytes();
        give_back();
        let after = resident_bytes();
        assert!(after + 32 * (1 << 20) < before, "{before} bytes before, {after} after");
        drop(last);
    }
}
