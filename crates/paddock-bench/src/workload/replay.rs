//! Replay of a recorded request log: a CSV file with keeper-bench's columns, such as a query of ClickHouse's
//! `system.zookeeper_log` writes. Other columns are overlooked.
//!
//! Each recorded session becomes one lane, which sends the session's requests in the order of their xids: as fast as its
//! window allows or, with a speed, each at its own time. An answer is good if it has the recorded error; where none was
//! recorded, any answer is.
//!
//! All paths get the workload's root in front, so that nothing recorded can touch what a server holds. Setup makes what
//! the log takes to be there: the parents of what it creates and whatever was found before the log had created it, all
//! with empty data.
//!
//! Limits of a replay:
//! - The order between sessions. With a speed it is roughly kept; without, a session may miss what another one has not
//!   created yet, and its answers then differ.
//! - Versions. Requests go out without one, or with one that never fits if the recording says that it did not.
//! - The names of sequential znodes. They count from what the replay has created, so a recorded request for a name that
//!   was given during the recording finds another znode or none.
//! - Data, ACLs and ephemerals from before the recording; all znodes are open to everybody.
//! - What concerns connections: pings, authentications, restored watches and closes are left out, as are errors that no
//!   server sends, such as a lost connection. setACL, reconfig and ClickHouse Keeper's own operations are refused.

mod lane;
mod needs;
mod recorded;
mod rows;
mod spelling;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::BenchError;
use crate::workload::{Lane, PreparedZnode, Workload};
use lane::ReplayLane;
use needs::Needs;
use recorded::{Exchange, RecordedSession};

#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    operations: Vec<String>,
    sessions: Vec<Arc<[Exchange]>>,
    root: String,
    needs: Needs,
}

/// Reads a log, to be replayed below `root`. With a `speed`, 2.0 replays it in half the time that it took.
pub fn load(path: &Path, root: &str, speed: Option<f64>) -> Result<Replay, BenchError> {
    if let Some(speed) = speed.filter(|speed| !(speed.is_finite() && *speed > 0.0)) {
        return Err(BenchError::Usage(format!("a speed of {speed} is not possible; give a number above 0")));
    }
    let mut rows = rows::read(path)?;
    rows.iter_mut().for_each(|row| row.path = below(root, &row.path));
    let mut operations = Vec::new();
    let mut sessions = recorded::sessions(path, rows, &mut operations)?;
    if sessions.is_empty() {
        return Err(BenchError::InFile {
            file: path.to_path_buf(),
            line: 1,
            message: "no requests".to_string(),
        });
    }
    let needs = Needs::of(&sessions, root);
    if let Some(speed) = speed {
        set_times(path, &mut sessions, speed)?;
    }
    let sessions = sessions.into_iter().map(|session| session.exchanges.into()).collect();
    Ok(Replay { path: path.to_path_buf(), operations, sessions, root: root.to_owned(), needs })
}

/// The place of a recorded path in the replay. What is no path stays as it is, to be refused by its own name.
fn below(root: &str, path: &str) -> String {
    match path {
        "/" => root.to_owned(),
        _ if path.starts_with('/') => format!("{root}{path}"),
        _ => path.to_owned(),
    }
}

/// Times at which the requests are due, from the first one of all.
fn set_times(path: &Path, sessions: &mut [RecordedSession], speed: f64) -> Result<(), BenchError> {
    let all = || sessions.iter().flat_map(|session| &session.calls);
    if let Some(call) = all().find(|call| call.time.is_none()) {
        let message =
            "no `request_event_time`; without one, the log can only be replayed without a speed".to_string();
        return Err(BenchError::InFile { file: path.to_path_buf(), line: call.line, message });
    }
    let first: Option<SystemTime> = all().filter_map(|call| call.time).min();
    let Some(first) = first else { return Ok(()) };
    for RecordedSession { exchanges, calls } in sessions {
        for (exchange, call) in exchanges.iter_mut().zip(calls) {
            let after: Option<Duration> = call.time.and_then(|time| time.duration_since(first).ok());
            exchange.due = after.map(|after| after.div_f64(speed));
        }
    }
    Ok(())
}

impl Replay {
    /// As many as were recorded.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub fn requests(&self) -> usize {
        self.sessions.iter().map(|session| session.len()).sum()
    }
}

impl Workload for Replay {
    fn name(&self) -> String {
        super::keeper::file_name(&self.path)
    }

    fn operations(&self) -> Vec<String> {
        self.operations.clone()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = PreparedZnode> + '_> {
        Box::new(self.needs.setup.iter().map(|path| PreparedZnode { path: path.clone(), data: Vec::new() }))
    }

    fn roots(&self) -> Vec<String> {
        vec![self.root.clone()]
    }

    /// Sessions beyond the recorded ones have nothing to do.
    fn lanes(&self, sessions: usize) -> Vec<Box<dyn Lane>> {
        let recorded = |session: usize| self.sessions.get(session).cloned().unwrap_or_default();
        (0..sessions).map(|session| Box::new(ReplayLane::new(recorded(session))) as Box<dyn Lane>).collect()
    }
}

#[cfg(test)]
mod tests;
