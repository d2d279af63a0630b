//! SASL, by which clients of ZooKeeper prove who they are without showing their password: the mechanisms DIGEST-MD5 and GSSAPI.
//!
//! A client names no mechanism. One that begins with an empty token speaks DIGEST-MD5: it is sent a challenge, answers it, and is sent
//! the proof that the server knows its password, too. One that begins with a token of its own speaks GSSAPI, which is Kerberos. Each
//! token travels in a request of its own, whose reply overtakes others as that of `auth` does.

mod gssapi;
mod principals;

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use gssapi::GssapiError;
use gssapi::{GssapiExchange, Step};
pub use gssapi::{Kerberos, KerberosAcceptor, KerberosContext, KerberosStep};
use paddock_proto::Id;
use paddock_sasl::{AnswerError, Challenge};

pub use principals::PrincipalNames;

/// Scheme of users that have proved themselves by SASL.
pub(crate) const SASL: &str = "sasl";

/// Users that are known by name and password, and what holds for all that come by SASL.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SaslUsers {
    /// Passwords by user. Without any, DIGEST-MD5 is not offered.
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
        let mut ids = vec![Id::new(SASL, user)];
        if is_super {
            ids.push(Id::new("super", ""));
        }
        ids
    }
}

/// Reason for which a client has not proved who it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SaslError {
    #[error("the client speaks DIGEST-MD5, and there are no users with passwords")]
    NoUsers,
    #[error("the first token of DIGEST-MD5 is empty, and this one is not")]
    NotEmpty,
    #[error("a token behind the end of the exchange")]
    Over,
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Gssapi(#[from] GssapiError),
}

/// Exchange of tokens on one connection.
#[derive(Debug, Default)]
pub(crate) enum SaslExchange {
    #[default]
    Begins,
    Digest(Challenge),
    Gssapi(GssapiExchange),
    Over,
}

/// Answer to a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SaslAnswer {
    /// The client has to answer this challenge.
    Challenge(Vec<u8>),
    /// The client has proved these identities, and is sent the server's proof, if it does not have that already.
    Proven { ids: Vec<Id>, proof: Option<Vec<u8>> },
}

impl SaslExchange {
    /// Takes the next token of the client. `nonce` has never been used before, and cannot be foreseen.
    pub(crate) fn take(
        &mut self,
        token: &[u8],
        users: &SaslUsers,
        kerberos: Option<&Kerberos>,
        nonce: impl FnOnce() -> u128,
    ) -> Result<SaslAnswer, SaslError> {
        match std::mem::replace(self, SaslExchange::Over) {
            SaslExchange::Begins if token.is_empty() => {
                if users.passwords.is_empty() {
                    return Err(SaslError::NoUsers);
                }
                let challenge = Challenge::new(nonce());
                let token = challenge.token();
                *self = SaslExchange::Digest(challenge);
                Ok(SaslAnswer::Challenge(token))
            }
            SaslExchange::Begins => {
                let kerberos = kerberos.ok_or(SaslError::NotEmpty)?;
                self.take_of_gssapi(GssapiExchange::begin(kerberos), token, users)
            }
            SaslExchange::Digest(challenge) => {
                let (user, proof) = challenge.verify(token, &users.passwords)?;
                Ok(SaslAnswer::Proven { ids: users.ids(&user), proof: Some(proof) })
            }
            SaslExchange::Gssapi(exchange) => self.take_of_gssapi(exchange, token, users),
            SaslExchange::Over => Err(SaslError::Over),
        }
    }

    fn take_of_gssapi(
        &mut self,
        mut exchange: GssapiExchange,
        token: &[u8],
        users: &SaslUsers,
    ) -> Result<SaslAnswer, SaslError> {
        match exchange.take(token)? {
            Step::Challenge(token) => {
                *self = SaslExchange::Gssapi(exchange);
                Ok(SaslAnswer::Challenge(token))
            }
            Step::Proven { user } => Ok(SaslAnswer::Proven { ids: users.ids(&user), proof: None }),
        }
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
    fn the_first_token_of_digest_md5_is_empty_and_nothing_follows_the_second() {
        let mut exchange = SaslExchange::default();
        assert!(matches!(exchange.take(b"", &users(), None, || 1), Ok(SaslAnswer::Challenge(_))));
        let malformed = Err(SaslError::Answer(AnswerError::Malformed));
        assert_eq!(exchange.take(b"", &users(), None, || 2), malformed);
        assert_eq!(exchange.take(b"", &users(), None, || 3), Err(SaslError::Over));
        let mut exchange = SaslExchange::default();
        assert_eq!(exchange.take(b"x", &users(), None, || 1), Err(SaslError::NotEmpty));
        assert_eq!(exchange.take(b"", &users(), None, || 1), Err(SaslError::Over));
    }

    #[test]
    fn without_passwords_digest_md5_is_not_offered() {
        let mut exchange = SaslExchange::default();
        assert_eq!(exchange.take(b"", &SaslUsers::default(), None, || 1), Err(SaslError::NoUsers));
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
