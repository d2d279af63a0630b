//! A relay of connections, as a load balancer is: clients know its address, and it can be told to bring them elsewhere.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
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
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that does not answer is for the client to notice.
                let _ = connect(client, &shared);
            }
        });
        Relay { address, state }
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

fn connect(client: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut state = state.lock().expect("nobody panics with it");
    let server = TcpStream::connect(state.target)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
        state.sockets.push(socket.try_clone()?);
    }
    let ends = [(client.try_clone()?, server.try_clone()?), (server, client)];
    for (mut from, mut to) in ends {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
