//! Members agree: after the same entry all have the same state, and it is the model's.

use paddock_model::{Dump, dump};
use paddock_proto::Zxid;
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

/// Checks what others could see between two commands of an entry: the znodes of that zxid, as they are in the model. Those of the ensemble
/// change without one.
pub(crate) fn check_passed(member: u8, (zxid, found): &(Zxid, Dump), truth: &Truth) -> Checked {
    if !truth.has_states() {
        return Ok(());
    }
    let Some(model) = truth.model_at(*zxid) else {
        ensure!(
            false,
            CHECKER,
            "member {member} was at zxid {zxid}, within an entry, which nobody has applied"
        );
        unreachable!("that is false");
    };
    let expected = model.dump();
    let differs = |path: &&String| found.znodes.get(*path) != expected.znodes.get(*path);
    let paths = found.znodes.keys().chain(expected.znodes.keys());
    let first = paths.filter(|path| !path.starts_with("/zookeeper")).filter(differs).min();
    ensure!(
        first.is_none(),
        CHECKER,
        "member {member} has another state at zxid {zxid}, within an entry, than the model; at {first:?} {:?} and not {:?}",
        first.and_then(|path| found.znodes.get(path)),
        first.and_then(|path| expected.znodes.get(path))
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
    if !truth.has_states() {
        return Ok(());
    }
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
