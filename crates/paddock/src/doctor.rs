//! `paddock doctor`: what a good operator would look at, in a running ensemble and on this machine, and what to do about each.
//!
//! Facts are gathered (`server.rs`, `tree.rs`, `machine.rs`), then judged by `checks/`, then printed. Nothing is written anywhere.
//!
//! Exit codes: 0 when nothing is worse than a note, 1 for a warning, 2 for an error, or when it could not begin.

mod ask;
mod checks;
mod facts;
mod finding;
mod machine;
mod parse;
mod report;
mod server;
mod tree;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use paddock_bench::Access;
use paddock_client::{Client, ClientOptions};
use paddock_config::{ConfigError, Environment, Overrides};
use paddock_proto::EnsembleMember;
use paddock_tree::parse_members;
use tokio::task::JoinSet;

use crate::access::{AccessArgs, AccessError};
use crate::http_client::HttpAddress;
use facts::{DoctorFacts, MachineFacts, ServerFacts};
use finding::Level;

const EXAMPLES: &str = "\
Examples:
  paddock doctor zk1:2181,zk2:2181,zk3:2181   every check that needs no more than the servers
  paddock doctor zk1:2181                     the other members are found by /zookeeper/config, if it has their addresses
  paddock doctor --local --config zoo.cfg     this machine: disk, limits, swap, clock, certificates
  paddock doctor zk1:2181 --quiet             only what is not ok: for cron
  paddock doctor zk1:2181 --json
  paddock doctor a:2181,b:2181 --http http://a:8080,https://b:8443 --tls-ca ca.pem

A server tells most over its HTTP interface (admin.serverPort, admin_listen), or by the words mntr, conf and cons.
Nothing is written: neither a znode nor a file.
Exit code 0: nothing is worse than a note; 1: there is a warning; 2: there is an error, or it could not begin.";

/// Path of the list of members.
const CONFIG: &str = "/zookeeper/config";
/// Time in which servers that are behind may catch up, and the pause between two looks.
const LAG_WITHIN: Duration = Duration::from_secs(2);
const LAG_POLL: Duration = Duration::from_millis(100);

/// Check an ensemble, or this machine, and say what to do about what is found
///
/// Works with Paddock, Apache ZooKeeper and what else speaks its protocol. Without HOSTS this machine is looked at.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Servers, host:port with commas between several [default: the variable PADDOCK_HOSTS, else those of the
    /// profile, else this machine alone]
    #[arg(value_name = "HOSTS")]
    hosts: Option<String>,
    /// Look at this machine, too: disk, limits, swap, huge pages, clock
    #[arg(long)]
    local: bool,
    /// Settings of this machine's server, for its directories and certificates: zoo.cfg, paddock.toml, or ClickHouse Keeper's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory of this machine's server
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Port of the HTTP interface at every server
    #[arg(long, value_name = "PORT", default_value_t = 8080, conflicts_with = "http")]
    http_port: u16,
    /// Addresses of the HTTP interfaces, one for each of HOSTS in their order
    #[arg(long, value_name = "URL,…", value_delimiter = ',', value_parser = HttpAddress::parse)]
    http: Vec<HttpAddress>,
    /// Time for the walk over the tree; 0s leaves it out
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    tree_within: Duration,
    /// Print only what is not ok
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, thiserror::Error)]
enum DoctorFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("--http names {http} addresses for {hosts} servers: name one for each, in the same order")]
    HttpCount { http: usize, hosts: usize },
    #[error("{0:?} is no server: expected host:port")]
    BadHost(String),
    #[error("start the runtime: {0}")]
    Runtime(io::Error),
    #[error("write the output: {0}")]
    Output(io::Error),
}

pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    match examine(args) {
        Ok(worst) => ExitCode::from(worst.exit_code()),
        Err(failure) => {
            eprintln!("error: {}", paddock_tls::with_causes(&failure));
            ExitCode::from(2)
        }
    }
}

fn examine(args: &DoctorArgs) -> Result<Level, DoctorFailure> {
    let wants_machine = args.local || args.config.is_some() || args.data_dir.is_some();
    let named = args.hosts.as_deref();
    let (hosts, access) = match named {
        None if wants_machine => (None, args.access.read()?),
        _ => args.access.known_servers(named)?,
    };
    let machine = (wants_machine || hosts.is_none()).then(|| machine_facts(args)).transpose()?;
    let mut facts = match hosts {
        None => DoctorFacts::default(),
        Some(hosts) => {
            let servers = addresses(args, &hosts)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(DoctorFailure::Runtime)?.block_on(gather(args, &access, &hosts, servers))
        }
    };
    facts.machine = machine;
    facts.now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let findings = checks::run(&facts);
    match report::print(&findings, args.quiet, args.json) {
        // A reader that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(DoctorFailure::Output(error)),
        _ => Ok(findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)),
    }
}

/// A server's address for clients, and that of its HTTP interface.
type Addresses = (String, HttpAddress);

fn addresses(args: &DoctorArgs, hosts: &str) -> Result<Vec<Addresses>, DoctorFailure> {
    // A path behind the servers is that of a client's root, which is no part of them.
    let hosts: Vec<&str> = hosts.split('/').next().unwrap_or_default().split(',').map(str::trim).collect();
    if !args.http.is_empty() && args.http.len() != hosts.len() {
        return Err(DoctorFailure::HttpCount { http: args.http.len(), hosts: hosts.len() });
    }
    let address = |(place, host): (usize, &&str)| {
        let bad = || DoctorFailure::BadHost((*host).to_owned());
        let (name, port) = host.rsplit_once(':').ok_or_else(bad)?;
        if name.is_empty() || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        let http = args.http.get(place).cloned().unwrap_or_else(|| http_of(args, name));
        Ok(((*host).to_owned(), http))
    };
    hosts.iter().enumerate().map(address).collect()
}

fn http_of(args: &DoctorArgs, name: &str) -> HttpAddress {
    HttpAddress { is_secure: false, host: format!("{name}:{}", args.http_port) }
}

async fn gather(args: &DoctorArgs, access: &Access, hosts: &str, mut servers: Vec<Addresses>) -> DoctorFacts {
    let mut facts = DoctorFacts::default();
    let session = match open(hosts, access).await {
        Ok(client) => {
            facts.members = members(&client).await;
            servers.extend(others(args, &facts.members, &servers).await);
            Ok(client)
        }
        Err(error) => Err(paddock_tls::with_causes(&error)),
    };
    facts.servers = ask_all(&servers, access).await;
    let newest = facts.servers.iter().filter(|server| server.serves()).filter_map(|server| server.zxid).max();
    let asked = Instant::now();
    if !args.tree_within.is_zero() {
        facts.tree = Some(match &session {
            Ok(client) => {
                tree::walk(client, args.tree_within).await.map_err(|error| paddock_tls::with_causes(&error))
            }
            Err(reason) => Err(reason.clone()),
        });
    }
    if let Ok(client) = session {
        // A session that cannot be closed expires.
        let _ = client.close().await;
    }
    if let Some(newest) = newest {
        catch_up(&mut facts.servers, &servers, access, newest, asked).await;
        facts.newest = Some((newest, asked.elapsed().as_millis() as u64));
    }
    facts
}

async fn open(hosts: &str, access: &Access) -> Result<Client, paddock_client::Error> {
    let options = ClientOptions {
        tls: access.tls.clone(),
        sasl: access.login.clone(),
        connect_timeout: Duration::from_secs(5),
        ..ClientOptions::default()
    };
    let client = Client::connect(hosts, options).await?;
    for identity in &access.identities {
        client.add_auth(&identity.scheme, identity.auth.as_bytes()).await?;
    }
    Ok(client)
}

/// The members that the ensemble names; none where there is no such list.
async fn members(client: &Client) -> Vec<EnsembleMember> {
    let Ok(config) = client.get_data(CONFIG).await else { return Vec::new() };
    let text = String::from_utf8_lossy(config.bytes.as_deref().unwrap_or_default()).into_owned();
    // ZooKeeper ends the list with its version.
    let lines: String =
        text.lines().filter(|line| line.starts_with("server.")).map(|line| format!("{line}\n")).collect();
    parse_members(&lines).unwrap_or_default()
}

/// Members whose addresses for clients are known and were not named.
async fn others(args: &DoctorArgs, members: &[EnsembleMember], named: &[Addresses]) -> Vec<Addresses> {
    let mut known: BTreeSet<SocketAddr> = BTreeSet::new();
    for (address, _) in named {
        known.extend(look_up(address).await);
    }
    let mut found = Vec::new();
    for member in members {
        let Some(client) = &member.client else { continue };
        let own = client.address.as_deref().filter(|address| !matches!(*address, "0.0.0.0" | "::" | "[::]"));
        let host = own.unwrap_or(&member.host);
        let host =
            if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        let address = format!("{host}:{}", client.port);
        let at: Vec<SocketAddr> = look_up(&address).await;
        let is_named =
            named.iter().any(|(name, _)| *name == address) || at.iter().any(|at| known.contains(at));
        if !is_named {
            found.push((address, http_of(args, &host)));
        }
    }
    found
}

async fn look_up(address: &str) -> Vec<SocketAddr> {
    tokio::net::lookup_host(address).await.map(Iterator::collect).unwrap_or_default()
}

/// Asks all servers at the same time.
async fn ask_all(servers: &[Addresses], access: &Access) -> Vec<ServerFacts> {
    let mut asked = JoinSet::new();
    for (place, (address, http)) in servers.iter().cloned().enumerate() {
        let tls = access.tls.clone();
        asked.spawn(async move { (place, server::gather(&address, &http, tls.as_ref()).await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, facts)| facts).collect()
}

/// Asks servers that are behind again, until they are not or the time is over.
async fn catch_up(
    facts: &mut [ServerFacts],
    servers: &[Addresses],
    access: &Access,
    newest: i64,
    asked: Instant,
) {
    for (server, (_, http)) in facts.iter_mut().zip(servers) {
        while server.serves() && server.zxid.is_some_and(|zxid| zxid < newest) {
            if let Some(zxid) = server::zxid(server, http, access.tls.as_ref()).await {
                server.zxid = Some(zxid);
            }
            if asked.elapsed() > LAG_WITHIN || server.zxid >= Some(newest) {
                break;
            }
            tokio::time::sleep(LAG_POLL).await;
        }
    }
}

/// This machine, with the directories and certificates of its settings.
fn machine_facts(args: &DoctorArgs) -> Result<MachineFacts, DoctorFailure> {
    let mut directories: Vec<PathBuf> = args.data_dir.iter().cloned().collect();
    let mut certificates = Vec::new();
    if let Some(file) = &args.config {
        let overrides = Overrides { data_dir: args.data_dir.clone(), ..Overrides::default() };
        let config = paddock_config::load(Some(file), &overrides, &Environment::of_process())?.config;
        directories = vec![config.data_dir.clone()];
        directories.extend(config.log_dir.clone());
        let told = |end: Result<Option<u64>, paddock_tls::TlsError>| {
            end.map_err(|error| paddock_tls::with_causes(&error))
        };
        if let Some(tls) = &config.tls {
            certificates.push(("file for clients", told(tls.certificate_end())));
        }
        if let Some(tls) = config.ensemble.as_ref().and_then(|ensemble| ensemble.tls.as_ref()) {
            certificates.push(("file for members", told(tls.certificate_end())));
        }
        if let Some(tls) = config.admin_tls() {
            certificates.push(("file of the HTTP interface", told(tls.certificate_end())));
        }
    }
    Ok(MachineFacts { certificates, ..machine::gather(&directories) })
}
