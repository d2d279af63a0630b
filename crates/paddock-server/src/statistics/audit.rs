//! The audit log of a member: lines to a file with a thread of its own, or to the log.
//!
//! A line is never dropped for want of time: a thread that has one waits while too many are under way. The file may be renamed at any
//! time; the next lines go to a new one of its name.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded};
use paddock_front::{AuditEvent, AuditLog, AuditResult};
use parking_lot::Mutex;

use super::user::user_name;
use super::version::civil;
use crate::config::AuditTarget;
use crate::error::ServerError;
use crate::threads::spawn;

/// Lines that may be under way to the file.
const LINES_MAX: usize = 16 << 10;
/// Time between two looks at whether the file still has its name.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Lines of an audit log and where they go.
#[derive(Debug)]
pub(crate) struct Audit {
    /// `None` is the log.
    file: Option<Sender<String>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    lost: Arc<AtomicU64>,
    /// User that this process runs as, for what it does by itself.
    user: String,
}

impl Audit {
    /// Opens the audit log, if there is one.
    pub(crate) fn start(target: Option<&AuditTarget>) -> Result<Option<Arc<Audit>>, ServerError> {
        let (mut file, mut writer, lost) = (None, None, Arc::new(AtomicU64::new(0)));
        match target {
            None => return Ok(None),
            Some(AuditTarget::Log) => {}
            Some(AuditTarget::File(path)) => {
                let failed = |source| ServerError::AuditLog { path: path.clone(), source };
                let mut lines = LineFile::open(path.clone(), lost.clone()).map_err(failed)?;
                let (sender, receiver) = bounded(LINES_MAX);
                writer = Some(spawn("audit", move || lines.write_all_of(&receiver)));
                file = Some(sender);
            }
        }
        Ok(Some(Arc::new(Audit { file, writer: Mutex::new(writer), lost, user: user_name() })))
    }

    /// Number of lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The member has started, or is about to stop.
    pub(crate) fn server(&self, operation: &str, result: AuditResult) {
        let event = AuditEvent::default().with("user", &self.user).with("operation", operation);
        self.record(&event, result);
    }

    /// An ephemeral znode went with its session.
    pub(crate) fn ephemeral_deleted(&self, session: i64, path: &str) {
        let event = AuditEvent::default()
            .with("session", &format!("{session:#x}"))
            .with("user", &self.user)
            .with("operation", "ephemeralZNodeDeletionOnSessionCloseOrExpire")
            .with("znode", path);
        self.record(&event, AuditResult::Success);
    }

    /// Waits until the lines so far are in the file. To be called by the last who has any.
    pub(crate) fn end(&self) {
        let Some(writer) = self.writer.lock().take() else { return };
        if let Some(file) = &self.file {
            // An empty line is none: it is the end.
            let _ = file.send(String::new());
        }
        let _ = writer.join();
    }
}

impl AuditLog for Audit {
    fn record(&self, event: &AuditEvent, result: AuditResult) {
        let line = event.line(result);
        let is_failure = result == AuditResult::Failure;
        let Some(file) = &self.file else {
            if is_failure {
                tracing::error!(target: "audit", "{line}");
            } else {
                tracing::info!(target: "audit", "{line}");
            }
            return;
        };
        let level = if is_failure { "ERROR" } else { "INFO" };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = format!("{} {level} audit: {line}\n", time(now.as_secs(), now.subsec_millis()));
        if file.send(line).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}

/// A time in UTC as ZooKeeper's logs have it: `2006-01-02 15:04:05,678`.
fn time(seconds: u64, ms: u32) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds % 86_400 / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{ms:03}")
}

/// The file that the lines are appended to.
#[derive(Debug)]
struct LineFile {
    path: PathBuf,
    file: File,
    next_look: Instant,
    lost: Arc<AtomicU64>,
    has_failed: bool,
}

impl LineFile {
    fn open(path: PathBuf, lost: Arc<AtomicU64>) -> io::Result<LineFile> {
        let file = open(&path)?;
        Ok(LineFile { path, file, next_look: Instant::now() + LOOK_PAUSE, lost, has_failed: false })
    }

    fn write_all_of(&mut self, lines: &Receiver<String>) {
        while let Ok(first) = lines.recv() {
            let mut batch = first;
            let mut is_end = batch.is_empty();
            let mut count = 1;
            for line in lines.try_iter().take(LINES_MAX) {
                is_end |= line.is_empty();
                batch.push_str(&line);
                count += 1;
            }
            self.append(batch.as_bytes(), count);
            if is_end {
                return;
            }
        }
    }

    fn append(&mut self, batch: &[u8], lines: u64) {
        let result = self.follow_name().and_then(|()| self.file.write_all(batch));
        match result {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                self.lost.fetch_add(lines, Relaxed);
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::error!(path = %self.path.display(), %error, "audit log cannot be written: lines are lost");
                }
            }
        }
    }

    /// Opens the file anew if its name leads elsewhere by now.
    fn follow_name(&mut self) -> io::Result<()> {
        if Instant::now() < self.next_look {
            return Ok(());
        }
        self.next_look = Instant::now() + LOOK_PAUSE;
        let number = |data: std::fs::Metadata| (data.dev(), data.ino());
        let named = std::fs::metadata(&self.path).map(number).ok();
        if named != Some(number(self.file.metadata()?)) {
            self.file = open(&self.path)?;
        }
        Ok(())
    }
}

/// A file that only its owner may read: it names who did what.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_printed_as_zookeepers_logs_have_it() {
        assert_eq!(time(1_136_214_245, 678), "2006-01-02 15:04:05,678");
    }

    #[test]
    fn lines_go_to_the_file_of_the_name_also_after_it_was_renamed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = LineFile::open(path.clone(), Arc::default()).unwrap();
        file.append(b"one\n", 1);
        std::fs::rename(&path, directory.path().join("old.log")).unwrap();
        file.append(b"two\n", 1);
        file.next_look = Instant::now();
        file.append(b"three\n", 1);
        let read = |name| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!((read("old.log"), read("audit.log")), ("one\ntwo\n".into(), "three\n".into()));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_was_recorded_is_in_the_file_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let audit = Audit::start(Some(&AuditTarget::File(path.clone()))).unwrap().unwrap();
        audit.server("serverStart", AuditResult::Success);
        audit.ephemeral_deleted(0x17, "/a");
        audit.end();
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| &line[24..]).collect();
        let user = user_name();
        assert_eq!(
            lines,
            [
                format!("INFO audit: user={user}\toperation=serverStart\tresult=success"),
                format!(
                    "INFO audit: session=0x17\tuser={user}\toperation=ephemeralZNodeDeletionOnSessionCloseOrExpire\t\
                     znode=/a\tresult=success"
                ),
            ]
        );
        assert_eq!(audit.lost(), 0);
    }
}
