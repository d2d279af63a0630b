//! A client that sends what ClickHouse sends, byte by byte.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ConnectRequest, ConnectResponse, Extensions, Password, SessionId, Zxid, frame};
use paddock_server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

const CHECKSUM_BYTES: usize = 16;
const HEADER_BYTES: usize = 9;

pub(crate) struct ClickHouse {
    stream: TcpStream,
    extensions: Extensions,
    /// As the socket gave it, and what was in compressed blocks.
    received: Vec<u8>,
    incoming: Vec<u8>,
    /// The answer to the greeting.
    pub(crate) greeting: Vec<u8>,
    pub(crate) session: SessionId,
}

/// A reply's header and body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) xid: i64,
    pub(crate) zxid: i64,
    pub(crate) error: i32,
    pub(crate) body: Vec<u8>,
}

impl ClickHouse {
    pub(crate) async fn connect(server: &Server, version: i32, extensions: Extensions) -> ClickHouse {
        ClickHouse::greet(server, version, extensions, None, 30_000).await
    }

    /// Comes back to the session of another connection.
    pub(crate) async fn resume(
        server: &Server,
        version: i32,
        extensions: Extensions,
        former: &ClickHouse,
    ) -> ClickHouse {
        let response = ConnectResponse::decode(&former.greeting).expect("the greeting was answered");
        let resumed = Some((former.session, response.password));
        ClickHouse::greet(server, version, extensions, resumed, 30_000).await
    }

    pub(crate) async fn greet(
        server: &Server,
        version: i32,
        extensions: Extensions,
        resumed: Option<(SessionId, Password)>,
        timeout_ms: i32,
    ) -> ClickHouse {
        let stream = TcpStream::connect(server.address()).await.expect("connect");
        let (received, incoming) = (Vec::new(), Vec::new());
        let (session, password) = resumed.unwrap_or((SessionId::NONE, Password::ZERO));
        let mut client = ClickHouse { stream, extensions, received, incoming, greeting: Vec::new(), session };
        client.send_bytes(&greeting(version, extensions, (session, &password), timeout_ms)).await;
        while client.received.len() < 4 || client.received.len() < 4 + client.received[3] as usize {
            assert!(client.read().await, "closed before the greeting was answered");
        }
        let len = client.received[3] as usize;
        client.greeting = client.received.drain(..4 + len).skip(4).collect();
        client.session = SessionId(Reader::new(&client.greeting[8..]).i64().unwrap());
        client
    }

    /// One request in the form that was agreed; `trace` stands behind it where requests have one.
    pub(crate) fn request(
        &self,
        xid: i64,
        op: i32,
        trace: &[u8],
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            if self.extensions.wide_xids {
                out.put_i64(xid)
            } else {
                out.put_i32(xid as i32)
            }
            out.put_i32(op);
            body(out);
        });
        if self.extensions.tracing {
            bytes.extend_from_slice(trace);
        }
        bytes
    }

    /// Frames, compressed if that was agreed.
    pub(crate) async fn send(&mut self, frames: &[u8]) {
        let bytes = if self.extensions.compression { pack(frames) } else { frames.to_vec() };
        self.send_bytes(&bytes).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = timeout(PATIENCE, self.stream.write_all(bytes)).await.expect("the member takes or closes");
    }

    async fn read(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.received)).await;
        matches!(read.expect("the member answers or closes"), Ok(1..))
    }

    /// The next packet, or `None` when the member has closed.
    pub(crate) async fn receive(&mut self) -> Option<Packet> {
        loop {
            if self.extensions.compression {
                while let Some(len) = unpack(&self.received, &mut self.incoming) {
                    self.received.drain(..len);
                }
            } else {
                self.incoming.append(&mut self.received);
            }
            if let Some((body, len)) = frame::split(&self.incoming, i32::MAX).expect("no negative length") {
                let mut reader = Reader::new(body);
                let xid = if self.extensions.wide_xids {
                    reader.i64().unwrap()
                } else {
                    reader.i32().unwrap().into()
                };
                let (zxid, error) = (reader.i64().unwrap(), reader.i32().unwrap());
                let packet = Packet { xid, zxid, error, body: reader.rest().to_vec() };
                self.incoming.drain(..len);
                return Some(packet);
            }
            if !self.read().await {
                assert!(self.incoming.is_empty(), "closed within a packet");
                return None;
            }
        }
    }
}

/// First packet of ClickHouse, which would never ask for a session that it had.
pub(crate) fn greeting(
    version: i32,
    extensions: Extensions,
    (session, password): (SessionId, &Password),
    timeout_ms: i32,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    ConnectRequest {
        protocol_version: version,
        extensions,
        last_zxid_seen: Zxid(0),
        timeout_ms,
        session,
        password: Some(&password.0),
        read_only: Some(true),
    }
    .encode(&mut bytes);
    bytes
}

fn checksum(block: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = cityhash_rs::cityhash_102_128(block);
    let (low, high) = ((hash >> 64) as u64, hash as u64);
    [low.to_le_bytes(), high.to_le_bytes()].concat().try_into().unwrap()
}

pub(crate) fn block(content: &[u8], claimed: u32) -> Vec<u8> {
    let body = lz4_flex::block::compress(content);
    let mut block = vec![0x82];
    block.extend_from_slice(&((HEADER_BYTES + body.len()) as u32).to_le_bytes());
    block.extend_from_slice(&claimed.to_le_bytes());
    block.extend_from_slice(&body);
    [&checksum(&block)[..], &block].concat()
}

pub(crate) fn pack(content: &[u8]) -> Vec<u8> {
    block(content, content.len() as u32)
}

fn unpack(bytes: &[u8], content: &mut Vec<u8>) -> Option<usize> {
    let header = bytes.get(CHECKSUM_BYTES..CHECKSUM_BYTES + HEADER_BYTES)?;
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap()) as usize;
    let end = CHECKSUM_BYTES + number(1);
    let block = bytes.get(CHECKSUM_BYTES..end)?;
    assert_eq!((bytes[..CHECKSUM_BYTES].to_vec(), header[0]), (checksum(block).to_vec(), 0x82));
    content.extend(lz4_flex::block::decompress(&block[HEADER_BYTES..], number(5)).expect("LZ4"));
    Some(end)
}
