//! Identity of a data directory: the member's number, and the id of its ensemble.
//!
//! A member that took itself for another one would vote twice, and lose what was acknowledged. So the first start writes its number
//! down, and every later one compares. It does so once its log has begun: an identity without a log tells of a log that is lost. The id
//! of the ensemble is written before the member promises anything there (`Cluster`), so that a directory that was put in another one's
//! place is known for what it is before it is read.
//!
//! The last line is a checksum of the others: a flipped bit would make the member one of another ensemble, which all others refuse without
//! an end. Earlier builds wrote none; such a file is read, and written anew.

use std::io;
use std::path::{Path, PathBuf};

use paddock_proto::MemberNumber;
use paddock_replica::Cluster;
use paddock_storage::disk::{Access, Disk, is_exhausted, is_full};

use crate::Config;

pub(crate) const NAME: &str = "identity";

/// Beginning of the last line.
const CHECKSUM: &str = "checksum ";

/// Reason for which the file that says whose a data directory is does not fit, or cannot be read.
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
        "{} is damaged, its checksum does not fit: restore it from a backup, or start with an empty directory, so that the member \
         learns from the others",
        path.display()
    )]
    Damaged { path: PathBuf },
    #[error(
        "data directory {} belongs to member {found}, not to member {configured}; check myid and dataDir, or start \
         with an empty directory",
        path.display()
    )]
    AnotherMember { path: PathBuf, found: MemberNumber, configured: MemberNumber },
    #[error(
        "the newest snapshot in {} is of ensemble {found:016x}, but the directory belongs to ensemble {expected:016x}; \
         put its own snapshots back, or start with an empty directory",
        path.display()
    )]
    AnotherEnsemble { path: PathBuf, found: u64, expected: u64 },
}

impl IdentityError {
    /// True if there was no room, which passes when someone makes room.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, IdentityError::File { source, .. } if is_full(source))
    }

    /// True if the system had no descriptor for a file: the same call may succeed later.
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(self, IdentityError::File { source, .. } if is_exhausted(source))
    }
}

/// The contents of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) member: MemberNumber,
    pub(crate) cluster: Cluster,
}

impl Identity {
    fn text(self) -> String {
        let Identity { member, cluster } = self;
        let text = match cluster {
            Cluster::None => format!("member {member}\n"),
            Cluster::Proposed(id) => format!("member {member}\nproposed cluster {id:016x}\n"),
            Cluster::Known(id) => format!("member {member}\ncluster {id:016x}\n"),
        };
        let checksum = crc32c::crc32c(text.as_bytes());
        format!("{text}{CHECKSUM}{checksum:08x}\n")
    }

    fn parse(text: &str) -> Option<Identity> {
        let (first, rest) = text.split_once('\n')?;
        let member = first.strip_prefix("member ")?.parse().ok()?;
        let id = |text: &str| u64::from_str_radix(text, 16).ok().filter(|id| *id > 0);
        let cluster = match rest.strip_suffix('\n') {
            None => rest.is_empty().then_some(Cluster::None)?,
            Some(line) => match line.strip_prefix("proposed cluster ") {
                Some(proposed) => Cluster::Proposed(id(proposed)?),
                None => Cluster::Known(id(line.strip_prefix("cluster ")?)?),
            },
        };
        Some(Identity { member, cluster })
    }
}

/// The file as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) identity: Identity,
    /// False in a file of an earlier build.
    pub(crate) has_checksum: bool,
}

/// The identity in the directory; `None` if it is new. Refuses a directory of another member.
pub(crate) fn check(disk: &dyn Disk, config: &Config) -> Result<Option<Found>, IdentityError> {
    let found = read(disk, &config.data_dir)?;
    let member = found.map(|found| found.identity.member);
    if let Some(member) = member.filter(|member| *member != config.member) {
        let path = config.data_dir.clone();
        return Err(IdentityError::AnotherMember { path, found: member, configured: config.member });
    }
    Ok(found)
}

/// Writes the identity into a directory that is new, or that an earlier build has written. On a full disk a file of an earlier build stays
/// as it is.
pub(crate) fn settle(disk: &dyn Disk, config: &Config, found: Option<Found>) -> Result<(), IdentityError> {
    match found {
        None => write(disk, config, Cluster::None),
        Some(Found { has_checksum: true, .. }) => Ok(()),
        Some(Found { identity, .. }) => match write(disk, config, identity.cluster) {
            Err(error) if error.is_disk_full() => Ok(()),
            written => written,
        },
    }
}

/// Writes it down, durably, in the place of what was there.
pub(crate) fn write(disk: &dyn Disk, config: &Config, cluster: Cluster) -> Result<(), IdentityError> {
    write_to(disk, &config.data_dir, config.member, cluster)
}

/// Writes the identity of a member without settings.
pub(crate) fn write_to(
    disk: &dyn Disk,
    data_dir: &Path,
    member: MemberNumber,
    cluster: Cluster,
) -> Result<(), IdentityError> {
    let path = data_dir.join(NAME);
    let unfinished = path.with_extension("tmp");
    match disk.remove(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &unfinished)(error));
        }
        _ => {}
    }
    let file = disk.create(&unfinished).map_err(failed("create", &unfinished))?;
    let identity = Identity { member, cluster };
    file.write_at(identity.text().as_bytes(), 0).map_err(failed("write", &unfinished))?;
    file.sync_data().map_err(failed("sync", &unfinished))?;
    disk.rename(&unfinished, &path).map_err(failed("rename", &unfinished))?;
    disk.sync_dir(data_dir).map_err(failed("sync directory", data_dir))
}

pub(crate) fn read(disk: &dyn Disk, data_dir: &Path) -> Result<Option<Found>, IdentityError> {
    let path = data_dir.join(NAME);
    let file = match disk.open(&path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed("open", &path))?,
    };
    let mut bytes = vec![0; 4096];
    let len = file.read_at(&mut bytes, 0).map_err(failed("read", &path))?;
    let bytes = &bytes[..len];
    let text = std::str::from_utf8(bytes).map_err(|_| IdentityError::Unreadable { path: path.clone() })?;
    let (said, has_checksum) = match text.rfind(CHECKSUM) {
        None => (text, false),
        Some(at) => {
            let (said, line) = text.split_at(at);
            if line != format!("{CHECKSUM}{:08x}\n", crc32c::crc32c(said.as_bytes())) {
                return Err(IdentityError::Damaged { path });
            }
            (said, true)
        }
    };
    let identity = Identity::parse(said).ok_or(IdentityError::Unreadable { path })?;
    Ok(Some(Found { identity, has_checksum }))
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
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
        assert_eq!(check(&disk, &config(2)).unwrap(), None);
        for cluster in [Cluster::None, Cluster::Proposed(u64::MAX), Cluster::Known(7)] {
            write(&disk, &config(2), cluster).unwrap();
            disk.crash();
            let identity = Identity { member: 2, cluster };
            assert_eq!(check(&disk, &config(2)).unwrap(), Some(Found { identity, has_checksum: true }));
        }
        let refused = check(&disk, &config(3)).unwrap_err().to_string();
        assert!(refused.contains("belongs to member 2, not to member 3"), "{refused}");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in [
            "",
            "member 2",
            "member x\n",
            "member 2\ncluster 0\n",
            "member 2\ncluster 7",
            "member 2\nfoo 7\n",
        ] {
            let disk = MemDisk::new(1);
            disk.create_dir(Path::new("/data")).unwrap();
            disk.put(Path::new("/data/identity"), text.as_bytes());
            assert!(check(&disk, &Config { member: 2, ..Config::small() }).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_wherever_it_is() {
        let config = Config { member: 2, ..Config::small() };
        let path = Path::new("/data/identity");
        for cluster in [Cluster::None, Cluster::Proposed(0xAB), Cluster::Known(7)] {
            let text = Identity { member: 2, cluster }.text();
            for bit in 0..8 * text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let disk = MemDisk::new(1);
                disk.create_dir(Path::new("/data")).unwrap();
                disk.put(path, &bytes);
                let refused = check(&disk, &config).map_err(|error| error.to_string());
                assert!(
                    refused.as_ref().is_err_and(|error| error.contains("/data/identity")),
                    "{:?}: {refused:?}",
                    String::from_utf8_lossy(&bytes)
                );
            }
        }
    }

    #[test]
    fn a_file_without_a_checksum_is_read_and_written_anew() {
        let config = Config { member: 2, ..Config::small() };
        let (identity, path) =
            (Identity { member: 2, cluster: Cluster::Known(7) }, Path::new("/data/identity"));
        let disk = MemDisk::new(1);
        disk.create_dir(Path::new("/data")).unwrap();
        disk.put(path, b"member 2\ncluster 0000000000000007\n");
        let found = check(&disk, &config).unwrap();
        assert_eq!(found, Some(Found { identity, has_checksum: false }));
        settle(&disk, &config, found).unwrap();
        disk.crash();
        assert_eq!(check(&disk, &config).unwrap(), Some(Found { identity, has_checksum: true }));
    }
}
