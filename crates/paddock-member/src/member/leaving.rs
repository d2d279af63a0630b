//! Groups that the member is to have no more, because the home group has placed them on others.
//!
//! A replica ends when nothing of it is on its way to the disk. Then what the disk has of it is let go (`let_go.rs`), and before that is done the member begins no
//! other replica of the group.

use paddock_storage::GroupNumber;

use super::group::MemberGroup;
use super::{Member, MemberError};
use crate::let_go::let_go;

/// A group whose replica has ended, and of which there is something on the disk.
#[derive(Debug)]
pub(super) struct LeftGroup {
    number: GroupNumber,
    /// Number of the last start of this member in the group.
    start: u64,
}

impl Member {
    /// True while the disk has something of a group whose replica has ended.
    pub(super) fn leaves(&self, group: u32) -> bool {
        self.left.iter().any(|left| left.number.0 == group)
    }

    /// Ends replicas that are needed no more.
    pub(super) fn leave_groups(&mut self) -> Result<(), MemberError> {
        let (home, others) = self.groups.split_first().expect("the home group is the first");
        let is_over =
            |group: &MemberGroup| home.group.lets_go(&self.presence, group.number.0) && group.is_at_rest();
        let over: Vec<GroupNumber> =
            others.iter().filter(|group| is_over(group)).map(|group| group.number).collect();
        for number in over {
            self.end_replica(number);
        }
        while let Some(LeftGroup { number, start }) = self.left.last() {
            let dir = self.config.snapshot_dir(*number);
            match let_go(self.disk.as_ref(), &dir, &mut self.log, *number, *start).map_err(MemberError::from)
            {
                Ok(()) => drop(self.left.pop()),
                // The next tick tries it again.
                Err(error) if error.is_passing() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn end_replica(&mut self, number: GroupNumber) {
        tracing::info!(
            group = number.0,
            "this member has no replica of the Raft group any more: it is placed on others"
        );
        self.carrier.forget_group(number.0);
        if let Some(at) = self.place_of(number) {
            self.stirred.remove(at);
            let start = self.groups.remove(at).group.origin().incarnation;
            self.left.push(LeftGroup { number, start });
        }
    }
}
