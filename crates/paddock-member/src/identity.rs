//! Whose data directory this is: the member's number, and who voted when the ensemble began.
//!
//! Logs and snapshots of one ensemble mean nothing in another, and a member that took itself for another one, or thought
//! itself alone while others go on without it, would lose what was acknowledged. So the first start writes it down, and
//! every later one compares.

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
    AnotherMember { path: PathBuf, found: u64, configured: u64 },
    #[error(
        "data directory {} belongs to an ensemble of the members {found:?}, but the configuration names {configured:?}; \
         changing members is not offered yet: name those, or start all members with empty directories",
        path.display()
    )]
    AnotherEnsemble { path: PathBuf, found: Vec<u64>, configured: Vec<u64> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    member: u64,
    voters: Vec<u64>,
}

impl Identity {
    fn of(config: &Config) -> Identity {
        Identity { member: u64::from(config.member), voters: config.voters.clone() }
    }

    fn text(&self) -> String {
        let voters: Vec<String> = self.voters.iter().map(u64::to_string).collect();
        format!("member {}\nvoters {}\n", self.member, voters.join(" "))
    }

    fn parse(text: &str) -> Option<Identity> {
        let (member, rest) = text.strip_prefix("member ")?.split_once('\n')?;
        let voters = rest.strip_prefix("voters ")?.strip_suffix('\n')?;
        let voters: Result<Vec<u64>, _> = voters.split(' ').map(str::parse).collect();
        Some(Identity { member: member.parse().ok()?, voters: voters.ok()? })
    }
}

/// Refuses a directory that is another's. `has_data` tells whether there is anything in it: data without an identity is
/// that of a member alone.
pub(crate) fn check(disk: &dyn Disk, config: &Config, has_data: bool) -> Result<(), IdentityError> {
    let configured = Identity::of(config);
    let found = match read(disk, &config.data_dir)? {
        Some(found) => found,
        None if has_data => Identity { member: configured.member, voters: vec![configured.member] },
        None => return Ok(()),
    };
    let path = config.data_dir.clone();
    if found.member != configured.member {
        let (found, configured) = (found.member, configured.member);
        return Err(IdentityError::AnotherMember { path, found, configured });
    }
    if found.voters != configured.voters {
        let (found, configured) = (found.voters, configured.voters);
        return Err(IdentityError::AnotherEnsemble { path, found, configured });
    }
    Ok(())
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
    file.write_at(Identity::of(config).text().as_bytes(), 0).map_err(failed("write", &unfinished))?;
    file.sync_data().map_err(failed("sync", &unfinished))?;
    disk.rename(&unfinished, &path).map_err(failed("rename", &unfinished))?;
    disk.sync_dir(&config.data_dir).map_err(failed("sync directory", &config.data_dir))
}

fn read(disk: &dyn Disk, data_dir: &Path) -> Result<Option<Identity>, IdentityError> {
    let path = data_dir.join(NAME);
    let file = match disk.open(&path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed("open", &path))?,
    };
    let mut bytes = vec![0; 4096];
    let len = file.read_at(&mut bytes, 0).map_err(failed("read", &path))?;
    let text = std::str::from_utf8(&bytes[..len]).ok();
    text.and_then(Identity::parse).map(Some).ok_or(IdentityError::Unreadable { path })
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
    let path = path.to_owned();
    move |source| IdentityError::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use paddock_storage::MemDisk;

    use super::*;

    fn config(member: u8, voters: &[u64]) -> Config {
        Config { member, voters: voters.to_vec(), ..Config::small() }
    }

    #[test]
    fn a_directory_is_its_members_and_its_ensembles() {
        let disk = MemDisk::new(1);
        disk.create_dir(Path::new("/data")).unwrap();
        let three = config(2, &[1, 2, 3]);
        check(&disk, &three, false).unwrap();
        write(&disk, &three).unwrap();
        write(&disk, &three).unwrap();
        check(&disk, &three, true).unwrap();
        let refused = |config| check(&disk, &config, true).unwrap_err().to_string();
        assert!(refused(config(3, &[1, 2, 3])).contains("belongs to member 2, not to member 3"));
        assert!(
            refused(config(2, &[1, 2]))
                .contains("of the members [1, 2, 3], but the configuration names [1, 2]")
        );
        assert!(refused(config(2, &[2])).contains("names [2]"));
    }

    #[test]
    fn data_without_an_identity_is_that_of_a_member_alone() {
        let disk = MemDisk::new(1);
        disk.create_dir(Path::new("/data")).unwrap();
        check(&disk, &config(1, &[1]), true).unwrap();
        assert!(matches!(
            check(&disk, &config(1, &[1, 2, 3]), true),
            Err(IdentityError::AnotherEnsemble { .. })
        ));
    }
}
