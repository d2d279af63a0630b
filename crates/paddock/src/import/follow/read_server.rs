//! Reads from the copy while it grows: `--serve`.

use std::net::SocketAddr;
use std::path::Path;

use paddock_files::WorkingCopy;
use paddock_server::{Config, Mirror, Server};
use paddock_tree::AppliedTransaction;

use crate::moving::Failure;
use crate::server;

/// A server of reads that begins with the first state that was whole.
pub(super) struct ReadServer {
    listen: SocketAddr,
    running: Option<(Server, Mirror)>,
}

impl ReadServer {
    pub(super) fn new(listen: SocketAddr) -> ReadServer {
        ReadServer { listen, running: None }
    }

    /// Begins to serve, unless it serves already; returns the address if it has begun.
    pub(super) fn begin(&mut self, copy: &WorkingCopy, dir: &Path) -> Result<Option<SocketAddr>, Failure> {
        if self.running.is_some() {
            return Ok(None);
        }
        let config = Config { listen: self.listen, ..Config::new(dir) };
        let started = Server::start_mirror(config, copy.tree()).map_err(server::Failure::from)?;
        let address = started.0.address();
        self.running = Some(started);
        Ok(Some(address))
    }

    /// True if a state is shown, and changes are to be told.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn show(&self, applied: AppliedTransaction) {
        if let Some((_, mirror)) = &self.running {
            mirror.show(applied);
        }
    }

    /// Shows another state, after a snapshot.
    pub(super) fn replace(&self, copy: &WorkingCopy) {
        if let Some((_, mirror)) = &self.running {
            mirror.replace(copy.tree());
        }
    }

    /// Closes all connections and lets the address go.
    pub(super) fn end(self) -> Result<(), Failure> {
        let ended = self.running.map_or(Ok(()), |(server, _)| server.shutdown());
        Ok(ended.map_err(server::Failure::from)?)
    }
}
