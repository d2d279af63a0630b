//! An ensemble with several Raft groups: every member has them all, their leaders are spread over the members, and spread again when one is away
//! and when it is back.

use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, Error};
use paddock_proto::{CreateMode, ErrorCode};
use paddock_tests::ensemble::Ensemble;

const GROUPS: usize = 6;
/// The user `super` may change the members: `super:secret`.
const SUPER: (&str, &str) =
    ("DigestAuthenticationProvider.superDigest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4=");
const WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

#[test]
fn leaders_of_groups_are_spread_and_spread_again() {
    let groups = GROUPS.to_string();
    let settings = [SUPER, ("reconfigEnabled", "true"), ("paddock.group_count", groups.as_str())];
    let mut ensemble = Ensemble::start_with(3, &settings);
    write(&ensemble, "/first");
    // Five groups beside the home group: one or two for each member.
    await_leads(&ensemble, &[0, 1, 2], 1);

    assert!(ensemble.member(1).stop().success());
    await_leads(&ensemble, &[0, 2], 2);
    write(&ensemble, "/second");
    ensemble.member(1).spawn();
    ensemble.settle();
    await_leads(&ensemble, &[0, 1, 2], 1);

    for place in 0..3 {
        ensemble.member(place).kill();
    }
    for place in 0..3 {
        ensemble.member(place).spawn();
    }
    ensemble.settle();
    await_leads(&ensemble, &[0, 1, 2], 1);
    write(&ensemble, "/third");

    let refused = change_members(&ensemble);
    assert!(matches!(refused, Err(Error::Refused { code: ErrorCode::Unimplemented, .. })), "{refused:?}");
    let told = "change of members refused: the ensemble has several Raft groups";
    assert!((0..3).any(|place| ensemble.at(place).log().contains(told)), "the log says why");
}

/// Waits until these members have all groups and lead them together, each at least `least` of them.
fn await_leads(ensemble: &Ensemble, places: &[usize], least: usize) {
    let deadline = Instant::now() + WITHIN;
    loop {
        let counts: Vec<(usize, usize)> = places.iter().map(|place| count_groups(ensemble, *place)).collect();
        let have_all = counts.iter().all(|(groups, led)| *groups == GROUPS && *led >= least);
        if have_all && counts.iter().map(|(_, led)| led).sum::<usize>() == GROUPS {
            return;
        }
        assert!(Instant::now() < deadline, "groups and leads of {places:?} after {WITHIN:?}: {counts:?}");
        thread::sleep(POLL);
    }
}

/// Number of groups that a member has, and of those that it leads.
fn count_groups(ensemble: &Ensemble, place: usize) -> (usize, usize) {
    let told = ensemble.at(place).four_letter_word("mntr").unwrap_or_default();
    let value = |key: &str| {
        let value = told.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t'));
        value.and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    (value("zk_groups"), value("zk_groups_led"))
}

#[tokio::main(flavor = "current_thread")]
async fn write(ensemble: &Ensemble, path: &str) {
    let client = Client::connect(&ensemble.hosts(), ClientOptions::default()).await.expect("connect");
    client.create(path, b"data", CreateMode::Persistent).await.expect("create a znode");
    client.close().await.expect("close");
}

#[tokio::main(flavor = "current_thread")]
async fn change_members(ensemble: &Ensemble) -> Result<(), Error> {
    let client = Client::connect(&ensemble.hosts(), ClientOptions::default()).await.expect("connect");
    client.add_auth("digest", b"super:secret").await.expect("prove to be super");
    let asked = client.reconfig("", "3", None).await.map(drop);
    client.close().await.expect("close");
    asked
}
