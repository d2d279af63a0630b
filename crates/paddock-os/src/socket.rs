//! Sockets: listening, and reading one that is watched for events with one system call, not with one more that finds nothing.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 1024;

/// Listens at an address; `[::]` is every address of IPv4, too.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restarted member takes its port back at once.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Reads what has come to a socket that said it is readable. If that did not fill the buffer it was all, and the socket is
/// readable again when more comes: the system tells, for events come at every change.
#[inline]
pub fn try_read(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut all = None;
    let read = socket.try_io(Interest::READABLE, || {
        let count = (&*SockRef::from(socket)).read(buffer)?;
        if count == 0 || count == buffer.len() {
            return Ok(count);
        }
        all = Some(count);
        // So Tokio learns that nothing is left, which it else believes only a read that finds nothing.
        Err(ErrorKind::WouldBlock.into())
    });
    all.map_or(read, Ok)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, server) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (client.unwrap(), server.unwrap().0)
    }

    #[tokio::test]
    async fn all_comes_whatever_the_buffers_size_and_then_the_end() {
        for buffer_bytes in [1, 7, 10, 100] {
            let (mut client, server) = pair().await;
            let mut received = Vec::new();
            let mut buffer = vec![0; buffer_bytes];
            for piece in [&b"0123456789"[..], b"more", b"and more"] {
                client.write_all(piece).await.unwrap();
                let until = received.len() + piece.len();
                while received.len() < until {
                    server.readable().await.unwrap();
                    match try_read(&server, &mut buffer) {
                        Ok(count) => received.extend_from_slice(&buffer[..count]),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    }
                }
            }
            assert_eq!(received, b"0123456789moreand more");
            drop(client);
            loop {
                server.readable().await.unwrap();
                match try_read(&server, &mut buffer) {
                    Ok(count) => break assert_eq!(count, 0),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
        }
    }

    #[tokio::test]
    async fn a_buffer_that_was_not_filled_leaves_nothing_to_read() {
        let (mut client, server) = pair().await;
        client.write_all(b"hello").await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(try_read(&server, &mut [0; 100]).unwrap(), 5);
        let again = tokio::time::timeout(std::time::Duration::ZERO, server.readable()).await;
        assert!(again.is_err(), "the socket has nothing and says so without being asked");
    }
}
