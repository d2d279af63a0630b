//! Abilities of this machine: not everybody may make network namespaces and mount disks.

use super::plan::Fault;
use crate::filesystem::Filesystem;
use crate::network::Network;

/// Enough for a round, little enough to be filled at once.
pub(super) const DISK_BYTES: usize = 24 << 20;

#[derive(Debug)]
pub(super) struct Abilities {
    pub(super) has_networks: bool,
    pub(super) has_disks: bool,
}

impl Abilities {
    /// Tries it, and tells what is left out.
    pub(super) fn find() -> Abilities {
        let networks = Network::new(1).map(drop);
        let disks = Filesystem::try_mount(DISK_BYTES).map(drop);
        for (what, reason) in [("cuts", networks.as_ref().err()), ("full disks", disks.as_ref().err())] {
            if let Some(reason) = reason {
                // Programs tend to give advice below.
                let reason = reason.lines().next().unwrap_or_default();
                println!("skipped: {what}: {reason}; they take root on Linux, with `ip` and `mount`");
            }
        }
        Abilities { has_networks: networks.is_ok(), has_disks: disks.is_ok() }
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        let can = |fault: &Fault| match fault {
            Fault::Kill | Fault::Pause => true,
            Fault::Isolate | Fault::Deafen | Fault::Mute | Fault::Separate => self.has_networks,
            Fault::FillDisk => self.has_disks,
        };
        Fault::ALL.into_iter().filter(can).collect()
    }
}
