//! Profile of a member, which the other members show their operators: its version, the disk of its data, and the way to its page.

use std::net::{IpAddr, SocketAddr};

use paddock_os::process;
use paddock_proto::DecodeError;
use paddock_proto::jute::{Reader, Writer};

use crate::config::PortProtocol;
use crate::shared::Shared;
use crate::version::VERSION;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberProfile {
    pub(crate) version: String,
    /// Bytes that are free on the disk of its data, and the size of that disk; 0 where the system does not tell.
    pub(crate) disk_free: u64,
    pub(crate) disk_size: u64,
    /// Scheme and address of its HTTP interface, such as `http://0.0.0.0:8080`; empty if it has none.
    pub(crate) page: String,
}

impl MemberProfile {
    /// The profile of this member, as it is now.
    pub(crate) fn of(shared: &Shared) -> MemberProfile {
        let (disk_free, disk_size) = process::disk_bytes(&shared.config.data_dir);
        MemberProfile { version: VERSION.to_owned(), disk_free, disk_size, page: own_page(shared) }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(&self.version);
        out.put_i64(self.disk_free as i64);
        out.put_i64(self.disk_size as i64);
        out.put_string(&self.page);
        out
    }

    /// Fails for what another build may say. Whatever it says behind these facts is left out.
    pub(crate) fn decode(bytes: &[u8]) -> Result<MemberProfile, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = reader.string()?.to_owned();
        let (disk_free, disk_size) = (reader.i64()? as u64, reader.i64()? as u64);
        // Earlier builds end here.
        let page = if reader.is_empty() { String::new() } else { reader.string()?.to_owned() };
        Ok(MemberProfile { version, disk_free, disk_size, page })
    }

    /// Address of its page for a browser, if it has one that can be reached by `host`, the one of the ensemble's list.
    pub(crate) fn page_at(&self, host: &str) -> Option<String> {
        let (scheme, address) = self.page.split_once("://")?;
        let scheme = ["http", "https"].into_iter().find(|known| *known == scheme)?;
        let address: SocketAddr = address.parse().ok()?;
        let host = match (address.ip(), host.parse::<IpAddr>()) {
            (ip, _) if !ip.is_unspecified() => ip.to_string(),
            (_, Ok(ip)) if ip.is_unspecified() => return None,
            (_, Ok(ip)) => ip.to_string(),
            (_, Err(_))
                if host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) =>
            {
                host.to_owned()
            }
            (_, Err(_)) => return None,
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Some(format!("{scheme}://{host}:{}/", address.port()))
    }
}

fn own_page(shared: &Shared) -> String {
    let scheme = match shared.config.admin.tls.protocol {
        PortProtocol::Plaintext => "http",
        PortProtocol::Either | PortProtocol::Tls => "https",
    };
    // A port that the system chooses is for tests.
    let address = shared.config.admin_listen.filter(|address| address.port() != 0);
    address.map_or(String::new(), |address| format!("{scheme}://{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_comes_back_as_encoded() {
        let page = "https://[::]:8443".to_owned();
        let profile =
            MemberProfile { version: "3.9.5".to_owned(), disk_free: 1 << 40, disk_size: u64::MAX, page };
        let mut bytes = profile.encode();
        assert_eq!(MemberProfile::decode(&bytes), Ok(profile.clone()));
        let end_of_earlier = bytes.len() - 4 - profile.page.len();
        let of_earlier = MemberProfile { page: String::new(), ..profile.clone() };
        assert_eq!(MemberProfile::decode(&bytes[..end_of_earlier]), Ok(of_earlier));
        let cuts = (0..bytes.len()).filter(|end| *end != end_of_earlier);
        assert!(cuts.into_iter().all(|end| MemberProfile::decode(&bytes[..end]).is_err()));
        bytes.push(1);
        assert_eq!(MemberProfile::decode(&bytes), Ok(profile));
    }

    #[test]
    fn a_page_is_where_the_member_serves_it_or_at_the_host_that_the_ensemble_knows() {
        for (page, host, expected) in [
            ("http://0.0.0.0:8080", "zk2", Some("http://zk2:8080/")),
            ("https://[::]:8443", "10.0.0.2", Some("https://10.0.0.2:8443/")),
            ("http://0.0.0.0:8080", "fd00::2", Some("http://[fd00::2]:8080/")),
            ("http://127.0.0.1:8080", "zk2", Some("http://127.0.0.1:8080/")),
            ("http://[fd00::9]:1", "zk2", Some("http://[fd00::9]:1/")),
            ("http://0.0.0.0:8080", "0.0.0.0", None),
            ("http://0.0.0.0:8080", "a/b@c", None),
            ("javascript://0.0.0.0:8080", "zk2", None),
            ("http://somewhere:8080", "zk2", None),
            ("", "zk2", None),
        ] {
            let profile =
                MemberProfile { version: String::new(), disk_free: 0, disk_size: 0, page: page.to_owned() };
            assert_eq!(profile.page_at(host).as_deref(), expected, "{page} {host}");
        }
    }
}
