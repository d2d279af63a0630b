//! Many writes at once, and what was acknowledged of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paddock_chance::Chance;
use paddock_client::{Client, CreateMode, Error, Pending, Stat};
use tokio::task::JoinHandle;

use super::tree::Tree;

const IN_FLIGHT: usize = 200;

/// The newest acknowledged data and Stat of each znode.
pub type Acknowledged = BTreeMap<String, (Vec<u8>, Stat)>;

/// Changes znodes as fast as it can until it is stopped or the server is gone.
#[derive(Debug)]
pub struct ZnodeLoad {
    stopped: Arc<AtomicBool>,
    task: JoinHandle<Acknowledged>,
}

impl ZnodeLoad {
    pub async fn start(client: Client, root: &str, znodes: usize, data_bytes: usize) -> ZnodeLoad {
        client.create(root, b"", CreateMode::Persistent).await.expect("create");
        let created: Vec<_> = (0..znodes)
            .map(|znode| client.create(&format!("{root}/{znode}"), b"", CreateMode::Persistent))
            .collect();
        for answer in created {
            answer.await.expect("create");
        }
        let stopped = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(write(client, root.to_string(), znodes, data_bytes, stopped.clone()));
        ZnodeLoad { stopped, task }
    }

    pub async fn stop(self) -> Acknowledged {
        self.stopped.store(true, Ordering::Relaxed);
        self.ended().await
    }

    /// Acknowledged writes, once the server is gone.
    pub async fn ended(self) -> Acknowledged {
        self.task.await.expect("the load ends")
    }
}

async fn write(
    client: Client,
    root: String,
    znodes: usize,
    data_bytes: usize,
    stopped: Arc<AtomicBool>,
) -> Acknowledged {
    let mut chance = Chance::new(1);
    let mut acknowledged = Acknowledged::new();
    let mut in_flight: VecDeque<(String, Vec<u8>, Pending<Stat>)> = VecDeque::new();
    let mut ended = false;
    loop {
        ended |= stopped.load(Ordering::Relaxed);
        while !ended && in_flight.len() < IN_FLIGHT {
            let path = format!("{root}/{}", chance.index(znodes));
            let data: Vec<u8> = (0..data_bytes / 8).flat_map(|_| chance.word().to_le_bytes()).collect();
            let answer = client.set_data(&path, &data, None);
            in_flight.push_back((path, data, answer));
        }
        let Some((path, data, answer)) = in_flight.pop_front() else { return acknowledged };
        match answer.await {
            Ok(stat) => drop(acknowledged.insert(path, (data, stat))),
            Err(Error::ConnectionLost) => ended = true,
            Err(error) => panic!("{path}: {error:?}"),
        }
    }
}

/// Each znode has what was acknowledged last, or something newer whose answer was lost.
#[track_caller]
pub fn check_acknowledged(tree: &Tree, acknowledged: &Acknowledged) {
    for (path, (data, stat)) in acknowledged {
        let znode = &tree[path];
        assert!(znode.stat.version >= stat.version, "{path}: {:?} lost {stat:?}", znode.stat);
        if znode.stat.version == stat.version {
            assert_eq!((znode.data.as_ref(), &znode.stat), (Some(data), stat), "{path}");
        }
    }
}
