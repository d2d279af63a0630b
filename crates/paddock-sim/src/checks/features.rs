//! The ensemble's feature level rises when all programs know it, and no member meets a state or an entry of a level that its program does not know.

use paddock_member::{MemberError, RecoveryError};
use paddock_tree::FeatureLevel;

use super::{Checked, ensure};

const CHECKER: &str = "features";

/// A member applies the entry that raises the level. `builds` are the machines, with the levels that their programs know.
pub(crate) fn check_raised(
    member: u8,
    level: FeatureLevel,
    builds: impl Iterator<Item = (u8, FeatureLevel)>,
) -> Checked {
    let lacking: Vec<u8> = builds.filter(|(_, known)| *known < level).map(|(machine, _)| machine).collect();
    ensure!(
        lacking.is_empty(),
        CHECKER,
        "member {member} applies that the level is {level}, which the programs of {lacking:?} do not know"
    );
    Ok(())
}

/// A member does not start, or stops.
pub(crate) fn check_error(member: u8, error: &MemberError) -> Checked {
    let has_met =
        matches!(error, MemberError::FeatureLevel(_) | MemberError::Recovery(RecoveryError::FeatureLevel(_)));
    ensure!(!has_met, CHECKER, "member {member} has met what its program does not know: {error}");
    Ok(())
}
