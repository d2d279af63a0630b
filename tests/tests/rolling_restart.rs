//! All members are restarted in good order, one after the other, while kazoo and ZooKeeper's Java client write.
//!
//! `ROLLING_ROUNDS` makes it longer: the number of times that all members are restarted.

use paddock_tests::ensemble::Ensemble;
use paddock_tests::rolling::Rolling;
use paddock_tests::rounds;

#[test]
fn a_rolling_restart_costs_no_request_no_write_and_no_session() {
    let mut rolling = Rolling::begin(Ensemble::start(3));
    for round in 0..rounds("ROLLING_ROUNDS", 1) {
        rolling.restart_all(&format!("round {round}"), |_| {});
    }
    rolling.end();
}
