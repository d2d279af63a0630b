//! Feature levels: what an ensemble may use once the programs of all its members know it.
//!
//! A program knows the features of [`FEATURES`], in an order that never changes: it knows a level if it knows all features up to it. The level of an ensemble
//! is a part of the state. It rises when every member knows more, and never falls: from then on there may be something in the state
//! that a program of a lower level would misread, so such a program refuses the state.

use std::fmt;

/// A feature that all members have to know before one uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    pub level: FeatureLevel,
    pub name: &'static str,
    /// The first release that knows it.
    pub since: &'static str,
}

/// All features that this build knows, by rising level, from 1 on without a gap.
pub const FEATURES: [Feature; 6] = [
    Feature { level: FeatureLevel::WIDE_MEMBER_NUMBERS, name: "wide member numbers", since: "0.9.0" },
    Feature { level: FeatureLevel::SEVERAL_GROUPS, name: "several Raft groups", since: "0.9.0" },
    Feature { level: FeatureLevel::SPLIT_POINTS, name: "split points", since: "0.9.0" },
    Feature { level: FeatureLevel::HOSTS, name: "groups with fewer replicas than members", since: "0.9.0" },
    Feature { level: FeatureLevel::RELAYS, name: "writes that the home group relays", since: "0.9.0" },
    Feature { level: FeatureLevel::QUOTAS, name: "quotas in all groups", since: "0.9.0" },
];

/// Number of features, in their order, that a program knows or an ensemble may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeatureLevel(pub u16);

impl FeatureLevel {
    /// The level of builds that know of no levels.
    pub const NONE: FeatureLevel = FeatureLevel(0);
    /// Members may have the number 0, and numbers above 255.
    pub const WIDE_MEMBER_NUMBERS: FeatureLevel = FeatureLevel(1);
    /// The home group may found other groups.
    pub const SEVERAL_GROUPS: FeatureLevel = FeatureLevel(2);
    /// Children of a znode may be spread over groups, and the home group tells the others what it decides.
    pub const SPLIT_POINTS: FeatureLevel = FeatureLevel(3);
    /// Groups may have fewer replicas than the ensemble has members, and members may be hosts of others.
    pub const HOSTS: FeatureLevel = FeatureLevel(4);
    /// The home group may relay writes to other groups.
    pub const RELAYS: FeatureLevel = FeatureLevel(5);
    /// Limits of quotas count in all groups.
    pub const QUOTAS: FeatureLevel = FeatureLevel(6);
    /// The highest level that this build knows.
    pub const KNOWN: FeatureLevel = FEATURES[FEATURES.len() - 1].level;
}

impl fmt::Display for FeatureLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The level to which an ensemble was raised, and the first release that knows it, for programs that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RaisedLevel {
    pub level: FeatureLevel,
    pub since: String,
}

impl RaisedLevel {
    /// A level that this build knows.
    pub fn known(level: FeatureLevel) -> RaisedLevel {
        let feature = FEATURES.iter().find(|feature| feature.level == level);
        RaisedLevel { level, since: feature.map_or("", |feature| feature.since).to_owned() }
    }

    /// Checks that a program that knows the levels up to `known` may take a state of this level.
    ///
    /// # Errors
    /// [`UnknownLevel`] if it may not.
    pub fn check(&self, known: FeatureLevel) -> Result<(), UnknownLevel> {
        if self.level <= known {
            return Ok(());
        }
        Err(UnknownLevel { level: self.level, known, since: self.since.clone() })
    }
}

/// An ensemble has raised its feature level beyond what this program knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ensemble has feature level {level}, and this program knows up to {known}: run release {since} or a later one"
)]
pub struct UnknownLevel {
    pub level: FeatureLevel,
    pub known: FeatureLevel,
    /// The first release that knows the level.
    pub since: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_by_one_and_have_a_release() {
        for (level, feature) in (1..).zip(FEATURES) {
            assert_eq!(feature.level, FeatureLevel(level), "{}", feature.name);
            assert_eq!(RaisedLevel::known(feature.level).since, feature.since);
        }
        assert_eq!(usize::from(FeatureLevel::KNOWN.0), FEATURES.len());
    }

    #[test]
    fn a_level_that_is_not_known_names_the_release_that_is_needed() {
        let raised = RaisedLevel { level: FeatureLevel(3), since: "1.2.0".to_owned() };
        assert_eq!(raised.check(FeatureLevel(3)), Ok(()));
        let refused = raised.check(FeatureLevel(2)).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the ensemble has feature level 3, and this program knows up to 2: run release 1.2.0 or a later one"
        );
    }
}
