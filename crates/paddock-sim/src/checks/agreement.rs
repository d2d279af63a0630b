//! Members agree: after the same entry all have the same state, and it is the model's.

use paddock_model::dump;
use paddock_replica::Replicated;

use super::truth::Truth;
use super::{Checked, ensure};

const CHECKER: &str = "agreement";

/// Checks what costs little: the zxid, and the digest that the tree keeps of itself.
pub(crate) fn check_digest(member: u8, state: &Replicated, truth: &mut Truth) -> Checked {
    check_zxid(member, state, truth)?;
    let (index, digest) = (state.applied().0, state.tree().digest());
    let first = truth.first_digest(index, digest);
    ensure!(
        digest == first,
        CHECKER,
        "member {member} has the digest {digest:016x} after entry {index}; the first one there had {first:016x}"
    );
    Ok(())
}

fn check_zxid(member: u8, state: &Replicated, truth: &Truth) -> Checked {
    let ((index, _), zxid) = (state.applied(), state.tree().zxid());
    let expected = truth.zxid_after(index);
    ensure!(
        expected == Some(zxid),
        CHECKER,
        "member {member} is at zxid {zxid} after entry {index}; it should be {expected:?}"
    );
    Ok(())
}

/// Everything that can be seen.
pub(crate) fn check_state(member: u8, state: &Replicated, truth: &Truth) -> Checked {
    check_zxid(member, state, truth)?;
    let index = state.applied().0;
    let Some(model) = truth.model_after(index) else { return Ok(()) };
    let (found, expected) = (dump(state.tree()), model.dump());
    if found == expected {
        return Ok(());
    }
    let differing = |path: &&String| found.znodes.get(*path) != expected.znodes.get(*path);
    let paths = found.znodes.keys().chain(expected.znodes.keys());
    let first = paths.filter(differing).min();
    ensure!(
        false,
        CHECKER,
        "member {member} has another state after entry {index} than the model; at {first:?} {:?} and not {:?}; \
         sessions {:?} and not {:?}",
        first.and_then(|path| found.znodes.get(path)),
        first.and_then(|path| expected.znodes.get(path)),
        found.sessions,
        expected.sessions
    );
    Ok(())
}
