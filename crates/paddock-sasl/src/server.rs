//! The server's side, as Java's and Cyrus' clients speak it with ZooKeeper.

use std::collections::BTreeMap;

use subtle::ConstantTimeEq;

use crate::digest::Hashed;
use crate::directives::{Directives, MalformedDirectives};

/// The realm that ZooKeeper's servers offer to clients, which is the server's name there.
const REALM: &str = "zk-sasl-md5";
/// The service that clients name.
const SERVICE: &str = "zookeeper/";

/// Reason for which a client has not proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
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
}

impl From<MalformedDirectives> for AnswerError {
    fn from(_: MalformedDirectives) -> AnswerError {
        AnswerError::Malformed
    }
}

/// A challenge that was sent to one client.
#[derive(Debug)]
pub struct Challenge {
    nonce: String,
}

impl Challenge {
    /// `nonce` has never been used before, and cannot be foreseen.
    pub fn new(nonce: u128) -> Challenge {
        Challenge { nonce: format!("{nonce:032x}") }
    }

    /// The challenge as it is sent.
    pub fn token(&self) -> Vec<u8> {
        let nonce = &self.nonce;
        format!("realm=\"{REALM}\",nonce=\"{nonce}\",qop=\"auth\",charset=utf-8,algorithm=md5-sess")
            .into_bytes()
    }

    /// The user who has answered the challenge, and the server's proof for the client.
    pub fn verify(
        &self,
        answer: &[u8],
        passwords: &BTreeMap<String, String>,
    ) -> Result<(String, Vec<u8>), AnswerError> {
        let answer = Directives::parse(answer)?;
        let user = answer.text(b"username").ok_or(AnswerError::Malformed)?;
        let is_own_challenge = answer.get(b"nonce") == Some(self.nonce.as_bytes())
            // Each challenge is answered once.
            && answer.get(b"nc") == Some(b"00000001");
        if !is_own_challenge {
            return Err(AnswerError::OtherChallenge);
        }
        let digest_uri = answer.need(b"digest-uri")?;
        let is_offered = answer.get(b"realm") == Some(REALM.as_bytes())
            && answer.get(b"qop").is_none_or(|qop| qop == b"auth")
            && digest_uri.starts_with(SERVICE.as_bytes());
        if !is_offered {
            return Err(AnswerError::NotOffered);
        }
        let authorized = answer.text(b"authzid").filter(|id| !id.is_empty());
        if authorized.as_ref().is_some_and(|authorized| *authorized != user) {
            return Err(AnswerError::OtherUser);
        }
        let hashed = Hashed {
            realm: REALM,
            nonce: self.nonce.as_bytes(),
            client_nonce: answer.need(b"cnonce")?,
            digest_uri,
            authorized: answer.get(b"authzid").filter(|id| !id.is_empty()),
        };
        let response = answer.need(b"response")?;
        // An unknown user costs as much as a known one, so that the time does not tell who is known.
        let password = passwords.get(&user);
        let key = hashed.session_key(&user, password.map_or("", String::as_str));
        let is_right = hashed.of_client(&key).as_bytes().ct_eq(response);
        if !bool::from(is_right) || password.is_none() {
            return Err(AnswerError::WrongPassword);
        }
        Ok((user, format!("rspauth={}", hashed.of_server(&key)).into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use md5::{Digest, Md5};

    use super::*;

    const NONCE: u128 = 0x1234;

    /// Users whose names and passwords are ASCII, Latin-1, and neither.
    fn passwords() -> BTreeMap<String, String> {
        [("bob", "bobsecret"), ("Jürgen", "süß"), ("Łukasz", "hasło")]
            .map(|(user, password)| (user.to_owned(), password.to_owned()))
            .into()
    }

    fn hash(parts: &[&[u8]]) -> String {
        Md5::digest(parts.concat()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// An answer as a client computes it, by the words of the RFC.
    fn answer(user: &str, password: &str, authorized: Option<&str>, nonce: &str) -> String {
        let latin = |text: &str| {
            let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
            bytes.unwrap_or_else(|| text.as_bytes().to_vec())
        };
        let secret = Md5::digest([&latin(user)[..], b":zk-sasl-md5:", &latin(password)].concat());
        let tail = authorized.map(|id| format!(":{id}")).unwrap_or_default();
        let a1 = hash(&[&secret[..], format!(":{nonce}:c0ffee{tail}").as_bytes()]);
        let a2 = hash(&[b"AUTHENTICATE:zookeeper/zk-sasl-md5"]);
        let response = hash(&[format!("{a1}:{nonce}:00000001:c0ffee:auth:{a2}").as_bytes()]);
        let authorized = authorized.map(|id| format!(",authzid=\"{id}\"")).unwrap_or_default();
        format!(
            "charset=utf-8,username=\"{user}\",realm=\"zk-sasl-md5\",nonce=\"{nonce}\",nc=00000001,cnonce=\"c0ffee\",\
             digest-uri=\"zookeeper/zk-sasl-md5\",maxbuf=65536,response={response},qop=auth{authorized}"
        )
    }

    fn nonce() -> String {
        format!("{NONCE:032x}")
    }

    fn verify(answer: &str) -> Result<String, AnswerError> {
        Challenge::new(NONCE).verify(answer.as_bytes(), &passwords()).map(|(user, _)| user)
    }

    #[test]
    fn who_knows_the_password_is_who_it_says() {
        for (user, password) in passwords() {
            assert_eq!(verify(&answer(&user, &password, None, &nonce())).as_ref(), Ok(&user));
            assert_eq!(verify(&answer(&user, &password, Some(&user), &nonce())).as_ref(), Ok(&user));
            assert_eq!(verify(&answer(&user, "guess", None, &nonce())), Err(AnswerError::WrongPassword));
        }
        assert_eq!(verify(&answer("nobody", "", None, &nonce())), Err(AnswerError::WrongPassword));
    }

    #[test]
    fn nobody_is_taken_for_another_one() {
        assert_eq!(verify(&answer("bob", "bobsecret", Some("super"), &nonce())), Err(AnswerError::OtherUser));
    }

    #[test]
    fn an_answer_counts_for_its_own_challenge_once() {
        let replayed = answer("bob", "bobsecret", None, "00ff");
        assert_eq!(verify(&replayed), Err(AnswerError::OtherChallenge));
        let again = answer("bob", "bobsecret", None, &nonce()).replace("nc=00000001", "nc=00000002");
        assert_eq!(verify(&again), Err(AnswerError::OtherChallenge));
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        let right = answer("bob", "bobsecret", None, &nonce());
        for (offered, asked) in [
            ("qop=auth", "qop=auth-conf"),
            ("realm=\"zk-sasl-md5\"", "realm=\"x\""),
            ("zookeeper/zk", "imap/zk"),
        ] {
            assert_eq!(verify(&right.replace(offered, asked)), Err(AnswerError::NotOffered), "{asked}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let right = answer("bob", "bobsecret", None, &nonce());
        let long = format!("{right},x={}", "y".repeat(4096));
        let twice = format!("{right},username=\"ann\"");
        for bad in ["", "username", "username=\"bob", "username=\"bob\\", "=", ",,,", &long, &twice] {
            assert_eq!(verify(bad), Err(AnswerError::Malformed), "{bad}");
        }
        for name in ["username", "cnonce", "digest-uri", "response"] {
            assert_eq!(
                verify(&right.replace(&format!("{name}="), "x-other=")),
                Err(AnswerError::Malformed),
                "{name}"
            );
        }
    }
}
