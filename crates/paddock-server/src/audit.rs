//! The audit log of a member: lines to a file with a thread of its own, or to the log.
//!
//! A thread that has a line waits while too many are under way, so that none is dropped under load. It does not wait for a disk that
//! hangs: then lines are dropped and counted, and the log says so, until the file takes lines again. The file may be renamed at any time;
//! the next lines go to a new one of its name.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use paddock_front::{AuditEvent, AuditLog, AuditResult};
use paddock_os::process::user_name;
use paddock_os::threads::spawn;
use parking_lot::Mutex;

use crate::config::AuditTarget;
use crate::error::ServerError;
use crate::version::civil;

/// Lines that may be under way to the file.
const LINES_MAX: usize = 16 << 10;
/// Time for which a client's line waits for a file that takes nothing, before it is taken for one that hangs.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for a line of the engine, which all clients wait for.
const ENGINE_PATIENCE: Duration = Duration::from_millis(200);
/// Time for which the end of the member waits for the last lines.
const END_MAX: Duration = Duration::from_secs(5);
/// Time between two looks at whether the file still has its name.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Lines of an audit log and where they go.
#[derive(Debug)]
pub(crate) struct Audit {
    /// `None` is the log.
    file: Option<Sender<String>>,
    writer: Mutex<Option<Writer>>,
    lost: Arc<AtomicU64>,
    /// The file has taken nothing for too long: lines do not wait for it.
    hangs: AtomicBool,
    /// User that this process runs as, for what it does by itself.
    user: String,
}

/// The thread that writes the lines, and the channel that closes when it has written the last one.
#[derive(Debug)]
struct Writer {
    thread: JoinHandle<()>,
    ended: Receiver<()>,
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
                let (is_writing, ended) = bounded(0);
                let thread = spawn("audit", move || {
                    let _is_writing: Sender<()> = is_writing;
                    lines.write_all_of(&receiver);
                });
                writer = Some(Writer { thread, ended });
                file = Some(sender);
            }
        }
        Ok(Some(Arc::new(Audit {
            file,
            writer: Mutex::new(writer),
            lost,
            hangs: AtomicBool::new(false),
            user: user_name(),
        })))
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
        self.write(&event, AuditResult::Success, ENGINE_PATIENCE);
    }

    /// Waits until the lines so far are in the file, unless that hangs. To be called by the last who has any.
    pub(crate) fn end(&self) {
        let Some(Writer { thread, ended }) = self.writer.lock().take() else { return };
        if let Some(file) = &self.file {
            // An empty line is none: it is the end.
            let _ = file.send_timeout(String::new(), END_MAX);
        }
        match ended.recv_timeout(END_MAX) {
            Err(RecvTimeoutError::Timeout) => {
                tracing::error!("audit log does not take its last lines: ending without them");
            }
            _ => drop(thread.join()),
        }
    }

    fn write(&self, event: &AuditEvent, result: AuditResult, patience: Duration) {
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
        let patience = if self.hangs.load(Relaxed) { Duration::ZERO } else { patience };
        if file.send_timeout(line, patience).is_ok() {
            if self.hangs.load(Relaxed) && self.hangs.swap(false, Relaxed) {
                tracing::warn!(lost = self.lost(), "audit log takes lines again; some were lost");
            }
            return;
        }
        self.lost.fetch_add(1, Relaxed);
        if !self.hangs.swap(true, Relaxed) {
            tracing::error!("audit log takes no lines: they are lost until it does, and clients do not wait");
        }
    }
}

impl AuditLog for Audit {
    fn record(&self, event: &AuditEvent, result: AuditResult) {
        self.write(event, result, PATIENCE);
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

    /// A pipe that is not read from is a disk that hangs.
    #[test]
    fn a_file_that_hangs_costs_lines_and_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut reader = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path).unwrap();
        let audit = Audit::start(Some(&AuditTarget::File(path.clone()))).unwrap().unwrap();
        while !audit.hangs.load(Relaxed) {
            audit.server("serverStart", AuditResult::Success);
        }
        let began = Instant::now();
        while audit.lost() < 1000 {
            audit.server("serverStart", AuditResult::Success);
        }
        assert!(began.elapsed() < 100 * PATIENCE, "a thousand lines waited {:?}", began.elapsed());
        // The pipe is read from again.
        let mut buffer = vec![0; 1 << 20];
        while audit.hangs.load(Relaxed) {
            let _ = io::Read::read(&mut reader, &mut buffer);
            audit.ephemeral_deleted(0x17, "/a");
        }
        // And no more: the end comes all the same.
        let lost = audit.lost();
        while audit.lost() == lost {
            audit.server("serverStop", AuditResult::Success);
        }
        audit.end();
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
