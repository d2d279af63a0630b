//! Backups by a schedule: while this member leads, it looks at their place again and again, and adds what the place lacks.
//!
//! The place says what is due, so a member that takes the lead over, or starts again, goes on where the last one was.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use paddock_config::BackupSettings;
use paddock_os::threads::try_spawn;
use paddock_server::{BackupReached, BackupSource, BackupStanding};
use paddock_tls::with_causes;

use crate::backup::bucket_of;
use crate::backup::collect::BackupMember;
use crate::backup::failure::BackupFailure;
use crate::backup::making::{Maker, prune};
use crate::backup::place::BackupPlace;
use crate::moving::ProgressLine;

/// Name of the part that logs.
const TARGET: &str = "paddock::backup";
/// Longest time that passes before a member that has taken the lead over looks at the place.
const LEAD_INTERVAL: Duration = Duration::from_secs(5);
/// Time for which the end of the process waits for a backup that is under way. What is unfinished then counts for nothing.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// The schedule of a member that runs.
#[derive(Debug)]
pub(super) struct Backups {
    source: Option<BackupSource>,
    settings: Option<BackupSettings>,
    /// The thread that makes them: it ends when this end is dropped, and tells so at the other.
    thread: Option<(Sender<()>, Receiver<()>)>,
}

impl Backups {
    /// Starts with the settings of a member; without a source there is nothing to back up.
    pub(super) fn start(source: Option<BackupSource>, settings: Option<BackupSettings>) -> Backups {
        let mut backups = Backups { source, settings: None, thread: None };
        backups.follow(settings);
        backups
    }

    /// Goes on with these settings.
    pub(super) fn follow(&mut self, settings: Option<BackupSettings>) {
        if settings == self.settings {
            return;
        }
        self.end();
        self.settings.clone_from(&settings);
        let Some((source, settings)) = self.source.clone().zip(settings) else { return };
        tracing::info!(target: TARGET, to = settings.to, keep = settings.keep, "backups are made while this member leads");
        let (stop, stopped) = mpsc::channel();
        let (tell_end, ended) = mpsc::channel();
        let schedule = Schedule { source, settings };
        let started = try_spawn("backups", move || {
            schedule.run(&stopped);
            drop(tell_end);
        });
        match started {
            Ok(_) => self.thread = Some((stop, ended)),
            Err(error) => {
                self.settings = None;
                tracing::error!(target: TARGET, %error, "no backups are made: the system has no thread for them");
            }
        }
    }

    /// Ends the schedule. A backup that is under way is waited for, but not for long.
    pub(super) fn end(&mut self) {
        if let Some((stop, ended)) = self.thread.take() {
            drop(stop);
            let _ = ended.recv_timeout(END_PATIENCE);
        }
        if let Some(source) = &self.source {
            source.end();
        }
    }
}

/// The thread of the schedule.
struct Schedule {
    source: BackupSource,
    settings: BackupSettings,
}

impl Schedule {
    /// Looks at the place at each interval, until `stopped` has no other end.
    fn run(&self, stopped: &Receiver<()>) {
        self.source.note(|_| {});
        let mut due = Instant::now();
        loop {
            if self.source.leads() && due <= Instant::now() {
                self.look();
                due = Instant::now() + self.settings.log_interval;
            }
            let wait = due.saturating_duration_since(Instant::now());
            let wait = if wait.is_zero() { LEAD_INTERVAL } else { wait.min(LEAD_INTERVAL) };
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn look(&self) {
        let Err(failure) = self.bring_up_to_date() else { return };
        self.source.note(|standing| standing.failed += 1);
        let (to, error) = (&self.settings.to, with_causes(&failure));
        if failure.is_foreign() {
            tracing::warn!(
                target: TARGET, to, error,
                "no backup was made: the newest one there is of other data; name another place, or move the backups away"
            );
        } else {
            tracing::warn!(target: TARGET, to, error, "no backup was made; it is tried again");
        }
    }

    /// Adds the log since to the newest backup, and begins another one if that is old enough.
    fn bring_up_to_date(&self) -> Result<(), BackupFailure> {
        let begun = SystemTime::now();
        let place = self.place()?;
        let mut maker = Maker::new(BackupMember::Own(&self.source), ProgressLine::silent())?;
        let newest = place.names()?.pop();
        let is_due = newest.map_or(Ok(true), |name| self.add(&mut maker, &place, &name, begun))?;
        if is_due {
            let (name, manifest) = maker.make_in(&place, true)?;
            let zxid = manifest.end().zxid;
            tracing::info!(target: TARGET, backup = place.shown(&name), zxid = format!("0x{zxid:x}"), "made a backup");
            self.note(zxid, begun, |standing| standing.made += 1);
            prune(&place, self.settings.keep)?;
        }
        Ok(())
    }

    /// Adds the log since to the backup of this name. True if a new backup is due.
    fn add(
        &self,
        maker: &mut Maker<'_>,
        place: &BackupPlace,
        name: &str,
        begun: SystemTime,
    ) -> Result<bool, BackupFailure> {
        match maker.add(place, name) {
            Ok((manifest, is_longer)) => {
                self.note(manifest.end().zxid, begun, |standing| standing.added += u64::from(is_longer));
                Ok(self.is_old(manifest.snapshot.time_ms, begun))
            }
            // Until all znodes are in one group again there is no log that could be added.
            Err(BackupFailure::OfGroups { made_ms }) => {
                Ok(!self.source.are_znodes_spread() || self.is_old(made_ms, begun))
            }
            Err(failure) if failure.is_log_gone() || failure.is_of_backup() => {
                let (backup, error) = (place.shown(name), with_causes(&failure));
                tracing::warn!(target: TARGET, backup, error, "a new backup is made, with a gap before it: this one does not go on");
                Ok(true)
            }
            Err(failure) => Err(failure),
        }
    }

    /// True if a backup that was made at a time in milliseconds is to be followed by another one.
    fn is_old(&self, made_ms: i64, now: SystemTime) -> bool {
        let made = UNIX_EPOCH + Duration::from_millis(u64::try_from(made_ms).unwrap_or(0));
        // The clock may have been set back.
        now.duration_since(made).is_ok_and(|age| age >= self.settings.full_interval)
    }

    /// Notes that the newest backup goes to this zxid, which was all that there was at a time.
    fn note(&self, zxid: i64, time: SystemTime, count: impl FnOnce(&mut BackupStanding)) {
        let time_s = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.source.note(|standing| {
            count(standing);
            standing.end = Some(BackupReached { zxid, time_s });
        });
    }

    fn place(&self) -> Result<BackupPlace, BackupFailure> {
        let to = &self.settings.to;
        Ok(bucket_of(to)?.unwrap_or_else(|| BackupPlace::Directory(to.into())))
    }
}
