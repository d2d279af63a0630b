//! The client's side: an answer to a challenge, and the proof that the server knows the password too.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::digest::Hashed;
use crate::directives::{Directives, MalformedDirectives, put_quoted};

/// A user and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Name, as the server's file of users has it.
    pub user: String,
    /// Password, as text. No debug output shows it.
    pub password: String,
}

/// A password is a secret, which no log may have.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:…", self.user)
    }
}

/// Service of ZooKeeper that a client logs in to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The port for clients.
    Clients,
    /// The port on which a leader hears its followers and observers.
    Quorum,
}

impl Service {
    /// The service and the server's name, which is the same for all servers.
    fn digest_uri(self) -> &'static str {
        match self {
            Service::Clients => "zookeeper/zk-sasl-md5",
            Service::Quorum => "zookeeper-quorum/zk-quorum-sasl-md5",
        }
    }
}

/// Reason for which a server is not spoken to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    #[error("its token is no challenge of DIGEST-MD5")]
    Malformed,
    #[error("it asks for a protection or an algorithm other than auth and md5-sess")]
    NotKnown,
    #[error("it has not proved that it knows the password")]
    NotProven,
}

impl From<MalformedDirectives> for ChallengeError {
    fn from(_: MalformedDirectives) -> ChallengeError {
        ChallengeError::Malformed
    }
}

/// An exchange in which the client has yet to be challenged.
#[derive(Clone, Debug)]
pub struct LoginExchange {
    login: Login,
    service: Service,
    nonce: String,
}

impl LoginExchange {
    /// `nonce` has never been used before, and cannot be foreseen.
    pub fn new(login: Login, service: Service, nonce: u128) -> LoginExchange {
        LoginExchange { login, service, nonce: format!("{nonce:032x}") }
    }

    /// The user that logs in.
    pub fn user(&self) -> &str {
        &self.login.user
    }

    /// The answer to a challenge, and what the server has to prove behind it.
    pub fn answer(&self, challenge: &[u8]) -> Result<(Vec<u8>, ServerProof), ChallengeError> {
        let challenge = Directives::parse(challenge)?;
        let offers_auth = challenge
            .get(b"qop")
            .is_none_or(|offered| offered.split(|byte| *byte == b',').any(|qop| qop.trim_ascii() == b"auth"));
        // A server that says nothing of UTF-8 could take a name for another one.
        if !offers_auth
            || challenge.get(b"algorithm") != Some(b"md5-sess")
            || challenge.get(b"charset").is_none()
        {
            return Err(ChallengeError::NotKnown);
        }
        let Login { user, password } = &self.login;
        let realm = challenge.text(b"realm").ok_or(ChallengeError::Malformed)?;
        let hashed = Hashed {
            realm: &realm,
            nonce: challenge.need(b"nonce")?,
            client_nonce: self.nonce.as_bytes(),
            digest_uri: self.service.digest_uri().as_bytes(),
            authorized: None,
        };
        let key = hashed.session_key(user, password);
        let mut answer = b"charset=utf-8,nc=00000001,qop=auth".to_vec();
        let quoted = [
            (",username", user.as_bytes()),
            (",realm", realm.as_bytes()),
            (",nonce", hashed.nonce),
            (",cnonce", hashed.client_nonce),
            (",digest-uri", hashed.digest_uri),
        ];
        for (name, value) in quoted {
            put_quoted(&mut answer, name, value);
        }
        answer.extend_from_slice(format!(",response={}", hashed.of_client(&key)).as_bytes());
        Ok((answer, ServerProof(hashed.of_server(&key))))
    }
}

/// The digest that only a server which knows the password can send.
#[derive(Clone, Debug)]
pub struct ServerProof(String);

impl ServerProof {
    /// Compares it with the server's last token.
    pub fn check(&self, token: &[u8]) -> Result<(), ChallengeError> {
        let token = Directives::parse(token).map_err(|_| ChallengeError::NotProven)?;
        let sent = token.need(b"rspauth").map_err(|_| ChallengeError::NotProven)?;
        let is_right = bool::from(self.0.as_bytes().ct_eq(sent));
        if is_right { Ok(()) } else { Err(ChallengeError::NotProven) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{AnswerError, Challenge};

    fn exchange(user: &str, password: &str) -> LoginExchange {
        let login = Login { user: user.to_owned(), password: password.to_owned() };
        LoginExchange::new(login, Service::Clients, 2)
    }

    fn passwords(user: &str, password: &str) -> BTreeMap<String, String> {
        [(user.to_owned(), password.to_owned())].into()
    }

    #[test]
    fn both_sides_prove_that_they_know_the_password() {
        for (user, password) in
            [("bob", "bobsecret"), ("Jürgen", "süß"), ("Łukasz", "hasło"), (r#"a "b\"#, r#"c "d\"#)]
        {
            let challenge = Challenge::new(1);
            let (answer, proof) = exchange(user, password).answer(&challenge.token()).unwrap();
            let (found, token) = challenge.verify(&answer, &passwords(user, password)).unwrap();
            assert_eq!(found, user);
            assert_eq!(proof.check(&token), Ok(()));
            for other in [&b"rspauth=00"[..], b"", b"response=00"] {
                assert_eq!(proof.check(other), Err(ChallengeError::NotProven));
            }
        }
    }

    #[test]
    fn a_wrong_password_is_noticed() {
        let challenge = Challenge::new(1);
        let (answer, _) = exchange("bob", "guess").answer(&challenge.token()).unwrap();
        let verified = challenge.verify(&answer, &passwords("bob", "bobsecret"));
        assert_eq!(verified, Err(AnswerError::WrongPassword));
    }

    #[test]
    fn a_challenge_that_is_none_is_not_answered() {
        let challenge = String::from_utf8(Challenge::new(1).token()).unwrap();
        let answered = |challenge: &str| exchange("bob", "b").answer(challenge.as_bytes()).map(drop);
        assert_eq!(answered(&challenge), Ok(()));
        assert_eq!(answered(&challenge.replace("\"auth\"", "\"auth-int, auth\"")), Ok(()));
        for word in ["nonce=", "realm="] {
            assert_eq!(answered(&challenge.replace(word, "x=")), Err(ChallengeError::Malformed), "{word}");
        }
        for (word, other) in [
            ("\"auth\"", "\"auth-int\""),
            ("md5-sess", "md5"),
            ("charset=utf-8", "x=1"),
            ("algorithm=", "x="),
        ] {
            assert_eq!(answered(&challenge.replace(word, other)), Err(ChallengeError::NotKnown), "{word}");
        }
        for no_challenge in ["", "HTTP/1.1 400", "nonce=\"x"] {
            assert_eq!(answered(no_challenge), Err(ChallengeError::Malformed), "{no_challenge}");
        }
    }

    #[test]
    fn passwords_are_not_printed() {
        let printed = format!("{:?}", exchange("bob", "bobsecret"));
        assert!(printed.contains("bob:") && !printed.contains("bobsecret"), "{printed}");
    }
}
