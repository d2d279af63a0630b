//! Whose data directory this is: the member's number.
//!
//! A member that took itself for another one would vote twice, and lose what was acknowledged. So the first start writes
//! it down, and every later one compares. Which ensemble it belongs to, and who else does, is in the data.

use std::io;
use std::path::{Path, PathBuf};

use paddock_storage::disk::{Access, Disk};

use crate::Config;

const NAME: &str = "identity";

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("{action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} says nothing that this version can read; restore it from a backup", path.display())]
    Unreadable { path: PathBuf },
    #[error(
        "data directory {} belongs to member {found}, not to member {configured}; check myid and dataDir, or start \
         with an empty directory",
        path.display()
    )]
    AnotherMember { path: PathBuf, found: u8, configured: u8 },
}

fn text(member: u8) -> String {
    format!("member {member}\n")
}

fn parse(text: &str) -> Option<u8> {
    text.strip_prefix("member ")?.strip_suffix('\n')?.parse().ok()
}

/// Refuses a directory that is another member's.
pub(crate) fn check(disk: &dyn Disk, config: &Config) -> Result<(), IdentityError> {
    match read(disk, &config.data_dir)? {
        Some(found) if found != config.member => {
            let path = config.data_dir.clone();
            Err(IdentityError::AnotherMember { path, found, configured: config.member })
        }
        _ => Ok(()),
    }
}

/// Writes it down, durably, if that was not done before.
pub(crate) fn write(disk: &dyn Disk, config: &Config) -> Result<(), IdentityError> {
    if read(disk, &config.data_dir)?.is_some() {
        return Ok(());
    }
    let path = config.data_dir.join(NAME);
    let unfinished = path.with_extension("tmp");
    match disk.remove(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &unfinished)(error));
        }
        _ => {}
    }
    let file = disk.create(&unfinished).map_err(failed("create", &unfinished))?;
    file.write_at(text(config.member).as_bytes(), 0).map_err(failed("write", &unfinished))?;
    file.sync_data().map_err(failed("sync", &unfinished))?;
    disk.rename(&unfinished, &path).map_err(failed("rename", &unfinished))?;
    disk.sync_dir(&config.data_dir).map_err(failed("sync directory", &config.data_dir))
}

fn read(disk: &dyn Disk, data_dir: &Path) -> Result<Option<u8>, IdentityError> {
    let path = data_dir.join(NAME);
    let file = match disk.open(&path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed("open", &path))?,
    };
    let mut bytes = vec![0; 4096];
    let len = file.read_at(&mut bytes, 0).map_err(failed("read", &path))?;
    let text = std::str::from_utf8(&bytes[..len]).ok();
    text.and_then(parse).map(Some).ok_or(IdentityError::Unreadable { path })
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
    let path = path.to_owned();
    move |source| IdentityError::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use paddock_storage::MemDisk;

    use super::*;

    #[test]
    fn a_directory_is_its_members() {
        let disk = MemDisk::new(1);
        disk.create_dir(Path::new("/data")).unwrap();
        let config = |member| Config { member, ..Config::small() };
        check(&disk, &config(2)).unwrap();
        write(&disk, &config(2)).unwrap();
        write(&disk, &config(2)).unwrap();
        check(&disk, &config(2)).unwrap();
        let refused = check(&disk, &config(3)).unwrap_err().to_string();
        assert!(refused.contains("belongs to member 2, not to member 3"), "{refused}");
    }
}
