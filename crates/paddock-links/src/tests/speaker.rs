//! Speaks with a member by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Protocol, Socket, Type};

use super::node::{CLUSTER, PATIENCE};
use crate::frame::{Decoder, FramePosition};
use crate::greeting::{Answer, GREETING_BYTES, Hello, first_places};

pub(super) const HELLO: Hello = Hello { from: 2, to: 1, cluster: CLUSTER, nonce: 5, process: 6 };

/// A connection to a member.
pub(super) fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A connection whose kernel keeps little of what is not read, whatever its settings are: set before it is connected.
fn connect_deaf(address: SocketAddr) -> TcpStream {
    const RECEIVE_BUFFER_BYTES: usize = 256 << 10;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.into()
}

/// All that the other side sends until it closes.
pub(super) fn read_to_end(mut socket: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match socket.read_to_end(&mut bytes) {
        Ok(_) => {}
        // Closed while something that it did not want to read was on its way.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    bytes
}

/// The answer to a hello.
pub(super) fn read_answer(mut socket: &TcpStream) -> [u8; GREETING_BYTES] {
    let mut answer = [0; GREETING_BYTES];
    socket.read_exact(&mut answer).unwrap();
    answer
}

/// A member that dials another one and was welcome.
#[derive(Debug)]
pub(super) struct Speaker {
    pub(super) socket: TcpStream,
    sending: FramePosition,
    decoder: Decoder,
}

impl Speaker {
    pub(super) fn welcome(address: SocketAddr) -> Speaker {
        Speaker::begin(connect(address))
    }

    /// A speaker that is to read nothing for a while.
    pub(super) fn welcome_deaf(address: SocketAddr) -> Speaker {
        Speaker::begin(connect_deaf(address))
    }

    fn begin(mut socket: TcpStream) -> Speaker {
        let hello = HELLO.encode();
        socket.write_all(&hello).unwrap();
        let answer = read_answer(&socket);
        Answer::decode(&answer).unwrap();
        let (sending, receiving) = first_places(&hello, &answer);
        Speaker { socket, sending, decoder: Decoder::new(receiving) }
    }

    pub(super) fn send(&mut self, message: &[u8]) {
        let header = self.sending.header(message);
        self.socket.write_all(&[&header, message].concat()).unwrap();
    }

    /// Lengths of the next `count` messages.
    pub(super) fn receive(&mut self, count: usize) -> Vec<usize> {
        let mut buffer = vec![0; 1 << 20];
        let mut lengths = Vec::new();
        while lengths.len() < count {
            let bytes = self.socket.read(&mut buffer).unwrap();
            assert!(bytes > 0, "closed after {} messages", lengths.len());
            self.decoder.feed(&buffer[..bytes], |message| lengths.push(message.len())).unwrap();
        }
        lengths
    }
}
