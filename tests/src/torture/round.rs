//! One round: members and clients from nothing, what the plan does to them, and what has to be true behind it.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_chance::Chance;
use paddock_client::{Client, ClientOptions};
use tokio::runtime::Builder;

use super::abilities::{Abilities, DISK_BYTES};
use super::clients::Clients;
use super::evidence::Evidence;
use super::faults::{self, Struck};
use super::mover::Mover;
use super::plan::Plan;
use super::size::Size;
use super::znodes::Znodes;
use crate::damage::tree::{Tree, check_same, read_tree};
use crate::ensemble::{Ensemble, MemberPlace};
use crate::history::last_reads;
use crate::judge::{Verdict, judge};
use crate::library::Library;
use crate::load::spread;
use crate::lock::{self, Contender};
use crate::network::Network;
use crate::server::{ServerKind, free_port};

/// Clients of each library that move from member to member; beside them one stays at each member.
const MOVING_CLIENTS: usize = 2;
/// Answers that every client gets before the first fault and behind the last one.
const ANSWERS: usize = 10;
const POLL: Duration = Duration::from_millis(20);
/// Segments and snapshots come and go in a round.
const SETTINGS: [(&str, &str); 5] = [
    ("preAllocSize", "64"),
    ("snapCount", "300"),
    // Sessions of those who take turns at a lock end within a spell; those of all others do not.
    ("tickTime", "500"),
    ("minSessionTimeout", "1000"),
    ("maxSessionTimeout", "40000"),
];
/// The timeout of the sessions that hold the lock, and how long each holds it: mostly, and longer than its session may be unheard.
const LOCK_SESSION: Duration = Duration::from_secs(2);
const LOCK_KEPT: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(8));
/// Number of the first client of our own; those of other libraries have smaller ones.
const OWN_CLIENTS: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Good,
    /// The reason, and the place where to look.
    Violated(String, PathBuf),
    Interrupted,
}

/// Account of a round.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) seed: u64,
    /// Faults of a spell together.
    pub(super) spells: Vec<Vec<Struck>>,
    pub(super) requests: usize,
    pub(super) unknown: usize,
    pub(super) refused: usize,
    /// Times that a znode went from one Raft group to another one.
    pub(super) moves: usize,
    pub(super) ended: Ended,
    pub(super) time: Duration,
}

/// Reasons for which a round did not go on.
enum Stop {
    Interrupted,
    Violated(String),
}

struct Round<'a> {
    plan: Plan,
    size: Size,
    znodes: Znodes,
    /// Interfaces for administrators, of each member of an ensemble with several groups.
    admins: Vec<SocketAddr>,
    network: Option<&'a Network>,
    is_interrupted: &'a AtomicBool,
    evidence: Evidence,
    ensemble: Ensemble,
    clients: Vec<Clients>,
    /// One at each member.
    contenders: Vec<Contender>,
    /// Last lines of the clients that read at the end.
    last_lines: Vec<String>,
    spells: Vec<Vec<Struck>>,
    moves: usize,
}

pub(super) fn play(seed: u64, size: Size, abilities: &Abilities, is_interrupted: &AtomicBool) -> Played {
    let begun = Instant::now();
    let network = abilities.has_networks.then(|| {
        Network::new(size.members())
            .unwrap_or_else(|reason| panic!("a network could be had a moment ago: {reason}"))
    });
    // A thread that has entered a network does not come back.
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Some(network) = &network {
                network.enter();
            }
            let mut round = Round::new(seed, size, abilities, network.as_ref(), is_interrupted);
            let ended = round.play();
            round.end(seed, ended, begun)
        });
        thread.join().expect("what a round may fail of is caught in it")
    })
}

impl<'a> Round<'a> {
    fn new(
        seed: u64,
        size: Size,
        abilities: &Abilities,
        network: Option<&'a Network>,
        is_interrupted: &'a AtomicBool,
    ) -> Round<'a> {
        let members = size.members();
        let plan = Plan::from_seed(seed, members, &abilities.faults());
        let places = network
            .map_or_else(|| (0..members).map(|_| MemberPlace::on_loopback()).collect(), Network::places);
        let disk_bytes = abilities.has_disks.then_some(DISK_BYTES);
        // Znodes are spread by an administrator.
        let admin =
            |place: &MemberPlace| (size.groups > 1).then(|| SocketAddr::new(place.clients.ip(), free_port()));
        let places: Vec<MemberPlace> = places
            .into_iter()
            .map(|place| MemberPlace { disk_bytes, admin: admin(&place), ..place })
            .collect();
        let (count, replicas) = (size.groups.to_string(), size.replicas.to_string());
        let placed = [("paddock.group_count", &*count), ("paddock.group_replicas", &*replicas)];
        let settings = [&SETTINGS[..], &placed[..if size.replicas > 0 { 2 } else { 1 }]].concat();
        Round {
            plan,
            size,
            znodes: Znodes::at_root(),
            admins: places.iter().filter_map(|place| place.admin).collect(),
            network,
            is_interrupted,
            evidence: Evidence::new(seed, size),
            ensemble: Ensemble::spawn_at(ServerKind::Paddock, &places, &settings),
            clients: Vec::new(),
            contenders: Vec::new(),
            last_lines: Vec::new(),
            spells: Vec::new(),
            moves: 0,
        }
    }

    /// Whatever fails, a panic included, is told as what it is.
    fn play(&mut self) -> Result<(), Stop> {
        let played = catch_unwind(AssertUnwindSafe(|| self.play_story()));
        let played = played.unwrap_or_else(|panic| Err(Stop::Violated(message(&*panic))));
        // Ctrl-C reaches the members and the clients, too: what they come to then proves nothing.
        if self.is_interrupted.load(Ordering::Relaxed) { Err(Stop::Interrupted) } else { played }
    }

    fn play_story(&mut self) -> Result<(), Stop> {
        self.start_clients();
        let mover = self.start_mover();
        for spell in self.plan.spells.clone() {
            self.wait(spell.calm)?;
            self.check_running()?;
            let struck = faults::strike(&mut self.ensemble, self.network, &spell.strikes);
            self.spells.push(struck.clone());
            self.wait(spell.length)?;
            faults::mend(&mut self.ensemble, self.network, &struck);
            faults::revive(&mut self.ensemble, &struck).map_err(Stop::Violated)?;
        }
        self.moves = mover.map_or(0, Mover::end);
        self.wait_until_all_serve();
        self.stop_clients()?;
        self.check_lock()?;
        self.check_agreement()?;
        self.check_history()?;
        self.check_running()
    }

    fn start_clients(&mut self) {
        self.ensemble.leader();
        if let [admin, ..] = self.admins[..] {
            self.znodes = Znodes::spread(&self.ensemble, self.size, admin);
        }
        let members: Vec<_> =
            (0..self.size.members()).map(|member| self.ensemble.member(member).address()).collect();
        let pinned = members.iter().map(ToString::to_string);
        let hosts: Vec<String> = pinned.chain(spread(&members, MOVING_CLIENTS)).collect();
        let locks: Vec<String> = members.iter().map(ToString::to_string).collect();
        let start = |(place, library)| {
            let (seed, errors) = (self.plan.clients_seed, self.evidence.errors());
            Clients::start(
                library,
                seed,
                place * (hosts.len() + locks.len()),
                &self.znodes,
                &hosts,
                &locks,
                errors,
            )
        };
        self.clients = (0..).zip(Library::ALL).map(start).collect();
        self.clients.iter().for_each(Clients::wait_until_ready);
        let contender = |(client, member): (usize, &SocketAddr)| {
            Contender::start(
                OWN_CLIENTS + client,
                &member.to_string(),
                &self.znodes.lock,
                LOCK_SESSION,
                LOCK_KEPT,
            )
        };
        self.contenders = members.iter().enumerate().map(contender).collect();
        self.wait_for_answers();
    }

    /// In half of the rounds with groups znodes stay where they are: parts of multis, and a lock and its holder's session, are in different groups
    /// all the time.
    fn start_mover(&self) -> Option<Mover> {
        let seed = self.plan.clients_seed;
        let moves = !self.admins.is_empty() && seed % 2 == 1;
        moves.then(|| {
            Mover::start(Chance::of(seed, "moves"), &self.znodes, self.size.groups, self.admins.clone())
        })
    }

    /// The lock had one holder at a time, as far as its holders knew.
    fn check_lock(&mut self) -> Result<(), Stop> {
        let mut held: Vec<_> = self.clients.iter().flat_map(|clients| clients.told().held).collect();
        held.extend(self.contenders.drain(..).flat_map(Contender::end));
        match lock::overlap(&held) {
            Some(both) => Err(Stop::Violated(format!("two clients hold one lock: {both:?}"))),
            None if held.is_empty() => Err(Stop::Violated("nobody got the lock".to_owned())),
            None => Ok(()),
        }
    }

    fn wait_for_answers(&self) {
        let before: Vec<Vec<usize>> = self.clients.iter().map(Clients::answers).collect();
        for (clients, before) in self.clients.iter().zip(before) {
            clients.wait_for_answers(&before, ANSWERS);
        }
    }

    /// A time that the plan says, unless a caller does not want to wait for its end.
    fn wait(&self, time: Duration) -> Result<(), Stop> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.is_interrupted.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    fn check_running(&mut self) -> Result<(), Stop> {
        faults::revive(&mut self.ensemble, &[]).map_err(Stop::Violated)
    }

    fn wait_until_all_serve(&mut self) {
        self.ensemble.leader();
        self.wait_for_answers();
    }

    fn stop_clients(&mut self) -> Result<(), Stop> {
        self.clients.iter_mut().for_each(Clients::stop);
        let complaints = self.clients.iter().flat_map(|clients| clients.told().complaints);
        let complaints: Vec<String> = complaints.collect();
        if complaints.is_empty() {
            Ok(())
        } else {
            Err(Stop::Violated(format!("clients were told what no server says: {}", complaints.join("; "))))
        }
    }

    /// Every member holds the same, to a client that reads the tree and by the digests that members compare.
    fn check_agreement(&mut self) -> Result<(), Stop> {
        self.ensemble.leader();
        self.ensemble.settle();
        let runtime = Builder::new_current_thread().enable_all().build().expect("make a runtime");
        let mut trees: Vec<Tree> = Vec::new();
        for member in 0..self.size.members() {
            let server = self.ensemble.member(member);
            let (address, number) = (server.address(), OWN_CLIENTS + self.size.members() + member);
            let monitor = self.ensemble.member(member).four_letter_word("mntr");
            let monitor = monitor.map_err(|error| Stop::Violated(format!("ask a member: {error}")))?;
            if !monitor.lines().any(|line| line == "zk_digest_mismatches_count\t0") {
                return Err(Stop::Violated(format!("digests of members differ: {monitor}")));
            }
            runtime.block_on(async {
                self.last_lines.extend(last_reads(number, address, &self.znodes.keys).await);
                let options = ClientOptions::default();
                let client =
                    Client::connect(&address.to_string(), options).await.expect("connect to a member");
                client.sync("/").await.expect("there is a quorum of each group");
                trees.push(read_tree(&client).await);
                client.close().await.expect("close");
            });
            check_same(
                &trees[member],
                &trees[0],
                &format!("member {} has not what member 1 has", member + 1),
            );
        }
        Ok(())
    }

    fn check_history(&self) -> Result<(), Stop> {
        match judge(&self.evidence.write_history(&self.history())) {
            Verdict::Linearizable(_) => Ok(()),
            Verdict::Violated(told) => Err(Stop::Violated(told)),
            Verdict::None(told) => Err(Stop::Violated(format!("Porcupine has no verdict: {told}"))),
        }
    }

    fn history(&self) -> Vec<String> {
        let lines = self.clients.iter().flat_map(|clients| clients.told().lines);
        lines.chain(self.last_lines.iter().cloned()).collect()
    }

    /// Keeps what there is to see of a violation.
    fn end(mut self, seed: u64, ended: Result<(), Stop>, begun: Instant) -> Played {
        let told: Vec<_> = self.clients.iter().map(Clients::told).collect();
        let requests = self.history().len();
        let ended = match ended {
            Err(Stop::Violated(why)) => {
                self.evidence.write_history(&self.history());
                self.evidence.keep(&mut self.ensemble, &self.spells.concat(), &why);
                Ended::Violated(why, self.evidence.directory().to_owned())
            }
            Ok(()) | Err(Stop::Interrupted) => {
                self.evidence.remove();
                if ended.is_ok() { Ended::Good } else { Ended::Interrupted }
            }
        };
        Played {
            seed,
            spells: self.spells,
            requests,
            unknown: told.iter().map(|told| told.unknown).sum(),
            refused: told.iter().map(|told| told.refused).sum(),
            moves: self.moves,
            ended,
            time: begun.elapsed(),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "panic".to_owned())
}
