//! The thread of the cross-check: the checker, and the connections to the reference that it asks for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use paddock_os::threads::runtime_with_helpers;
use paddock_proto::frame;
use paddock_state::ConnId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, timeout};

use super::checker::{Checker, Effect};
use super::pair::FRAME_BYTES_MAX;
use super::{Piece, Queue};
use crate::metrics::CrossCheckStats;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

/// Something that the twin of a connection has heard.
enum Heard {
    Frame(Vec<u8>),
    End(String),
}

/// A connection to the reference that ends with this.
struct Twin {
    requests: UnboundedSender<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn run(
    reference: String,
    pieces: Receiver<Piece>,
    (queue, stats): (Arc<Queue>, Arc<CrossCheckStats>),
) {
    let runtime = runtime_with_helpers(&mut tokio::runtime::Builder::new_current_thread());
    let (ears, heard) = unbounded_channel();
    let shell = Shell { reference, checker: Checker::new(stats), twins: HashMap::new(), ears, queue };
    LocalSet::new().block_on(&runtime, shell.run(pieces, heard));
}

struct Shell {
    reference: String,
    checker: Checker,
    twins: HashMap<ConnId, Twin>,
    ears: UnboundedSender<(ConnId, Heard)>,
    queue: Arc<Queue>,
}

impl Shell {
    async fn run(mut self, mut pieces: Receiver<Piece>, mut heard: UnboundedReceiver<(ConnId, Heard)>) {
        let start = Instant::now();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.checker.set_now(start.elapsed().as_millis() as u64);
            tokio::select! {
                piece = pieces.recv() => match piece {
                    None | Some(Piece::Stop) => return,
                    Some(piece) => self.take(piece),
                },
                Some((conn, heard)) = heard.recv() => match heard {
                    Heard::Frame(frame) => self.checker.reference(conn, frame),
                    Heard::End(reason) => self.checker.reference_gone(conn, &reason),
                },
                _ = tick.tick() => {
                    self.checker.set_now(start.elapsed().as_millis() as u64);
                    self.checker.tick();
                }
            }
            for conn in self.queue.take_torn() {
                self.checker.give_up(conn, "the check cannot keep up with its client");
            }
            self.carry_out();
        }
    }

    fn take(&mut self, piece: Piece) {
        let bytes = match piece {
            Piece::Opened(conn) => {
                self.checker.opened(conn);
                0
            }
            Piece::Client(conn, bytes) => {
                self.checker.client(conn, &bytes);
                bytes.len()
            }
            Piece::Own(conn, bytes) => {
                self.checker.own(conn, &bytes);
                bytes.len()
            }
            Piece::Closed(conn) => {
                self.checker.closed(conn);
                0
            }
            Piece::Stop => 0,
        };
        self.queue.bytes.fetch_sub(bytes, Relaxed);
    }

    fn carry_out(&mut self) {
        for effect in self.checker.take_effects() {
            match effect {
                Effect::Connect(conn, greeting) => {
                    let (requests, written) = unbounded_channel();
                    let _ = requests.send(greeting);
                    let task =
                        spawn_local(converse(conn, self.reference.clone(), written, self.ears.clone()));
                    self.twins.insert(conn, Twin { requests, task });
                }
                Effect::Send(conn, bytes) => {
                    if let Some(twin) = self.twins.get(&conn) {
                        // A twin that has ended tells so itself.
                        let _ = twin.requests.send(bytes);
                    }
                }
                Effect::HangUp(conn) => drop(self.twins.remove(&conn)),
            }
        }
    }
}

async fn converse(
    conn: ConnId,
    reference: String,
    written: UnboundedReceiver<Vec<u8>>,
    ears: UnboundedSender<(ConnId, Heard)>,
) {
    let end = match timeout(CONNECT_TIMEOUT, TcpStream::connect(&reference)).await {
        Err(_) => "it does not take connections".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Ok(Ok(socket)) => talk(conn, socket, written, &ears).await,
    };
    let _ = ears.send((conn, Heard::End(end)));
}

/// Writes and reads until one side ends, and tells the reason.
async fn talk(
    conn: ConnId,
    socket: TcpStream,
    mut written: UnboundedReceiver<Vec<u8>>,
    ears: &UnboundedSender<(ConnId, Heard)>,
) -> String {
    let _ = socket.set_nodelay(true);
    let (mut reader, mut writer) = socket.into_split();
    let write = async {
        while let Some(bytes) = written.recv().await {
            if let Err(error) = writer.write_all(&bytes).await {
                return error.to_string();
            }
        }
        "the check has ended it".to_owned()
    };
    let read = async {
        let mut bytes = Vec::new();
        loop {
            match reader.read_buf(&mut bytes).await {
                Ok(0) => return "it closed the connection".to_owned(),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
            loop {
                let (frame, len) = match frame::split(&bytes, FRAME_BYTES_MAX) {
                    Ok(Some((frame, len))) => (frame.to_vec(), len),
                    Ok(None) => break,
                    Err(error) => return error.to_string(),
                };
                bytes.drain(..len);
                let _ = ears.send((conn, Heard::Frame(frame)));
            }
        }
    };
    tokio::select! {
        end = write => end,
        end = read => end,
    }
}
