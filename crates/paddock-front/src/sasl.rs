//! SASL, by which clients of ZooKeeper prove who they are without showing their password: the mechanism DIGEST-MD5.
//!
//! A client begins with an empty token, is sent a challenge, answers it, and is sent the proof that the server knows its password,
//! too. Each token travels in a request of its own, whose reply overtakes others as that of `auth` does.

use std::collections::BTreeMap;
use std::fmt;

use paddock_proto::Id;
use paddock_sasl::{AnswerError, Challenge};

/// Users that are known by name and password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SaslUsers {
    /// Passwords by user.
    pub passwords: BTreeMap<String, String>,
    /// Users who may do everything.
    pub super_users: Vec<String>,
    /// A client that cannot prove who it is keeps its connection, without an identity.
    pub keeps_failed_clients: bool,
}

/// Users without their passwords.
impl fmt::Debug for SaslUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SaslUsers { passwords, super_users, keeps_failed_clients } = self;
        f.debug_struct("SaslUsers")
            .field("users", &passwords.keys())
            .field("super_users", super_users)
            .field("keeps_failed_clients", keeps_failed_clients)
            .finish()
    }
}

impl SaslUsers {
    fn ids(&self, user: &str) -> Vec<Id> {
        let is_super = self.super_users.iter().any(|name| name == user);
        let mut ids = vec![Id::new("sasl", user)];
        if is_super {
            ids.push(Id::new("super", ""));
        }
        ids
    }
}

/// Exchange of tokens on one connection.
#[derive(Debug, Default)]
pub(crate) struct SaslExchange {
    challenge: Option<Challenge>,
    is_over: bool,
}

/// Reason for which a client has not proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SaslError {
    #[error("the first token of DIGEST-MD5 is empty, and this one is not")]
    NotEmpty,
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("a token behind the end of the exchange")]
    Over,
}

/// Answer to a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SaslAnswer {
    /// The client has to answer this challenge.
    Challenge(Vec<u8>),
    /// The client has proved these identities, and is sent the server's proof.
    Proven { ids: Vec<Id>, proof: Vec<u8> },
}

impl SaslExchange {
    /// Takes the next token of the client. `nonce` has never been used before, and nobody can foresee it.
    pub(crate) fn take(
        &mut self,
        token: &[u8],
        users: &SaslUsers,
        nonce: impl FnOnce() -> u128,
    ) -> Result<SaslAnswer, SaslError> {
        if self.is_over {
            return Err(SaslError::Over);
        }
        let Some(challenge) = self.challenge.take() else {
            if !token.is_empty() {
                return Err(SaslError::NotEmpty);
            }
            let challenge = self.challenge.insert(Challenge::new(nonce()));
            return Ok(SaslAnswer::Challenge(challenge.token()));
        };
        self.is_over = true;
        let (user, proof) = challenge.verify(token, &users.passwords)?;
        Ok(SaslAnswer::Proven { ids: users.ids(&user), proof })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> SaslUsers {
        let passwords = BTreeMap::from([("chris".into(), "secret".into())]);
        SaslUsers { passwords, super_users: vec!["chris".into()], keeps_failed_clients: false }
    }

    #[test]
    fn the_first_token_is_empty_and_nothing_follows_the_second() {
        let mut exchange = SaslExchange::default();
        assert_eq!(exchange.take(b"x", &users(), || 1), Err(SaslError::NotEmpty));
        assert!(matches!(exchange.take(b"", &users(), || 1), Ok(SaslAnswer::Challenge(_))));
        assert_eq!(exchange.take(b"", &users(), || 2), Err(SaslError::Answer(AnswerError::Malformed)));
        assert_eq!(exchange.take(b"", &users(), || 3), Err(SaslError::Over));
    }

    #[test]
    fn a_super_user_may_do_everything() {
        assert_eq!(users().ids("chris"), [Id::new("sasl", "chris"), Id::new("super", "")]);
        assert_eq!(users().ids("ann"), [Id::new("sasl", "ann")]);
    }

    #[test]
    fn passwords_are_not_printed() {
        let printed = format!("{:?}", users());
        assert!(printed.contains("chris") && !printed.contains("secret"), "{printed}");
    }
}
