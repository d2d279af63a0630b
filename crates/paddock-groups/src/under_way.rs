//! Writes that were handed to a group and may not have been applied yet, though their connection may be gone.

use std::collections::BTreeMap;

use paddock_proto::SessionId;
use paddock_tree::Origin;

use crate::away::LineName;
use crate::view::Groups;

/// The last write of a session that was handed to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) group: u32,
    pub(crate) by: HandedBy,
}

/// The way in which a write was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandedBy {
    /// As a part of this batch of the replica here.
    Batch(Origin, u64),
    /// By this letter to the group's host.
    Letter(LineName, u64),
}

/// Notes the last write of a session in a group.
pub(crate) fn note(under_way: &mut BTreeMap<SessionId, Vec<UnderWay>>, session: SessionId, handed: UnderWay) {
    let all = under_way.entry(session).or_default();
    all.retain(|one| one.group != handed.group);
    all.push(handed);
}

impl UnderWay {
    /// True if it was handed over by what counts as an earlier start of the process in its group.
    pub(crate) fn is_of_earlier_start(&self, groups: &Groups<'_>) -> bool {
        let HandedBy::Batch(origin, _) = self.by else { return false };
        groups.get(self.group).is_some_and(|view| view.origin != origin)
    }

    /// True if the write was applied, or can never be.
    pub(crate) fn is_over(&self, groups: &Groups<'_>) -> bool {
        let (origin, batch) = match self.by {
            HandedBy::Batch(origin, batch) => (origin, batch),
            HandedBy::Letter(line, number) => return groups.is_letter_over(self.group, line, number),
        };
        // Where the member has a host, the group takes nothing from the member itself.
        let Some(view) = groups.get(self.group) else { return groups.takes_through_host(self.group) };
        let heard = view.tree().incarnation(origin.member);
        heard.is_some_and(|heard| heard > origin.incarnation) || view.tree().applied_batch(origin) >= batch
    }
}
