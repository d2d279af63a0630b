//! Identities that a client shows.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paddock_proto::{Auth, Id, IdList};
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

/// The identity of every connection: the address it comes from.
pub(crate) fn address_id(address: IpAddr) -> Id {
    Id::new("ip", address.to_canonical().to_string())
}

/// The scheme of clients that have shown a certificate.
pub(crate) const X509: &str = "x509";

/// The identities that a client's certificate has proved, of all that it has; `None` if it has shown none.
pub(crate) fn certificate_ids(ids: IdList<'_>) -> Option<Vec<Id>> {
    let ids: Vec<Id> =
        ids.iter().filter(|(scheme, _)| *scheme == X509).map(|(s, id)| Id::new(s, id)).collect();
    (!ids.is_empty()).then_some(ids)
}

/// The identities that `auth` proves, or `None` if it proves nothing.
pub(crate) fn authenticate(auth: &Auth<'_>, address: IpAddr, super_digest: Option<&str>) -> Option<Vec<Id>> {
    match auth.scheme {
        "digest" => Some(digest_ids(auth.auth?, super_digest)),
        "ip" => Some(vec![address_id(address)]),
        _ => None,
    }
}

/// The identity of `user:password`, and that of the super user, if its digest is the configured one.
fn digest_ids(auth: &[u8], super_digest: Option<&str>) -> Vec<Id> {
    let id = digest_id(auth);
    let is_super = super_digest.is_some_and(|expected| expected.as_bytes().ct_eq(id.id.as_bytes()).into());
    let mut ids = vec![id];
    if is_super {
        ids.push(Id::new("super", ""));
    }
    ids
}

/// The identity that `user:password` proves: `user:` and the Base64 of the SHA-1 of the whole.
pub fn digest_id(auth: &[u8]) -> Id {
    let user = String::from_utf8_lossy(auth).split(':').next().unwrap_or_default().to_owned();
    Id::new("digest", format!("{user}:{}", STANDARD.encode(Sha1::digest(auth))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn check(scheme: &str, auth: &[u8], expected: Option<&[(&str, &str)]>) {
        let super_digest = Some("super:UdxDQl4f9v5oITwcAsO9bmWgHSI=");
        let ids = authenticate(&Auth { scheme, auth: Some(auth) }, ADDRESS, super_digest);
        let expected = expected.map(|ids| ids.iter().map(|(s, i)| Id::new(*s, *i)).collect::<Vec<_>>());
        assert_eq!(ids, expected, "{scheme}");
    }

    #[test]
    fn a_digest_is_what_zookeeper_makes_of_it() {
        // From ZooKeeper's documentation: DigestAuthenticationProvider.generateDigest("super:super123").
        check("digest", b"super:super123", Some(&[("digest", SUPER123), ("super", "")]));
        check("digest", b"super:wrong", Some(&[("digest", "super:nXindoZMsrhmm0JDlDwACbCSBn0=")]));
    }

    const SUPER123: &str = "super:UdxDQl4f9v5oITwcAsO9bmWgHSI=";

    #[test]
    fn an_unknown_scheme_proves_nothing() {
        check("world", b"anyone", None);
        check("sasl", b"", None);
    }
}
