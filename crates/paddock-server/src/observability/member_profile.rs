//! Profile of a member, which the other members show their operators: its version, and the disk of its data.

use paddock_proto::DecodeError;
use paddock_proto::jute::{Reader, Writer};

use super::status;
use super::version::VERSION;
use crate::shared::Shared;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberProfile {
    pub(crate) version: String,
    /// Bytes that are free on the disk of its data, and the size of that disk; 0 where the system does not tell.
    pub(crate) disk_free: u64,
    pub(crate) disk_size: u64,
}

impl MemberProfile {
    /// The profile of this member, as it is now.
    pub(crate) fn of(shared: &Shared) -> MemberProfile {
        let (disk_free, disk_size) = status::disk_bytes(&shared.config.data_dir);
        MemberProfile { version: VERSION.to_owned(), disk_free, disk_size }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(&self.version);
        out.put_i64(self.disk_free as i64);
        out.put_i64(self.disk_size as i64);
        out
    }

    /// Fails for what another build may say. Whatever it says behind these facts is left out.
    pub(crate) fn decode(bytes: &[u8]) -> Result<MemberProfile, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = reader.string()?.to_owned();
        let (disk_free, disk_size) = (reader.i64()? as u64, reader.i64()? as u64);
        Ok(MemberProfile { version, disk_free, disk_size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_comes_back_as_encoded() {
        let profile = MemberProfile { version: "3.9.5".to_owned(), disk_free: 1 << 40, disk_size: u64::MAX };
        let mut bytes = profile.encode();
        assert_eq!(MemberProfile::decode(&bytes), Ok(profile.clone()));
        assert!((0..bytes.len()).all(|end| MemberProfile::decode(&bytes[..end]).is_err()));
        bytes.push(1);
        assert_eq!(MemberProfile::decode(&bytes), Ok(profile));
    }
}
