//! The digests of RFC 2831, section 2.1.2.1, with the algorithm `md5-sess`.

use md5::{Digest, Md5};

/// Parts of an exchange that both sides hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed<'a> {
    pub(crate) realm: &'a str,
    pub(crate) nonce: &'a [u8],
    pub(crate) client_nonce: &'a [u8],
    pub(crate) digest_uri: &'a [u8],
    /// User whom the client wants to be taken for; none for the user itself.
    pub(crate) authorized: Option<&'a [u8]>,
}

impl Hashed<'_> {
    /// The hash of `A1`: what client and server share because both know the password.
    pub(crate) fn session_key(&self, user: &str, password: &str) -> String {
        let secret = Md5::new()
            .chain_update(narrow(user))
            .chain_update(b":")
            .chain_update(narrow(self.realm))
            .chain_update(b":")
            .chain_update(narrow(password))
            .finalize();
        let mut key = Md5::new().chain_update(secret);
        for part in [Some(self.nonce), Some(self.client_nonce), self.authorized].into_iter().flatten() {
            key = key.chain_update(b":").chain_update(part);
        }
        hex(&key.finalize())
    }

    /// Digest that proves the client's knowledge of `key`.
    pub(crate) fn of_client(&self, key: &str) -> String {
        self.digest(key, b"AUTHENTICATE:")
    }

    /// Digest that proves the server's.
    pub(crate) fn of_server(&self, key: &str) -> String {
        self.digest(key, b":")
    }

    fn digest(&self, key: &str, method: &[u8]) -> String {
        let asked = Md5::new().chain_update(method).chain_update(self.digest_uri).finalize();
        let digest = Md5::new()
            .chain_update(key)
            .chain_update(b":")
            .chain_update(self.nonce)
            .chain_update(b":00000001:")
            .chain_update(self.client_nonce)
            .chain_update(format!(":auth:{}", hex(&asked)));
        hex(&digest.finalize())
    }
}

/// Text as it is hashed: in Latin-1, if that has all its characters, else in UTF-8.
fn narrow(text: &str) -> Vec<u8> {
    let latin: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
    latin.unwrap_or_else(|| text.as_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 2831, section 4.
    #[test]
    fn digests_are_those_of_the_rfc() {
        let hashed = Hashed {
            realm: "elwood.innosoft.com",
            nonce: b"OA6MG9tEQGm2hh",
            client_nonce: b"OA6MHXh6VqTrRk",
            digest_uri: b"imap/elwood.innosoft.com",
            authorized: None,
        };
        let key = hashed.session_key("chris", "secret");
        assert_eq!(hashed.of_client(&key), "d388dad90d4bbd760a152321f2143af7");
        assert_eq!(hashed.of_server(&key), "ea40f60335c427b5527b84dbabcdfffd");
    }

    #[test]
    fn text_is_hashed_in_latin_1_if_it_can_be() {
        assert_eq!(narrow("süß"), b"s\xfc\xdf");
        assert_eq!(narrow("hasło"), "hasło".as_bytes());
    }
}
