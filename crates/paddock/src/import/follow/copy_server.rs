//! A server of the copy while it grows: `--serve`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::Receiver;

use paddock_files::{LearnerRequest, TouchedSessions, WorkingCopy};
use paddock_proto::SessionId;
use paddock_server::{Config, Held, Mirror, MirrorMode, Server, SourceLink, SourceRequest};
use paddock_tree::AppliedTransaction;

use super::link::SharedWriter;
use crate::moving::MovingFailure;
use crate::server;

/// Bytes of a request that a leader takes unless its settings say otherwise (`jute.maxbuffer`): it hangs up at a longer one.
const REQUEST_BYTES_MAX: i32 = 0xf_ffff;

/// A server that begins with the first state that was whole.
pub(super) struct CopyServer {
    config: Config,
    /// Settings of the member that takes over.
    wanted: Config,
    mode: MirrorMode,
    running: Option<(Server, Mirror)>,
    is_linked: bool,
}

impl CopyServer {
    /// Serves reads alone.
    pub(super) fn of_reads(listen: SocketAddr, dir: &Path) -> CopyServer {
        let config = Config { listen, ..Config::new(dir) };
        CopyServer {
            wanted: config.clone(),
            config,
            mode: MirrorMode::ReadOnly,
            running: None,
            is_linked: false,
        }
    }

    /// Serves everybody, with these settings.
    pub(super) fn of_all(wanted: Config) -> CopyServer {
        let has_limit = wanted.frame_bytes_max != Config::new(&wanted.data_dir).frame_bytes_max;
        let frame_bytes_max = if has_limit { wanted.frame_bytes_max } else { REQUEST_BYTES_MAX };
        let config = Config { frame_bytes_max, ..wanted.clone() };
        CopyServer { wanted, config, mode: MirrorMode::Forwarding, running: None, is_linked: false }
    }

    pub(super) fn forwards(&self) -> bool {
        self.mode == MirrorMode::Forwarding
    }

    /// Begins to serve, unless it serves already; returns the address if it has begun.
    pub(super) fn begin(&mut self, copy: &WorkingCopy) -> Result<Option<SocketAddr>, MovingFailure> {
        if self.running.is_some() {
            return Ok(None);
        }
        let started = Server::start_mirror(self.config.clone(), copy.tree(), self.mode);
        let started = started.map_err(server::Failure::from)?;
        let address = started.0.address();
        self.running = Some(started);
        Ok(Some(address))
    }

    /// True if a state is shown, and changes are to be told.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn mirror(&self) -> Option<&Mirror> {
        self.running.as_ref().map(|(_, mirror)| mirror)
    }

    pub(super) fn show(&self, applied: AppliedTransaction) {
        self.mirror().into_iter().for_each(|mirror| mirror.show(applied.clone()));
    }

    /// Shows another state, after a snapshot.
    pub(super) fn replace(&self, copy: &WorkingCopy) {
        self.mirror().into_iter().for_each(|mirror| mirror.replace(copy.tree()));
    }

    /// The leader may be asked from now on.
    pub(super) fn begin_link(&mut self, writer: SharedWriter, touched: TouchedSessions) {
        if let Some((_, mirror)) = &self.running {
            mirror.begin_link(link_to(writer, touched));
            self.is_linked = true;
        }
    }

    pub(super) fn end_link(&mut self) {
        self.is_linked = false;
        self.mirror().into_iter().for_each(Mirror::end_link);
    }

    pub(super) fn is_linked(&self) -> bool {
        self.is_linked
    }

    pub(super) fn note_heard(&self) {
        self.mirror().into_iter().for_each(Mirror::note_heard);
    }

    pub(super) fn caught_up(&self) {
        self.mirror().into_iter().for_each(Mirror::caught_up);
    }

    pub(super) fn revalidated(&self, session: SessionId, lives: bool) {
        self.mirror().into_iter().for_each(|mirror| mirror.revalidated(session, lives));
    }

    /// Holds back what clients ask; there is no receiver if nothing is served.
    pub(super) fn hold(&self) -> Option<Receiver<Held>> {
        self.mirror().map(Mirror::hold)
    }

    pub(super) fn release(&self) {
        self.mirror().into_iter().for_each(Mirror::release);
    }

    /// A member goes on in its place, from the data directory that has been made. Clients stay connected.
    pub(super) fn take_over(self) -> Result<Option<Server>, MovingFailure> {
        let Some((server, _)) = self.running else { return Ok(None) };
        let server = server.take_over().map_err(server::Failure::from)?;
        server.reload(&self.wanted).map_err(server::Failure::from)?;
        Ok(Some(server))
    }

    /// Closes all connections and lets the address go.
    pub(super) fn end(self) -> Result<(), MovingFailure> {
        let ended = self.running.map_or(Ok(()), |(server, _)| server.shutdown());
        Ok(ended.map_err(server::Failure::from)?)
    }
}

/// The way of a server's requests to the leader, beside the thread that reads what it says.
fn link_to(writer: SharedWriter, touched: TouchedSessions) -> SourceLink {
    Box::new(move |requests| {
        let mut bytes = Vec::new();
        for request in &requests {
            match request {
                SourceRequest::Write { session, xid, op, ids, body } => {
                    let (session, xid, op) = (*session, *xid, *op);
                    LearnerRequest::Write { session, xid, op, ids, body }.encode(&mut bytes);
                }
                SourceRequest::Sync { session } => {
                    LearnerRequest::Sync { session: *session }.encode(&mut bytes);
                }
                SourceRequest::Revalidate { session, timeout_ms } => {
                    let (session, timeout_ms) = (*session, *timeout_ms);
                    LearnerRequest::Revalidate { session, timeout_ms }.encode(&mut bytes);
                }
                SourceRequest::Touch { session, timeout_ms } => touched.touch(*session, *timeout_ms),
            }
        }
        // The reading side finds that the connection is gone, and says so.
        let _ = writer.clone().write_all(&bytes);
    })
}
