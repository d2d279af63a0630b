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
    delay_us: Arc<AtomicU64>,
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
        let delay_us = Arc::new(AtomicU64::new(0));
        let (shared, delay) = (state.clone(), delay_us.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that does not answer is for the client to notice.
                let _ = connect(client, &shared, &delay);
            }
        });
        Relay { address, state, delay_us }
    }

    /// From now on each byte takes this time, in both directions.
    pub fn delay_by(&self, delay: Duration) {
        self.delay_us.store(delay.as_micros() as u64, Ordering::Relaxed);
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

fn connect(client: TcpStream, state: &Mutex<State>, delay_us: &Arc<AtomicU64>) -> io::Result<()> {
    let mut state = state.lock().expect("nobody panics with it");
    let server = TcpStream::connect(state.target)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
        state.sockets.push(socket.try_clone()?);
    }
    let ends = [(client.try_clone()?, server.try_clone()?), (server, client)];
    for (from, to) in ends {
        let (sender, receiver) = channel();
        let delay_us = delay_us.clone();
        thread::spawn(move || {
            let mut from = from;
            let mut bytes = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from.read(&mut bytes) {
                let leaves = Instant::now() + Duration::from_micros(delay_us.load(Ordering::Relaxed));
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
