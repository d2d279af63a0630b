//! Facts of members that a story may ask for.

use std::collections::BTreeMap;

use paddock_proto::Read;
use paddock_proto::jute::Reader;
use paddock_replica::{Membership, Replicated, Role};
use paddock_tree::{Asker, FeatureLevel};

use super::disk::save;
use super::{Guest, Member, Stage};

impl Stage {
    /// The members that were ever started.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.members.keys().copied().collect()
    }

    pub(crate) fn is_running(&self, member: u64) -> bool {
        self.members[&member].is_some()
    }

    pub(crate) fn other_than(&self, member: u64) -> u64 {
        self.running().map(|(number, _)| number).find(|number| *number != member).expect("others run")
    }

    pub(crate) fn role(&self, member: u64) -> Role {
        self.members[&member].as_ref().expect("the member runs").replica.facts().role()
    }

    /// Followers that a leader hears.
    pub(crate) fn heard_followers(&self, leader: u64) -> Vec<u64> {
        let standing = self.members[&leader].as_ref().expect("the member runs").replica.facts().standing();
        standing
            .followers
            .iter()
            .filter(|follower| follower.is_heard)
            .map(|follower| u64::from(follower.member))
            .collect()
    }

    /// The leader, as every member believes.
    pub(crate) fn roles(&self) -> Vec<Role> {
        self.running().map(|(_, member)| member.replica.facts().role()).collect()
    }

    /// The feature level of the member's state.
    pub(crate) fn level(&self, member: u64) -> FeatureLevel {
        self.members[&member].as_ref().expect("the member runs").state.tree().feature_level()
    }

    /// The member was sent what its program does not know.
    pub(crate) fn has_to_stop(&self, member: u64) -> bool {
        let member = self.members[&member].as_ref().expect("the member runs");
        member.replica.presence.unknown_level().is_some()
    }

    pub(crate) fn entries(&self, member: u64) -> usize {
        self.disks[&member].entries.len()
    }

    /// Milliseconds since the member's last contact with a leader that a quorum follows.
    pub(crate) fn silence_ms(&self, member: u64) -> u64 {
        let member = self.members[&member].as_ref().expect("the member runs");
        self.now.monotonic_ms.saturating_sub(member.replica.facts().confirmed_ms())
    }

    /// True if the member has stopped, because most others have another state.
    pub(crate) fn has_diverged(&self, member: u64) -> bool {
        self.members[&member].is_none() && self.disks[&member].has_diverged
    }

    /// Members whose state the member has seen to differ from its own.
    pub(crate) fn differing(&self, member: u64) -> &[u64] {
        &self.members[&member].as_ref().expect("the member runs").differing
    }

    /// Peers that the member has refused, since they belong to another ensemble.
    pub(crate) fn foreign(&self, member: u64) -> &[u64] {
        &self.members[&member].as_ref().expect("the member runs").foreign
    }

    /// Membership, as the member knows.
    pub(crate) fn membership(&self, member: u64) -> Membership {
        self.state(member).membership().clone()
    }

    /// The numbers in what `/zookeeper/config` shows there.
    pub(crate) fn config(&self, member: u64) -> Vec<u64> {
        let ensemble = self.state(member).tree().ensemble();
        ensemble.map_or(vec![], |ensemble| ensemble.members.iter().map(|member| member.id.into()).collect())
    }

    pub(crate) fn cluster(&self, member: u64) -> Option<u64> {
        self.state(member).tree().ensemble().map(|ensemble| ensemble.cluster)
    }

    pub(crate) fn zxid(&self, member: u64) -> i64 {
        self.state(member).tree().zxid().0
    }

    /// Number of watches that the member holds for its connections.
    pub(crate) fn watch_count(&self, member: u64) -> usize {
        self.state(member).state().watches().count()
    }

    pub(crate) fn has_session_at(&self, member: u64, guest: &Guest) -> bool {
        self.state(member).tree().session_timeout_ms(guest.client.session).is_some()
    }

    pub(crate) fn data(&self, member: u64, path: &str) -> Option<String> {
        let mut out = Vec::new();
        let read = Read::GetData { path, watch: false };
        self.state(member).tree().read(&read, &Asker::NOBODY, &mut out).ok()?;
        let data = Reader::new(&out).buffer().expect("a reply begins with the data");
        data.map(|data| String::from_utf8_lossy(data).into_owned())
    }

    /// All members are at the same zxid with the same state, byte by byte.
    pub(crate) fn check_agreement(&mut self) {
        let mut saved: Vec<(u64, Vec<Vec<u8>>)> = Vec::new();
        for (number, member) in self.members.iter_mut() {
            let member = member.as_mut().expect("all members run");
            saved.push((*number, save(member.state.tree_mut())));
        }
        for (number, blocks) in &saved[1..] {
            assert!(blocks == &saved[0].1, "member {number} differs from member {}", saved[0].0);
        }
    }

    /// The creates of each guest were carried out in their order.
    pub(crate) fn check_order(&self, seed: u64, paths: &[String]) {
        let mut last: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        let mut by_xid: Vec<(&str, i64, i64)> = Vec::new();
        for path in paths {
            let (guest, xid) = path.rsplit_once('-').expect("a path names guest and xid");
            let czxid = self.state(1).tree().stat(path).expect("it is there").czxid.0;
            by_xid.push((guest, xid.parse().expect("a number"), czxid));
        }
        by_xid.sort_unstable();
        for (guest, xid, czxid) in by_xid {
            if let Some((before, earlier)) = last.insert(guest, (xid, czxid)) {
                assert!(earlier < czxid, "seed {seed}: {guest}: {before} was carried out after {xid}");
            }
        }
    }

    pub(super) fn running(&self) -> impl Iterator<Item = (u64, &Member)> {
        self.members.iter().filter_map(|(number, member)| Some((*number, member.as_ref()?)))
    }

    pub(super) fn state(&self, member: u64) -> &Replicated {
        &self.members[&member].as_ref().expect("the member runs").state
    }
}
