//! A small file system in memory, for disks that are full or must not be written.

use std::path::Path;
use std::process::Command;

/// A mounted file system; unmounted when this is dropped.
#[derive(Debug)]
pub struct Filesystem {
    mount_point: tempfile::TempDir,
}

impl Filesystem {
    /// `None`, and a line that says why, where mounting is not allowed.
    pub fn mount(bytes: usize) -> Option<Filesystem> {
        let mount_point = tempfile::tempdir().expect("make a directory");
        let size = format!("size={bytes}");
        match mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], mount_point.path()) {
            Ok(()) => Some(Filesystem { mount_point }),
            Err(reason) => {
                println!("skipped: {reason}");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.mount_point.path()
    }

    /// From now on nothing can be written.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro"], self.path()).expect("make it read-only");
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        // Lazy: a process that was just killed may not have let go of it yet.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "unmount {}", self.path().display());
    }
}

fn mount(arguments: &[&str], mount_point: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(mount_point).output();
    let output = output.map_err(|error| format!("run mount: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
    }
}
