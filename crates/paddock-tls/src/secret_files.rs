//! Permissions of files with secrets: wider ones than their owner's are warned of.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Permissions of the group, and those of everybody else: to read a file, and to reach what is in a directory.
const READ: [u32; 2] = [0o040, 0o004];
const REACH: [u32; 2] = [0o010, 0o001];
/// All of them.
const PERMISSIONS: u32 = 0o7777;

/// Warns of a file with a secret that others than its owner can read. `what` names the secret.
pub fn warn_of_readable_file(file: &Path, what: &str) {
    if let Some(mode) = mode_for_others(file) {
        tracing::warn!(
            file = %file.display(),
            mode = format!("{mode:04o}"),
            "other users of this machine can read {what}: take their permissions away with chmod 600"
        );
    }
}

/// The permissions of a file that its group or everybody can read, as far as permissions tell: a directory on the way that lets no others
/// pass protects it, and who belongs to a group is not looked up.
fn mode_for_others(file: &Path) -> Option<u32> {
    // A name may lead to a file elsewhere, through directories of its own.
    let file = fs::canonicalize(file).ok()?;
    let mode = |path: &Path| Some(fs::metadata(path).ok()?.permissions().mode() & PERMISSIONS);
    let found = mode(&file)?;
    let passes = |reach: u32| {
        file.ancestors().skip(1).all(|on_the_way| mode(on_the_way).is_some_and(|mode| mode & reach != 0))
    };
    let can_read = |(read, reach): (u32, u32)| found & read != 0 && passes(reach);
    READ.into_iter().zip(REACH).any(can_read).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_read_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (inner, file) = (dir.path().join("inner"), dir.path().join("inner/key.pem"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "secret").unwrap();
        chmod(dir.path(), 0o755);
        chmod(&inner, 0o755);
        for (mode, expected) in
            [(0o644, true), (0o640, true), (0o604, true), (0o622, false), (0o600, false), (0o400, false)]
        {
            chmod(&file, mode);
            assert_eq!(mode_for_others(&file), expected.then_some(mode), "{mode:o}");
        }
        chmod(&file, 0o640);
        for (mode, expected) in [(0o700, false), (0o701, false), (0o710, true), (0o755, true)] {
            chmod(&inner, mode);
            assert_eq!(mode_for_others(&file).is_some(), expected, "below {mode:o}");
        }
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(mode_for_others(&link), Some(0o640));
        assert_eq!(mode_for_others(&dir.path().join("none")), None);
    }
}
