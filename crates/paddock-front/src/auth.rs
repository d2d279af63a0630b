//! Identities that a client shows.

use std::net::IpAddr;

use paddock_proto::{Auth, Id, IdList};
use subtle::ConstantTimeEq;

use crate::{DigestAlgorithm, Settings};

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
pub(crate) fn authenticate(auth: &Auth<'_>, address: IpAddr, settings: &Settings) -> Option<Vec<Id>> {
    match auth.scheme {
        "digest" => Some(digest_ids(auth.auth?, settings)),
        "ip" => Some(vec![address_id(address)]),
        _ => None,
    }
}

/// The identities that data of a scheme proves for a client that comes from this address; `None` if it proves nothing.
pub fn proven_ids(scheme: &str, auth: &[u8], address: IpAddr, settings: &Settings) -> Option<Vec<Id>> {
    authenticate(&Auth { scheme, auth: Some(auth) }, address, settings)
}

/// The identity of `user:password`, and that of the super user, if its digest is the configured one.
fn digest_ids(auth: &[u8], settings: &Settings) -> Vec<Id> {
    let id = digest_id_by(settings.digest_algorithm, auth);
    let super_digest = settings.super_digest.as_deref();
    let is_super = super_digest.is_some_and(|expected| expected.as_bytes().ct_eq(id.id.as_bytes()).into());
    let mut ids = vec![id];
    if is_super {
        ids.push(Id::new("super", ""));
    }
    ids
}

/// The identity that `user:password` proves: `user:` and the Base64 of the SHA-1 of the whole.
pub fn digest_id(auth: &[u8]) -> Id {
    digest_id_by(DigestAlgorithm::Sha1, auth)
}

/// A digest identity with the Base64 of another hash.
fn digest_id_by(algorithm: DigestAlgorithm, auth: &[u8]) -> Id {
    let user = String::from_utf8_lossy(auth).split(':').next().unwrap_or_default().to_owned();
    Id::new("digest", format!("{user}:{}", algorithm.encode(auth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn check(scheme: &str, auth: &[u8], expected: Option<&[(&str, &str)]>) {
        let settings = Settings { super_digest: Some(SUPER123.to_owned()), ..Settings::of_zookeeper() };
        let ids = authenticate(&Auth { scheme, auth: Some(auth) }, ADDRESS, &settings);
        let expected = expected.map(|ids| ids.iter().map(|(s, i)| Id::new(*s, *i)).collect::<Vec<_>>());
        assert_eq!(ids, expected, "{scheme}");
    }

    #[test]
    fn a_digest_is_what_zookeeper_makes_of_it() {
        // From ZooKeeper's documentation: DigestAuthenticationProvider.generateDigest("super:super123").
        check("digest", b"super:super123", Some(&[("digest", SUPER123), ("super", "")]));
        check("digest", b"super:wrong", Some(&[("digest", "super:nXindoZMsrhmm0JDlDwACbCSBn0=")]));
    }

    /// The hashes are those of `printf super:super123 | openssl dgst -binary -ALGORITHM | base64`.
    #[test]
    fn passwords_may_be_hashed_otherwise() {
        for (algorithm, expected) in [(DigestAlgorithm::Sha256, SHA256), (DigestAlgorithm::Sha512, SHA512)] {
            let id = digest_id_by(algorithm, b"super:super123");
            assert_eq!(id.id, format!("super:{expected}"));
            assert_eq!(algorithm.encoded_len(), expected.len());
        }
        assert_eq!(digest_id(b"super:super123").id, SUPER123);
    }

    const SHA256: &str = "K/sqmF3KGQVW7a76k2mjlnnrMXGqvRBZJ17okis6+x8=";
    const SHA512: &str =
        "3Dbk+F76x6F9kphtEXo2atM59MLIp6J8RMM99+31oDONCwzJAmFmEW6Uox2JZBPl06cGkGAG/nw4dMo30mY8XA==";
    const SUPER123: &str = "super:UdxDQl4f9v5oITwcAsO9bmWgHSI=";

    #[test]
    fn an_unknown_scheme_proves_nothing() {
        check("world", b"anyone", None);
        check("sasl", b"", None);
    }
}
