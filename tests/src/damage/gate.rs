//! A door between a client and its server that a test can shut.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes connections on while it is open. Shutting it breaks those there are.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    open: watch::Sender<bool>,
}

impl Gate {
    pub async fn to(server: SocketAddr) -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("listen");
        let address = listener.local_addr().expect("ask for the port");
        let (open, is_open) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A connection that comes while the gate is shut is sent away.
                if *is_open.borrow() {
                    tokio::spawn(pass(client, server, is_open.clone()));
                }
            }
        });
        Gate { address, open }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn shut(&self) {
        self.open.send_replace(false);
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn pass(mut client: TcpStream, server: SocketAddr, mut is_open: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = is_open.wait_for(|open| !open) => {}
    }
}
