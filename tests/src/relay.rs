//! A relay of connections, as a load balancer is: clients know its address, and it can be told to bring them elsewhere, or to take its time.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    quality: Arc<Quality>,
}

/// Quality of the way through a relay.
#[derive(Debug, Default)]
struct Quality {
    delay_us: AtomicU64,
    /// Number of portions of which one has to be sent again; none has if it is 0.
    lost_one_in: AtomicU64,
    portions: AtomicU64,
}

/// Time after which Linux sends again what nothing that came later has shown to be lost, at least.
pub const RETRANSMISSION: Duration = Duration::from_millis(200);

impl Quality {
    /// Time that the next portion is under way.
    fn delay(&self) -> Duration {
        let one_in = self.lost_one_in.load(Ordering::Relaxed);
        let is_lost = one_in > 0 && self.portions.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in);
        let delay = Duration::from_micros(self.delay_us.load(Ordering::Relaxed));
        if is_lost { delay + RETRANSMISSION } else { delay }
    }
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    /// Both ends of every connection.
    sockets: Vec<TcpStream>,
}

impl Relay {
    pub fn start(target: SocketAddr) -> Relay {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
        let address = listener.local_addr().expect("it has an address");
        let state = Arc::new(Mutex::new(State { target, sockets: Vec::new() }));
        let quality = Arc::new(Quality::default());
        let (shared, of_all) = (state.clone(), quality.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that does not answer is for the client to notice.
                let _ = connect(client, &shared, &of_all);
            }
        });
        Relay { address, state, quality }
    }

    /// From now on each byte takes this time, in both directions.
    pub fn delay_by(&self, delay: Duration) {
        self.quality.delay_us.store(delay.as_micros() as u64, Ordering::Relaxed);
    }

    /// From now on one of this number of portions is lost on the way, in both directions, and what is behind it waits until it was sent again, as with TCP.
    pub fn lose_one_in(&self, portions: u64) {
        self.quality.lost_one_in.store(portions, Ordering::Relaxed);
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all connections, and brings clients to another server from now on.
    pub fn move_to(&self, target: SocketAddr) {
        let mut state = self.state.lock().expect("nobody panics with it");
        state.target = target;
        for socket in state.sockets.drain(..) {
            // A socket that has ended needs no end.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn connect(client: TcpStream, state: &Mutex<State>, quality: &Arc<Quality>) -> io::Result<()> {
    let mut state = state.lock().expect("nobody panics with it");
    let server = TcpStream::connect(state.target)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
        state.sockets.push(socket.try_clone()?);
    }
    let ends = [(client.try_clone()?, server.try_clone()?), (server, client)];
    for (from, to) in ends {
        let (sender, receiver) = channel();
        let quality = quality.clone();
        thread::spawn(move || {
            let mut from = from;
            let mut bytes = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from.read(&mut bytes) {
                let leaves = Instant::now() + quality.delay();
                if sender.send((leaves, bytes[..length].to_vec())).is_err() {
                    break;
                }
            }
        });
        thread::spawn(move || pass_on(&receiver, to));
    }
    Ok(())
}

/// Writes what comes when it is time.
fn pass_on(receiver: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (leaves, bytes) in receiver {
        thread::sleep(leaves.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
