//! The target of a load, and its refusals.

use paddock_client::{Client, ErrorCode, Stat};

use super::failure::{LoadFailure, advice};

/// Requests about znodes that are on their way at a time.
pub(super) const ON_THEIR_WAY: usize = 256;

/// Place where znodes go.
pub(super) struct LoadTarget<'a> {
    pub(super) client: &'a Client,
    pub(super) servers: &'a str,
    /// The path of the znode that was dumped.
    pub(super) root: &'a str,
}

impl LoadTarget<'_> {
    pub(super) async fn exists(&self, path: &str) -> Result<Option<Stat>, LoadFailure> {
        match self.client.exists(path).await {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.code() == Some(ErrorCode::NoNode) => Ok(None),
            Err(source) => Err(LoadFailure::Client { servers: self.servers.to_owned(), source }),
        }
    }

    /// The failure of a request about a line.
    pub(super) fn failed(&self, line: u64, path: &str, error: paddock_client::Error) -> LoadFailure {
        match error.code() {
            Some(code) => LoadFailure::Refused { line, path: path.to_owned(), advice: advice(code), code },
            None => LoadFailure::Client { servers: self.servers.to_owned(), source: error },
        }
    }
}

/// The path of a znode's parent; `None` for the root.
pub(super) fn parent(path: &str) -> Option<&str> {
    let (parent, name) = path.rsplit_once('/')?;
    match (parent, name) {
        (_, "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}
