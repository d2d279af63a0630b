//! The costs of holding much, measured of a server that holds nothing.

use super::*;
use crate::workload::tree::{Filling, Values};

/// The text of a figure of the first measurement, for each server.
fn figures(summary: &Summary, name: &str) -> Vec<Option<String>> {
    let figure = summary.groups[0].figure(name).unwrap_or_else(|| panic!("no {name} in {summary:?}"));
    figure.servers.iter().map(|of| of.map(|of| figure.unit.text(of.median))).collect()
}

#[test]
fn idle_sessions_are_opened_for_their_memory() {
    let out = directory();
    let idle = Idle { sessions: [1, 20], watches: 2, same_znodes: true, time_s: 0.1 };
    let suite = suite(1, vec![Measurement::Idle(idle)]);
    let summary = play(&suite, &out, &[]).summary();
    assert!(summary.failures.is_empty(), "{:?}", summary.failures);
    for name in ["memory per idle session", "CPU with many sessions", "memory per watch"] {
        assert!(figures(&summary, name).iter().all(Option::is_some));
    }
}

#[test]
fn snapshots_are_waited_for() {
    let out = directory();
    let plan = SnapshotPlan {
        tree: Filling::Alike {
            znodes: Znodes { znodes: 50, value_bytes: 10, name_bytes: 8, parents: 10, below: String::new() },
            values: Values::Text,
        },
        writes: 3,
        time_s: 0.2,
        warm_up_s: 0.0,
    };
    let mut suite = suite(1, vec![Measurement::Snapshot(plan)]);
    suite.servers[0].files.insert("every".to_owned(), "{snapshot_writes}".to_owned());
    suite.only.insert(0, vec![0]);
    let summary = play(&suite, &out, &[]).summary();
    assert!(summary.failures.is_empty(), "{:?}", summary.failures);
    let log = figures(&summary, "log per set, one by one");
    assert_eq!(log, [Some("7.00 B".to_owned()), None]);
    assert_eq!(figures(&summary, "snapshot per znode"), [Some("10.0 B".to_owned()), None]);
}

#[test]
fn workloads_are_measured_with_few_and_with_many() {
    for of in [Grown::Znodes, Grown::Sessions, Grown::Watches] {
        let out = directory();
        let growth = Growth { of, few: 10, many: 40, time_s: 1.0, warm_up_s: 0.0 };
        let mut suite = suite(1, vec![Measurement::Growth(growth)]);
        suite.only.insert(0, vec![1]);
        let rounds =
            [[8.0, 4.0, 2.0, 4.0, 4.0, 4.0], [9.0, 1.0, 3.0, 1.0, 2.0, 5.0], [1.0, 5.0, 2.0, 1.0, 3.0, 3.0]];
        let acts = rounds.concat().into_iter().map(Act::Rate).collect::<Vec<_>>();
        let played = play(&suite, &out, &acts);
        assert_eq!(played.told, ["0 of 1", "1 b growth"]);
        let summary = played.summary();
        assert!(summary.failures.is_empty(), "{of:?}: {:?}", summary.failures);
        let of_b = |name| figures(&summary, name)[1].clone().expect("it was measured");
        assert_eq!((of_b("get, few"), of_b("get, many to few")), ("8.00/s".to_owned(), "50.0 %".to_owned()));
        assert_eq!(
            (of_b("create, few"), of_b("create, many to few")),
            ("3.00/s".to_owned(), "133 %".to_owned())
        );
    }
}
