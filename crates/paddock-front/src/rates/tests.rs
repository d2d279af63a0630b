use paddock_proto::{Id, IdList};

use super::*;

const ADDRESS: &str = "10.0.0.7";

/// Limits by rules in one line, with waits of at most a second.
fn limits(rules: &str) -> RateLimits {
    RateLimits::new(&rules.parse().unwrap(), 1000)
}

/// Asks for something about a path at a time, with these identities.
fn decide(limits: &RateLimits, ids: &[Id], path: &str, bytes: usize, now_ms: u64) -> RateVerdict {
    let ids = IdList::encode(ids);
    let ids = IdList::decode(&mut paddock_proto::jute::Reader::new(&ids)).unwrap();
    let request = RatedRequest { path, ids, address: ADDRESS.parse().unwrap(), bytes };
    limits.get().decide(&request, now_ms)
}

fn wait(verdict: &RateVerdict, now_ms: u64) -> Option<u64> {
    match verdict {
        RateVerdict::WaitUntil { ms, .. } => Some(ms - now_ms),
        _ => None,
    }
}

#[test]
fn a_tenant_waits_for_its_own_requests_and_no_other_does() {
    let limits = limits("path:requests=100");
    let ask = |path: &str| decide(&limits, &[], path, 10, 5000);
    // A quarter of a second of them come at once, and one more while nothing is owed.
    assert!((0..26).all(|_| ask("/a/x") == RateVerdict::Take));
    assert_eq!(wait(&ask("/a/y"), 5000), Some(10));
    assert_eq!(wait(&ask("/a"), 5000), Some(20), "the one before has its turn first");
    assert_eq!(ask("/b"), RateVerdict::Take);
    assert_eq!(ask("/"), RateVerdict::Take, "it is of no tenant");
    // With time the debt is paid off.
    assert_eq!(decide(&limits, &[], "/a", 10, 6000), RateVerdict::Take);
}

#[test]
fn a_request_that_would_wait_too_long_is_refused_and_costs_nothing() {
    let limits = limits("path=/a:requests=10");
    let ask = || decide(&limits, &[], "/a", 1, 0);
    let verdicts: Vec<RateVerdict> = (0..20).map(|_| ask()).collect();
    let waits: Vec<u64> = verdicts.iter().filter_map(|verdict| wait(verdict, 0)).collect();
    assert!(waits.is_sorted() && waits.last() == Some(&950), "{waits:?}");
    assert_eq!(verdicts.last(), Some(&RateVerdict::Refuse { tenant: "/a".to_owned() }));
    let [used] = &limits.tenants(9)[..] else { panic!("one tenant") };
    assert_eq!((used.requests + used.refused, used.delayed), (20, waits.len() as u64));
    assert_eq!(wait(&decide(&limits, &[], "/a", 1, 100), 100), Some(950), "a tenth of a second pays for one");
}

#[test]
fn a_large_request_is_taken_and_the_next_one_waits() {
    let limits = RateLimits::new(&"path:bytes=1000".parse().unwrap(), 10_000);
    assert_eq!(decide(&limits, &[], "/a", 5000, 0), RateVerdict::Take);
    assert_eq!(wait(&decide(&limits, &[], "/a", 1, 0), 0), Some(4750));
}

#[test]
fn above_a_soft_limit_requests_are_counted() {
    let limits = limits("path:requests_soft=100");
    let verdicts: Vec<RateVerdict> = (0..1000).map(|_| decide(&limits, &[], "/a", 1, 0)).collect();
    let above =
        verdicts.iter().filter(|verdict| **verdict == RateVerdict::TakeAboveSoft("/a".to_owned())).count();
    assert_eq!((above, limits.tenants(9)[0].over_soft), (974, 974));
    assert_eq!(decide(&limits, &[], "/a", 1, 1000), RateVerdict::Take, "it is no debt");
}

#[test]
fn the_rule_that_names_a_tenant_counts_and_every_kind_does() {
    let limits = limits(
        "path:requests=1; path=/a:requests=1000; path=/a/b:requests=2; user=ann:requests=3; address:requests=4",
    );
    let tenants = |path: &str, ids: &[Id]| {
        let former = limits.tenants(99);
        decide(&limits, ids, path, 1, 0);
        let changed = limits.tenants(99).into_iter().filter(|one| !former.contains(one));
        let mut names: Vec<String> = changed.map(|one| one.name).collect();
        names.sort_unstable();
        names
    };
    let ann = Id::new("digest", "ann:hash");
    assert_eq!(tenants("/c/d", &[]), ["/c", ADDRESS]);
    assert_eq!(tenants("/a/c", std::slice::from_ref(&ann)), ["/a", ADDRESS, "ann"]);
    assert_eq!(tenants("/a/b/c", &[Id::new("sasl", "eve")]), ["/a/b", ADDRESS]);
}

#[test]
fn a_rule_that_stays_goes_on_with_what_was_used() {
    let limits = limits("path:requests=10; user:requests=1");
    let ask = || decide(&limits, &[], "/a", 1, 0);
    while ask() == RateVerdict::Take {}
    limits.set(&"path:requests=10".parse().unwrap(), 1000);
    assert!(wait(&ask(), 0).is_some());
    limits.set(&"path:requests=11".parse().unwrap(), 1000);
    assert_eq!(ask(), RateVerdict::Take, "another limit begins anew");
    limits.set(&RateRules::default(), 1000);
    assert!(limits.get().is_empty());
}

#[test]
fn tenants_that_are_too_many_share_one_bucket_and_idle_ones_make_room() {
    let limits = limits("path:requests=1");
    for number in 0..TENANTS_MAX {
        assert_eq!(decide(&limits, &[], &format!("/{number}"), 1, 0), RateVerdict::Take);
    }
    assert_eq!(decide(&limits, &[], "/new", 1, 0), RateVerdict::Take);
    assert_eq!(limits.tenants(usize::MAX).iter().filter(|one| one.name == OTHERS.to_string()).count(), 1);
    assert_eq!(decide(&limits, &[], "/newer", 1, 2000), RateVerdict::Take);
    assert_eq!(limits.tenants(usize::MAX).len(), 2, "others have asked for nothing lately");
}

#[test]
fn an_address_is_the_same_in_every_form() {
    let limits = limits("address=::ffff:10.0.0.7:requests=1");
    decide(&limits, &[], "/a", 1, 0);
    let [used] = &limits.tenants(9)[..] else { panic!("one tenant") };
    assert_eq!((&*used.name, used.requests), (ADDRESS, 1));
}
