//! Helpers of the tests of a member in their own process.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod clickhouse;
pub(crate) mod collector;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ConnectRequest, Extensions, OpCode, SessionId, Zxid, frame};
use paddock_server::{Config, MemberSettings, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Nothing here takes longer unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Any free port, and files of the log that are quickly made.
pub(crate) fn config(data_dir: &Path) -> Config {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let member_settings = MemberSettings { segment_bytes: 1 << 20, ..MemberSettings::default() };
    Config { listen, member_settings, ..Config::new(data_dir) }
}

pub(crate) async fn connect(server: &Server) -> Client {
    connect_with(server, ClientOptions::default()).await
}

pub(crate) async fn connect_with(server: &Server, options: ClientOptions) -> Client {
    let connected = timeout(PATIENCE, Client::connect(&server.address().to_string(), options)).await;
    connected.expect("a member answers soon").expect("connect")
}

/// Shuts down while clients of this thread go on.
pub(crate) async fn shutdown(server: Server) {
    let ended = timeout(2 * PATIENCE, spawn_blocking(|| server.shutdown())).await;
    ended.expect("it ends soon").expect("it does not panic").expect("it ends in good order");
}

/// The connect request of a client that wants a new session.
pub(crate) fn greeting() -> Vec<u8> {
    let mut greeting = Vec::new();
    let request = ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(0),
        timeout_ms: 30_000,
        session: SessionId::NONE,
        password: Some(&[0; 16]),
        read_only: Some(false),
    };
    request.encode(&mut greeting);
    greeting
}

/// A connection of a client that is to read nothing: its kernel keeps little of what it is sent, whatever its settings are.
pub(crate) async fn connect_deaf(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    // Before it is connected: its window follows from it.
    socket.set_recv_buffer_size(32 << 10).expect("a small buffer");
    socket.connect(address).await.expect("connect")
}

/// A client without manners: it sends any bytes.
pub(crate) struct Stranger {
    stream: TcpStream,
    incoming: Vec<u8>,
}

impl Stranger {
    pub(crate) async fn connect(server: &Server) -> Stranger {
        let stream = TcpStream::connect(server.address()).await.expect("connect");
        Stranger { stream, incoming: Vec::new() }
    }

    /// One with a session.
    pub(crate) async fn with_session(server: &Server) -> Stranger {
        Stranger::connect(server).await.greet().await
    }

    /// One with a session that is to read nothing more.
    pub(crate) async fn deaf(server: &Server) -> Stranger {
        let stream = connect_deaf(server.address()).await;
        Stranger { stream, incoming: Vec::new() }.greet().await
    }

    async fn greet(mut self) -> Stranger {
        self.send(&greeting()).await;
        self.receive().await.expect("the greeting is answered");
        self
    }

    /// Sends as much as the member takes; whether it has closed is for `receive` to find out.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = timeout(PATIENCE, self.stream.write_all(bytes)).await.expect("the member takes or closes");
    }

    /// Returns when there is something to read, and reads nothing.
    pub(crate) async fn answered(&self) {
        timeout(PATIENCE, self.stream.readable()).await.expect("the member answers").expect("connected");
    }

    /// The next frame, or `None` when the member has closed.
    pub(crate) async fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((body, len)) = frame::split(&self.incoming, i32::MAX).expect("no negative length") {
                let body = body.to_vec();
                self.incoming.drain(..len);
                return Some(body);
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.incoming)).await;
            match read.expect("the member answers or closes") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The xid and the error code of the next reply, or `None` when the member has closed.
    pub(crate) async fn reply(&mut self) -> Option<(i32, i32)> {
        let body = self.receive().await?;
        let mut reader = Reader::new(&body);
        let header = (reader.i32(), reader.i64(), reader.i32());
        let (Ok(xid), Ok(_), Ok(error)) = header else { panic!("a reply without a header: {body:?}") };
        Some((xid, error))
    }
}

/// The answer to a four-letter word.
pub(crate) fn word(address: SocketAddr, word: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("connect");
    stream.set_read_timeout(Some(6 * PATIENCE)).expect("it is connected");
    stream.write_all(word.as_bytes()).expect("the member takes a word");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the member answers a word");
    answer
}

/// A request as it goes over the wire.
pub(crate) fn request(xid: i32, op: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i32(xid);
        out.put_i32(op);
        body(out);
    });
    bytes
}

pub(crate) fn get_data(xid: i32, path: &str) -> Vec<u8> {
    request(xid, OpCode::GetData.code(), |out| {
        out.put_string(path);
        out.put_bool(false);
    })
}

pub(crate) fn set_data(xid: i32, path: &str, data: &[u8]) -> Vec<u8> {
    request(xid, OpCode::SetData.code(), |out| {
        out.put_string(path);
        out.put_buffer(Some(data));
        out.put_i32(-1);
    })
}

/// A new client and one that was there before both do their work.
pub(crate) async fn check_served(server: &Server, client: &Client, what: &str) {
    let work = async {
        let newcomer = connect(server).await;
        let path =
            newcomer.create("/work-", b"done", CreateMode::PersistentSequential).await.expect("create");
        let data = client.get_data(&path).await.expect("read");
        assert_eq!(data.bytes.as_deref(), Some(&b"done"[..]));
        client.delete(&path, None).await.expect("delete");
        newcomer.close().await.expect("close");
    };
    timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}: others are not served"));
}
