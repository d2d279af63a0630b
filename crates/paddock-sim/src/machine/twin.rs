//! A twin: a second process with the number of a member that runs.

use super::disk::SimDisk;
use super::process::SimProcess;

#[derive(Debug)]
pub(crate) struct Twin {
    /// Number of the member that it is a copy of.
    pub(crate) member: u8,
    /// Ticks that it has left.
    pub(crate) ticks: u64,
    pub(crate) process: SimProcess,
    pub(crate) disk: SimDisk,
}
