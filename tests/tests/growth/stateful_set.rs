//! Pods as the controller of StatefulSets starts and stops them, and the chart's part beside it.

use std::collections::BTreeSet;
use std::env;
use std::net::IpAddr;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paddock_chance::Chance;
use paddock_client::{Client, ClientOptions};
use paddock_tests::named_network::{Family, NamedNetwork};

use crate::pod::{CLIENT_PORT, Pod, is_ready, mode, mount};

const PODS_MAX: usize = 5;
/// A newcomer that was asked for before it ran is asked for again within 20 s; other tests may take the processors meanwhile.
const WITHIN: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(20);
/// Time in milliseconds for which a name, or a changed file, may be under way.
const LAG_MS_MAX: u64 = 1500;

/// `podManagementPolicy` of a StatefulSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    OrderedReady,
    Parallel,
}

/// `persistentVolumeClaimRetentionPolicy` when pods are scaled away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disks {
    Kept,
    Deleted,
}

#[derive(Debug)]
pub(crate) struct StatefulSet {
    network: NamedNetwork,
    policy: Policy,
    replicas: usize,
    pods: Vec<Pod>,
    chance: Chance,
}

impl StatefulSet {
    /// A set without pods, or why this machine has no namespaces. The thread goes into the network's hub.
    pub(crate) fn new(policy: Policy) -> Result<StatefulSet, String> {
        let mut network = NamedNetwork::new(PODS_MAX, Family::V4)?;
        network.enter();
        (1..=PODS_MAX).for_each(|id| network.forget(id));
        network.refuse_at_other_addresses();
        let pods = (1..=PODS_MAX).map(Pod::new).collect();
        Ok(StatefulSet { network, policy, replicas: 0, pods, chance: Chance::new(policy as u64) })
    }

    /// One pod, which founds an ensemble of its own.
    pub(crate) fn install(&mut self) {
        self.start(&[1], 1);
        self.replicas = 1;
    }

    /// `helm upgrade --set replicas=…`: the hook changes the list and waits until those to go are no members any more, then the controller acts.
    pub(crate) fn scale(&mut self, replicas: usize, disks: Disks) {
        let kubelets = self.change_lists(replicas);
        self.await_members(&["--none-but", &numbers(replicas)]);
        let (before, ordered) = (self.replicas, self.policy == Policy::OrderedReady);
        let added: Vec<usize> = (before + 1..=replicas).collect();
        let removed: Vec<usize> = (replicas + 1..=before).rev().collect();
        if ordered {
            added.iter().for_each(|id| self.start(&[*id], replicas));
            removed.iter().for_each(|id| self.stop(&[*id]));
        } else {
            self.start(&added, replicas);
            self.stop(&removed);
        }
        if disks == Disks::Deleted {
            removed.iter().for_each(|id| self.pods[*id - 1].delete_disk());
        }
        self.replicas = replicas;
        kubelets.join().expect("the files are changed");
        self.await_members(&["--all-of", &numbers(replicas), "--none-but", &numbers(replicas)]);
    }

    /// `kubectl rollout restart`: the pod with the highest number first, each when the one before is ready.
    pub(crate) fn roll(&mut self) {
        for id in (1..=self.replicas).rev() {
            self.stop(&[id]);
            self.start(&[id], self.replicas);
        }
    }

    /// The machines of running pods get the new list when they look, some before the controller acts, some after.
    fn change_lists(&mut self, replicas: usize) -> JoinHandle<()> {
        let lag = |chance: &mut Chance| Duration::from_millis(chance.below(LAG_MS_MAX));
        let files = self.pods[..self.replicas].iter().map(|pod| (lag(&mut self.chance), pod.settings()));
        let mut files: Vec<_> = files.collect();
        files.sort();
        thread::spawn(move || {
            let begun = Instant::now();
            for (at, file) in files {
                thread::sleep((begun + at).saturating_duration_since(Instant::now()));
                mount(&file, replicas);
            }
        })
    }

    fn start(&mut self, ids: &[usize], in_list: usize) {
        for id in ids {
            // A pod has another address than the one before it, and its name is known only some time after its process runs.
            self.network.move_member(*id);
            self.pods[id - 1].mount(in_list);
            self.pods[id - 1].start(&self.network);
        }
        for id in ids {
            thread::sleep(Duration::from_millis(self.chance.below(LAG_MS_MAX)));
            self.network.know(*id);
        }
        let deadline = Instant::now() + WITHIN;
        for id in ids {
            while !is_ready(self.network.address(*id)) {
                self.pods[id - 1].check_running();
                assert!(Instant::now() < deadline, "pod {id} is not ready\n{}", self.logs());
                thread::sleep(POLL);
            }
        }
    }

    fn stop(&mut self, ids: &[usize]) {
        ids.iter().for_each(|id| self.pods[id - 1].terminate());
        for id in ids {
            self.pods[id - 1].wait_for_end();
            self.network.forget(*id);
        }
    }

    /// The job of the chart. It runs in the cluster, and reaches a member that stays by the service's name.
    fn await_members(&self, wanted: &[&str]) {
        let binary = env::var("PADDOCK_BIN").expect("PADDOCK_BIN names the binary");
        let first = format!("{}:{CLIENT_PORT}", self.network.address(1));
        let within = format!("{}s", WITHIN.as_secs());
        let output =
            Command::new(binary).args(["members", &first, "--within", &within]).args(wanted).output();
        let output = output.expect("run paddock members");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{wanted:?}: {told}\n{}", self.logs());
    }

    pub(crate) fn check_members(&self) {
        let leaders = (1..=self.replicas).filter(|id| mode(self.network.address(*id)) == "leader").count();
        assert_eq!(leaders, 1, "{}", self.logs());
    }

    /// Every member has what was acknowledged, and nothing else.
    pub(crate) fn check_holds(&self, acknowledged: &BTreeSet<String>) {
        for id in 1..=self.replicas {
            let there = run(async {
                let client = self.connect(id).await?;
                client.sync("/").await?;
                let there = client.get_children("/load").await?;
                client.close().await?;
                Ok(there)
            });
            let there: BTreeSet<String> = match there {
                Ok(there) => there.into_iter().collect(),
                Err(error) => panic!("pod {id}: {error}\n{}", self.logs()),
            };
            let lost: Vec<&String> = acknowledged.difference(&there).collect();
            assert!(lost.is_empty(), "pod {id} has lost {lost:?}\n{}", self.logs());
            assert_eq!(there.len(), acknowledged.len(), "pod {id} has more\n{}", self.logs());
        }
    }

    /// Removes what the load has written.
    pub(crate) fn clear(&self) {
        let done = run(async {
            let client = self.connect(1).await?;
            let there = client.get_children("/load").await?;
            let gone: Vec<_> =
                there.iter().map(|name| client.delete(&format!("/load/{name}"), None)).collect();
            for gone in gone {
                gone.await?;
            }
            client.close().await
        });
        done.unwrap_or_else(|error| panic!("clear: {error}"));
    }

    async fn connect(&self, id: usize) -> Result<Client, paddock_client::Error> {
        let address = format!("{}:{CLIENT_PORT}", self.network.address(id));
        Client::connect(&address, ClientOptions::default()).await
    }

    /// A way into the network for another thread.
    pub(crate) fn hub(&self) -> String {
        self.network.hub()
    }

    /// Every address that a pod may have, as the hosts of a client.
    pub(crate) fn addresses_of_all(&self) -> String {
        let each: Vec<String> = (1..=PODS_MAX).map(|id| self.addresses_of(id)).collect();
        each.join(",")
    }

    pub(crate) fn addresses_of(&self, id: usize) -> String {
        let both: Vec<String> =
            self.network.addresses_of(id).map(|address: IpAddr| format!("{address}:{CLIENT_PORT}")).into();
        both.join(",")
    }

    fn logs(&self) -> String {
        self.pods.iter().map(Pod::log).collect()
    }
}

/// `1,2,3`
fn numbers(members: usize) -> String {
    let numbers: Vec<String> = (1..=members).map(|id| id.to_string()).collect();
    numbers.join(",")
}

#[tokio::main(flavor = "current_thread")]
async fn run<T>(
    work: impl Future<Output = Result<T, paddock_client::Error>>,
) -> Result<T, paddock_client::Error> {
    work.await
}
