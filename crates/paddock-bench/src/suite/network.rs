//! Networks that are worse than loopback: what a cell's members send to each other, and what they and clients send, comes later, irregularly, or twice.

use paddock_relay::LinkQuality;
use serde::Serialize;

/// Qualities of the ways between members, and between clients and them, while a cell is measured. A round trip between two members takes the delays of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    pub name: String,
    /// Quality of what the leader sends to other members.
    pub leader: LinkQuality,
    /// Quality of what each follower sends to other members, by their rising number; followers that are not listed are as on loopback.
    pub followers: Vec<LinkQuality>,
    /// Quality of what clients and members send to each other.
    pub clients: LinkQuality,
    /// True if clients are only at members whose qualities are those of loopback.
    pub clients_elsewhere: bool,
}

impl Network {
    /// The quality of what each member sends, of as many as there are, while the one at `leader` leads.
    pub(super) fn qualities(&self, members: usize, leader: usize) -> Vec<LinkQuality> {
        let mut followers = self.followers.iter().copied();
        let quality = |member| {
            if member == leader { self.leader } else { followers.next().unwrap_or_default() }
        };
        (0..members).map(quality).collect()
    }

    /// The reason for which no server with this number of members can have it.
    pub(super) fn fault(&self, members: usize) -> Option<&'static str> {
        let is_spoiled = |quality: &LinkQuality| *quality != LinkQuality::default();
        let all_are = self.qualities(members, 0).iter().all(is_spoiled);
        if members < 2 {
            Some("only members of an ensemble have links: name other servers")
        } else if self.followers.len() >= members {
            Some("there are more qualities of followers than followers")
        } else if self.clients_elsewhere && all_are {
            Some("clients_elsewhere needs a member whose quality is not given")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SLOW: LinkQuality =
        LinkQuality { delay: Duration::from_millis(50), jitter: Duration::ZERO, lost_one_in: 0 };
    const LOSSY: LinkQuality =
        LinkQuality { delay: Duration::ZERO, jitter: Duration::ZERO, lost_one_in: 100 };
    const GOOD: LinkQuality = LinkQuality { delay: Duration::ZERO, jitter: Duration::ZERO, lost_one_in: 0 };

    fn network(leader: LinkQuality, followers: &[LinkQuality]) -> Network {
        Network {
            name: "test".to_owned(),
            leader,
            followers: followers.to_vec(),
            clients: GOOD,
            clients_elsewhere: true,
        }
    }

    #[test]
    fn each_member_has_the_quality_of_its_part() {
        let both = network(SLOW, &[LOSSY]);
        assert_eq!(both.qualities(3, 0), [SLOW, LOSSY, GOOD]);
        assert_eq!(both.qualities(3, 1), [LOSSY, SLOW, GOOD]);
        assert_eq!(both.qualities(3, 2), [LOSSY, GOOD, SLOW]);
    }

    #[test]
    fn networks_that_cannot_be() {
        assert_eq!(network(GOOD, &[SLOW, SLOW]).fault(3), None);
        assert_eq!(network(SLOW, &[SLOW]).fault(3), None);
        for (network, members) in [
            (network(GOOD, &[]), 1),
            (network(GOOD, &[SLOW, SLOW, SLOW]), 3),
            (network(SLOW, &[SLOW, LOSSY]), 3),
        ] {
            assert!(network.fault(members).is_some(), "{network:?} of {members}");
        }
    }
}
