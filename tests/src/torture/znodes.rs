//! Znodes of a round: those that all clients ask about, and the lock at which some take turns. With several Raft groups they are children of
//! a split point, each in a group that is chosen, so that the parts of a multi lie in two groups.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use paddock_tree::slot_of;
use serde_json::Value;

use super::size::Size;
use crate::administered::{connect, identity_file, name_administrator, succeed};
use crate::ensemble::Ensemble;
use crate::server::{Server, metric};

/// Few, so that clients meet. Multis are about the first two, or the last two (`tests/support/recorder.py`).
const KEYS: usize = 4;
pub(super) const SPLIT_POINT: &str = "/torture";
const LED_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Znodes {
    pub(super) keys: Vec<String>,
    pub(super) lock: String,
}

impl Znodes {
    pub(super) fn at_root() -> Znodes {
        let keys = (0..KEYS).map(|number| format!("/register-{number}")).collect();
        Znodes { keys, lock: "/torture-lock".to_owned() }
    }

    /// Spreads the children of a split point over all groups, and names znodes in them: the first one in the home group, each further one in
    /// the next group, and the lock in the last one.
    pub(super) fn spread(ensemble: &Ensemble, size: Size, admin: SocketAddr) -> Znodes {
        let groups = size.groups;
        await_leaders(ensemble, size);
        prepare(&ensemble.hosts());
        let (host, directory) = (admin.to_string(), tempfile::tempdir().expect("make a directory"));
        let auth = identity_file(directory.path());
        succeed(&["groups", "split", &host, SPLIT_POINT, "--auth", &auth]);
        let all_at_once = ["--at-once", "4096"];
        succeed(
            &[&["groups", "move", &host, SPLIT_POINT, "--evenly", "--auth", &auth][..], &all_at_once]
                .concat(),
        );
        let page = succeed(&["groups", "list", &host, "--auth", &auth, "--json"]);
        let page: Value = serde_json::from_str(&page).expect("it is JSON");
        let keys = (0..KEYS).map(|key| name_in(&page, key % groups, &format!("register-{key}")));
        Znodes { keys: keys.collect(), lock: name_in(&page, groups - 1, "lock") }
    }

    /// Slots of all of them.
    pub(super) fn slots(&self) -> Vec<u16> {
        let names = self
            .keys
            .iter()
            .chain([&self.lock])
            .filter_map(|path| path.strip_prefix(SPLIT_POINT)?.strip_prefix('/'));
        names.filter_map(slot_of).collect()
    }
}

/// A path below the split point that lies in a group.
fn name_in(page: &Value, group: usize, name: &str) -> String {
    let points = page["split_points"].as_array().expect("a list");
    let runs =
        points.iter().find(|point| point["path"] == SPLIT_POINT).expect("it is one")["slots"].as_array();
    let runs: Vec<_> = runs.expect("a list").iter().filter(|run| run["group"] == group).collect();
    let has = |slot: u16| {
        runs.iter().any(|run| (run["first"].as_u64()..=run["last"].as_u64()).contains(&Some(slot.into())))
    };
    assert!(!runs.is_empty(), "group {group} has no slots of {SPLIT_POINT}: {page}");
    let names = (0..).map(|number| format!("{name}-{number}"));
    let name = names.into_iter().find(|name| slot_of(name).is_some_and(has)).expect("there is no last name");
    format!("{SPLIT_POINT}/{name}")
}

#[tokio::main(flavor = "current_thread")]
async fn prepare(hosts: &str) {
    name_administrator(hosts).await;
    let client = connect(hosts).await;
    client
        .create(SPLIT_POINT, b"", paddock_client::CreateMode::Persistent)
        .await
        .expect("create a split point");
    client.close().await.expect("close");
}

/// Waits until all members take part in all groups, and know who leads each.
fn await_leaders(ensemble: &Ensemble, size: Size) {
    // The voters of group n are those from place n on, around.
    let has = |place: usize, group: usize| {
        group == 0
            || size.replicas == 0
            || (place + size.members() - group % size.members()) % size.members() < size.replicas
    };
    let numbers = |member: &Server| {
        let told = member.four_letter_word("mntr").unwrap_or_default();
        ["zk_groups", "zk_groups_without_leader", "zk_groups_joining"]
            .map(|name| metric(&told, name).map(str::to_owned))
    };
    let deadline = Instant::now() + LED_WITHIN;
    loop {
        let all: Vec<_> = (0..ensemble.len()).map(|place| numbers(ensemble.at(place))).collect();
        let is_wanted = |(place, numbers): (usize, &[Option<String>; 3])| {
            let count = (0..size.groups).filter(|group| has(place, *group)).count();
            *numbers == [count, 0, 0].map(|number| Some(number.to_string()))
        };
        if all.iter().enumerate().all(is_wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "groups, without leader, joining after {LED_WITHIN:?}: {all:?}");
        thread::sleep(POLL);
    }
}
