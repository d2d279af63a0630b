//! Stands between two members and harms what passes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::node::{PATIENCE, any_port};

/// Trouble for the bytes that come next.
#[derive(Debug)]
pub(super) enum Fault {
    Flip,
    Repeat,
    Lose,
    /// The connection ends instead.
    Cut,
    /// They stay where they are until the channel ends, and so do those after them.
    Hold(Receiver<()>),
}

#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    /// For what the dialling side sends, and what it gets.
    pub(super) faults: [Sender<Fault>; 2],
    connections: Receiver<()>,
}

impl Proxy {
    pub(super) fn start(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(any_port()).unwrap();
        let address = listener.local_addr().unwrap();
        let (to_target, faults_to_target) = unbounded();
        let (to_dialler, faults_to_dialler) = unbounded();
        let (connected, connections) = unbounded();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let Ok(other) = TcpStream::connect(target) else { continue };
                pump(&socket, &other, &faults_to_target);
                pump(&other, &socket, &faults_to_dialler);
                let _ = connected.send(());
            }
        });
        Proxy { address, faults: [to_target, to_dialler], connections }
    }

    /// Returns when a member has connected once more.
    pub(super) fn expect_connection(&self) {
        self.connections.recv_timeout(PATIENCE).unwrap();
    }
}

fn pump(from: &TcpStream, to: &TcpStream, faults: &Receiver<Fault>) {
    let (mut from, mut to, faults) = (from.try_clone().unwrap(), to.try_clone().unwrap(), faults.clone());
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let Some(bytes) = harm(buffer[..count].to_vec(), faults.try_recv().ok()) else { break };
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn harm(mut bytes: Vec<u8>, fault: Option<Fault>) -> Option<Vec<u8>> {
    match fault {
        None => {}
        Some(Fault::Flip) => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
        }
        Some(Fault::Repeat) => bytes = bytes.repeat(2),
        Some(Fault::Lose) => bytes.clear(),
        Some(Fault::Cut) => return None,
        Some(Fault::Hold(released)) => drop(released.recv()),
    }
    Some(bytes)
}
