//! Apache ZooKeeper and a front end on etcd answer the same requests alike. Zxids are compared by their order: on etcd what is
//! refused takes none. `paddock_tests::oracle::pair` tells the variables of the environment that make it longer.

use paddock_tests::oracle::generate;
use paddock_tests::oracle::pair::{OnEtcd, Other, Pair, agree_on_fresh_servers};
use paddock_tests::oracle::quotas;

const SEQUENCES: u64 = 60;
const SEQUENCES_WITH_QUOTAS: u64 = 20;
const SEQUENCES_WITH_IDENTITIES: u64 = 10;
const WHOLE_TREE_SEQUENCES: u64 = 1;

const ALONE: Other = Other::OnEtcd(OnEtcd { members: 1, separate_writes: true });
const THREE: Other = Other::OnEtcd(OnEtcd { members: 3, separate_writes: true });
const COMBINING: Other = Other::OnEtcd(OnEtcd { members: 1, separate_writes: false });

#[test]
fn below_a_root_on_etcd() {
    Pair::start(ALONE, &[]).agree_below_roots(SEQUENCES, generate::below_a_root);
}

#[test]
fn below_a_root_on_etcd_of_three_members() {
    Pair::start(THREE, &[]).agree_below_roots(SEQUENCES / 4, generate::below_a_root);
}

/// Requests that come together may share a zxid: only single ones can be compared.
#[test]
fn with_writes_that_share_transactions_on_etcd() {
    Pair::start(COMBINING, &[]).agree_below_roots(SEQUENCES / 4, generate::one_by_one);
}

#[test]
fn with_quotas_enforced_on_etcd() {
    let mut pair = Pair::start(ALONE, &[("enforceQuota", "true")]);
    let (zookeeper, paddock) = pair.transcripts(&quotas::above_a_limit());
    assert_eq!(zookeeper, paddock);
    pair.agree_below_roots(SEQUENCES_WITH_QUOTAS, generate::with_quotas);
}

#[test]
fn with_identities_of_tls_and_sasl_on_etcd() {
    Pair::start_with_identities(ALONE)
        .agree_below_roots(SEQUENCES_WITH_IDENTITIES, generate::with_identities);
}

#[test]
fn on_the_whole_tree_of_fresh_servers_on_etcd() {
    agree_on_fresh_servers(ALONE, WHOLE_TREE_SEQUENCES, generate::on_the_whole_tree);
}
