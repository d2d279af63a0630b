//! Apache ZooKeeper and Paddock answer the same requests with the same bytes. `paddock_tests::oracle::pair` tells the variables of
//! the environment that make it longer, or perform one sequence again.
//!
//! - `ORACLE_AGAINST=zookeeper`: compares ZooKeeper with itself, to prove that the generator leaves nothing to chance.

use std::env;

use paddock_tests::oracle::differences::{DIFFERENCES, DIFFERENCES_WITH_IDENTITIES, Difference};
use paddock_tests::oracle::generate;
use paddock_tests::oracle::pair::{Other, Pair, agree_on_fresh_servers};
use paddock_tests::oracle::quotas;

const SEQUENCES: u64 = 1000;
const SEQUENCES_WITH_QUOTAS: u64 = 150;
const SEQUENCES_WITH_IDENTITIES: u64 = 80;
const WHOLE_TREE_SEQUENCES: u64 = 2;

/// The server that is compared with ZooKeeper.
fn other() -> Other {
    match env::var("ORACLE_AGAINST").as_deref() {
        Ok("zookeeper") => Other::ZooKeeper,
        _ => Other::Paddock,
    }
}

#[test]
fn below_a_root() {
    Pair::start(other(), &[]).agree_below_roots(SEQUENCES, generate::below_a_root);
}

#[test]
fn with_quotas_enforced() {
    let mut pair = Pair::start(other(), &[("enforceQuota", "true")]);
    let (zookeeper, paddock) = pair.transcripts(&quotas::above_a_limit());
    assert_eq!(zookeeper, paddock);
    assert!(zookeeper[5][0].contains("error=QuotaExceeded"), "the last create is refused: {zookeeper:?}");

    let differs = pair.perform(&quotas::multi_above_a_limit()).is_some();
    assert!(differs || other() == Other::ZooKeeper, "ZooKeeper lets a multi go above a limit no more");
    pair.agree_below_roots(SEQUENCES_WITH_QUOTAS, generate::with_quotas);
}

#[test]
fn with_identities_of_tls_and_sasl() {
    let mut pair = Pair::start_with_identities(other());
    assert_wanted(&mut pair, DIFFERENCES_WITH_IDENTITIES);
    pair.agree_below_roots(SEQUENCES_WITH_IDENTITIES, generate::with_identities);
}

#[test]
fn on_the_whole_tree_of_fresh_servers() {
    agree_on_fresh_servers(other(), WHOLE_TREE_SEQUENCES, generate::on_the_whole_tree);
}

#[test]
fn the_wanted_differences_are_there() {
    assert_wanted(&mut Pair::start(other(), &[]), DIFFERENCES);
}

/// Each example is answered differently.
fn assert_wanted(pair: &mut Pair, differences: &[Difference]) {
    if other() == Other::ZooKeeper {
        return;
    }
    for difference in differences {
        let differs = pair.perform(&(difference.example)()).is_some();
        assert!(differs, "no difference any more: {} ({})", difference.what, difference.why);
    }
}
