//! An ensemble of servers in the test's process.

use std::thread;
use std::time::{Duration, Instant};

use paddock_server::{Config, Ensemble, EnsembleMember, Role};

use crate::ports::{free_ports, with_free_ports};
use crate::{StartError, TestServer};

const AGREED_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// Members of an ensemble. They end when they are dropped, and their data with them.
#[derive(Debug)]
pub struct TestEnsemble {
    members: Vec<TestServer>,
}

impl TestEnsemble {
    /// Starts three members that are empty, on free ports. One leads when this returns.
    ///
    /// # Errors
    /// Those of [`TestServer::start`], and [`StartError::NoLeader`] if none leads within 60 seconds.
    pub fn start() -> Result<TestEnsemble, StartError> {
        TestEnsemble::start_with(3, |_| {})
    }

    /// Starts any number of members with other settings than those by default. Addresses, directories and the list of members are chosen already.
    ///
    /// # Errors
    /// Those of [`TestEnsemble::start`].
    pub fn start_with(members: usize, adjust: impl Fn(&mut Config)) -> Result<TestEnsemble, StartError> {
        let ensemble = with_free_ports(|| TestEnsemble::start_once(members, &adjust))?;
        ensemble.wait_until_agreed()?;
        Ok(ensemble)
    }

    fn start_once(members: usize, adjust: &impl Fn(&mut Config)) -> Result<TestEnsemble, StartError> {
        let ports = free_ports(2 * members)?;
        let (client_ports, quorum_ports) = ports.split_at(members);
        let listed = (1..).zip(quorum_ports).map(|(id, &quorum_port)| EnsembleMember {
            id,
            host: "127.0.0.1".to_owned(),
            quorum_port,
            // The second port for peers that ZooKeeper has. No member listens there.
            election_port: quorum_port,
            role: Role::Participant,
            client: None,
        });
        let ensemble = Ensemble { members: listed.collect(), ..Ensemble::default() };
        let start = |(id, &port)| {
            TestServer::start_at(port, |config| {
                config.member = id;
                config.ensemble = Some(ensemble.clone());
                adjust(config);
            })
        };
        let members = (1..).zip(client_ports).map(start).collect::<Result<_, _>>()?;
        Ok(TestEnsemble { members })
    }

    /// `host:port` of all members with commas between them, as clients want it.
    pub fn hosts(&self) -> String {
        let hosts: Vec<String> = self.members.iter().map(TestServer::hosts).collect();
        hosts.join(",")
    }

    /// The members, in the order of their numbers, which begin with 1.
    pub fn members(&self) -> &[TestServer] {
        &self.members
    }

    /// A member by its place from 0, to be stopped and started.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn member_mut(&mut self, place: usize) -> &mut TestServer {
        &mut self.members[place]
    }

    /// Place of the member that leads, from 0, once one does and the others that run follow it.
    ///
    /// # Errors
    /// [`StartError::NoLeader`] if that does not come about within 60 seconds.
    pub fn leader(&self) -> Result<usize, StartError> {
        loop {
            self.wait_until_agreed()?;
            // None if that has changed since.
            let leads =
                |member: &TestServer| member.is_running() && member.mode().as_deref() == Some("leader");
            if let Some(place) = self.members.iter().position(leads) {
                return Ok(place);
            }
        }
    }

    /// Waits until one member leads and the others that run follow it.
    ///
    /// # Errors
    /// [`StartError::NoLeader`] if that does not come about within 60 seconds.
    pub fn wait_until_agreed(&self) -> Result<(), StartError> {
        let start = Instant::now();
        loop {
            let running = self.members.iter().filter(|member| member.is_running());
            let modes: Vec<Option<String>> = running.map(TestServer::mode).collect();
            let count = |wanted: &str| modes.iter().filter(|mode| mode.as_deref() == Some(wanted)).count();
            if count("leader") == 1 && count("follower") == modes.len() - 1 {
                return Ok(());
            }
            let waited = start.elapsed();
            if waited > AGREED_WITHIN {
                return Err(StartError::NoLeader { waited, modes });
            }
            thread::sleep(POLL);
        }
    }
}
