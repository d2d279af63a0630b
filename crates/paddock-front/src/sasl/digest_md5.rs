//! DIGEST-MD5 of RFC 2831, without layers of integrity or confidentiality (`qop=auth`), as Java's and Cyrus' clients speak it with
//! ZooKeeper.

use std::collections::BTreeMap;

use md5::{Digest, Md5};
use subtle::ConstantTimeEq;

/// The realm that ZooKeeper's servers offer, which is the server's name in their clients.
const REALM: &str = "zk-sasl-md5";
/// The service that clients name.
const SERVICE: &str = "zookeeper/";
/// The largest answer to a challenge, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;

/// Reason for which a client has not proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SaslError {
    #[error("the first token of DIGEST-MD5 is empty, and this one is not")]
    NotEmpty,
    #[error("a token that is no answer to a challenge of DIGEST-MD5")]
    Malformed,
    #[error("an answer to another challenge than the one that was sent")]
    OtherChallenge,
    #[error("a realm, a service or a protection that was not offered")]
    NotOffered,
    #[error("a user who wants to be taken for another one")]
    OtherUser,
    #[error("an unknown user or a wrong password")]
    WrongPassword,
    #[error("a token behind the end of the exchange")]
    Over,
}

/// A challenge that was sent to one client.
#[derive(Debug)]
pub(crate) struct Challenge {
    nonce: String,
}

impl Challenge {
    pub(crate) fn new(nonce: u128) -> Challenge {
        Challenge { nonce: format!("{nonce:032x}") }
    }

    pub(crate) fn token(&self) -> Vec<u8> {
        let nonce = &self.nonce;
        format!("realm=\"{REALM}\",nonce=\"{nonce}\",qop=\"auth\",charset=utf-8,algorithm=md5-sess")
            .into_bytes()
    }

    /// The user who has answered the challenge, and the server's proof for the client.
    pub(crate) fn verify(
        &self,
        answer: &[u8],
        passwords: &BTreeMap<String, String>,
    ) -> Result<(String, Vec<u8>), SaslError> {
        let answer = Answer::parse(answer)?;
        let user = answer.text(b"username").ok_or(SaslError::Malformed)?;
        let is_own_challenge = answer.get(b"nonce") == Some(self.nonce.as_bytes())
            // Each challenge is answered once.
            && answer.get(b"nc") == Some(b"00000001");
        if !is_own_challenge {
            return Err(SaslError::OtherChallenge);
        }
        let service = answer.get(b"digest-uri").ok_or(SaslError::Malformed)?;
        let is_offered = answer.get(b"realm") == Some(REALM.as_bytes())
            && answer.get(b"qop").is_none_or(|qop| qop == b"auth")
            && service.starts_with(SERVICE.as_bytes());
        if !is_offered {
            return Err(SaslError::NotOffered);
        }
        let authorized = answer.text(b"authzid").filter(|id| !id.is_empty());
        if authorized.as_ref().is_some_and(|authorized| *authorized != user) {
            return Err(SaslError::OtherUser);
        }
        // An unknown user costs as much as a known one, so that the time does not tell who is known.
        let password = passwords.get(&user);
        let key = session_key(&answer, &user, password.map_or("", String::as_str));
        let expected = answer.digest(&key, &self.nonce, b"AUTHENTICATE:")?;
        let response = answer.get(b"response").ok_or(SaslError::Malformed)?;
        let is_right = expected.as_bytes().ct_eq(response);
        if !bool::from(is_right) || password.is_none() {
            return Err(SaslError::WrongPassword);
        }
        let proof = answer.digest(&key, &self.nonce, b":")?;
        Ok((user, format!("rspauth={proof}").into_bytes()))
    }
}

/// The hash of `A1`: what client and server share because both know the password.
fn session_key(answer: &Answer, user: &str, password: &str) -> String {
    let secret = Md5::new()
        .chain_update(narrow(user))
        .chain_update(b":")
        .chain_update(REALM)
        .chain_update(b":")
        .chain_update(narrow(password))
        .finalize();
    let mut key = Md5::new().chain_update(secret);
    for part in [answer.get(b"nonce"), answer.get(b"cnonce")] {
        key = key.chain_update(b":").chain_update(part.unwrap_or_default());
    }
    if let Some(authorized) = answer.get(b"authzid").filter(|id| !id.is_empty()) {
        key = key.chain_update(b":").chain_update(authorized);
    }
    hex(&key.finalize())
}

/// Directives of an answer, by name.
#[derive(Debug)]
struct Answer {
    directives: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Answer {
    /// Parses `name=value` and `name="value"` between commas.
    fn parse(token: &[u8]) -> Result<Answer, SaslError> {
        if token.is_empty() || token.len() > ANSWER_BYTES_MAX {
            return Err(SaslError::Malformed);
        }
        let mut directives = BTreeMap::new();
        let mut rest = token;
        while let Some(begin) = rest.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t')) {
            rest = &rest[begin..];
            let equals = rest.iter().position(|byte| *byte == b'=').ok_or(SaslError::Malformed)?;
            let name = rest[..equals].to_ascii_lowercase();
            let (value, len) = value(&rest[equals + 1..])?;
            rest = &rest[equals + 1 + len..];
            if directives.insert(name, value).is_some() {
                return Err(SaslError::Malformed);
            }
        }
        Ok(Answer { directives })
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.directives.get(name).map(Vec::as_slice)
    }

    /// A name, in the character set that the client says: Latin-1 unless it is UTF-8.
    fn text(&self, name: &[u8]) -> Option<String> {
        let bytes = self.get(name)?;
        match self.get(b"charset") {
            Some(_) => String::from_utf8(bytes.to_vec()).ok(),
            None => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        }
    }

    /// The digest that proves knowledge of `key`; `method` is what is asked for, and differs between client and server.
    fn digest(&self, key: &str, nonce: &str, method: &[u8]) -> Result<String, SaslError> {
        let need = |name: &[u8]| self.get(name).ok_or(SaslError::Malformed);
        let asked = Md5::new().chain_update(method).chain_update(need(b"digest-uri")?).finalize();
        let digest = Md5::new()
            .chain_update(key)
            .chain_update(format!(":{nonce}:00000001:"))
            .chain_update(need(b"cnonce")?)
            .chain_update(format!(":auth:{}", hex(&asked)));
        Ok(hex(&digest.finalize()))
    }
}

/// A value, and the number of bytes that it takes.
fn value(rest: &[u8]) -> Result<(Vec<u8>, usize), SaslError> {
    let Some(quoted) = rest.strip_prefix(b"\"") else {
        let len = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        return Ok((rest[..len].trim_ascii().to_vec(), len));
    };
    let mut value = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Ok((value, at + 2)),
            b'\\' => value.push(*bytes.next().ok_or(SaslError::Malformed)?.1),
            other => value.push(*other),
        }
    }
    Err(SaslError::Malformed)
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

    const NONCE: u128 = 0x1234;

    fn passwords() -> BTreeMap<String, String> {
        [("bob", "bobsecret"), ("Jürgen", "süß"), ("Łukasz", "hasło")]
            .map(|(user, password)| (user.to_owned(), password.to_owned()))
            .into()
    }

    /// An answer as a client computes it, by the words of the RFC.
    fn answer(user: &str, password: &str, authorized: Option<&str>, nonce: &str) -> String {
        let secret = Md5::digest([&narrow(user)[..], b":zk-sasl-md5:", &narrow(password)].concat());
        let tail = authorized.map(|id| format!(":{id}")).unwrap_or_default();
        let a1 = hex(&Md5::digest([&secret[..], format!(":{nonce}:c0ffee{tail}").as_bytes()].concat()));
        let a2 = hex(&Md5::digest("AUTHENTICATE:zookeeper/zk-sasl-md5"));
        let response = hex(&Md5::digest(format!("{a1}:{nonce}:00000001:c0ffee:auth:{a2}")));
        let authorized = authorized.map(|id| format!(",authzid=\"{id}\"")).unwrap_or_default();
        format!(
            "charset=utf-8,username=\"{user}\",realm=\"zk-sasl-md5\",nonce=\"{nonce}\",nc=00000001,cnonce=\"c0ffee\",\
             digest-uri=\"zookeeper/zk-sasl-md5\",maxbuf=65536,response={response},qop=auth{authorized}"
        )
    }

    fn nonce() -> String {
        format!("{NONCE:032x}")
    }

    fn verify(answer: &str) -> Result<String, SaslError> {
        Challenge::new(NONCE).verify(answer.as_bytes(), &passwords()).map(|(user, _)| user)
    }

    /// The example of RFC 2831, section 4: another realm and service, so only the digests are compared.
    #[test]
    fn digests_are_those_of_the_rfc() {
        let token = b"charset=utf-8,username=\"chris\",realm=\"elwood.innosoft.com\",nonce=\"OA6MG9tEQGm2hh\",nc=00000001,\
            cnonce=\"OA6MHXh6VqTrRk\",digest-uri=\"imap/elwood.innosoft.com\",\
            response=d388dad90d4bbd760a152321f2143af7,qop=auth";
        let answer = Answer::parse(token).unwrap();
        let secret = Md5::digest("chris:elwood.innosoft.com:secret");
        let key = hex(&Md5::digest([&secret[..], b":OA6MG9tEQGm2hh:OA6MHXh6VqTrRk"].concat()));
        let digest = |method| answer.digest(&key, "OA6MG9tEQGm2hh", method).unwrap();
        assert_eq!(digest(b"AUTHENTICATE:").as_bytes(), answer.get(b"response").unwrap());
        assert_eq!(digest(b":"), "ea40f60335c427b5527b84dbabcdfffd");
    }

    #[test]
    fn who_knows_the_password_is_who_it_says() {
        for (user, password) in passwords() {
            assert_eq!(verify(&answer(&user, &password, None, &nonce())).as_ref(), Ok(&user));
            assert_eq!(verify(&answer(&user, &password, Some(&user), &nonce())).as_ref(), Ok(&user));
            assert_eq!(verify(&answer(&user, "guess", None, &nonce())), Err(SaslError::WrongPassword));
        }
        assert_eq!(verify(&answer("nobody", "", None, &nonce())), Err(SaslError::WrongPassword));
    }

    #[test]
    fn nobody_is_taken_for_another_one() {
        assert_eq!(verify(&answer("bob", "bobsecret", Some("super"), &nonce())), Err(SaslError::OtherUser));
    }

    #[test]
    fn an_answer_counts_for_its_own_challenge_once() {
        let replayed = answer("bob", "bobsecret", None, "00ff");
        assert_eq!(verify(&replayed), Err(SaslError::OtherChallenge));
        let again = answer("bob", "bobsecret", None, &nonce()).replace("nc=00000001", "nc=00000002");
        assert_eq!(verify(&again), Err(SaslError::OtherChallenge));
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        let right = answer("bob", "bobsecret", None, &nonce());
        for (offered, asked) in [
            ("qop=auth", "qop=auth-conf"),
            ("realm=\"zk-sasl-md5\"", "realm=\"x\""),
            ("zookeeper/zk", "imap/zk"),
        ] {
            assert_eq!(verify(&right.replace(offered, asked)), Err(SaslError::NotOffered), "{asked}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let right = answer("bob", "bobsecret", None, &nonce());
        let long = format!("{right},x={}", "y".repeat(ANSWER_BYTES_MAX));
        let twice = format!("{right},username=\"ann\"");
        for bad in ["", "username", "username=\"bob", "username=\"bob\\", "=", ",,,", &long, &twice] {
            assert_eq!(verify(bad), Err(SaslError::Malformed), "{bad}");
        }
        for name in ["username", "cnonce", "digest-uri", "response"] {
            assert_eq!(
                verify(&right.replace(&format!("{name}="), "x-other=")),
                Err(SaslError::Malformed),
                "{name}"
            );
        }
    }
}
