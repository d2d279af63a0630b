//! The file of results: a line that names the suite's meaning, then one line for each finished step.
//!
//! A line is synced before the next step begins. Whatever stands behind the last whole line is a write that was cut
//! short, and is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::Suite;
use super::definition::StepPlace;
use super::figure_names::FigureValue;
use super::fingerprint::fingerprint;
use crate::BenchError;
use crate::report::RunReport;

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    Run(Box<RunReport>),
    /// Whatever else was measured.
    Figures(Vec<FigureValue>),
    /// Nothing was measured, because of this.
    Failed(String),
}

impl StepOutcome {
    /// The reason for which nothing may be computed from it, if there is one.
    pub fn fault(&self) -> Option<String> {
        match self {
            StepOutcome::Figures(_) => None,
            StepOutcome::Failed(reason) => Some(reason.clone()),
            StepOutcome::Run(report) => report.fault(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ResultRecord {
    #[serde(flatten)]
    pub(super) place: StepPlace,
    /// The key as people read it.
    pub(super) what: String,
    pub(super) outcome: StepOutcome,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    suite: String,
    meaning: String,
}

#[derive(Debug)]
pub(super) struct Results {
    path: PathBuf,
    file: File,
    records: Vec<ResultRecord>,
}

impl Results {
    /// Opens the results in `directory`, or begins them.
    pub(super) fn open(directory: &Path, suite: &Suite) -> Result<Results, BenchError> {
        fs::create_dir_all(directory).map_err(BenchError::file("create", directory))?;
        let path = directory.join("results.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(BenchError::file("open", &path))?;
        let bytes = fs::read(&path).map_err(BenchError::file("read", &path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(BenchError::file("cut", &path))?;
        let header = Header { suite: suite.name.clone(), meaning: meaning(suite) };
        let mut results = Results { path, file, records: Vec::new() };
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let mut lines = text.lines();
        match lines.next() {
            None => {
                results.append(&header)?;
                File::open(directory)
                    .and_then(|dir| dir.sync_all())
                    .map_err(BenchError::file("sync", directory))?;
            }
            Some(first) => {
                results.check(first, &header)?;
                results.records = lines
                    .enumerate()
                    .map(|(n, line)| results.parse(n + 2, line))
                    .collect::<Result<_, _>>()?;
            }
        }
        Ok(results)
    }

    /// The outcome that counts: of a step that was made again after it had failed, the last one.
    pub(super) fn get(&self, place: StepPlace) -> Option<&StepOutcome> {
        self.records.iter().rev().find(|record| record.place == place).map(|record| &record.outcome)
    }

    pub(super) fn is_done(&self, place: StepPlace) -> bool {
        self.get(place).is_some_and(|outcome| outcome.fault().is_none())
    }

    pub(super) fn push(&mut self, record: ResultRecord) -> Result<(), BenchError> {
        self.append(&record)?;
        self.records.push(record);
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), BenchError> {
        let mut bytes = serde_json::to_vec(line).expect("results have text for keys");
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        written.map_err(BenchError::file("append to", &self.path))
    }

    fn check(&self, first: &str, expected: &Header) -> Result<(), BenchError> {
        let directory = self.path.parent().expect("results stand in a directory").display();
        let found = serde_json::from_str::<Header>(first);
        if found.is_ok_and(|found| found == *expected) {
            return Ok(());
        }
        Err(BenchError::Usage(format!(
            "{directory} holds results of another suite, or the suite or a server's program has changed since; \
             choose another directory with --out, or remove that one to begin anew"
        )))
    }

    fn parse(&self, line: usize, text: &str) -> Result<ResultRecord, BenchError> {
        serde_json::from_str(text).map_err(|error| BenchError::InFile {
            file: self.path.clone(),
            line,
            message: format!("not a result of this version: {error}"),
        })
    }
}

/// Two suites with the same meaning may share their results.
fn meaning(suite: &Suite) -> String {
    let mut meaning = serde_json::to_string(suite).expect("suites have text for keys");
    for server in &suite.servers {
        // A program that was built anew is another server. What PATH finds is taken to stay.
        let program = Path::new(&server.command[0]);
        if let Ok(metadata) = fs::metadata(program)
            && program.components().count() > 1
        {
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            meaning += &format!("{} {:?}", metadata.len(), modified.unwrap_or_default());
        }
    }
    fingerprint(&[meaning.as_bytes()])
}
