//! `paddock import live`: a copy of a running server over the client protocol, kept up to date.
//!
//! A walk over both trees makes the target equal to the source. Between walks the source tells which znodes change, if it has
//! persistent watches; otherwise walks alone bring changes over. In the end walks go on until one finds nothing to do.

mod changes;
pub(crate) mod failure;
mod kept;
mod pair;
mod pass;
mod writes;

use std::future::pending;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use paddock_bench::Access;
use paddock_client::Event;
use tokio::time::{sleep, sleep_until};

use crate::access::{AccessError, LoginFile, parse_login, tls_of};
use crate::diff::seen;
use crate::identity_source::{IdentitySource, parse_identity, read_identities};
use crate::moving::ProgressLine;
use crate::signals::EndSignals;
use failure::LiveFailure;
use pair::{LivePair, Places};
use pass::{Met, Repairs};

const EXAMPLES: &str = "\
Examples:
  paddock import live --from keeper1:9181,keeper2:9181 --to paddock1:2181
      copy, follow, and compare after Ctrl-C
  paddock import live --from keeper1:9181 --to paddock1:2181 --until-quiet 5s
      end when nobody has written for five seconds and both are equal
  paddock import live --from keeper1:9181 --to paddock1:2181 --once
  paddock import live --from keeper1:9281 --from-tls-ca ca.pem --to paddock1:2181
  paddock import live --from keeper1:9181 --from-auth @identity --to paddock1:2181 --to-auth @other
      with identities: the only line of each file is digest:USER:PASSWORD
  paddock import live --from zk1:2181 --from-sasl admin:/etc/paddock/password --to paddock1:2181

Stop those who write to the source before the end: a copy is equal only to a tree that rests.
Not copied: ephemerals and sessions, zxids, times and versions; TTLs and containers become plain znodes. An ensemble of Apache
ZooKeeper is better followed with `paddock import follow`, which keeps all of that.

Exit code 0: both were compared and are equal; 1: they are not, or something failed.";

/// Time between two walks over everything if the source tells of changes: it does not tell of ACLs.
const WALK_WITH_WATCH: Duration = Duration::from_secs(60);
const WALK_WITHOUT_WATCH: Duration = Duration::from_secs(1);
/// Time between two attempts after a connection was lost.
const RETRY: Duration = Duration::from_millis(500);
/// Attempts in a row that may fail before everything was copied once.
const ATTEMPTS_MAX: u32 = 10;
/// Walks at the end until one finds nothing to do.
const LAST_WALKS: u32 = 10;
/// Events that are taken together.
const EVENTS_AT_ONCE: usize = 4096;
/// Differences that are printed.
const PRINTED_MAX: u64 = 100;

/// Copy a running server over the client protocol, and keep the copy up to date
///
/// For what speaks ZooKeeper's protocol but is no ZooKeeper: ClickHouse Keeper, RaftKeeper, a front end on etcd. Source and target
/// are servers that run. Znodes come along with their data, ACLs and the counters of their sequential children.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Servers to copy from
    #[arg(long, value_name = "HOST:PORT,…")]
    from: String,
    /// Servers to copy to
    #[arg(long, value_name = "HOST:PORT,…")]
    to: String,
    /// Identity to show to the source, such as digest:USER:PASSWORD: the only line of FILE (@- is standard input), or env:NAME for what
    /// a variable of the environment holds
    #[arg(long, value_name = "@FILE", value_parser = parse_identity)]
    from_auth: Vec<IdentitySource>,
    /// Log in to the source by SASL (DIGEST-MD5) as this user; the only line of FILE is its password
    #[arg(long, value_name = "USER:FILE", value_parser = parse_login)]
    from_sasl: Option<LoginFile>,
    /// Connect to the source with TLS, and believe it if its certificate is in this file or signed by one that is (PEM)
    #[arg(long, value_name = "FILE")]
    from_tls_ca: Option<PathBuf>,
    /// Own certificate to show to the source, with its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "from_tls_ca")]
    from_tls_cert: Option<PathBuf>,
    /// Identity to show to the target, in the same forms
    #[arg(long, value_name = "@FILE", value_parser = parse_identity)]
    to_auth: Vec<IdentitySource>,
    /// Log in to the target by SASL as this user
    #[arg(long, value_name = "USER:FILE", value_parser = parse_login)]
    to_sasl: Option<LoginFile>,
    /// Connect to the target with TLS, and believe it if its certificate is in this file or signed by one that is (PEM)
    #[arg(long, value_name = "FILE")]
    to_tls_ca: Option<PathBuf>,
    /// Own certificate to show to the target, with its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "to_tls_ca")]
    to_tls_cert: Option<PathBuf>,
    /// Znode to leave out, with all below it; /zookeeper always is, and /keeper of ClickHouse Keeper
    #[arg(long, value_name = "PATH", value_parser = seen::parse_path)]
    exclude: Vec<String>,
    /// Make a target equal that holds something already: what the source has not is deleted there
    #[arg(long)]
    overwrite: bool,
    /// Copy, compare and end
    #[arg(long, conflicts_with = "until_quiet")]
    once: bool,
    /// End when nobody has written to the source for this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    until_quiet: Option<Duration>,
    /// Time between two walks over everything [default: 1s, or 60s if the source has persistent watches]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    walk_every: Option<Duration>,
}

pub(super) fn run(args: &Args) -> Result<(), LiveFailure> {
    if args.from == args.to {
        return Err(LiveFailure::SameServer(args.from.clone()));
    }
    let places = args.places()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(LiveFailure::Runtime)?;
    runtime.block_on(async {
        let mut signals = EndSignals::listen().map_err(LiveFailure::Signals)?;
        let mut copy = Copy::new(args, places);
        copy.follow_until_end(&mut signals).await?;
        tokio::select! {
            verified = copy.verify_at_last() => verified,
            _ = signals.next() => Err(LiveFailure::Interrupted),
        }
    })
}

impl Args {
    /// Reads the files of TLS and of logins.
    fn places(&self) -> Result<Places, LiveFailure> {
        let from_tls = tls_of(self.from_tls_ca.as_deref(), self.from_tls_cert.as_deref())?;
        let to_tls = tls_of(self.to_tls_ca.as_deref(), self.to_tls_cert.as_deref())?;
        let from_login = self.from_sasl.as_ref().map(LoginFile::read).transpose()?;
        let to_login = self.to_sasl.as_ref().map(LoginFile::read).transpose()?;
        let from_identities = read_identities("--from-auth", &self.from_auth).map_err(AccessError::from)?;
        let to_identities = read_identities("--to-auth", &self.to_auth).map_err(AccessError::from)?;
        Ok(Places {
            from: self.from.clone(),
            to: self.to.clone(),
            from_access: Access { tls: from_tls, login: from_login, identities: from_identities },
            to_access: Access { tls: to_tls, login: to_login, identities: to_identities },
            exclude: self.exclude.clone(),
        })
    }
}

struct Copy<'a> {
    args: &'a Args,
    places: Places,
    line: ProgressLine,
    /// All changes that were made to the target.
    repairs: Repairs,
    met: Met,
    /// True once everything was copied.
    is_whole: bool,
    /// True once the target was seen to be free, or is ours.
    is_checked: bool,
    /// Attempts since something succeeded.
    attempts: u32,
}

impl<'a> Copy<'a> {
    fn new(args: &'a Args, places: Places) -> Copy<'a> {
        Copy {
            args,
            places,
            line: ProgressLine::start(),
            repairs: Repairs::default(),
            met: Met::default(),
            is_whole: false,
            is_checked: args.overwrite,
            attempts: 0,
        }
    }

    /// Copies and follows, with new sessions whenever one is lost, until it is time to end.
    async fn follow_until_end(&mut self, signals: &mut EndSignals) -> Result<(), LiveFailure> {
        loop {
            let ended = tokio::select! {
                ended = self.follow() => ended,
                _ = signals.next() => Ok(()),
            };
            match ended {
                Ok(()) if self.is_whole => return Ok(()),
                Ok(()) => return Err(LiveFailure::Interrupted),
                Err(failure) => self.try_again(failure).await?,
            }
        }
    }

    /// Waits before the next attempt; an error if there should be none.
    async fn try_again(&mut self, failure: LiveFailure) -> Result<(), LiveFailure> {
        self.attempts += 1;
        if !failure.may_pass() || !self.is_whole && self.attempts >= ATTEMPTS_MAX {
            return Err(failure);
        }
        self.say(format_args!("{}; trying again", paddock_tls::with_causes(&failure)));
        sleep(RETRY).await;
        Ok(())
    }

    /// One pair of sessions: everything is copied, and what changes brought over, until it is time to end.
    async fn follow(&mut self) -> Result<(), LiveFailure> {
        let mut pair = self.open().await?;
        let mut written = Instant::now();
        if !self.walk(&pair).await?.is_none() {
            written = Instant::now();
        }
        self.note_whole(&pair);
        let interval = self.args.walk_every.unwrap_or(default_interval(&pair));
        let mut walk_at = Instant::now() + interval;
        let mut events = Vec::new();
        while !self.args.once {
            let quiet_at = self.args.until_quiet.map(|quiet| written + quiet);
            tokio::select! {
                // A walk brings over the ACLs, however many events wait.
                biased;
                () = sleep_until(walk_at.into()) => {
                    let repairs = self.walk(&pair).await?;
                    // Counters are raised when everything else is done.
                    if repairs != (Repairs { raised: repairs.raised, ..Repairs::default() }) {
                        written = Instant::now();
                    }
                    walk_at = Instant::now() + interval;
                }
                count = pair.events.recv_many(&mut events, EVENTS_AT_ONCE) => {
                    if count == 0 {
                        return Err(LiveFailure::Disconnected(self.places.from.clone()));
                    }
                    self.bring_over(std::mem::take(&mut events), &pair).await?;
                    written = Instant::now();
                }
                () = until(quiet_at) => break,
            }
        }
        pair.close().await;
        Ok(())
    }

    async fn open(&mut self) -> Result<LivePair, LiveFailure> {
        let pair = LivePair::connect(&self.places).await?;
        if !self.is_checked {
            pair.check_empty(&self.places.to).await?;
            self.is_checked = true;
        }
        Ok(pair)
    }

    async fn walk(&mut self, pair: &LivePair) -> Result<Repairs, LiveFailure> {
        let (repairs, met) = pass::repair(pair, &self.places, &mut self.line).await?;
        self.repairs += repairs;
        (self.met, self.attempts) = (met, 0);
        Ok(repairs)
    }

    async fn bring_over(&mut self, events: Vec<Event>, pair: &LivePair) -> Result<(), LiveFailure> {
        let began = Instant::now();
        let told = events.len();
        let paths = changes::paths_of(events, pair, &self.places.from)?;
        self.repairs += changes::apply(&paths, pair, &self.places).await?;
        let waiting = pair.events.len();
        let rate = told as f64 / began.elapsed().as_secs_f64().max(f64::EPSILON);
        let from = &self.places.from;
        self.line.show_text(|| format!("following {from}: {waiting} changes behind, {rate:.0} changes/s"));
        Ok(())
    }

    fn note_whole(&mut self, pair: &LivePair) {
        let way = if pair.has_watch { "its watches" } else { "comparing, as it has no persistent watches" };
        let (kept, from) = (self.met.kept, self.places.from.clone());
        self.is_whole = true;
        if self.args.once {
            self.say(format_args!("copied {kept} znodes; comparing them"));
        } else {
            self.say(format_args!("copied {kept} znodes; following {from} by {way}"));
        }
    }

    /// Walks until one finds nothing to do, and prints the account.
    async fn verify_at_last(&mut self) -> Result<(), LiveFailure> {
        loop {
            match self.verify().await {
                Err(failure) => self.try_again_at_last(failure).await?,
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn try_again_at_last(&mut self, failure: LiveFailure) -> Result<(), LiveFailure> {
        // The command does not wait for ever at the end: a source that is gone cannot be compared.
        if self.attempts + 1 >= ATTEMPTS_MAX {
            return Err(failure);
        }
        self.try_again(failure).await
    }

    async fn verify(&mut self) -> Result<(), LiveFailure> {
        let pair = self.open().await?;
        for _ in 0..LAST_WALKS {
            if self.walk(&pair).await?.is_none() {
                pair.close().await;
                self.line.clear();
                // The work is done, whether or not its report is read.
                let _ = self.print_account();
                return Ok(());
            }
        }
        self.line.clear();
        let differences = pass::compare(&pair, &self.places, PRINTED_MAX, &mut io::stdout().lock()).await?;
        pair.close().await;
        Err(LiveFailure::Different(differences))
    }

    fn print_account(&self) -> io::Result<()> {
        let Repairs { created, changed, deleted, raised, .. } = self.repairs;
        let Met { kept, ephemeral, passing } = self.met;
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "written   {created} created, {changed} changed, {deleted} deleted, {raised} counters raised"
        )?;
        writeln!(out, "left out  {ephemeral} ephemeral znodes")?;
        if passing > 0 {
            writeln!(out, "plain     {passing} znodes that were containers or had a TTL")?;
        }
        writeln!(out, "equal     {kept} znodes: data, ACLs and counters of sequential znodes")
    }

    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.line.clear();
        eprintln!("{line}");
    }
}

fn default_interval(pair: &LivePair) -> Duration {
    if pair.has_watch { WALK_WITH_WATCH } else { WALK_WITHOUT_WATCH }
}

/// Waits until a moment; for ever without one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => pending().await,
    }
}
