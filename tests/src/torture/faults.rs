//! Doing to members what the plan says, and undoing it.

use std::fmt;

use super::plan::{Fault, Strike};
use crate::ensemble::Ensemble;
use crate::load::now_ns;
use crate::network::Network;

/// Words of a member, before it stops, about a disk that is full.
const NO_ROOM: [&str; 3] = ["no room", "disk full", "No space left"];

/// A fault that is or was there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Struck {
    pub(super) fault: Fault,
    pub(super) member: usize,
    was_leader: bool,
    pub(super) moment_ns: i64,
}

impl fmt::Display for Struck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.was_leader { "*" } else { "" };
        write!(formatter, "{} {}{mark}", self.fault, self.member + 1)
    }
}

/// Does all strikes of a spell.
pub(super) fn strike(ensemble: &mut Ensemble, network: Option<&Network>, strikes: &[Strike]) -> Vec<Struck> {
    let (leader, members) = (ensemble.self_declared_leader(), ensemble.len());
    let strike = |&Strike { fault, behind_leader }: &Strike| {
        let member = (leader.unwrap_or(0) + behind_leader) % members;
        let server = ensemble.member(member);
        match fault {
            Fault::Kill => server.kill(),
            Fault::Pause => server.pause(),
            Fault::FillDisk => server.disk().expect("it has a disk of its own").fill(),
            Fault::Isolate => there(network).isolate(member),
            Fault::Deafen => there(network).deafen(member),
            Fault::Mute => there(network).mute(member),
            Fault::Separate => there(network).separate(member, (member + 1) % members),
        }
        Struck { fault, member, was_leader: leader == Some(member), moment_ns: now_ns() }
    };
    strikes.iter().map(strike).collect()
}

/// Undoes them.
pub(super) fn mend(ensemble: &mut Ensemble, network: Option<&Network>, struck: &[Struck]) {
    if let Some(network) = network {
        network.heal();
    }
    for Struck { fault, member, .. } in struck {
        let server = ensemble.member(*member);
        match fault {
            Fault::Kill => server.spawn(),
            Fault::Pause => server.resume(),
            Fault::FillDisk => server.disk().expect("it has a disk of its own").free(),
            Fault::Isolate | Fault::Deafen | Fault::Mute | Fault::Separate => {}
        }
    }
}

/// Starts members again that stopped because their disk was full, which is their right. Another one that stopped is an error.
pub(super) fn revive(ensemble: &mut Ensemble, struck: &[Struck]) -> Result<(), String> {
    for member in 0..ensemble.len() {
        let server = ensemble.member(member);
        let Some(status) = server.ended_by_itself() else { continue };
        let log = server.log();
        let last = log.lines().last().unwrap_or_default();
        let was_full = struck.iter().any(|struck| struck.member == member && struck.fault == Fault::FillDisk);
        if !was_full || !NO_ROOM.iter().any(|words| last.contains(words)) {
            return Err(format!("member {} stopped by itself, with {status}: {last}", member + 1));
        }
        server.spawn();
    }
    Ok(())
}

fn there(network: Option<&Network>) -> &Network {
    network.expect("without networks no cut is planned")
}
