//! Size of the ensembles of a round.

use std::fmt;

/// Raft groups of an ensemble, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The znodes are spread over them.
    pub groups: usize,
    /// Replicas of each group beside the home group; one on each member if it is 0.
    pub replicas: usize,
}

impl Size {
    /// Members: more than there are replicas of a group.
    pub(super) fn members(self) -> usize {
        if self.replicas == 0 { 3 } else { self.replicas + 2 }
    }

    /// Part of the name of a round's evidence.
    pub(super) fn name(self) -> String {
        match self {
            Size { groups: 1, .. } => String::new(),
            Size { groups, replicas: 0 } => format!("{groups}-groups-"),
            Size { groups, replicas } => format!("{groups}-groups-of-{replicas}-"),
        }
    }
}

/// As arguments of the command.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { groups, replicas } = self;
        if *groups > 1 {
            write!(f, " --groups {groups}")?;
        }
        if *replicas > 0 {
            write!(f, " --replicas {replicas}")?;
        }
        Ok(())
    }
}
