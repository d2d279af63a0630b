//! Feature levels that the members tell each other, by which the leader knows to what level the ensemble can be raised.
//!
//! A member counts with what it has told of late, over a link that has not ended since: one that is stopped may come back with another
//! program. Members of builds that know of no levels tell nothing, which is level 0.

use std::collections::BTreeMap;

use paddock_tree::{FeatureLevel, UnknownLevel};

use crate::Membership;

/// Time in milliseconds for which a member counts with what it has told.
const TOLD_MS: u64 = 1500;

#[derive(Debug)]
pub(crate) struct FeatureLevels {
    own: FeatureLevel,
    of_others: BTreeMap<u64, ToldLevel>,
    /// Level of a state that came from another member, and is not known here.
    unknown: Option<UnknownLevel>,
}

#[derive(Clone, Copy, Debug)]
struct ToldLevel {
    level: FeatureLevel,
    at_ms: u64,
}

impl FeatureLevels {
    /// The levels of a member whose program knows the levels up to `known`, and lets its ensemble rise to `max`.
    pub(crate) fn new(known: FeatureLevel, max: FeatureLevel) -> FeatureLevels {
        FeatureLevels { own: known.min(max), of_others: BTreeMap::new(), unknown: None }
    }

    /// The level that this member tells the others.
    pub(crate) fn own(&self) -> FeatureLevel {
        self.own
    }

    /// Another member tells its level.
    pub(crate) fn hear(&mut self, from: u64, level: FeatureLevel, at_ms: u64) {
        self.of_others.insert(from, ToldLevel { level, at_ms });
    }

    /// The member may have another program from now on.
    pub(crate) fn forget(&mut self, member: u64) {
        self.of_others.remove(&member);
    }

    /// The level that a member has told of late; `None` if it was not heard.
    pub(crate) fn told(&self, member: u64, now_ms: u64) -> Option<FeatureLevel> {
        let told = self.of_others.get(&member)?;
        (now_ms.saturating_sub(told.at_ms) < TOLD_MS).then_some(told.level)
    }

    /// The levels that others have told last, over links that have not ended since.
    pub(crate) fn all_told(&self) -> impl Iterator<Item = (u64, FeatureLevel)> {
        self.of_others.iter().map(|(id, told)| (*id, told.level))
    }

    /// Members that are not known to have this level: they have another one, or were not heard of late.
    pub(crate) fn lacking(
        &self,
        level: FeatureLevel,
        own: u64,
        membership: &Membership,
        now_ms: u64,
    ) -> Vec<u64> {
        let has_it = |id: &u64| {
            let told = if *id == own { Some(self.own) } else { self.told(*id, now_ms) };
            told.is_some_and(|told| told >= level)
        };
        membership.all().filter(|id| !has_it(id)).collect()
    }

    /// The highest level that all members have.
    pub(crate) fn common(&self, own: u64, membership: &Membership, now_ms: u64) -> FeatureLevel {
        let others = membership.all().filter(|id| *id != own);
        let told = others.map(|id| self.told(id, now_ms).unwrap_or_default());
        told.fold(self.own, FeatureLevel::min)
    }

    /// The leader has sent something of a level that this program does not know: it was not taken.
    pub(crate) fn refuse(&mut self, unknown: UnknownLevel) {
        self.unknown = Some(unknown);
    }

    /// The level that was refused.
    pub(crate) fn unknown(&self) -> Option<&UnknownLevel> {
        self.unknown.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_level_is_that_of_the_member_with_the_least_and_none_without_one() {
        let (one, two, three) = (FeatureLevel(1), FeatureLevel(2), FeatureLevel(3));
        let membership = Membership::new(vec![1, 2], vec![3]);
        let mut levels = FeatureLevels::new(three, three);
        let check = |levels: &FeatureLevels, now_ms: u64, common: u16, lacking: &[u64]| {
            assert_eq!(levels.common(1, &membership, now_ms), FeatureLevel(common));
            assert_eq!(levels.lacking(one, 1, &membership, now_ms), lacking);
        };
        check(&levels, 0, 0, &[2, 3]);
        levels.hear(2, two, 100);
        check(&levels, 100, 0, &[3]);
        levels.hear(3, one, 200);
        levels.hear(9, FeatureLevel::NONE, 200);
        check(&levels, 200, 1, &[]);
        check(&levels, 100 + TOLD_MS, 0, &[2]);
        levels.hear(2, two, 1700);
        levels.hear(3, two, 1700);
        check(&levels, 1700, 2, &[]);
        levels.forget(3);
        check(&levels, 1700, 0, &[3]);
        levels.hear(3, FeatureLevel::NONE, 1800);
        check(&levels, 1800, 0, &[3]);
        let held = FeatureLevels::new(three, one);
        assert_eq!(held.common(1, &Membership::new(vec![1], vec![]), 0), one, "its operator wants no more");
    }
}
