//! `[[memory]]`, `[[idle]]`, `[[snapshot]]`, `[[production]]` and `[[growth]]` of a suite's file: what it costs a server to hold much.

use std::time::Duration;

use paddock_proto::validate_path;
use serde::Deserialize;
use toml::Spanned;

use super::duration::duration;
use crate::suite::{Grown, Growth, Idle, SnapshotPlan};
use crate::workload::production::Production;
use crate::workload::tree::{Filling, Values, Znodes};

/// The names of the servers that a measurement is made of, if not of all.
pub(super) type Only = Option<Spanned<Vec<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryEntry {
    znodes: usize,
    value_bytes: usize,
    name_bytes: usize,
    parents: usize,
    #[serde(default)]
    below: String,
    pub(super) servers: Only,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdleEntry {
    sessions: [usize; 2],
    watches: usize,
    #[serde(default)]
    same_znodes: bool,
    #[serde(default, deserialize_with = "duration")]
    time: Option<Duration>,
    pub(super) servers: Only,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotEntry {
    znodes: usize,
    value_bytes: usize,
    name_bytes: usize,
    parents: usize,
    values: Values,
    writes: u64,
    #[serde(default, deserialize_with = "duration")]
    time: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    warm_up: Option<Duration>,
    pub(super) servers: Only,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProductionEntry {
    znodes: usize,
    writes: u64,
    #[serde(default, deserialize_with = "duration")]
    time: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    warm_up: Option<Duration>,
    pub(super) servers: Only,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrowthEntry {
    znodes: Option<[usize; 2]>,
    sessions: Option<[usize; 2]>,
    watches: Option<[usize; 2]>,
    #[serde(default, deserialize_with = "duration")]
    time: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    warm_up: Option<Duration>,
    pub(super) servers: Only,
}

impl MemoryEntry {
    pub(super) fn tree(&self) -> Result<Znodes, String> {
        let MemoryEntry { znodes, value_bytes, name_bytes, parents, ref below, .. } = *self;
        if !below.is_empty() && validate_path(below).is_err() {
            return Err(format!("below must be the path of a znode, and is {below:?}"));
        }
        checked(Znodes { znodes, value_bytes, name_bytes, parents, below: below.clone() })
    }
}

impl IdleEntry {
    pub(super) fn idle(&self) -> Result<Idle, String> {
        match self.sessions {
            [0, _] => Err("sessions must begin with at least 1".to_owned()),
            [few, many] if few >= many => Err("sessions must be a small number and a larger one".to_owned()),
            sessions => {
                let time_s = self.time.unwrap_or_default().as_secs_f64();
                Ok(Idle { sessions, watches: self.watches, same_znodes: self.same_znodes, time_s })
            }
        }
    }
}

impl SnapshotEntry {
    pub(super) fn plan(&self) -> Result<SnapshotPlan, String> {
        let SnapshotEntry { znodes, value_bytes, name_bytes, parents, values, writes, .. } = *self;
        let below = String::new();
        let znodes = checked(Znodes { znodes, value_bytes, name_bytes, parents, below })?;
        snapshot(Filling::Alike { znodes, values }, writes, self.time, self.warm_up)
    }
}

impl ProductionEntry {
    pub(super) fn plan(&self) -> Result<SnapshotPlan, String> {
        if self.znodes == 0 {
            return Err("znodes must be at least 1".to_owned());
        }
        let tree = Filling::Production(Production { znodes: self.znodes });
        snapshot(tree, self.writes, self.time, self.warm_up)
    }
}

fn snapshot(
    tree: Filling,
    writes: u64,
    time: Option<Duration>,
    warm_up: Option<Duration>,
) -> Result<SnapshotPlan, String> {
    if writes == 0 {
        return Err("writes must be at least 1".to_owned());
    }
    let (time_s, warm_up_s) = (needed(time)?, warm_up.unwrap_or_default().as_secs_f64());
    Ok(SnapshotPlan { tree, writes, time_s, warm_up_s })
}

impl GrowthEntry {
    pub(super) fn growth(&self) -> Result<Growth, String> {
        let (of, [few, many]) = match (self.znodes, self.sessions, self.watches) {
            (Some(numbers), None, None) => (Grown::Znodes, numbers),
            (None, Some(numbers), None) => (Grown::Sessions, numbers),
            (None, None, Some(numbers)) => (Grown::Watches, numbers),
            _ => return Err("either znodes, sessions or watches grow".to_owned()),
        };
        if few >= many || (of == Grown::Znodes && few == 0) {
            return Err("what grows must be a small number and a larger one".to_owned());
        }
        let (time_s, warm_up_s) = (needed(self.time)?, self.warm_up.unwrap_or_default().as_secs_f64());
        Ok(Growth { of, few, many, time_s, warm_up_s })
    }
}

/// The tree, if znodes can be named so.
fn checked(tree: Znodes) -> Result<Znodes, String> {
    if tree.znodes == 0 || tree.parents == 0 {
        return Err("znodes and parents must be at least 1".to_owned());
    }
    let needed = (tree.znodes - 1).to_string().len();
    if tree.name_bytes < needed {
        return Err(format!("{} znodes need names of at least {needed} bytes", tree.znodes));
    }
    Ok(tree)
}

fn needed(time: Option<Duration>) -> Result<f64, String> {
    let time = time.filter(|time| !time.is_zero());
    time.map(|time| time.as_secs_f64()).ok_or_else(|| "time must be longer than nothing".to_owned())
}
