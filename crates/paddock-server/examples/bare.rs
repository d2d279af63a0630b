//! The least that a server can do: it reads requests, appends their bytes to a file with a sync, and answers. It keeps nothing.
//!
//! `cargo xtask compare` puts it beside the real ones: what it takes, sockets, a thread that sleeps and the disk take. It is one
//! thread, which gathers what comes together as Paddock does, and writes as Paddock's log does. With followers, threads
//! that each have a file of their own, it waits until one of them has synced too. It understands what `paddock bench run create`
//! asks for.
//!
//! `cargo run --release -p paddock-server --example bare -- 2181 /tmp/bare`

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ConnectResponse, ErrorCode, OpCode, Password, ReplyHeader, RequestHeader};
use paddock_proto::{SessionId, Zxid, frame};
use paddock_storage::{Disk, DiskFile, OsDisk};

const USAGE: &str = "bare PORT DIRECTORY [FOLLOWERS]";
/// The file is written from front to back again and again, so no write makes it longer.
const FILE_BYTES: u64 = 64 << 20;
/// As long as Paddock waits for those that it has just answered.
const WAIT_MAX: Duration = Duration::from_micros(60);
const FRAME_BYTES_MAX: i32 = 1 << 20;

const LISTENER: Token = Token(0);
/// Clients have the tokens below it.
const FIRST_FOLLOWER: usize = usize::MAX / 2;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (port, directory, followers) = match arguments.as_slice() {
        [port, directory] => (port.parse()?, PathBuf::from(directory), 0),
        [port, directory, followers] => (port.parse()?, PathBuf::from(directory), followers.parse()?),
        _ => return Err(USAGE.into()),
    };
    std::fs::create_dir_all(&directory)?;
    BareServer::start(port, &directory, followers)?.serve()
}

/// The place where bytes become durable.
struct Log {
    file: Box<dyn DiskFile>,
    end: u64,
}

impl Log {
    fn create(path: &Path) -> io::Result<Log> {
        let file = OsDisk.create(path)?;
        file.write_at(&vec![0; FILE_BYTES as usize], 0)?;
        file.sync_data()?;
        Ok(Log { file, end: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.end + bytes.len() as u64 > FILE_BYTES {
            self.end = 0;
        }
        self.file.write_synced(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

struct Client {
    socket: TcpStream,
    has_greeted: bool,
    input: Vec<u8>,
    output: Vec<u8>,
}

struct Follower {
    socket: TcpStream,
    /// Batches that are on its disk.
    synced: usize,
}

impl Follower {
    /// A thread with a log of its own.
    fn start(directory: &Path) -> Result<Follower, Failure> {
        std::fs::create_dir_all(directory)?;
        let mut log = Log::create(&directory.join("log"))?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let socket = std::net::TcpStream::connect(listener.local_addr()?)?;
        let (mut leader, _) = listener.accept()?;
        leader.set_nodelay(true)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        thread::spawn(move || while follow(&mut leader, &mut log).is_ok() {});
        Ok(Follower { socket: TcpStream::from_std(socket), synced: 0 })
    }
}

/// Takes one batch and says that it is on disk.
fn follow(leader: &mut std::net::TcpStream, log: &mut Log) -> io::Result<()> {
    let mut len = [0; 8];
    leader.read_exact(&mut len)?;
    let mut batch = vec![0; usize::from_be_bytes(len)];
    leader.read_exact(&mut batch)?;
    log.write(&batch)?;
    leader.write_all(&[1])
}

struct BareServer {
    poll: Poll,
    listener: TcpListener,
    clients: HashMap<Token, Client>,
    followers: Vec<Follower>,
    log: Log,
    zxid: Zxid,
    /// Records that are written next.
    batch: Vec<u8>,
    asking: Vec<Token>,
    asking_since: Instant,
    /// Requests whose batch is on this disk and on no other one yet.
    written: Vec<Token>,
    batches: usize,
    answered_last: usize,
}

impl BareServer {
    fn start(port: u16, directory: &Path, followers: usize) -> Result<BareServer, Failure> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let follower = |number| Follower::start(&directory.join(format!("follower-{number}")));
        let mut followers = (0..followers).map(follower).collect::<Result<Vec<_>, _>>()?;
        for (number, follower) in followers.iter_mut().enumerate() {
            let token = Token(FIRST_FOLLOWER + number);
            poll.registry().register(&mut follower.socket, token, Interest::READABLE)?;
        }
        Ok(BareServer {
            poll,
            listener,
            clients: HashMap::new(),
            followers,
            log: Log::create(&directory.join("log"))?,
            zxid: Zxid(0),
            batch: Vec::new(),
            asking: Vec::new(),
            asking_since: Instant::now(),
            written: Vec::new(),
            batches: 0,
            answered_last: 0,
        })
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let mut events = Events::with_capacity(1024);
        loop {
            let is_gathering = !self.asking.is_empty() && self.written.is_empty();
            self.poll.poll(&mut events, is_gathering.then_some(Duration::ZERO))?;
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(number) if number >= FIRST_FOLLOWER => self.hear(number - FIRST_FOLLOWER)?,
                    client => self.read(client)?,
                }
            }
            self.answer_written()?;
            let waited = self.asking_since.elapsed() >= WAIT_MAX;
            let is_complete = events.is_empty() && (waited || self.asking.len() >= self.answered_last);
            if is_gathering && is_complete {
                self.write()?;
            }
        }
    }

    fn accept(&mut self) -> Result<(), Failure> {
        loop {
            let mut socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            socket.set_nodelay(true)?;
            let token =
                (1..).map(Token).find(|token| !self.clients.contains_key(token)).expect("there are many");
            self.poll.registry().register(&mut socket, token, Interest::READABLE)?;
            let client = Client { socket, has_greeted: false, input: Vec::new(), output: Vec::new() };
            self.clients.insert(token, client);
        }
    }

    fn read(&mut self, token: Token) -> Result<(), Failure> {
        let client = self.clients.get_mut(&token).expect("who has gone is not registered");
        // More than a client that keeps one request in flight sends.
        let mut bytes = [0; 64 << 10];
        let is_there = match client.socket.read(&mut bytes) {
            Ok(len) => {
                client.input.extend_from_slice(&bytes[..len]);
                len > 0
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        match client.take_input(&mut self.zxid, &mut self.batch) {
            Ok(writes) if is_there && writes => {
                if self.asking.is_empty() {
                    self.asking_since = Instant::now();
                }
                self.asking.push(token);
            }
            Ok(_) if is_there => client.send()?,
            // Gone, or asking in words.
            _ => {
                self.clients.remove(&token);
                self.asking.retain(|other| *other != token);
            }
        }
        Ok(())
    }

    /// Writes what was gathered, here and on the followers' disks.
    fn write(&mut self) -> Result<(), Failure> {
        for follower in &mut self.followers {
            let message = [&self.batch.len().to_be_bytes(), self.batch.as_slice()].concat();
            follower.socket.write_all(&message)?;
        }
        self.log.write(&self.batch)?;
        self.batch.clear();
        self.batches += 1;
        std::mem::swap(&mut self.written, &mut self.asking);
        self.answer_written()
    }

    fn hear(&mut self, number: usize) -> Result<(), Failure> {
        self.followers[number].synced += self.followers[number].socket.read(&mut [0; 64])?;
        Ok(())
    }

    /// Answers those whose requests are on the disks of a majority.
    fn answer_written(&mut self) -> Result<(), Failure> {
        let is_durable = self.followers.iter().any(|follower| follower.synced == self.batches);
        if self.written.is_empty() || !is_durable && !self.followers.is_empty() {
            return Ok(());
        }
        self.answered_last = self.written.len();
        for token in std::mem::take(&mut self.written) {
            // Others may have gone.
            if let Some(client) = self.clients.get_mut(&token) {
                client.send()?;
            }
        }
        Ok(())
    }
}

impl Client {
    /// Takes the requests that have come whole. Whether one of them has to be written before the answer goes.
    fn take_input(&mut self, zxid: &mut Zxid, batch: &mut Vec<u8>) -> Result<bool, Failure> {
        let mut taken = 0;
        let mut writes = false;
        while let Some((request, len)) = frame::split(&self.input[taken..], FRAME_BYTES_MAX)? {
            taken += len;
            if self.has_greeted {
                writes |= take(request, zxid, batch, &mut self.output)?;
            } else {
                self.has_greeted = true;
                greet(&mut self.output);
            }
        }
        self.input.drain(..taken);
        Ok(writes)
    }

    fn send(&mut self) -> Result<(), Failure> {
        self.socket.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }
}

fn greet(out: &mut Vec<u8>) {
    let session = SessionId(1);
    let password = Password::of_zookeeper(session);
    ConnectResponse { protocol_version: 0, timeout_ms: 30_000, session, password, read_only: Some(false) }
        .encode(out);
}

/// True if the answer has to wait for the disk.
fn take(request: &[u8], zxid: &mut Zxid, batch: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, Failure> {
    let mut reader = Reader::new(request);
    let RequestHeader { xid, op } = RequestHeader::decode(&mut reader)?;
    let op = OpCode::from_code(op);
    let is_create = op == Some(OpCode::Create);
    let is_known = is_create || matches!(op, Some(OpCode::Ping | OpCode::CloseSession));
    if is_create {
        zxid.0 += 1;
        batch.extend_from_slice(request);
    }
    let path = reader.string();
    frame::write(out, |out| {
        // There is no znode to find or to remove.
        let error = (!is_known).then_some(ErrorCode::NoNode);
        ReplyHeader { xid, zxid: *zxid, error }.encode(out);
        if let (true, Ok(path)) = (is_create, path) {
            out.put_string(path);
        }
    });
    Ok(is_create)
}
