//! Three members of an ensemble in one process, and a client that goes on while one of them is away.
//!
//! `cargo run --release -p paddock-server --example three_members`

use std::error::Error;
use std::net::{SocketAddr, TcpListener};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_server::{Config, Ensemble, EnsembleMember, Role, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    // Members know each other's ports before they start, so port 0 does not do for those.
    let quorum_ports = free_ports()?;
    let members = (1..).zip(quorum_ports).map(|(id, quorum_port)| EnsembleMember {
        id,
        host: "127.0.0.1".to_owned(),
        quorum_port,
        // The second port for peers that ZooKeeper has. No member listens there.
        election_port: quorum_port,
        role: Role::Participant,
        client: None,
    });
    let ensemble = Ensemble { members: members.collect(), ..Ensemble::default() };
    let configs = [1, 2, 3].map(|member| Config {
        member,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        ensemble: Some(ensemble.clone()),
        // Each has a directory of its own.
        ..Config::new(directory.path().join(member.to_string()))
    });

    let mut servers = configs.into_iter().map(Server::start).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    let hosts = addresses.join(",");
    println!("three members listen on {hosts}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(async {
        // A member takes clients once there is a leader; until then this tries one after the other.
        let client = Client::connect(&hosts, ClientOptions::default()).await?;
        client.create("/greeting", b"hello", CreateMode::Persistent).await?;
        Ok::<_, paddock_client::Error>(client)
    })?;

    // Two of three are a quorum. A leader that is shut down hands the lead over first.
    servers.remove(0).shutdown()?;
    runtime.block_on(async {
        // A write that is the same however often it is carried out may be tried again.
        loop {
            match client.set_data("/greeting", b"still here", None).await {
                Err(paddock_client::Error::ConnectionLost) => println!("the client looks for another member"),
                done => break done.map(drop)?,
            }
        }
        let greeting = client.get_data("/greeting").await?;
        println!("/greeting holds {:?}", String::from_utf8_lossy(&greeting.bytes.unwrap_or_default()));
        client.close().await
    })?;

    // The last two are shut down together: one alone has no quorum to hand the lead over to.
    let ending = servers.into_iter().map(|server| std::thread::spawn(|| server.shutdown()));
    for thread in ending.collect::<Vec<_>>() {
        thread.join().expect("it does not panic")?;
    }
    println!("stopped; everything is on disk");
    Ok(())
}

/// Ports of 127.0.0.1 that are free now.
fn free_ports() -> Result<Vec<u16>, Box<dyn Error>> {
    let listeners = [(); 3].map(|()| TcpListener::bind(("127.0.0.1", 0)));
    let ports = listeners.into_iter().map(|listener| Ok(listener?.local_addr()?.port()));
    ports.collect()
}
