//! `paddock import follow`: a running ZooKeeper ensemble, followed as one of its observers, and taken over from.
//!
//! The working copy beside the new directory is as current as what was received, and survives the process. Only at the cut-over is a
//! data directory of Paddock made of it: when every member of the source has stopped, or nothing was written for a while.

mod copy_server;
mod cutover;
mod handover;
mod link;
mod meter;
mod source;
mod strays;
mod trigger;

use paddock_proto::{MEMBER_NUMBER_MAX, MemberNumber};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use paddock_files::{Event, LearnerError, WorkingCopy};
use paddock_member::DirectoryInMaking;
use paddock_server::{Config, QuorumTls};
use paddock_storage::{Disk, OsDisk};

use crate::access::{LoginFile, parse_login};
use crate::logs;
use crate::moving::{MovingFailure, ProgressLine};
use crate::server;
use copy_server::CopyServer;
use cutover::Cutover;
use handover::{Handover, Look};
use link::{FollowedLink, Notice, SharedWriter};
use meter::Meter;
use source::SourceEnsemble;
use trigger::Trigger;

impl From<server::Failure> for MovingFailure {
    fn from(failure: server::Failure) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

const EXAMPLES: &str = "\
Examples:
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock
      follow; may be ended and started again at any time
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock --cutover --config paddock.toml
      catch up, wait until all three have stopped, then serve with these settings
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock \
                        --serve 0.0.0.0:2181 --cutover --config paddock.toml
      serve all clients meanwhile as an observer does; at SIGUSR1, once no client is left at the three, go on without them

  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock --tls /etc/zookeeper/conf/zoo.cfg
      an ensemble with sslQuorum=true, and this machine's key store
  paddock import follow --from zk1:2888,zk2:2888,zk3:2888 --to /var/lib/paddock --sasl learner:/etc/paddock/password
      an ensemble with quorum.auth.enableSasl=true; the user is one of the section QuorumServer in its JAAS file

The ports are the first of the two in a line server.N of zoo.cfg. For ZooKeeper 3.4 name both: zk1:2888:3888.
For the cut-over stop the followers first and the leader last: without them it acknowledges nothing more.";

/// Time after which a silent source is looked for again, and a status is due.
const TICK: Duration = Duration::from_millis(100);
/// A tick while clients wait for a cut-over.
const HOLD_TICK: Duration = Duration::from_millis(1);
/// Time between two attempts to find the leader.
const RETRY: Duration = Duration::from_millis(200);
/// Time within which a leader has to be found for the first time.
const FIND_WITHIN: Duration = Duration::from_secs(60);
/// Attempts in a row that may fail before the first one has succeeded.
const ATTEMPTS_MAX: u32 = 10;
/// Attempts with a leader that does not answer to SASL, which takes as long as it waits for the rest of something else.
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(MemberNumber).range(0..=i64::from(MEMBER_NUMBER_MAX)), conflicts_with = "config")]
    member: Option<MemberNumber>,
    /// A zoo.cfg whose sslQuorum and ssl.quorum.* say how to call members with TLS; all else in it is passed over
    #[arg(long, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// Log in to members by SASL (DIGEST-MD5) as this user; the only line of FILE is its password
    #[arg(long, value_name = "USER:FILE", value_parser = parse_login)]
    sasl: Option<LoginFile>,
    /// Serve clients at this address meanwhile; what they write goes to the leader
    #[arg(long, value_name = "IP:PORT")]
    serve: Option<SocketAddr>,
    /// Serve only clients that may only read; writes are refused
    #[arg(long, requires = "serve")]
    read_only: bool,
    /// Take over when all members of the source have stopped; with --serve and --config also at SIGUSR1, when no client is left at them
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

pub(super) fn run(args: &Args) -> Result<(), MovingFailure> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    paddock_member::check_free(disk.as_ref(), &args.to)?;
    // Wrong settings have to show before clients wait for them.
    let settings = args.config.as_deref().map(|file| server::prepare(file, &args.to)).transpose()?;
    let member = settings.as_ref().map(|prepared| prepared.member()).or(args.member).unwrap_or(1);
    let cutover = args.cutover.then(|| Cutover::new(args.quiet_for));
    let tls = args.tls.as_deref().map(load_tls).transpose()?;
    let login = args.sasl.as_ref().map(LoginFile::read).transpose()?;
    let source = SourceEnsemble::new(&args.from, tls, login);
    let dir = working_copy_of(&args.to);
    let mut follower = FollowedCopy::open(source, &dir, cutover)?;
    if let Some(address) = args.serve {
        let (server, handover) = serve_with(args, address, &dir, settings.as_ref())?;
        (follower.copy_server, follower.handover) = (Some(server), handover);
        if follower.handover.is_some() {
            follower.prepared = Some(cutover::prepare(&dir, &disk)?);
        }
    }
    let goes_on = follower.run()?;
    let began = Instant::now();
    follower.line.end();
    let last = follower.copy.zxid();
    let Some((link, held)) = goes_on else {
        follower.copy_server.map_or(Ok(()), CopyServer::end)?;
        cutover::take_over(follower.copy, None, &args.to, member, args.ignore_digest, &disk)?;
        logs::say(format_args!("took over in {:?}", began.elapsed()));
        return settings.map_or(Ok(()), |prepared| Ok(prepared.serve()?));
    };
    let (copy, prepared) = (follower.copy, follower.prepared);
    cutover::take_over(copy, prepared, &args.to, member, args.ignore_digest, &disk)?;
    let server = follower.copy_server.map(CopyServer::take_over).transpose()?.flatten();
    let waited = held + began.elapsed();
    logs::say(format_args!(
        "took over in {waited:?}, with every connection; stop the members of the source now"
    ));
    strays::watch(link, last);
    let (Some(server), Some(prepared)) = (server, settings) else { return Ok(()) };
    Ok(prepared.serve_on(server)?)
}

/// The server of `--serve`, and with settings for afterwards the way to the cut-over that keeps its connections.
fn serve_with(
    args: &Args,
    address: SocketAddr,
    dir: &Path,
    settings: Option<&server::Prepared>,
) -> Result<(CopyServer, Option<Handover>), MovingFailure> {
    if args.read_only {
        return Ok((CopyServer::of_reads(address, dir), None));
    }
    if args.quiet_for.is_some() {
        return Err(MovingFailure::NeverQuiet);
    }
    let Some(prepared) = settings else {
        return Ok((CopyServer::of_all(Config { listen: address, ..Config::new(dir) }), None));
    };
    let config = prepared.begin();
    if config.listen != address {
        return Err(MovingFailure::TwoAddresses { serve: address, listen: config.listen });
    }
    let trigger = Trigger::listen().map_err(server::Failure::Wait)?;
    Ok((CopyServer::of_all(config), Some(Handover::new(trigger))))
}

fn load_tls(file: &Path) -> Result<QuorumTls, MovingFailure> {
    let settings = paddock_config::quorum_tls(file).map_err(server::Failure::from)?;
    Ok(QuorumTls::load(&settings)?)
}

fn working_copy_of(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".following");
    PathBuf::from(name)
}

struct FollowedCopy {
    source: SourceEnsemble,
    copy: WorkingCopy,
    copy_server: Option<CopyServer>,
    cutover: Option<Cutover>,
    /// Present if a member can take over from the server with its connections.
    handover: Option<Handover>,
    /// Data directory of that member, as far as it can be made before.
    prepared: Option<DirectoryInMaking>,
    /// Writing side of the connection to the leader.
    writer: Option<SharedWriter>,
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
    /// The source was rolled back: everything has to be read again.
    RolledBack,
    /// The source is quiet, as was waited for.
    Quiet,
    /// All clients are here, and have waited this long for nothing to be under way any more.
    Held(Duration),
}

impl FollowedCopy {
    fn open(
        source: SourceEnsemble,
        dir: &Path,
        cutover: Option<Cutover>,
    ) -> Result<FollowedCopy, MovingFailure> {
        let mut line = ProgressLine::start();
        let copy = WorkingCopy::open(dir, &mut |progress| line.show(progress))?;
        Ok(FollowedCopy {
            source,
            copy,
            copy_server: None,
            cutover,
            handover: None,
            prepared: None,
            writer: None,
            meter: Meter::default(),
            line,
            attempts: 0,
            snapshots: 0,
            was_synced: false,
            synced_to_disk: Instant::now(),
        })
    }

    /// Follows one leader after the other until it is time to take over. Returns the connection to a source that runs on, from whose
    /// clients a member takes over, and for how long they have waited.
    fn run(&mut self) -> Result<Option<(FollowedLink, Duration)>, MovingFailure> {
        let began = Instant::now();
        loop {
            if let Some((address, dialed)) = self.source.connect() {
                let link = FollowedLink::begin(dialed, self.copy.epoch(), self.copy.zxid());
                let ending = self.follow(&address, &link)?;
                if let Ending::Held(waited) = ending {
                    return Ok(Some((link, waited)));
                }
                drop(link);
                self.copy_server.iter_mut().for_each(CopyServer::end_link);
                if self.judge(&address, ending)? {
                    return Ok(None);
                }
            } else if !self.was_synced && began.elapsed() > FIND_WITHIN {
                return Err(MovingFailure::NoLeader { addresses: self.source.names() });
            }
            if self.cutover.as_mut().is_some_and(|cutover| cutover.has_stopped(&self.source)) {
                return Ok(None);
            }
            thread::sleep(RETRY);
        }
    }

    /// True if it is time to take over; an error if another attempt would be in vain.
    fn judge(&mut self, address: &str, ending: Ending) -> Result<bool, MovingFailure> {
        self.copy.flush()?;
        let error = match ending {
            Ending::Quiet | Ending::Held(_) => return Ok(true),
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
            return Err(MovingFailure::Leader { address: address.to_owned(), error });
        }
        self.say(format_args!("{address}: {error}; looking for the leader"));
        Ok(false)
    }

    /// Takes what one leader says until there is an end of it.
    fn follow(&mut self, address: &str, link: &FollowedLink) -> Result<Ending, MovingFailure> {
        loop {
            if let Some(waited) = self.look_at_handover() {
                return Ok(Ending::Held(waited));
            }
            let notice = match link.notices.try_recv() {
                Ok(notice) => notice,
                Err(TryRecvError::Disconnected) => panic!("the thread of a link says why it ends"),
                Err(TryRecvError::Empty) => {
                    self.rest()?;
                    match link.notices.recv_timeout(self.patience()) {
                        Ok(notice) => notice,
                        Err(RecvTimeoutError::Timeout) if self.is_quiet() => return Ok(Ending::Quiet),
                        Err(_) => continue,
                    }
                }
            };
            let ending = match notice {
                Notice::Opened(writer) => {
                    self.writer = Some(writer);
                    None
                }
                Notice::Heard(Event::Synced) => {
                    self.note_synced(address)?;
                    self.begin_link(link);
                    None
                }
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

    fn take(&mut self, address: &str, event: Event) -> Result<Option<Ending>, MovingFailure> {
        match event {
            Event::Epoch(epoch) => self.copy.set_epoch(epoch)?,
            Event::Snapshot { zxid, snapshot } => {
                self.say(format_args!(
                    "{address} sent a snapshot: {} znodes, zxid {zxid}",
                    snapshot.znodes()
                ));
                self.copy.replace(*snapshot, zxid)?;
                if let Some(copy_server) = &self.copy_server {
                    copy_server.replace(&self.copy);
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
            Event::Caught => self.copy_server.iter().for_each(CopyServer::caught_up),
            Event::Revalidated(session, lives) => {
                self.copy_server.iter().for_each(|server| server.revalidated(session, lives));
            }
            Event::Proposed(zxid) => {
                self.copy_server.iter().for_each(CopyServer::note_heard);
                self.meter.propose(zxid);
                self.note_lag();
            }
            Event::Synced | Event::Nothing => {}
        }
        let (copy, meter) = (&self.copy, &mut self.meter);
        self.line.show_text(|| format!("{address}, epoch {}: {}", copy.epoch(), meter.status(copy)));
        Ok(None)
    }

    fn apply(&mut self, entry: &[u8]) -> Result<(), MovingFailure> {
        match &self.copy_server {
            Some(copy_server) if copy_server.is_running() => {
                copy_server.show(self.copy.apply_and_tell(entry)?);
            }
            _ => self.copy.apply(entry)?,
        }
        Ok(())
    }

    fn note_synced(&mut self, address: &str) -> Result<(), MovingFailure> {
        (self.attempts, self.snapshots, self.was_synced) = (0, 0, true);
        let zxid = self.copy.zxid();
        self.say(format_args!("following {address}, epoch {}, zxid {zxid}", self.copy.epoch()));
        if let Some(copy_server) = &mut self.copy_server
            && let Some(address) = copy_server.begin(&self.copy)?
        {
            let what = if copy_server.forwards() { "clients" } else { "reads" };
            self.say(format_args!("serving {what} at {address}"));
        }
        let Some(cutover) = &mut self.cutover else { return Ok(()) };
        cutover.note_current();
        if !cutover.waits_for_quiet() && !self.source.knows_elections() {
            return Err(MovingFailure::NoElectionPorts);
        }
        if self.handover.is_some() {
            let process = std::process::id();
            self.say(format_args!(
                "ready for the cut-over: when the clients are here, kill -USR1 {process}; or stop the followers, then the leader"
            ));
        } else {
            self.say(format_args!("ready for the cut-over: stop the followers, then the leader"));
        }
        Ok(())
    }

    /// The leader has sent everything, and may be asked.
    fn begin_link(&mut self, link: &FollowedLink) {
        if let (Some(server), Some(writer)) = (&mut self.copy_server, self.writer.take()) {
            server.begin_link(writer, link.touched.clone());
        }
    }

    /// Returns how long clients have waited if a member may take over now.
    fn look_at_handover(&mut self) -> Option<Duration> {
        let (Some(handover), Some(server)) = (&mut self.handover, &self.copy_server) else { return None };
        match handover.look(server) {
            Look::Nothing => None,
            Look::Tell(line) => {
                self.say(format_args!("{line}"));
                None
            }
            Look::Ready(waited) => Some(waited),
        }
    }

    /// Time to wait for a word of the leader. Clients that wait are not to wait for that.
    fn patience(&self) -> Duration {
        if self.handover.as_ref().is_some_and(Handover::is_holding) { HOLD_TICK } else { TICK }
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
    fn rest(&mut self) -> Result<(), MovingFailure> {
        self.copy.flush()?;
        if self.synced_to_disk.elapsed() >= SYNC_INTERVAL {
            self.copy.sync()?;
            self.synced_to_disk = Instant::now();
        }
        Ok(())
    }

    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.line.clear();
        logs::say(line);
    }
}
