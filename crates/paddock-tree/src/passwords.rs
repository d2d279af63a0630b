//! Passwords of sessions: who shows the right one may go on with the session.
//!
//! A password is a keyed hash of the session's id, with a secret that only the members of the ensemble know. Sessions that came
//! from ZooKeeper, or from a state without a secret, keep the password that ZooKeeper has given them, which follows from their
//! ids.

use paddock_proto::{ErrorCode, Password, SessionId, SessionSecret, WriteReply};
use subtle::ConstantTimeEq;

use crate::Tree;
use crate::keyed_passwords::keyed_password;

/// The outcome of comparing a password that a client has shown for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownPassword {
    /// The password is right, made from the secret if it is keyed, else ZooKeeper's.
    Right {
        is_keyed: bool,
    },
    Wrong,
    /// This state is too old to know the session or the secret.
    Unknown,
}

impl Tree {
    /// True if there is a secret for passwords.
    pub fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// The password that the client of a session is told.
    pub fn password(&self, session: SessionId) -> Password {
        let known = self.sessions.get(&session).map(|known| known.is_keyed);
        match (known, &self.secret) {
            (Some(false), _) | (None, None) => Password::of_zookeeper(session),
            (Some(true) | None, Some(secret)) => keyed_password(secret, session),
            // No client can come back with it.
            (Some(true), None) => Password::ZERO,
        }
    }

    /// Compares a password that a client has shown. The time that it takes tells nothing of the right one.
    pub fn compare_password(&self, session: SessionId, shown: &[u8]) -> ShownPassword {
        let is_zookeepers = || bool::from(shown.ct_eq(&Password::of_zookeeper(session).0));
        let keyed = self.secret.map(|secret| bool::from(shown.ct_eq(&keyed_password(&secret, session).0)));
        let known = self.sessions.get(&session).map(|known| known.is_keyed);
        match (known, keyed) {
            (Some(true) | None, Some(true)) => ShownPassword::Right { is_keyed: true },
            (Some(true), Some(false)) => ShownPassword::Wrong,
            // A member that lags may not know the session, and the log has the last word on which of the two is right.
            (Some(false) | None, _) if is_zookeepers() => ShownPassword::Right { is_keyed: false },
            (Some(false), _) | (None, Some(_)) => ShownPassword::Wrong,
            (Some(true) | None, None) => ShownPassword::Unknown,
        }
    }

    /// No client has a password for any session: they came from a system whose passwords are not known here.
    pub fn withdraw_passwords(&mut self) {
        // No client was told a keyed one.
        self.sessions.values_mut().for_each(|session| session.is_keyed = true);
    }

    /// Number of sessions whose password ZooKeeper cannot tell from their ids.
    pub fn keyed_sessions(&self) -> usize {
        self.sessions.values().filter(|session| session.is_keyed).count()
    }

    /// The secret counts, if there is none yet: two leaders may have proposed one.
    pub(crate) fn set_secret<'a>(&mut self, secret: SessionSecret) -> Result<WriteReply<'a>, ErrorCode> {
        self.secret.get_or_insert(secret);
        Ok(WriteReply::Done)
    }

    /// The secret that all front ends on the same keys share.
    pub fn install_secret(&mut self, secret: SessionSecret) {
        self.secret = Some(secret);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    const SECRET: SessionSecret = SessionSecret([7; SessionSecret::BYTES]);
    const KEYED: SessionId = SessionId(1);
    const IMPORTED: SessionId = SessionId(2);
    const UNKNOWN: SessionId = SessionId(3);

    fn tree(secret: Option<SessionSecret>) -> Tree {
        let mut tree = Tree::new();
        tree.sessions.insert(KEYED, Session { is_keyed: true, ..Session::new(1000, 1) });
        tree.sessions.insert(IMPORTED, Session { is_keyed: false, ..Session::new(1000, 1) });
        tree.secret = secret;
        tree
    }

    /// Printed by `printf '\0\0\0\0\0\0\0\1' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0707…`.
    #[test]
    fn a_keyed_password_is_the_hmac_of_the_id() {
        let expected = [201, 95, 86, 56, 26, 199, 210, 174, 10, 87, 168, 136, 160, 180, 199, 200];
        assert_eq!(keyed_password(&SECRET, KEYED).0, expected);
    }

    #[track_caller]
    fn check(secret: Option<SessionSecret>, session: SessionId, shown: &[u8], expected: ShownPassword) {
        assert_eq!(tree(secret).compare_password(session, shown), expected);
    }

    #[test]
    fn each_session_has_one_password() {
        use ShownPassword::{Right, Unknown, Wrong};
        let keyed = |session| keyed_password(&SECRET, session).0;
        let zookeepers = |session| Password::of_zookeeper(session).0;
        let secret = Some(SECRET);
        check(secret, KEYED, &keyed(KEYED), Right { is_keyed: true });
        check(secret, KEYED, &zookeepers(KEYED), Wrong);
        check(secret, IMPORTED, &zookeepers(IMPORTED), Right { is_keyed: false });
        check(secret, IMPORTED, &keyed(IMPORTED), Wrong);
        check(secret, UNKNOWN, &keyed(UNKNOWN), Right { is_keyed: true });
        check(secret, UNKNOWN, &zookeepers(UNKNOWN), Right { is_keyed: false });
        check(None, UNKNOWN, &keyed(UNKNOWN), Unknown);
        for session in [KEYED, IMPORTED, UNKNOWN] {
            for shown in [&[][..], &[0; 16], &keyed(SessionId(9)), &keyed(session)[..15]] {
                check(secret, session, shown, Wrong);
            }
            assert_eq!(
                tree(secret).compare_password(session, &tree(secret).password(session).0),
                Right { is_keyed: session != IMPORTED }
            );
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert!(!format!("{:?}", tree(Some(SECRET))).contains("7, 7, 7"));
    }
}
