//! Ephemerals live as long as their session, and not longer.

use paddock_proto::SessionId;
use paddock_tree::Tree;

use super::{Checked, ensure};

const CHECKER: &str = "ephemerals";

/// The owner of an ephemeral is a session.
pub(crate) fn check_owners(member: u8, tree: &Tree) -> Checked {
    for (session, paths) in tree.ephemerals() {
        let lives = tree.session_timeout_ms(session).is_some();
        ensure!(
            lives,
            CHECKER,
            "session {session} is gone from member {member}, its ephemerals are not: {paths:?}"
        );
    }
    Ok(())
}

/// Sessions whose clients are gone have ended, and nothing of theirs is left.
pub(crate) fn check_gone(member: u8, tree: &Tree, gone: impl Iterator<Item = SessionId>) -> Checked {
    for session in gone {
        let lives = tree.session_timeout_ms(session).is_some();
        ensure!(
            !lives,
            CHECKER,
            "the client of session {session} is gone for long; on member {member} it lives"
        );
    }
    Ok(())
}
