//! A member in the program's own process, and a client that talks to it.
//!
//! `cargo run --release -p paddock-server --example embedded`

use paddock_client::{Client, ClientOptions, CreateMode, Event};
use paddock_server::{Config, Server};
use tokio::sync::mpsc::unbounded_channel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    // Port 0: any that is free.
    let config = Config { listen: "127.0.0.1:0".parse()?, ..Config::new(directory.path()) };
    let server = Server::start(config)?;
    println!("a member listens on {}", server.address());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(talk(&server.address().to_string()))?;

    server.shutdown()?;
    println!("stopped; everything is on disk");
    Ok(())
}

async fn talk(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (events, mut heard) = unbounded_channel();
    let client =
        Client::connect(address, ClientOptions { events: Some(events), ..ClientOptions::default() }).await?;

    client.create("/greeting", b"hello", CreateMode::Persistent).await?;
    let greeting = client.watch_data("/greeting").await?;
    println!("/greeting holds {:?}", String::from_utf8_lossy(&greeting.bytes.unwrap_or_default()));

    client.set_data("/greeting", b"good bye", None).await?;
    if let Some(Event::Znode { kind, path, .. }) = heard.recv().await {
        println!("told of {kind:?} at {path}");
    }

    let here = client.create("/here-", b"", CreateMode::EphemeralSequential).await?;
    println!("{here} is there for as long as this session is");
    client.close().await?;
    Ok(())
}
