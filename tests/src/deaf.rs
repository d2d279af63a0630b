//! Connections of clients that are to read nothing.
//!
//! A kernel keeps what a program does not read, up to the largest buffer that it is set to: 6 MiB on one machine and 32 on another
//! (`net.ipv4.tcp_rmem`). There is a server's memory to be tried only behind that, so these connections set a small buffer of their own.

use std::io;
use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Protocol, Socket, Type};

/// Size of the receive buffer, in bytes; Linux makes it twice that.
const RECEIVE_BUFFER_BYTES: usize = 32 << 10;

/// A connection whose kernel keeps little of what is not read. The buffer is set before it is connected: its window follows from it.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    /// More than any kernel's receive buffer would take.
    const MUCH: usize = 256 << 20;
    /// Room for the sender's own buffer, which is of the kernel's making: 4 MiB as a rule, and more on a machine that is tuned.
    const SENT_MAX: usize = 64 << 20;

    #[test]
    fn little_is_kept_of_what_is_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let deaf = connect(listener.local_addr().expect("an address")).expect("connect");
        let (mut sender, _) = listener.accept().expect("accept");
        // Without a reader a write waits for good.
        sender.set_write_timeout(Some(Duration::from_millis(200))).expect("it is connected");
        let mut sent = 0;
        while sent < MUCH {
            match sender.write(&[0; 1 << 16]) {
                Ok(count) => sent += count,
                Err(error) => {
                    assert!(
                        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
                        "{error}"
                    );
                    break;
                }
            }
        }
        assert!(sent < SENT_MAX, "{sent} bytes are kept for a client that reads nothing");
        drop(deaf);
    }
}
