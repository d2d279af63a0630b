//! Restarts of all members of an ensemble in good order, one after the other, under kazoo and ZooKeeper's Java client: clients of the
//! other members notice nothing, those of the restarted one go on elsewhere with their sessions.

use std::net::SocketAddr;

use crate::ensemble::Ensemble;
use crate::load::{Load, SessionAccount, check_data, check_ephemerals, longest_gap, now_ns, spread};
use crate::server::Server;

/// Moving sessions of each library.
const MOVING_SESSIONS: usize = 3;
const STAYING_SESSIONS: usize = 2;
/// Writes of every session, before and after a restart.
const WRITES: usize = 30;

/// An ensemble under load whose members are restarted.
#[derive(Debug)]
pub struct Rolling {
    ensemble: Ensemble,
    everywhere: Vec<SocketAddr>,
    /// Clients that know all members, and move.
    moving: Vec<Load>,
    restarts: usize,
}

impl Rolling {
    pub fn begin(ensemble: Ensemble) -> Rolling {
        let everywhere: Vec<_> = (0..ensemble.len()).map(|member| ensemble.at(member).address()).collect();
        let moving: Vec<Load> =
            Load::start_all("/moving", &spread(&everywhere, MOVING_SESSIONS)).into_iter().collect();
        moving.iter().for_each(|load| load.wait_for_writes(WRITES));
        Rolling { ensemble, everywhere, moving, restarts: 0 }
    }

    /// Restarts every member once; `change` has it before it is spawned again. `what` says in the output which restart it is.
    pub fn restart_all(&mut self, what: &str, change: impl Fn(&mut Server)) {
        for member in 0..self.ensemble.len() {
            self.restart(what, member, &change);
        }
    }

    fn restart(&mut self, what: &str, member: usize, change: impl Fn(&mut Server)) {
        let Rolling { ensemble, everywhere, moving, restarts } = self;
        let others = ensemble.addresses_beside(member);
        let staying = Load::start_all(&format!("/staying-{restarts}"), &spread(&others, STAYING_SESSIONS));
        *restarts += 1;
        staying.iter().for_each(|load| load.wait_for_writes(WRITES));
        let from = now_ns();
        let is_leader = ensemble.leader() == member;
        let server = ensemble.member(member);
        let status = server.stop();
        assert!(status.success(), "{what}: member {member} ended with {status}");
        change(server);
        server.spawn();
        ensemble.leader();
        staying.iter().chain(&*moving).for_each(|load| load.wait_for_writes(WRITES));
        let to = now_ns();
        check_ephemerals(others[0], &staying);
        let sessions: Vec<SessionAccount> = staying.into_iter().flat_map(Load::stop).collect();
        println!(
            "{what}, restart of {}: no write for {:?}",
            if is_leader { "the leader" } else { "a follower" },
            longest_gap(&sessions, from, to)
        );
        let complaints: Vec<String> = sessions.iter().flat_map(SessionAccount::complaints).collect();
        assert_eq!(complaints, Vec::<String>::new(), "{what}: restart of member {member}");
        ensemble.settle();
        everywhere.iter().for_each(|member| check_data(*member, &sessions));
    }

    /// Ends the load, and checks that the sessions that moved have lost nothing.
    pub fn end(mut self) {
        check_ephemerals(self.everywhere[0], &self.moving);
        let sessions: Vec<SessionAccount> = self.moving.into_iter().flat_map(Load::stop).collect();
        let writes = || sessions.iter().flat_map(|session| &session.writes);
        println!(
            "sessions that moved: {} writes, {} of them failed",
            writes().count(),
            writes().filter(|write| write.result.is_err()).count()
        );
        let faults: Vec<String> = sessions.iter().flat_map(SessionAccount::faults).collect();
        assert_eq!(faults, Vec::<String>::new());
        assert!(sessions.iter().all(|session| !session.states.is_empty()), "a session has not moved at all");
        self.ensemble.settle();
        self.everywhere.iter().for_each(|member| check_data(*member, &sessions));
    }
}
