//! The end of a run: nothing goes wrong any more, all clients are served, and a member may take the mirror's place while they are.

use paddock_proto::Zxid;

use super::client::ClientPlace;
use super::cutover::Cutover;
use super::world::{CLIENTS, MirrorServer, MirrorWorld, SHARED, own_directory};
use crate::checks::watching;
use crate::checks::{Checked, ensure};
use crate::etcd::client::Ask;

const CHECKER: &str = "healing";
/// Time that passes while all is quiet, in milliseconds: longer than sessions live.
const QUIET_MS: u64 = 20_000;
/// Time in which clients have to be served, in milliseconds.
const SERVED_MS: u64 = 2000;
/// Creates of each client.
const CREATES: u64 = 5;

impl MirrorWorld {
    /// Ends the faults, and sees to it that everything is well.
    pub(super) fn heal(&mut self) -> Checked {
        self.note(format_args!("nothing goes wrong any more"));
        self.has_faults = false;
        if self.cutover != Cutover::NotYet {
            self.release()?;
        }
        while !self.lingering.is_empty() {
            self.end_lingering()?;
        }
        for at in 0..CLIENTS {
            if self.clients[at].place == ClientPlace::Source {
                self.disconnect(at)?;
            }
        }
        self.serve()?;
        let closed = self.lost_connections();
        let end_ms = self.now_ms() + QUIET_MS;
        while self.now_ms() < end_ms {
            self.round()?;
        }
        self.serve()?;
        if self.weather.takes_over && matches!(self.server, MirrorServer::Mirror(_)) {
            self.take_over_while_all_ask()?;
        }
        self.serve()?;
        ensure!(self.lost_connections() == closed, CHECKER, "clients lost connections though all is well");
        self.check_end()
    }

    fn lost_connections(&self) -> u64 {
        self.clients.iter().map(|client| client.closed).sum()
    }

    /// Everything that is on its way arrives.
    fn round(&mut self) -> Checked {
        self.trouble_link()?;
        while !self.requests.is_empty() || self.words.as_ref().is_some_and(|words| !words.is_empty()) {
            self.deliver_request()?;
            self.deliver_word()?;
        }
        self.tick()
    }

    fn take_over_while_all_ask(&mut self) -> Checked {
        self.ask_all()?;
        self.hold()?;
        self.ask_all()?;
        for _ in 0..3 {
            self.round()?;
        }
        ensure!(self.cutover == Cutover::AtRest, CHECKER, "the mirror does not come to rest");
        self.ask_all()?;
        self.take_over()
    }

    /// Each client writes, and reads behind that.
    fn ask_all(&mut self) -> Checked {
        for at in 0..CLIENTS {
            self.ask(at, Ask::Set { path: own_directory(at) })?;
            if let Some(number) = self.clients[at].last_set {
                self.ask(at, Ask::Read { path: own_directory(at), number })?;
            }
        }
        Ok(())
    }

    /// All clients come to the server, and write at the same time.
    fn serve(&mut self) -> Checked {
        let wanted: Vec<u64> = self.clients.iter().map(|client| client.acknowledged + CREATES).collect();
        let end_ms = self.now_ms() + SERVED_MS;
        while self.now_ms() < end_ms {
            for (at, wanted) in wanted.iter().enumerate() {
                let client = &self.clients[at];
                if client.place == ClientPlace::Nowhere {
                    self.connect(at)?;
                } else if client.waiting.is_empty() && client.acknowledged < *wanted {
                    self.ask(at, Ask::Create { directory: SHARED.to_owned(), is_ephemeral: false })?;
                }
            }
            self.round()?;
        }
        for (at, (client, wanted)) in self.clients.iter().zip(wanted).enumerate() {
            ensure!(
                client.acknowledged >= wanted && client.waiting.is_empty() && client.is_connected,
                CHECKER,
                "client {at} has {} writes of {wanted}, and waits for {:?}",
                client.acknowledged,
                client.waiting
            );
        }
        Ok(())
    }

    fn check_end(&mut self) -> Checked {
        let (shown, newest) = (self.state.tree().zxid(), Zxid(self.checks.newest));
        ensure!(shown == newest, CHECKER, "{shown} is shown, and there is {newest}");
        self.checks.check_state(self.state.tree())?;
        self.checks.check_acknowledged(self.state.tree())?;
        let mut held = 0;
        for client in &mut self.clients {
            client.watching.show(&self.checks.changes, newest, &[])?;
            held += client.watching.held_at(&self.checks.changes, newest, &[]);
        }
        watching::check_held(0, self.state.watches().count(), held, true)
    }
}
