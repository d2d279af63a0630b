//! A suite's file: TOML, in which every key counts. What is wrong is named with its line.

mod duration;
mod hold;
mod network;
mod workload;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use self::duration::duration;
use self::hold::{GrowthEntry, IdleEntry, MemoryEntry, Only, ProductionEntry, SnapshotEntry};
use self::network::NetworkEntry;
use self::workload::WorkloadEntry;
use super::fingerprint::fingerprint;
use super::{Cell, Measurement, Network, ServerTemplate, Suite, WorkloadFile, template};
use crate::BenchError;
use crate::workload::builtin::{self, Builtin};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    repetitions: Option<Spanned<usize>>,
    baseline: Option<Spanned<String>>,
    /// For every server that has no file of this name of its own.
    #[serde(default)]
    files: Files,
    #[serde(default)]
    server: Vec<Spanned<ServerEntry>>,
    #[serde(default)]
    network: Vec<NetworkEntry>,
    #[serde(default)]
    workload: Vec<Spanned<WorkloadEntry>>,
    #[serde(default)]
    memory: Vec<Spanned<MemoryEntry>>,
    #[serde(default)]
    idle: Vec<Spanned<IdleEntry>>,
    #[serde(default)]
    snapshot: Vec<Spanned<SnapshotEntry>>,
    #[serde(default)]
    production: Vec<Spanned<ProductionEntry>>,
    #[serde(default)]
    growth: Vec<Spanned<GrowthEntry>>,
}

/// A measurement that a file asks for, or what is wrong with it.
struct MeasurementEntry<'a> {
    /// Its line in the file.
    place: usize,
    measurement: Result<Measurement, String>,
    only: &'a Only,
}

impl<'a> MeasurementEntry<'a> {
    /// One for each entry of a section.
    fn each<T>(
        entries: &'a [Spanned<T>],
        measurement: impl Fn(&T) -> Result<Measurement, String>,
        only: impl Fn(&'a T) -> &'a Only,
    ) -> impl Iterator<Item = MeasurementEntry<'a>> {
        entries.iter().map(move |entry| MeasurementEntry {
            place: entry.span().start,
            measurement: measurement(entry.get_ref()),
            only: only(entry.get_ref()),
        })
    }
}

impl File {
    fn wanted(&self) -> Vec<MeasurementEntry<'_>> {
        let networks: Vec<Network> = self.network.iter().map(NetworkEntry::network).collect();
        let mut all = Vec::new();
        for entry in &self.workload {
            let (place, only) = (entry.span().start, &entry.get_ref().servers);
            match entry.get_ref().cells(&networks) {
                Err(what) => all.push(MeasurementEntry { place, measurement: Err(what), only }),
                Ok(cells) => {
                    let runs = cells.into_iter().map(|cell| Ok(Measurement::Run(cell)));
                    all.extend(runs.map(|measurement| MeasurementEntry { place, measurement, only }));
                }
            }
        }
        all.extend(MeasurementEntry::each(
            &self.memory,
            |one| one.tree().map(Measurement::Memory),
            |one| &one.servers,
        ));
        all.extend(MeasurementEntry::each(
            &self.idle,
            |one| one.idle().map(Measurement::Idle),
            |one| &one.servers,
        ));
        all.extend(MeasurementEntry::each(
            &self.snapshot,
            |one| one.plan().map(Measurement::Snapshot),
            |one| &one.servers,
        ));
        all.extend(MeasurementEntry::each(
            &self.production,
            |one| one.plan().map(Measurement::Snapshot),
            |one| &one.servers,
        ));
        all.extend(MeasurementEntry::each(
            &self.growth,
            |one| one.growth().map(Measurement::Growth),
            |one| &one.servers,
        ));
        all
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerEntry {
    name: Spanned<String>,
    members: Option<usize>,
    command: Vec<Spanned<String>>,
    #[serde(default, deserialize_with = "duration")]
    ready_within: Option<Duration>,
    #[serde(default)]
    prepare: Vec<Spanned<String>>,
    #[serde(default)]
    use_compression: bool,
    tls_ca: Option<Spanned<String>>,
    #[serde(default)]
    files: Files,
}

/// Texts by path below a member's directory.
type Files = BTreeMap<Spanned<String>, Spanned<String>>;

/// All measurements, and of which servers those are made that are not made of all.
type Measurements = (Vec<Measurement>, BTreeMap<usize, Vec<usize>>);

const READY_WITHIN: Duration = Duration::from_secs(60);

impl Suite {
    /// Reads and checks a suite's file.
    pub fn load(file: &Path) -> Result<Suite, BenchError> {
        load(file, &|name| std::env::var(name).ok())
    }
}

fn load(file: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Suite, BenchError> {
    let text = fs::read_to_string(file).map_err(BenchError::file("read", file))?;
    let reader = Reader { file, text: &text, environment };
    let parsed: File = toml::from_str(&text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        reader.fault(place, error.message().replace('\n', ", "))
    })?;
    reader.suite(parsed)
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn suite(&self, file: File) -> Result<Suite, BenchError> {
        self.check_names(&file.network)?;
        let servers = self.servers(&file)?;
        let (measurements, only) = self.measurements(&file, &servers)?;
        Ok(Suite {
            repetitions: self.repetitions(file.repetitions.as_ref())?,
            baseline: self.baseline(file.baseline.as_ref(), &servers)?,
            workload_files: self.workload_files(&file.workload)?,
            name: file.name,
            servers,
            measurements,
            only,
        })
    }

    fn repetitions(&self, given: Option<&Spanned<usize>>) -> Result<usize, BenchError> {
        match given {
            Some(zero) if *zero.get_ref() == 0 => {
                Err(self.fault(zero.span().start, "repetitions must be at least 1"))
            }
            given => Ok(given.map_or(1, |given| *given.get_ref())),
        }
    }

    fn baseline(
        &self,
        given: Option<&Spanned<String>>,
        servers: &[ServerTemplate],
    ) -> Result<usize, BenchError> {
        let Some(given) = given else { return Ok(0) };
        let found = servers.iter().position(|server| server.name == *given.get_ref());
        found.ok_or_else(|| {
            self.fault(given.span().start, format!("no server has the name {}", given.get_ref()))
        })
    }

    fn check_names(&self, networks: &[NetworkEntry]) -> Result<(), BenchError> {
        for (place, NetworkEntry { name, .. }) in networks.iter().enumerate() {
            if networks[..place].iter().any(|other| other.name.get_ref() == name.get_ref()) {
                let what = format!("two networks have the name {}", name.get_ref());
                return Err(self.fault(name.span().start, what));
            }
        }
        Ok(())
    }

    fn servers(&self, file: &File) -> Result<Vec<ServerTemplate>, BenchError> {
        if file.server.is_empty() {
            return Err(self.fault(0, "the suite needs at least one [[server]]"));
        }
        let common = self.files(&file.files)?;
        let mut servers: Vec<ServerTemplate> = Vec::new();
        for entry in &file.server {
            let mut server = self.server(entry)?;
            server.through_relays = server.members > 1 && !file.network.is_empty();
            for (path, text) in &common {
                server.files.entry(path.clone()).or_insert_with(|| text.clone());
            }
            if servers.iter().any(|other| other.name == server.name) {
                let what = format!("two servers have the name {}", server.name);
                return Err(self.fault(entry.get_ref().name.span().start, what));
            }
            servers.push(server);
        }
        Ok(servers)
    }

    fn server(&self, entry: &Spanned<ServerEntry>) -> Result<ServerTemplate, BenchError> {
        let ServerEntry { name, members, command, ready_within, prepare, use_compression, tls_ca, files } =
            entry.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            return Err(
                self.fault(name.span().start, "a server's name is of letters, digits, '-', '_' and '.'")
            );
        }
        if command.is_empty() {
            return Err(self.fault(entry.span().start, "command must name a program"));
        }
        if *members == Some(0) {
            return Err(self.fault(entry.span().start, "members must be at least 1"));
        }
        Ok(ServerTemplate {
            name: name.get_ref().clone(),
            members: members.unwrap_or(1),
            command: command.iter().map(|word| self.template(word)).collect::<Result<_, _>>()?,
            ready_within: ready_within.unwrap_or(READY_WITHIN),
            prepare: prepare.iter().map(|word| self.template(word)).collect::<Result<_, _>>()?,
            use_compression: *use_compression,
            through_relays: false,
            tls_ca: tls_ca.as_ref().map(|path| self.template(path).map(PathBuf::from)).transpose()?,
            files: self.files(files)?,
        })
    }

    fn files(&self, files: &Files) -> Result<BTreeMap<String, String>, BenchError> {
        let mut prepared = BTreeMap::new();
        for (path, text) in files {
            let below =
                Path::new(path.get_ref()).components().all(|part| matches!(part, Component::Normal(_)));
            if !below || path.get_ref().is_empty() {
                return Err(self.fault(path.span().start, "a file must be named by a path below {dir}"));
            }
            prepared.insert(path.get_ref().clone(), self.template(text)?);
        }
        Ok(prepared)
    }

    fn template(&self, text: &Spanned<String>) -> Result<String, BenchError> {
        template::prepare(text.get_ref(), self.environment)
            .map_err(|what| self.fault(text.span().start, what))
    }

    fn measurements(&self, file: &File, servers: &[ServerTemplate]) -> Result<Measurements, BenchError> {
        let mut all = Measurements::default();
        for MeasurementEntry { place, measurement, only } in file.wanted() {
            let measurement = measurement.map_err(|what| self.fault(place, what))?;
            if all.0.contains(&measurement) {
                return Err(self.fault(place, format!("{measurement} is in the suite twice")));
            }
            if let Some(only) = only {
                all.1.insert(all.0.len(), self.numbers(only, servers)?);
            }
            let is_measured =
                |server: &usize| all.1.get(&all.0.len()).is_none_or(|only| only.contains(server));
            let has_tls =
                (0..servers.len()).filter(is_measured).any(|server| servers[server].tls_ca.is_some());
            if has_tls && !matches!(measurement, Measurement::Run(_)) {
                return Err(self.fault(place, "only a [[workload]] is measured over TLS: name other servers"));
            }
            if let Measurement::Run(Cell { network: Some(network), .. }) = &measurement {
                let mut members =
                    (0..servers.len()).filter(is_measured).map(|server| servers[server].members);
                if let Some(what) = members.find_map(|members| network.fault(members)) {
                    return Err(self.fault(place, what));
                }
            }
            all.0.push(measurement);
        }
        if all.0.is_empty() {
            return Err(self.fault(
                0,
                "the suite needs at least one [[workload]], [[memory]], [[idle]], [[snapshot]], [[production]] or [[growth]]",
            ));
        }
        Ok(all)
    }

    /// The numbers of the servers with these names.
    fn numbers(
        &self,
        only: &Spanned<Vec<String>>,
        servers: &[ServerTemplate],
    ) -> Result<Vec<usize>, BenchError> {
        let find = |name: &String| {
            let found = servers.iter().position(|server| server.name == *name);
            found.ok_or_else(|| self.fault(only.span().start, format!("no server has the name {name}")))
        };
        let mut numbers: Vec<usize> = only.get_ref().iter().map(find).collect::<Result<_, _>>()?;
        if numbers.is_empty() {
            return Err(self.fault(only.span().start, "servers must name at least one"));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Workloads that are files; they stand next to the suite.
    fn workload_files(
        &self,
        entries: &[Spanned<WorkloadEntry>],
    ) -> Result<BTreeMap<String, WorkloadFile>, BenchError> {
        let mut files = BTreeMap::new();
        for name in entries.iter().map(|entry| &entry.get_ref().name) {
            let fault = |what: String| self.fault(name.span().start, what);
            if Builtin::find(name.get_ref()).is_some() {
                continue;
            }
            if !workload::is_file(name.get_ref()) {
                return Err(fault(builtin::unknown(name.get_ref())));
            }
            let path = self.file.parent().unwrap_or(Path::new("")).join(name.get_ref());
            let bytes =
                fs::read(&path).map_err(|error| fault(format!("read {}: {error}", path.display())))?;
            files.insert(name.get_ref().clone(), WorkloadFile { path, sha1: fingerprint(&[&bytes]) });
        }
        Ok(files)
    }

    fn fault(&self, place: usize, message: impl Into<String>) -> BenchError {
        let line = 1 + self.text[..place].matches('\n').count();
        BenchError::InFile { file: self.file.to_owned(), line, message: message.into() }
    }
}

#[cfg(test)]
mod tests;
