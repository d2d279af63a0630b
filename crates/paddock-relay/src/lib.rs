//! Relays of TCP connections: they take their time as a long way does, lose portions as a bad one does, and bring callers to another server as a load
//! balancer does.
//!
//! A relay between two processes needs no root, and no emulation of networks in the kernel (`tc netem`), to which it comes close: what is delayed or lost is
//! what the callers say to each other, and not the kernel's acknowledgements.

mod link_quality;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use link_quality::Direction;
pub use link_quality::{LinkQuality, RETRANSMISSION};

/// Pause after a caller that could not be taken.
const PAUSE: Duration = Duration::from_millis(10);

/// A port of this machine, whose callers are connected to another address. Its end cuts all connections.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// From callers to the target, and back.
    directions: [Arc<Direction>; 2],
}

#[derive(Debug)]
struct State {
    /// None at the relay's end.
    target: Option<SocketAddr>,
    /// Both ends of every connection.
    sockets: Vec<TcpStream>,
}

impl Relay {
    /// A relay to `target` on loopback, at a port that the system chooses, without delay.
    pub fn start(target: SocketAddr) -> io::Result<Relay> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Mutex::new(State { target: Some(target), sockets: Vec::new() });
        let shared = Arc::new(Shared { state, directions: Default::default() });
        let relay = Relay { address, shared: shared.clone() };
        thread::Builder::new().name("relay".to_owned()).spawn(move || while shared.take(&listener) {})?;
        Ok(relay)
    }

    /// The address at which callers are taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the qualities of all that comes from now on: `there` from callers to the target, `back` the other way.
    pub fn set_quality(&self, there: LinkQuality, back: LinkQuality) {
        for (direction, quality) in self.shared.directions.iter().zip([there, back]) {
            direction.set(quality);
        }
    }

    /// Cuts all connections, and brings callers to another server from now on.
    pub fn move_to(&self, target: SocketAddr) {
        self.shared.lock().cut(Some(target));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.lock().cut(None);
        // Wakes the thread that listens, which finds no target.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn cut(&mut self, target: Option<SocketAddr>) {
        self.target = target;
        for socket in self.sockets.drain(..) {
            // A socket that has ended needs no end.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Waits for a caller, and connects it. False at the relay's end.
    fn take(&self, listener: &TcpListener) -> bool {
        let caller = listener.accept();
        if caller.is_err() {
            // There may be descriptors again soon.
            thread::sleep(PAUSE);
        }
        let mut state = self.lock();
        let Some(target) = state.target else { return false };
        if let Ok((caller, _)) = caller {
            // The caller is cut off when its socket is dropped.
            let _ = self.connect(caller, target, &mut state);
        }
        true
    }

    fn connect(&self, caller: TcpStream, target: SocketAddr, state: &mut State) -> io::Result<()> {
        let server = TcpStream::connect(target)?;
        for socket in [&caller, &server] {
            socket.set_nodelay(true)?;
            state.sockets.push(socket.try_clone()?);
        }
        let ends = [(caller.try_clone()?, server.try_clone()?), (server, caller)];
        for ((from, to), direction) in ends.into_iter().zip(&self.directions) {
            let (sender, receiver) = channel();
            let direction = direction.clone();
            thread::Builder::new().spawn(move || gather(from, &direction, &sender))?;
            thread::Builder::new().spawn(move || pass_on(&receiver, to))?;
        }
        Ok(())
    }
}

/// Bytes that were read, with the time at which they are through.
type Portion = (Instant, Vec<u8>);

fn gather(mut from: TcpStream, direction: &Direction, portions: &Sender<Portion>) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let leaves = Instant::now() + direction.delay();
        if portions.send((leaves, bytes[..length].to_vec())).is_err() {
            break;
        }
    }
}

/// Writes what comes when it is time; what is behind a portion that is late waits, as with TCP.
fn pass_on(portions: &Receiver<Portion>, mut to: TcpStream) {
    for (leaves, bytes) in portions {
        let early = leaves.saturating_duration_since(Instant::now());
        if early > Duration::ZERO {
            thread::sleep(early);
        }
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests;
