//! `paddock server`: one member, from its settings to its end.

mod backups;
mod origin;
mod recover;

use std::error::Error;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use paddock_config::{
    BackupSettings, ConfigError, EtcdDraft, Loaded, Overrides, parse_address, parse_endpoints,
    parse_host_and_port, shown_with_origins,
};
use paddock_proto::MemberNumber;
use paddock_server::{Config, LateNames, Server, ServerError, raise_descriptor_limit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, spawn_blocking};

use crate::etcd_access::{EngineArg, EtcdAccessArgs};
use crate::logs::{self, Format, LogFilter};
use crate::signals::{self, EndSignals};
use backups::Backups;
use origin::{Origin, Watch};

/// Name of the part that logs, for what concerns the process as a whole.
const TARGET: &str = "paddock";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Time between two questions to a member whether it has stopped by itself.
const HEALTH_INTERVAL: Duration = Duration::from_millis(500);
/// The thread on which the member starts is kept for its end, when the system may have no other to give.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// Exit code that a shell reports for a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

const EXAMPLES: &str = "\
Examples:
  paddock server
      serve 127.0.0.1:2181, data in ./paddock-data
  paddock server --listen 0.0.0.0:2181 --data-dir /var/lib/paddock
  paddock server --config /etc/zookeeper/conf/zoo.cfg
      the settings of a ZooKeeper server
  paddock server --config paddock.toml --log-format json
  paddock server --engine etcd --etcd-endpoints http://10.0.0.1:2379,http://10.0.0.2:2379
      serve what an etcd cluster holds; nothing is kept on this disk
  paddock server --engine etcd --etcd-endpoints https://etcd-1:2379 --etcd-ca ca.pem --etcd-cert front.pem \
                 --etcd-key front-key.pem
      the same with TLS, for an etcd with --client-cert-auth
  paddock server --cross-check zookeeper-1:2181
      ask a ZooKeeper the same, and tell where its answers differ
  paddock server --check --config /etc/zookeeper/conf/zoo.cfg
      say what these settings mean here, and start nothing
  PADDOCK_LOG=info,paddock_server=debug paddock server

The command line counts before the file, the file before the variables of ZooKeeper's container image (ZOO_MY_ID,
ZOO_SERVERS and so on), these before the defaults.
SIGTERM and SIGINT end the member in good order; a second one ends it at once. SIGHUP, or a change of the file, lets it
read its settings again: limits, words, users and the like count at once, and the log names what needs a restart.";

/// Serve clients as one member.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Settings: Paddock's own if the name ends in .toml, ClickHouse Keeper's if in .xml, .yaml or .yml, otherwise ZooKeeper's zoo.cfg
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say what the settings mean, as a file of Paddock's own, and end
    #[arg(long, conflicts_with = "recover")]
    check: bool,
    /// The part that orders writes and keeps the data [default: log]
    #[arg(long, value_enum, value_name = "ENGINE", conflicts_with = "recover")]
    engine: Option<EngineArg>,
    /// Members of the etcd cluster, with commas between them
    #[arg(long, value_name = "URL,…")]
    etcd_endpoints: Option<String>,
    /// Beginning of all keys in etcd [default: /paddock]
    #[arg(long, value_name = "PREFIX")]
    etcd_prefix: Option<String>,
    #[command(flatten)]
    etcd_access: EtcdAccessArgs,
    /// The limit that etcd was given as --max-txn-ops, at least 16 [default: 128]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(16..))]
    etcd_txn_operations_max: Option<u32>,
    /// Each write is a transaction of etcd's and has a zxid of its own
    #[arg(long)]
    etcd_separate_writes: bool,
    /// A server that the requests of clients also go to; its answers are compared with this one's
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_host_and_port)]
    cross_check: Option<String>,
    /// Not offered. It is known so that whoever asks for it is told why
    #[arg(long, hide = true, value_name = "SIDE")]
    cross_check_answer: Option<String>,
    /// Directory of the data [default: ./paddock-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address where clients connect, all addresses without ADDR; port 0 takes any free port [default: 127.0.0.1:2181]
    #[arg(long, value_name = "[ADDR]:PORT", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// Address of the page for administrators and the HTTP interface; port 0 takes any free port [default: off]
    #[arg(long, value_name = "[ADDR]:PORT", value_parser = parse_address)]
    admin_listen: Option<SocketAddr>,
    /// Go on alone with the data of this member after a quorum was lost for good; asks for --yes
    #[arg(long)]
    recover: bool,
    /// Found an ensemble with most of its members, though the others, which may have data, were never heard
    #[arg(long, conflicts_with = "recover")]
    found_by_majority: bool,
    /// Confirm --recover
    #[arg(long, requires = "recover")]
    yes: bool,
    /// End as by SIGTERM when standard input ends: a pipe from another process ends with that process
    #[arg(long)]
    end_with_stdin: bool,
    /// Log level, or TARGET=LEVEL,… [default: what the file says, or $PADDOCK_LOG, or info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// Form of the log, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) log_format: Format,
}

/// Reasons for which `paddock server` ended otherwise than it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Recover(#[from] recover::RecoverRefusal),
    #[error("write to standard output")]
    Tell(#[source] io::Error),
    #[error("remove {}", path.display())]
    Remove {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("prepare to wait for signals")]
    Wait(#[source] io::Error),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("the member stopped by itself")]
    Stopped,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Config(_) | Failure::Usage(_) | Failure::Recover(_) => 2,
            Failure::Tell(_)
            | Failure::Remove { .. }
            | Failure::Wait(_)
            | Failure::Server(_)
            | Failure::Stopped => 1,
        }
    }

    /// The failure and its causes; each error of a configuration has a line.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Failure::Config(error) => error.lines().collect(),
            other => vec![other.line()],
        }
    }

    /// The failure and its causes.
    pub(crate) fn line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            line += &format!(": {error}");
            if let Some(error) = error.downcast_ref::<io::Error>() {
                line += &hint(error).unwrap_or_default();
            }
            cause = error.source();
        }
        line
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let logs = logs::start(args.log_format, args.log.as_deref()).map_err(Failure::Usage)?;
    if args.cross_check_answer.is_some() {
        return Err(Failure::Usage(NO_ANSWER_OF_REFERENCE.to_owned()));
    }
    let etcd = etcd_of(args).map_err(Failure::Usage)?;
    let overrides = Overrides {
        listen: args.listen,
        admin_listen: args.admin_listen,
        data_dir: args.data_dir.clone(),
        etcd,
        cross_check: args.cross_check.clone(),
    };
    let origin = Origin::new(args.config.clone(), overrides);
    let format = args.log_format;
    let mut loaded = origin.load()?;
    if args.check {
        return tell(&loaded).map_err(Failure::Tell);
    }
    if args.recover {
        recover::check(&loaded.config, args.yes)?;
        loaded.config.recover = true;
    }
    loaded.config.found_by_majority = args.found_by_majority;
    Prepared { loaded, origin, logs, format, ends_with_stdin: args.end_with_stdin }.serve()
}

/// Settings of a server that is to serve from `data_dir` once that is made.
pub(crate) fn prepare(file: &Path, data_dir: &Path) -> Result<Prepared, Failure> {
    let logs = logs::start(Format::Text, None).map_err(Failure::Usage)?;
    let overrides = Overrides { data_dir: Some(data_dir.to_owned()), ..Overrides::default() };
    let origin = Origin::new(Some(file.to_owned()), overrides);
    Ok(Prepared { loaded: origin.load()?, origin, logs, format: Format::Text, ends_with_stdin: false })
}

/// Settings of a server, and where they come from.
#[derive(Debug)]
pub(crate) struct Prepared {
    loaded: Loaded,
    origin: Origin,
    logs: LogFilter,
    format: Format,
    /// True if the member ends when its standard input does.
    ends_with_stdin: bool,
}

impl Prepared {
    pub(crate) fn member(&self) -> MemberNumber {
        self.loaded.config.member
    }

    /// Serves until the member ends.
    pub(crate) fn serve(self) -> Result<(), Failure> {
        self.begin();
        self.run(None)
    }

    /// The settings, for a caller that starts the server and then lets it go on by `serve_on`.
    pub(crate) fn begin(&self) -> Config {
        self.logs.follow(self.loaded.log.as_deref());
        let Config { member, ensemble, .. } = &self.loaded.config;
        let members = ensemble.as_ref().map_or(1, |ensemble| ensemble.members.len());
        tracing::info!(target: TARGET, version = VERSION, member, members, "paddock starts");
        raise_descriptor_limit();
        for remark in &self.loaded.remarks {
            remark.log();
        }
        self.loaded.secret_files.warn();
        self.loaded.config.clone()
    }

    /// Goes on with a member that runs, until it ends.
    pub(crate) fn serve_on(self, server: Server) -> Result<(), Failure> {
        self.run(Some(server))
    }

    fn run(self, running: Option<Server>) -> Result<(), Failure> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().thread_keep_alive(FOR_EVER).build();
        let runtime = runtime.map_err(Failure::Wait)?;
        let reloading = Reloading {
            watch: self.origin.watch(),
            origin: self.origin,
            logs: self.logs,
            format: self.format,
            backup: self.loaded.backup,
        };
        let ended = runtime.block_on(async {
            let mut signals = EndSignals::listen().map_err(Failure::Wait)?;
            if self.ends_with_stdin {
                signals.listen_to_stdin().map_err(Failure::Wait)?;
            }
            serve_on(self.loaded.config, reloading, signals, running).await
        });
        // A member that was still loading is left where it is: it has promised nothing yet.
        runtime.shutdown_background();
        ended
    }
}

/// Advice for an error that is about the user of the process.
fn hint(error: &io::Error) -> Option<String> {
    let user = rustix::process::geteuid();
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    is_denied.then(|| {
        format!(
            " (this process runs as user {user}: let that user have it, for a directory with chown -R {user} DIRECTORY, for a port \
             below 1024 with the capability CAP_NET_BIND_SERVICE; or start paddock as another user)"
        )
    })
}

/// Reason why a cross-check has no choice of the side that answers.
const NO_ANSWER_OF_REFERENCE: &str = "\
--cross-check-answer is not there: clients are always answered by this server. The reference is asked afterwards, in sessions of its own \
whose ids and zxids are others, and may be lost at any time; leave the option out, and see decision 0047";

/// Settings of etcd on the command line.
fn etcd_of(args: &Args) -> Result<EtcdDraft, String> {
    Ok(EtcdDraft {
        engine: args.engine.map(EngineArg::name),
        endpoints: args.etcd_endpoints.as_deref().map(parse_endpoints).transpose()?,
        prefix: args.etcd_prefix.clone(),
        txn_operations_max: args.etcd_txn_operations_max.map(|count| count as usize),
        separate_writes: args.etcd_separate_writes.then_some(true),
        ..args.etcd_access.draft()
    })
}

/// Tells what was understood of the settings: remarks as comments, then a file that says the same.
fn tell(loaded: &Loaded) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for remark in &loaded.remarks {
        writeln!(out, "# {remark}")?;
    }
    if let Some(log) = &loaded.log {
        out.write_all(loaded.origins.annotate(&format!("log = {log:?}\n")).as_bytes())?;
    }
    let Loaded { config, backup, origins, .. } = loaded;
    out.write_all(shown_with_origins(config, backup.as_ref(), origins).as_bytes())
}

/// Serves until the member ends. One that found its state to be wrong goes on with that of the leader.
async fn serve_on(
    mut config: Config,
    mut reloading: Reloading,
    mut signals: EndSignals,
    mut running: Option<Server>,
) -> Result<(), Failure> {
    signals::outlive_file_size_limit().map_err(Failure::Wait)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(Failure::Wait)?;
    loop {
        match serve(&mut config, running.take(), &mut signals, &mut hangup, &mut reloading).await {
            Err(Failure::Server(error)) if error.is_divergence() => {
                tracing::error!(target: TARGET, %error, "starting again to fetch the state from the leader");
                config.recover = false;
            }
            ended => return ended,
        }
    }
}

async fn serve(
    config: &mut Config,
    running: Option<Server>,
    signals: &mut EndSignals,
    hangup: &mut Signal,
    reloading: &mut Reloading,
) -> Result<(), Failure> {
    let (place, format) = (data_place(config), reloading.format);
    let wanted = config.clone();
    let starting = spawn_blocking(move || running.map_or_else(|| Server::start(wanted), Ok));
    let server = tokio::select! {
        started = starting => started.unwrap_or_else(panicked)?,
        name = signals.next() => {
            tracing::info!(target: TARGET, signal = name, "stopped before the data was loaded");
            return Ok(());
        }
    };
    let names = &config.late_names;
    Ready { address: server.address(), tls_address: server.tls_address(), names, place: &place }
        .announce(format);
    let mut backups = Backups::start(server.backup_source(), reloading.backup.clone());
    let failed = loop {
        let reason = tokio::select! {
            () = failure(&server) => break true,
            name = signals.next() => {
                tracing::info!(target: TARGET, signal = name, "stopping; a second signal stops at once");
                break false;
            }
            _ = hangup.recv() => "SIGHUP",
            () = reloading.watch.changed() => "the file has changed",
        };
        reloading.reload(&server, reason).await;
        backups.follow(reloading.backup.clone());
    };
    *config = server.settings();
    let stopping = spawn_blocking(move || {
        backups.end();
        server.shutdown()
    });
    tokio::select! {
        biased;
        _ = signals.next() => {
            logs::end();
            std::process::exit(INTERRUPTED)
        }
        stopped = stopping => stopped.unwrap_or_else(panicked)?,
    }
    if failed { Err(Failure::Stopped) } else { Ok(()) }
}

fn panicked<T>(_: JoinError) -> Result<T, ServerError> {
    Err(ServerError::Panicked)
}

/// Returns when the member has stopped by itself.
async fn failure(server: &Server) {
    while !server.has_failed() {
        tokio::time::sleep(HEALTH_INTERVAL).await;
    }
}

/// Place of the data, for the operator.
fn data_place(config: &Config) -> String {
    match &config.etcd {
        Some(etcd) => format!("etcd, below {}", etcd.prefix),
        None => {
            let data_dir = std::path::absolute(&config.data_dir);
            data_dir.unwrap_or_else(|_| config.data_dir.clone()).display().to_string()
        }
    }
}

/// A member at which clients can connect.
struct Ready<'a> {
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    /// Names for which addresses stand in.
    names: &'a LateNames,
    place: &'a str,
}

impl Ready<'_> {
    /// Tells the operator, and whatever started this process, that clients can connect.
    fn announce(&self, format: Format) {
        let Ready { address, tls_address, names, place } = *self;
        let tls_address = tls_address.map(|address| names.shown(address));
        let address = names.shown(address);
        tracing::info!(target: TARGET, version = VERSION, address, tls_address, data = place, "ready for clients");
        let text = match format {
            Format::Text => self.text(),
            Format::Json => self.json(),
        };
        let write = move || {
            let mut out = io::stdout().lock();
            // Clients are served whether or not anyone reads this.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        };
        // Nor does the member wait for a reader. If the system has no thread to give, the log alone tells it.
        let _ = std::thread::Builder::new().name("announce".to_owned()).spawn(write);
    }

    fn text(&self) -> String {
        let Ready { address, tls_address, names, place } = *self;
        let (listens, reached) = (listens(address, tls_address, names), names.shown(reachable(address)));
        let (host, port) = reached.rsplit_once(':').expect("an address has a port");
        let host = host.trim_matches(['[', ']']);
        let trial = match tls_address {
            Some(only) if only == address => format!("openssl s_client -connect {reached}"),
            _ => format!("echo srvr | nc {host} {port}"),
        };
        format!("paddock {VERSION} {listens}\nits data is in {place}\ntry it: {trial}\n")
    }

    /// One object on a line, as those of the log.
    fn json(&self) -> String {
        let tls_address = self.tls_address.map(|address| self.names.shown(address));
        let ready = serde_json::json!({
            "message": "ready for clients",
            "version": VERSION,
            "address": self.names.shown(self.address),
            "tls_address": tls_address,
            "data": self.place,
        });
        format!("{ready}\n")
    }
}

/// The ports for clients.
fn listens(address: SocketAddr, tls_address: Option<SocketAddr>, names: &LateNames) -> String {
    let shown = names.shown(address);
    match tls_address {
        None => format!("listens on {shown}"),
        Some(only) if only == address => format!("listens on {shown} with TLS"),
        Some(tls_address) => format!("listens on {shown}, and on {} with TLS", names.shown(tls_address)),
    }
}

/// An address that a client on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The way from the origin of the settings to a member that runs.
#[derive(Debug)]
struct Reloading {
    origin: Origin,
    watch: Watch,
    logs: LogFilter,
    /// Form of what is said when clients can connect.
    format: Format,
    /// Backups that the member makes by itself.
    backup: Option<BackupSettings>,
}

impl Reloading {
    /// Reads the settings again. What cannot be used changes nothing.
    async fn reload(&mut self, server: &Server, reason: &str) {
        tracing::info!(target: TARGET, reason, "reading the configuration again");
        self.watch.note();
        let origin = self.origin.clone();
        // Names of hosts are looked up, which may take long.
        let loaded = spawn_blocking(move || origin.load()).await;
        let unused = |reason: String| tracing::error!(target: TARGET, reason, "the new configuration cannot be used: nothing has changed");
        let loaded = match loaded {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(error)) => {
                let Some(members) = error.members_without_this() else { return unused(error.to_string()) };
                tracing::warn!(
                    target: TARGET,
                    "the new configuration does not name this member, which tells the leader so; stop it once it was removed"
                );
                return server.leave_to(members);
            }
            Err(error) => return unused(error.to_string()),
        };
        for remark in &loaded.remarks {
            remark.log();
        }
        loaded.secret_files.warn();
        match server.reload(&loaded.config) {
            Ok(_) => {
                self.logs.follow(loaded.log.as_deref());
                self.backup = loaded.backup;
            }
            Err(error) => unused(Failure::Server(error).line()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_do_something_is_told_as_which_user_and_how_to_mend_it() {
        let denied = |kind: io::ErrorKind| {
            let source = io::Error::from(kind);
            Failure::Server(ServerError::AuditLog { path: "/log".into(), source }).line()
        };
        let line = denied(io::ErrorKind::PermissionDenied);
        let user = rustix::process::geteuid();
        assert!(
            line.starts_with("open the audit log /log: permission denied (this process runs as user "),
            "{line}"
        );
        assert!(line.contains(&format!("chown -R {user} ")) && !line.contains('\n'), "{line}");
        assert!(!denied(io::ErrorKind::NotFound).contains("user"));
    }
}
