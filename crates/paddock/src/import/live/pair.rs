//! The sessions of a live copy: one on the source, which tells of changes, and one on the target.

use std::time::Duration;

use paddock_bench::Access;
use paddock_client::{AddWatchMode, Client, ClientOptions, Error, ErrorCode, Event};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::failure::LiveFailure;
use crate::diff::server::connect;

/// Subtree that belongs to every server itself.
const OWN: &str = "/zookeeper";
/// Subtree that ClickHouse Keeper adds, and a znode that shows that it is that one.
const KEEPERS_OWN: &str = "/keeper";
const KEEPERS_MARK: &str = "/keeper/api_version";
/// Session timeout that servers are asked for. Waiting for many answers takes none of it.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Names of source and target, and what belongs to the copy.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) from_access: Access,
    pub(super) to_access: Access,
    pub(super) exclude: Vec<String>,
}

pub(super) struct LivePair {
    pub(super) source: Client,
    pub(super) target: Client,
    pub(super) events: UnboundedReceiver<Event>,
    /// True if the source tells of every change.
    pub(super) has_watch: bool,
    /// Subtrees that are left out.
    pub(super) exclude: Vec<String>,
}

impl LivePair {
    /// Opens both sessions, with a watch on all of the source if it knows such a thing.
    pub(super) async fn connect(places: &Places) -> Result<LivePair, LiveFailure> {
        let target = connect(&places.to, &places.to_access, options()).await?;
        let (source, events, has_watch) = connect_source(places).await?;
        let mut exclude = places.exclude.clone();
        exclude.push(OWN.to_owned());
        let marked = source.exists(KEEPERS_MARK).await;
        match marked {
            Ok(_) => exclude.push(KEEPERS_OWN.to_owned()),
            Err(Error::Refused { .. }) => {}
            Err(error) => return Err(LiveFailure::client(&places.from, error)),
        }
        Ok(LivePair { source, target, events, has_watch, exclude })
    }

    /// Refuses a target that holds something already.
    pub(super) async fn check_empty(&self, to: &str) -> Result<(), LiveFailure> {
        let listed = self.target.get_children("/").await;
        let names = listed.map_err(|error| LiveFailure::client(to, error))?;
        let mut paths = names.iter().map(|name| format!("/{name}"));
        match paths.find(|path| !self.leaves_out(path)) {
            None => Ok(()),
            Some(path) => Err(LiveFailure::NotEmpty { server: to.to_owned(), path }),
        }
    }

    pub(super) fn leaves_out(&self, path: &str) -> bool {
        self.exclude.iter().any(|root| paddock_proto::is_at_or_below(path, root))
    }

    /// Ends both sessions. One that cannot be closed expires.
    pub(super) async fn close(&self) {
        let _ = self.source.close().await;
        let _ = self.target.close().await;
    }
}

fn options() -> ClientOptions {
    ClientOptions { session_timeout: SESSION_TIMEOUT, ..ClientOptions::default() }
}

type EventSource = (Client, UnboundedReceiver<Event>, bool);

/// A server that does not know persistent watches refuses one, or closes the connection; it is asked twice, for a connection may also
/// break by itself.
async fn connect_source(places: &Places) -> Result<EventSource, LiveFailure> {
    for is_last in [false, true] {
        let (client, events) = listen(places).await?;
        match client.add_watch("/", AddWatchMode::PersistentRecursive).await {
            Ok(()) => return Ok((client, events, true)),
            Err(Error::ConnectionLost | Error::SessionExpired) if !is_last => {}
            Err(Error::ConnectionLost | Error::SessionExpired) => break,
            Err(Error::Refused { code: ErrorCode::Unimplemented | ErrorCode::BadArguments, .. }) => break,
            Err(error) => return Err(LiveFailure::client(&places.from, error)),
        }
    }
    let (client, events) = listen(places).await?;
    Ok((client, events, false))
}

async fn listen(places: &Places) -> Result<(Client, UnboundedReceiver<Event>), LiveFailure> {
    let (sender, events) = unbounded_channel();
    let options = ClientOptions { events: Some(sender), ..options() };
    let client = connect(&places.from, &places.from_access, options).await?;
    Ok((client, events))
}
