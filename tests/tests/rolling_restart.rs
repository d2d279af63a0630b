//! All members are restarted in good order, one after the other, while kazoo and ZooKeeper's Java client write: clients of
//! the other members notice nothing, those of the restarted one go on elsewhere with their sessions.
//!
//! `ROLLING_ROUNDS` makes it longer: the number of times that all members are restarted.

use paddock_tests::ensemble::Ensemble;
use paddock_tests::load::{Load, SessionAccount, check_data, check_ephemerals, longest_gap, now_ns, spread};
use paddock_tests::rounds;

/// Moving sessions of each library.
const MOVING_SESSIONS: usize = 3;
const STAYING_SESSIONS: usize = 2;
/// Writes of every session, before and after a restart.
const WRITES: usize = 30;

#[test]
fn a_rolling_restart_costs_no_request_no_write_and_no_session() {
    let mut ensemble = Ensemble::start(3);
    let everywhere: Vec<_> = (0..3).map(|member| ensemble.member(member).address()).collect();
    let moving = Load::start_all("/moving", &spread(&everywhere, MOVING_SESSIONS));
    moving.iter().for_each(|load| load.wait_for_writes(WRITES));
    for round in 0..rounds("ROLLING_ROUNDS", 1) {
        for member in 0..3 {
            let others = ensemble.addresses_beside(member);
            let staying =
                Load::start_all(&format!("/staying-{round}-{member}"), &spread(&others, STAYING_SESSIONS));
            staying.iter().for_each(|load| load.wait_for_writes(WRITES));
            let from = now_ns();
            let is_leader = ensemble.leader() == member;
            let status = ensemble.member(member).stop();
            assert!(status.success(), "member {member} ended with {status}");
            ensemble.member(member).spawn();
            ensemble.leader();
            staying.iter().chain(&moving).for_each(|load| load.wait_for_writes(WRITES));
            let to = now_ns();
            check_ephemerals(others[0], &staying);
            let sessions: Vec<SessionAccount> = staying.into_iter().flat_map(Load::stop).collect();
            println!(
                "round {round}, restart of {}: no write for {:?}",
                if is_leader { "the leader" } else { "a follower" },
                longest_gap(&sessions, from, to)
            );
            let complaints: Vec<String> = sessions.iter().flat_map(SessionAccount::complaints).collect();
            assert_eq!(complaints, Vec::<String>::new(), "restart of member {member}");
            ensemble.settle();
            everywhere.iter().for_each(|member| check_data(*member, &sessions));
        }
    }
    check_ephemerals(everywhere[0], &moving);
    let sessions: Vec<SessionAccount> = moving.into_iter().flat_map(Load::stop).collect();
    let writes = || sessions.iter().flat_map(|session| &session.writes);
    println!(
        "sessions that moved: {} writes, {} of them failed",
        writes().count(),
        writes().filter(|write| write.result.is_err()).count()
    );
    let faults: Vec<String> = sessions.iter().flat_map(SessionAccount::faults).collect();
    assert_eq!(faults, Vec::<String>::new());
    assert!(sessions.iter().all(|session| !session.states.is_empty()), "a session has not moved at all");
    ensemble.settle();
    everywhere.iter().for_each(|member| check_data(*member, &sessions));
}
