//! A small file system in memory, for disks that are full or must not be written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system; unmounted when this is dropped.
#[derive(Debug)]
pub struct Filesystem {
    mount_point: tempfile::TempDir,
}

impl Filesystem {
    /// `None`, and a line that says why, where mounting is not allowed.
    pub fn mount(bytes: usize) -> Option<Filesystem> {
        Filesystem::try_mount(bytes).inspect_err(|reason| println!("skipped: {reason}")).ok()
    }

    /// An error says why mounting is not allowed.
    pub fn try_mount(bytes: usize) -> Result<Filesystem, String> {
        let mount_point = tempfile::tempdir().expect("make a directory");
        let size = format!("size={bytes}");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], mount_point.path())?;
        Ok(Filesystem { mount_point })
    }

    pub fn path(&self) -> &Path {
        self.mount_point.path()
    }

    /// Takes all room that is left, until `free` gives it back.
    pub fn fill(&self) {
        let mut ballast = File::create(self.ballast()).expect("create a file that takes up room");
        // The last bytes go one page at a time.
        for piece in [1 << 16, 1 << 12] {
            loop {
                match ballast.write_all(&vec![1; piece]) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => panic!("fill {}: {error}", self.path().display()),
                }
            }
        }
    }

    /// Takes what is left but for `bytes`, until `free` gives it back.
    pub fn fill_but(&self, bytes: usize) {
        let all = rustix::fs::statvfs(self.path()).expect("look at a disk");
        let ballast = (all.f_bfree * all.f_frsize) as usize - bytes;
        fs::write(self.ballast(), vec![1; ballast]).expect("take up room");
    }

    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("remove the file that takes up room");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// From now on nothing can be written.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro"], self.path()).expect("make it read-only");
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        // Lazy: a process that was just killed may not have let go of it yet. Ctrl-C must not keep it from its work.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).process_group(0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "unmount {}", self.path().display());
    }
}

fn mount(arguments: &[&str], mount_point: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(mount_point).process_group(0).output();
    let output = output.map_err(|error| format!("run mount: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_string())
    }
}
