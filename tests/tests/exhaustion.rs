//! A member of which everything runs out, one after the other, while 200 clients work: descriptors, threads, memory for files, the disk of its log,
//! and the reader of its standard error. Nothing acknowledged is lost, what can be served is, and a line says what is wrong.
//!
//! `strace` lets the system refuse threads and memory; `STRACE_BIN` names it.

use std::cell::{Cell, RefCell};
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode};
use paddock_tests::server::{MemberSettings, Server, ServerKind, free_port};
use paddock_tests::unread_pipe::Pipe;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

const CLIENTS: usize = 200;
/// Files of the log are small, so that many are begun, and snapshots are taken all the time.
const SETTINGS: [(&str, &str); 4] =
    [("preAllocSize", "256"), ("snapCount", "3000"), ("audit.enable", "true"), ("maxClientCnxns", "0")];
const DISK_BYTES: usize = 256 << 20;
/// More than 200 clients and the member need, and fewer than the connections that are tried.
const DESCRIPTORS: &str = "ulimit -n 400; exec \"$0\" \"$@\" 2>$PIPE";
const STRANGERS: usize = 400;
const PATIENCE: Duration = Duration::from_secs(40);
/// Pause of a client whose write was refused.
const PAUSE: Duration = Duration::from_millis(20);
/// Writes of each client that have to be acknowledged for it to count as served.
const SERVED: usize = 10;
/// Writes of each client while nobody reads: their lines of the audit log are more than the pipe and the member's queue take.
const UNREAD: usize = 150;
const VALUE: [u8; 300] = [b'v'; 300];

/// A client that creates one znode after the other, and what it was told.
struct Worker {
    client: Client,
    number: usize,
    /// Numbers of the znodes that were acknowledged.
    acknowledged: RefCell<Vec<usize>>,
    is_over: Cell<bool>,
}

impl Worker {
    async fn work(self: Rc<Worker>) {
        for count in 0.. {
            if self.is_over.get() {
                return;
            }
            match self.client.create(&self.path(count), &VALUE, CreateMode::Persistent).await {
                Ok(_) => self.acknowledged.borrow_mut().push(count),
                // It may have been carried out.
                Err(Error::ConnectionLost) => {}
                Err(error) if error.code() == Some(ErrorCode::NotReadOnly) => sleep(PAUSE).await,
                Err(error) => panic!("client {} was told {error:?}", self.number),
            }
        }
    }

    fn path(&self, count: usize) -> String {
        format!("/{}-{count}", self.number)
    }

    fn count(&self) -> usize {
        self.acknowledged.borrow().len()
    }
}

struct Run {
    server: Server,
    pipe: Pipe,
    reader: Client,
    workers: Vec<Rc<Worker>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Run {
    async fn start(server: Server, pipe: Pipe) -> Run {
        let (mut workers, mut tasks) = (Vec::new(), Vec::new());
        for number in 0..CLIENTS {
            let client = Client::connect(&server.address().to_string(), ClientOptions::default()).await;
            let client = client.unwrap_or_else(|error| panic!("client {number}: {error:?}\n{}", pipe.text()));
            let (acknowledged, is_over) = Default::default();
            let worker = Rc::new(Worker { client, number, acknowledged, is_over });
            tasks.push(spawn_local(worker.clone().work()));
            workers.push(worker);
        }
        let reader = Client::connect(&server.address().to_string(), ClientOptions::default()).await;
        Run { server, pipe, reader: reader.expect("one more connects"), workers, tasks }
    }

    /// Waits for something that comes, and fails with the log if a client has failed or it does not come.
    async fn wait(&mut self, what: &str, mut is_there: impl FnMut(&Run) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there(self) {
            assert_eq!(self.server.ended_by_itself(), None, "{what}: the member ended\n{}", self.pipe.text());
            let failed = self.tasks.iter().any(JoinHandle::is_finished);
            assert!(!failed && Instant::now() < deadline, "{what}\n{}", self.pipe.text());
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Every client gets so many writes more acknowledged.
    async fn check_served(&mut self, what: &str, writes: usize) {
        let before: Vec<usize> = self.workers.iter().map(|worker| worker.count()).collect();
        let has_more = |(worker, before): (&Rc<Worker>, &usize)| worker.count() >= before + writes;
        self.wait(&format!("{what}: not all clients are served"), |run| {
            run.workers.iter().zip(&before).all(has_more)
        })
        .await;
    }

    async fn check_told(&mut self, line: &str) {
        self.wait(&format!("{line:?} is not logged"), |run| run.pipe.text().contains(line)).await;
    }

    /// Writes are refused, and reads are served: to a client that had no write under way, whose connection would have been closed.
    async fn check_only_reads(&self, what: &str) {
        let failed = |error: &dyn std::fmt::Debug| panic!("{what}: {error:?}\n{}", self.pipe.text());
        let write = timeout(PATIENCE, self.reader.set_data("/", b"x", None)).await;
        match write {
            Ok(Err(error)) if error.code() == Some(ErrorCode::NotReadOnly) => {}
            other => failed(&other),
        }
        for worker in &self.workers {
            let path = worker.path(worker.acknowledged.borrow()[0]);
            match timeout(PATIENCE, self.reader.get_data(&path)).await {
                Ok(Ok(_)) => {}
                other => failed(&other),
            }
        }
    }

    /// Ends the work. The paths are those of all znodes that were acknowledged.
    async fn end(self) -> (Server, Pipe, Vec<String>) {
        self.workers.iter().for_each(|worker| worker.is_over.set(true));
        for task in self.tasks {
            task.await.expect("no client fails");
        }
        let paths = self.workers.iter().flat_map(|worker| {
            worker.acknowledged.borrow().iter().map(|count| worker.path(*count)).collect::<Vec<_>>()
        });
        (self.server, self.pipe, paths.collect())
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_whatever_runs_out() {
    if let Err(reason) = paddock_tests::filesystem::Filesystem::try_mount(1 << 20) {
        println!("skipped: {reason}");
        return;
    }
    LocalSet::new().run_until(everything_runs_out()).await;
}

async fn everything_runs_out() {
    let pipe = Pipe::new();
    let server = start(&pipe);
    let mut run = Run::start(server, pipe).await;
    run.check_served("at first", SERVED).await;

    let strangers: Vec<TcpStream> =
        (0..STRANGERS).filter_map(|_| begin_session(run.server.address())).collect();
    assert!(strangers.len() < STRANGERS, "none of {STRANGERS} was refused");
    run.check_told("connection refused: the process has as many descriptors open as it may").await;
    run.check_served("no descriptors for clients", SERVED).await;
    drop(strangers);

    if let Some(refusal) = RefusedCalls::of(&run.server, "clone,clone3", "EAGAIN") {
        run.check_told("start a thread for a snapshot").await;
        run.check_served("no threads", SERVED).await;
        drop(refusal);
        run.check_served("threads again", SERVED).await;
    }
    if let Some(refusal) = RefusedCalls::of(&run.server, "open,openat", "ENOMEM") {
        run.check_told("out of file descriptors or memory: refusing writes; raise the limit").await;
        run.check_only_reads("no memory for files").await;
        drop(refusal);
        run.check_told("files can be opened again: accepting writes").await;
        run.check_served("memory again", SERVED).await;
    }

    run.server.disk().expect("it has its own").fill();
    run.check_told("disk full: refusing writes; free some space").await;
    run.check_only_reads("no disk").await;
    run.server.disk().expect("it has its own").free();
    run.check_told("disk has room again: accepting writes").await;
    run.check_served("a disk again", SERVED).await;

    run.pipe.pause();
    run.check_served("nobody reads the log", UNREAD).await;
    run.pipe.go_on();
    run.check_told("lines of the log were dropped: nobody read standard error lines=").await;
    run.check_served("the log is read again", SERVED).await;

    // The pipe takes what the member says when it starts again.
    let (mut server, _pipe, acknowledged) = run.end().await;
    server.kill();
    server.restart();
    let client =
        Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect");
    for path in &acknowledged {
        let data =
            client.get_data(path).await.unwrap_or_else(|error| panic!("{path} was acknowledged: {error:?}"));
        assert_eq!(data.bytes.as_deref(), Some(&VALUE[..]), "{path}");
    }
    println!("{} writes were acknowledged, and are there", acknowledged.len());
}

/// A member with a small disk, few descriptors, and standard error in the pipe.
fn start(pipe: &Pipe) -> Server {
    let settings = MemberSettings {
        kind: ServerKind::Paddock,
        id: 1,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())),
        namespace: None,
        disk_bytes: Some(DISK_BYTES),
        settings: &SETTINGS,
    };
    let mut server = Server::start_as(&settings);
    server.kill();
    server.set_runner(&["sh", "-c", &DESCRIPTORS.replace("$PIPE", &pipe.path().display().to_string())]);
    server.restart();
    server
}

/// Calls of the system that fail, until this is dropped.
struct RefusedCalls {
    tracer: Child,
    /// Held open: the tracer has a line for each thread that begins, and would end without a reader.
    _errors: BufReader<ChildStderr>,
}

impl RefusedCalls {
    /// `None` without strace.
    fn of(server: &Server, calls: &str, error: &str) -> Option<RefusedCalls> {
        let binary = env::var_os("STRACE_BIN").unwrap_or_else(|| "strace".into());
        let inject = format!("inject={calls}:error={error}");
        let started = Command::new(binary)
            .args(["--follow-forks", "--output=/dev/null", "-e", &format!("trace={calls}"), "-e", &inject])
            .args(["--attach", &server.pid().to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut tracer =
            started.inspect_err(|error| println!("skipped: {calls}: start strace: {error}")).ok()?;
        let mut told = String::new();
        let mut errors = BufReader::new(tracer.stderr.take().expect("it is a pipe"));
        errors.read_line(&mut told).expect("read what strace says");
        if told.contains("attached") {
            return Some(RefusedCalls { tracer, _errors: errors });
        }
        println!("skipped: {calls}: {}", told.trim());
        let _ = tracer.wait();
        None
    }
}

impl Drop for RefusedCalls {
    fn drop(&mut self) {
        // The tracer lets go of the process, which goes on.
        let asked = Command::new("kill").arg(self.tracer.id().to_string()).status();
        assert!(asked.is_ok_and(|status| status.success()), "end strace");
        let _ = self.tracer.wait();
    }
}

/// The connection of a new session; `None` if it is closed without one.
fn begin_session(address: SocketAddr) -> Option<TcpStream> {
    let mut greeting = 44_i32.to_be_bytes().to_vec();
    // No protocol version, no zxid, half a minute, no session, and a password of 16 bytes.
    greeting.extend([0; 12]);
    greeting.extend(30_000_i32.to_be_bytes());
    greeting.extend([0; 8]);
    greeting.extend(16_i32.to_be_bytes());
    greeting.extend([0; 16]);
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    connection.write_all(&greeting).ok()?;
    connection.read_exact(&mut [0; 4]).ok()?;
    Some(connection)
}
