//! Znodes in several Raft groups are copied as one tree: of members that are stopped, by whatever reads a data directory.

use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, CreateMode};
use paddock_tests::administered::{
    admin_settings, connect, identity_file, name_administrator, succeed, text,
};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{free_port, metric};
use tempfile::TempDir;

const GROUPS: usize = 4;
const WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Three members whose znodes below `/app` are spread over four groups.
struct SpreadEnsemble {
    members: Ensemble,
    admins: Vec<String>,
    desk: TempDir,
    auth: String,
}

impl SpreadEnsemble {
    async fn start() -> SpreadEnsemble {
        let (groups, ports) = (GROUPS.to_string(), [free_port(), free_port(), free_port()]);
        let settings = |number: usize| {
            let own = [("paddock.group_count", groups.as_str()), ("paddock.split_points", "/app")];
            let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
            own.into_iter().chain(admin_settings(ports[number - 1])).collect()
        };
        let members = Ensemble::start_each(3, &server_lines(3), settings);
        name_administrator(&members.hosts()).await;
        let desk = tempfile::tempdir().expect("make a directory");
        let auth = identity_file(desk.path());
        let admins = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let spread = SpreadEnsemble { members, admins, desk, auth };
        spread.await_groups();
        let client = spread.client().await;
        client.create("/app", b"", CreateMode::Persistent).await.expect("create the split point");
        for number in 0..40 {
            let path = format!("/app/early-{number}");
            client.create(&path, b"early", CreateMode::Persistent).await.expect("create below it");
        }
        client.close().await.expect("close");
        let moving = ["groups", "move", &spread.admins[0], "/app", "--evenly", "--at-once", "512"];
        let moved = succeed(&[&moving[..], &["--auth", &spread.auth]].concat());
        assert!(moved.contains("slots of /app moved"), "{moved}");
        spread
    }

    async fn client(&self) -> Client {
        connect(&self.members.hosts()).await
    }

    /// Waits until all members have all groups.
    fn await_groups(&self) {
        let deadline = Instant::now() + WITHIN;
        let has_all = |place: usize| {
            let told = self.members.at(place).four_letter_word("mntr").unwrap_or_default();
            let number = |name: &str| metric(&told, name).and_then(|number| number.parse().ok());
            (number("zk_groups"), number("zk_groups_without_leader")) == (Some(GROUPS), Some(0))
        };
        while !(0..3).all(has_all) {
            assert!(Instant::now() < deadline, "groups after {WITHIN:?}");
            thread::sleep(POLL);
        }
    }

    fn path(&self, name: &str) -> String {
        text(&self.desk.path().join(name)).to_owned()
    }
}

/// Lines of all znodes below the split point and of itself, with the numbers of their Stats.
fn dumped(source: &str) -> String {
    succeed(&["dump", source, "--path", "/app", "--stat", "--ephemerals"])
}

#[tokio::test]
async fn the_directory_of_a_stopped_member_has_what_clients_saw() {
    let mut spread = SpreadEnsemble::start().await;
    let client = spread.client().await;
    for number in 0..40 {
        let path = format!("/app/late-{number}");
        client.create(&path, b"late", CreateMode::Persistent).await.expect("create below it");
        client
            .create(&format!("{path}/alive"), b"", CreateMode::Ephemeral)
            .await
            .expect("create an ephemeral");
        client.delete(&format!("/app/early-{number}"), None).await.expect("delete");
    }
    client.create("/app/s-", b"", CreateMode::PersistentSequential).await.expect("create");
    client.sync("/app").await.expect("there is a quorum");
    let seen = dumped(&spread.members.hosts());
    assert_eq!(seen.lines().count(), 1 + 1 + 40 + 40 + 1, "{seen}");
    for place in 0..3 {
        assert!(spread.members.member(place).stop().success());
    }
    for place in 0..3 {
        let directory = spread.members.at(place).data_directory();
        assert_eq!(dumped(text(&directory)), seen, "member {place}");
        let to = spread.path(&format!("zookeeper-{place}"));
        succeed(&["export", "zookeeper", "--data-dir", text(&directory), "--to", &to]);
        assert_eq!(dumped(&to), seen, "export of member {place}");
    }
    let directories = [0, 1].map(|place| spread.members.at(place).data_directory());
    let [one, other] = directories.each_ref().map(|directory| text(directory));
    let compared = succeed(&["diff", one, other]);
    assert!(compared.contains(" 0 different, 0 only in A, 0 only in B"), "{compared}");
    drop(client);
}
