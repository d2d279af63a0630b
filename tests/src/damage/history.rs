//! A member's life that ended with `kill -9` right behind its last acknowledged write.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Id, Perms};

use super::files::{self, DataDir};
use super::tree::{DumpedZnode, Tree, read_tree};
use crate::server::{Server, ServerKind};

/// Size of log segments: 64 KiB.
const PRE_ALLOC: (&str, &str) = ("preAllocSize", "64");
/// A snapshot is taken after this many writes, if at all.
const SNAPSHOT_WRITES: usize = 100;
/// More than `write_one_of_each` and the rest around the counted writes make.
const OTHER_WRITES: usize = 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// No zero byte, and longer than a sector of a disk, so that no part of it looks as if it was never written.
const VALUE: [u8; 1500] = [b'v'; 1500];
const LAST: &str = "/last";

#[derive(Debug)]
pub struct DamagedHistory {
    data_dir: DataDir,
    /// Everything that was acknowledged.
    pub tree: Tree,
    /// The tree before the last write, which is the last record of the log.
    pub tree_before_last: Tree,
}

impl DamagedHistory {
    /// Writes without a snapshot.
    pub async fn without_snapshot(writes: usize) -> DamagedHistory {
        DamagedHistory::write(&[PRE_ALLOC], 0, writes).await
    }

    /// Writes until `snapshots` of them were taken, and on for `more` writes.
    pub async fn with_snapshots(snapshots: usize, more: usize) -> DamagedHistory {
        assert!(more + OTHER_WRITES < SNAPSHOT_WRITES, "that many writes are a snapshot more");
        let snapshot_writes = SNAPSHOT_WRITES.to_string();
        DamagedHistory::write(&[PRE_ALLOC, ("snapCount", &snapshot_writes)], snapshots, more).await
    }

    pub fn copy(&self) -> DataDir {
        DataDir::copy_of(&self.data_dir.path())
    }

    async fn write(settings: &[(&str, &str)], snapshots: usize, more: usize) -> DamagedHistory {
        let mut server = Server::start_with(ServerKind::Paddock, settings);
        let client = Client::connect(&server.address().to_string(), ClientOptions::default()).await;
        let client = client.expect("connect");
        client.create(LAST, b"", CreateMode::Persistent).await.expect("make a znode");
        write_one_of_each(&client).await;
        for round in 0..snapshots {
            write(&client, &format!("/round-{round}"), SNAPSHOT_WRITES).await;
            wait_for_snapshot(&server, round + 1).await;
        }
        write(&client, "/behind", more).await;
        let tree_before_last = read_tree(&client).await;
        let stat = client.set_data(LAST, &VALUE, None).await.expect("write for the last time");
        server.kill();

        let mut tree = tree_before_last.clone();
        let acl = tree[LAST].acl.clone();
        tree.insert(LAST.into(), DumpedZnode { data: Some(VALUE.to_vec()), stat, acl });
        DamagedHistory { data_dir: DataDir::copy_of(&server.data_directory()), tree, tree_before_last }
    }
}

/// Every kind of znode there is.
async fn write_one_of_each(client: &Client) {
    let everyone = [Acl { perms: Perms::ALL, id: Id::new("world", "anyone") }];
    let readers = [
        Acl { perms: Perms::READ | Perms::ADMIN, id: Id::new("world", "anyone") },
        Acl { perms: Perms::ALL, id: Id::new("ip", "127.0.0.1") },
    ];
    client.create("/ephemeral", b"e", CreateMode::Ephemeral).await.expect("create");
    client.create_with_acl("/readers", b"", &readers, CreateMode::Persistent).await.expect("create");
    client.create("/container", b"", CreateMode::Container).await.expect("create");
    client.create("/container/child", b"", CreateMode::Persistent).await.expect("create");
    let ttl = client.create_ttl("/ttl", b"t", &everyone, CreateMode::PersistentWithTtl, 3_600_000);
    ttl.await.expect("create");
    client.create("/gone", b"", CreateMode::Persistent).await.expect("create");
    client.delete("/gone", None).await.expect("delete");
    client.set_acl("/readers", &everyone, Some(0)).await.expect("change the ACL");
    client.set_acl("/readers", &readers, Some(1)).await.expect("change the ACL");
}

/// One write after the other, each a record of its own, each answered.
async fn write(client: &Client, root: &str, count: usize) {
    client.create(root, b"", CreateMode::Persistent).await.expect("create");
    let sequential = format!("{root}/s-");
    for number in 1..count {
        match number % 10 {
            0 => drop(client.set_data(root, &VALUE, None).await.expect("change")),
            _ => drop(
                client.create(&sequential, &VALUE, CreateMode::PersistentSequential).await.expect("create"),
            ),
        }
    }
}

/// Until there were `count` snapshots, of which three are kept, and the log behind them has been let go.
async fn wait_for_snapshot(server: &Server, count: usize) {
    let directory: PathBuf = server.data_directory().join("snapshots");
    let first_segment = server.data_directory().join("log/log-0000000000000001");
    let (kept, newest_index) = (count.min(3), (count * SNAPSHOT_WRITES) as u64);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let snapshots = files::files(&directory, "snapshot-");
        let newest = snapshots.last().map(|path| files::name(path));
        let index = newest.and_then(|name| u64::from_str_radix(name.strip_prefix("snapshot-")?, 16).ok());
        // The first snapshot has nothing to fall back to but the log from its beginning.
        let log_is_let_go = count == 1 || !first_segment.exists();
        if snapshots.len() == kept && index >= Some(newest_index) && log_is_let_go {
            return;
        }
        assert!(Instant::now() < deadline, "no snapshot {count} within {PATIENCE:?}: {snapshots:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
