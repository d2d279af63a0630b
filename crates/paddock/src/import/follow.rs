//! `paddock import follow`: a running ZooKeeper ensemble, followed as one of its observers, and taken over from.
//!
//! The working copy beside the new directory is as current as what was received, and survives the process. Only at the cut-over is a
//! data directory of Paddock made of it: when every member of the source has stopped, or nobody has written for a while.

mod cutover;
mod link;
mod meter;
mod read_server;
mod source;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use paddock_files::{Event, LearnerError, WorkingCopy};
use paddock_server::QuorumTls;
use paddock_storage::{Disk, OsDisk};

use crate::access::{LoginFile, parse_login};
use crate::config;
use crate::moving::{Failure, ProgressLine};
use crate::server;
use cutover::Cutover;
use link::{Link, Notice};
use meter::Meter;
use read_server::ReadServer;
use source::SourceEnsemble;

const EXAMPLES: &str = "\
Examples:
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock
      follow; may be ended and started again at any time
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock --cutover --config paddock.toml
      catch up, wait until all three have stopped, then serve with these settings

  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock --tls /etc/zookeeper/conf/zoo.cfg
      an ensemble with sslQuorum=true, and this machine's key store
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock --sasl learner:/etc/paddock/password
      an ensemble with quorum.auth.enableSasl=true; the user is one of the section QuorumServer in its JAAS file

The ports are the first of the two in a line server.N of zoo.cfg. For ZooKeeper 3.4 name both: zk1:2888:3888.
For the cut-over stop the followers first and the leader last: without them it acknowledges nothing more.";

/// Time after which a silent source is looked for again, and a status is due.
const TICK: Duration = Duration::from_millis(100);
/// Time between two attempts to find the leader.
const RETRY: Duration = Duration::from_millis(200);
/// Time within which a leader has to be found for the first time.
const FIND_WITHIN: Duration = Duration::from_secs(60);
/// Attempts in a row that may fail before the first one has succeeded.
const ATTEMPTS_MAX: u32 = 10;
/// The same for a leader that does not answer to SASL, which takes as long as it waits for the rest of something else.
const UNANSWERED_MAX: u32 = 2;
/// Snapshots in a row that may break off.
const SNAPSHOTS_MAX: u32 = 3;
/// Time that transactions may wait for the disk. A leader sends again what is lost.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Follow a running ensemble of Apache ZooKeeper, and take over from it
///
/// Joins as an observer that nobody has to configure: reads everything, votes on nothing. Znodes, Stats, ACLs, sessions and ephemerals
/// arrive as they are, and each later transaction as it is committed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Quorum ports of all members
    #[arg(long, value_name = "HOST:PORT[:ELECTION_PORT],…", value_delimiter = ',', required = true)]
    #[arg(value_parser = source::parse_address)]
    from: Vec<source::Address>,
    /// New data directory of Paddock, made at the cut-over; until then a working copy grows in DIR.following
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Number of the member that starts from the new directory [default: that of the settings, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), conflicts_with = "config")]
    member: Option<u8>,
    /// A zoo.cfg whose sslQuorum and ssl.quorum.* say how to call members with TLS; all else in it is passed over
    #[arg(long, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// Log in to members by SASL (DIGEST-MD5) as this user; the only line of FILE is its password
    #[arg(long, value_name = "USER:FILE", value_parser = parse_login)]
    sasl: Option<LoginFile>,
    /// Serve reads of the copy at this address meanwhile, to clients that may only read; writes are refused
    #[arg(long, value_name = "IP:PORT")]
    serve: Option<SocketAddr>,
    /// Take over when all members of the source have stopped
    #[arg(long)]
    cutover: bool,
    /// Take over already when nobody has written for this time: keep clients away from the source first
    #[arg(long, value_name = "TIME", requires = "cutover", value_parser = humantime::parse_duration)]
    quiet_for: Option<Duration>,
    /// Settings to serve with after the cut-over, as for `paddock server`; without them the directory is only made
    #[arg(long, value_name = "FILE", requires = "cutover")]
    config: Option<PathBuf>,
    /// Take over data whose digest is not the one that ZooKeeper wrote
    #[arg(long)]
    ignore_digest: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    paddock_member::check_free(disk.as_ref(), &args.to)?;
    // Wrong settings have to show before clients wait for them.
    let settings = args.config.as_deref().map(|file| server::prepare(file, &args.to)).transpose()?;
    let member = settings.as_ref().map(|prepared| prepared.member()).or(args.member).unwrap_or(1);
    let cutover = args.cutover.then(|| Cutover::new(args.quiet_for));
    let tls = args.tls.as_deref().map(load_tls).transpose()?;
    let login = args.sasl.as_ref().map(LoginFile::read).transpose()?;
    let source = SourceEnsemble::new(&args.from, tls, login);
    let mut follower = Follower::open(source, &working_copy_of(&args.to), cutover)?;
    follower.read_server = args.serve.map(ReadServer::new);
    follower.run()?;
    let began = Instant::now();
    follower.line.end();
    follower.read_server.map_or(Ok(()), ReadServer::end)?;
    cutover::take_over(follower.copy, &args.to, member, args.ignore_digest, &disk)?;
    eprintln!("took over in {:?}", began.elapsed());
    settings.map_or(Ok(()), |prepared| Ok(prepared.serve()?))
}

fn load_tls(file: &Path) -> Result<QuorumTls, Failure> {
    let settings = config::quorum_tls(file).map_err(server::Failure::from)?;
    Ok(QuorumTls::load(&settings)?)
}

fn working_copy_of(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".following");
    PathBuf::from(name)
}

struct Follower {
    source: SourceEnsemble,
    copy: WorkingCopy,
    dir: PathBuf,
    read_server: Option<ReadServer>,
    cutover: Option<Cutover>,
    meter: Meter,
    line: ProgressLine,
    /// Attempts since the copy was last current, and how many of them failed within a snapshot.
    attempts: u32,
    snapshots: u32,
    was_synced: bool,
    synced_to_disk: Instant,
}

/// Reason for which one leader is not followed any more.
enum Ending {
    /// It, or the connection to it, is gone.
    Lost(LearnerError),
    /// It was rolled back: everything has to be read again.
    RolledBack,
    /// The source is quiet, as was waited for.
    Quiet,
}

impl Follower {
    fn open(source: SourceEnsemble, dir: &Path, cutover: Option<Cutover>) -> Result<Follower, Failure> {
        let mut line = ProgressLine::start();
        let copy = WorkingCopy::open(dir, &mut |progress| line.show(progress))?;
        Ok(Follower {
            source,
            copy,
            dir: dir.to_owned(),
            read_server: None,
            cutover,
            meter: Meter::default(),
            line,
            attempts: 0,
            snapshots: 0,
            was_synced: false,
            synced_to_disk: Instant::now(),
        })
    }

    /// Follows one leader after the other until it is time to take over.
    fn run(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            if let Some((address, dialed)) = self.source.connect() {
                let link = Link::begin(dialed, self.copy.epoch(), self.copy.zxid());
                let ending = self.follow(&address, &link)?;
                drop(link);
                if self.judge(&address, ending)? {
                    return Ok(());
                }
            } else if !self.was_synced && began.elapsed() > FIND_WITHIN {
                return Err(Failure::NoLeader { addresses: self.source.names() });
            }
            if self.cutover.as_mut().is_some_and(|cutover| cutover.has_stopped(&self.source)) {
                return Ok(());
            }
            thread::sleep(RETRY);
        }
    }

    /// True if it is time to take over; an error if another attempt would be in vain.
    fn judge(&mut self, address: &str, ending: Ending) -> Result<bool, Failure> {
        self.copy.flush()?;
        let error = match ending {
            Ending::Quiet => return Ok(true),
            Ending::RolledBack => {
                self.say(format_args!(
                    "{address} was rolled back behind what it sent before: everything is read again"
                ));
                self.copy.forget();
                return Ok(false);
            }
            Ending::Lost(error) => error,
        };
        self.attempts += 1;
        self.snapshots += u32::from(matches!(error, LearnerError::Snapshot(_)));
        let attempts_max = if matches!(error, LearnerError::NoSasl) { UNANSWERED_MAX } else { ATTEMPTS_MAX };
        let is_vain = !self.was_synced && self.attempts >= attempts_max || self.snapshots >= SNAPSHOTS_MAX;
        if is_vain || !error.may_pass() {
            return Err(Failure::Leader { address: address.to_owned(), error });
        }
        self.say(format_args!("{address}: {error}; looking for the leader"));
        Ok(false)
    }

    /// Takes what one leader says until there is an end of it.
    fn follow(&mut self, address: &str, link: &Link) -> Result<Ending, Failure> {
        loop {
            let notice = match link.notices.try_recv() {
                Ok(notice) => notice,
                Err(TryRecvError::Disconnected) => panic!("the thread of a link says why it ends"),
                Err(TryRecvError::Empty) => {
                    self.rest()?;
                    match link.notices.recv_timeout(TICK) {
                        Ok(notice) => notice,
                        Err(RecvTimeoutError::Timeout) if self.is_quiet() => return Ok(Ending::Quiet),
                        Err(_) => continue,
                    }
                }
            };
            let ending = match notice {
                Notice::Znodes(znodes) => {
                    self.line.show_text(|| format!("{address}: snapshot, {znodes} znodes"));
                    None
                }
                Notice::Heard(event) => self.take(address, event)?,
                Notice::Ended(error) => Some(Ending::Lost(error)),
            };
            if let Some(ending) = ending {
                return Ok(ending);
            }
        }
    }

    fn take(&mut self, address: &str, event: Event) -> Result<Option<Ending>, Failure> {
        match event {
            Event::Epoch(epoch) => self.copy.set_epoch(epoch)?,
            Event::Snapshot { zxid, snapshot } => {
                self.say(format_args!(
                    "{address} sent a snapshot: {} znodes, zxid {zxid}",
                    snapshot.znodes()
                ));
                self.copy.replace(*snapshot, zxid)?;
                if let Some(read_server) = &self.read_server {
                    read_server.replace(&self.copy);
                }
            }
            Event::Difference => {
                self.say(format_args!("{address} goes on behind zxid {}", self.copy.zxid()));
                self.copy.begin()?;
            }
            Event::RolledBack(_) => return Ok(Some(Ending::RolledBack)),
            Event::Transaction(entry) => {
                self.apply(&entry)?;
                self.meter.count();
                self.note_write();
            }
            Event::Members(members) => self.source.set_members(members),
            Event::Synced => self.note_synced(address)?,
            Event::Proposed(zxid) => {
                self.meter.propose(zxid);
                self.note_lag();
            }
            Event::Nothing => {}
        }
        let (copy, meter) = (&self.copy, &mut self.meter);
        self.line.show_text(|| format!("{address}, epoch {}: {}", copy.epoch(), meter.status(copy)));
        Ok(None)
    }

    fn apply(&mut self, entry: &[u8]) -> Result<(), Failure> {
        match &self.read_server {
            Some(read_server) if read_server.is_running() => {
                read_server.show(self.copy.apply_and_tell(entry)?);
            }
            _ => self.copy.apply(entry)?,
        }
        Ok(())
    }

    fn note_synced(&mut self, address: &str) -> Result<(), Failure> {
        (self.attempts, self.snapshots, self.was_synced) = (0, 0, true);
        let zxid = self.copy.zxid();
        self.say(format_args!("following {address}, epoch {}, zxid {zxid}", self.copy.epoch()));
        if let Some(read_server) = &mut self.read_server
            && let Some(address) = read_server.begin(&self.copy, &self.dir)?
        {
            self.say(format_args!("serving reads at {address}"));
        }
        let Some(cutover) = &mut self.cutover else { return Ok(()) };
        cutover.note_current();
        if !cutover.waits_for_quiet() && !self.source.knows_elections() {
            return Err(Failure::NoElectionPorts);
        }
        self.say(format_args!("ready for the cut-over: stop the followers, then the leader"));
        Ok(())
    }

    fn note_write(&mut self) {
        if let Some(cutover) = &mut self.cutover {
            cutover.note_write();
        }
    }

    fn note_lag(&mut self) {
        let lag = self.meter.lag(self.copy.zxid());
        if let Some(cutover) = &mut self.cutover {
            cutover.note_lag(lag);
        }
    }

    fn is_quiet(&self) -> bool {
        self.cutover.as_ref().is_some_and(Cutover::is_quiet)
    }

    /// Nothing waits: what was received is handed on to the disk.
    fn rest(&mut self) -> Result<(), Failure> {
        self.copy.flush()?;
        if self.synced_to_disk.elapsed() >= SYNC_INTERVAL {
            self.copy.sync()?;
            self.synced_to_disk = Instant::now();
        }
        Ok(())
    }

    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.line.clear();
        eprintln!("{line}");
    }
}
