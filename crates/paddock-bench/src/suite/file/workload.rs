//! A `[[workload]]` of a suite's file, and the cells that it stands for.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::duration::duration;
use super::hold::Only;
use crate::report::Pace;
use crate::suite::{Cell, End, Network};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadEntry {
    pub(super) name: Spanned<String>,
    sessions: Vec<usize>,
    window: Option<Vec<usize>>,
    rate: Option<Vec<f64>>,
    requests: Option<Vec<u64>>,
    #[serde(default, deserialize_with = "duration")]
    time: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    warm_up: Option<Duration>,
    fresh: Option<bool>,
    network: Option<Vec<String>>,
    pub(super) servers: Only,
}

impl WorkloadEntry {
    /// Every combination of network, sessions, load and end; or why there is none.
    pub(super) fn cells(&self, networks: &[Network]) -> Result<Vec<Cell>, String> {
        let (loads, ends) = (self.loads()?, self.ends()?);
        if self.sessions.is_empty() || self.sessions.contains(&0) {
            return Err("sessions must be a list of positive numbers".to_owned());
        }
        let mut cells = Vec::new();
        for network in self.networks(networks)? {
            for &sessions in &self.sessions {
                for &load in &loads {
                    let cell = |&until| self.cell(network.clone(), sessions, load, until);
                    cells.extend(ends.iter().map(cell));
                }
            }
        }
        Ok(cells)
    }

    /// The networks that it names, of these; none of them if it names none.
    fn networks(&self, networks: &[Network]) -> Result<Vec<Option<Network>>, String> {
        let find = |name: &String| {
            let found = networks.iter().find(|network| network.name == *name);
            found.cloned().map(Some).ok_or_else(|| format!("no network has the name {name}"))
        };
        match &self.network {
            None => Ok(vec![None]),
            Some(names) if names.is_empty() => Err("network must name at least one".to_owned()),
            Some(names) => names.iter().map(find).collect(),
        }
    }

    fn cell(&self, network: Option<Network>, sessions: usize, load: Pace, until: End) -> Cell {
        Cell {
            workload: self.name.get_ref().clone(),
            sessions,
            load,
            until,
            warm_up_s: self.warm_up.unwrap_or_default().as_secs_f64(),
            fresh: self.fresh.unwrap_or(true),
            tree: None,
            network,
        }
    }

    fn loads(&self) -> Result<Vec<Pace>, &'static str> {
        match (&self.window, &self.rate) {
            (Some(windows), None) if !windows.is_empty() && !windows.contains(&0) => {
                Ok(windows.iter().map(|&window| Pace::Closed { window }).collect())
            }
            (None, Some(rates))
                if !rates.is_empty() && rates.iter().all(|rate| rate.is_finite() && *rate > 0.0) =>
            {
                Ok(rates.iter().map(|&requests_per_second| Pace::Open { requests_per_second }).collect())
            }
            (Some(_), None) | (None, Some(_)) => Err("window or rate must be a list of positive numbers"),
            _ => Err("a workload has either a window (requests in flight) or a rate (requests each second)"),
        }
    }

    fn ends(&self) -> Result<Vec<End>, &'static str> {
        match (&self.requests, self.time) {
            (Some(counts), None) if !counts.is_empty() && !counts.contains(&0) => {
                Ok(counts.iter().map(|&count| End::Requests(count)).collect())
            }
            (Some(_), None) => Err("requests must be a list of positive numbers"),
            (None, Some(time)) if !time.is_zero() => Ok(vec![End::Seconds(time.as_secs_f64())]),
            (None, Some(_)) => Err("time must be longer than nothing"),
            _ => Err("a workload has either requests or a time"),
        }
    }
}

pub(super) fn is_file(workload: &str) -> bool {
    let extension = Path::new(workload).extension();
    extension.is_some_and(|extension| ["yaml", "yml", "csv"].iter().any(|known| extension == *known))
}
