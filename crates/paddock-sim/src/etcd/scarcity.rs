//! etcd without space: its alarm NOSPACE refuses all that puts a key, and grants no leases, until it is disarmed.

use super::client::{Ask, EtcdReply, OpenRequest, Owned, QUOTA_EXCEEDED};
use super::store::EtcdModel;
use super::world::{CLIENTS, SHARED, World};
use crate::checks::{Checked, ensure};

const CHECKER: &str = "space";
/// Time for which there is no space in the end, in milliseconds: longer than sessions live, and than requests wait for etcd.
const SCARCE_MS: u64 = 20_000;
/// Writes of each client that have to be refused in that time.
const REFUSALS_MIN: u64 = 5;

/// A client is told that etcd has no space only if etcd has said so since it asked, and only of a write, or of a sync, which may need one.
pub(super) fn check_refusal(waiting: &OpenRequest, reply: &EtcdReply<'_>, store: &EtcdModel) -> Checked {
    let has_refused = store.refused_ms.is_some_and(|refused_ms| refused_ms >= waiting.asked_ms);
    let is_refusable = waiting.ask.is_write() || waiting.ask == Ask::Sync;
    ensure!(
        reply.error != QUOTA_EXCEEDED || (is_refusable && has_refused),
        CHECKER,
        "request {}, {:?}, is refused for want of space, and etcd has not refused it",
        waiting.number,
        waiting.ask
    );
    Ok(())
}

impl World {
    /// All is well and all clients are connected. Then there is no space for a while: writes are refused, everything else goes on.
    pub(super) fn starve(&mut self) -> Checked {
        self.note(format_args!("etcd has no space"));
        self.store.is_full = true;
        // Others delete keys of their own to make room.
        self.store.write_elsewhere();
        let acknowledged: Vec<u64> = self.clients.iter().map(|client| client.acknowledged).collect();
        let refused: Vec<u64> = self.clients.iter().map(|client| client.refused_for_space).collect();
        let end_ms = self.now_ms() + SCARCE_MS;
        while self.now_ms() < end_ms {
            for at in 0..CLIENTS {
                let client = &self.clients[at];
                ensure!(
                    client.is_connected,
                    CHECKER,
                    "client {at} lost its connection while etcd had no space, and nothing else was wrong"
                );
                if client.waiting.is_empty() {
                    let ask = self.wish_without_space(at);
                    self.ask(at, ask)?;
                }
            }
            self.round()?;
        }
        for (at, client) in self.clients.iter().enumerate() {
            let written = client.acknowledged - acknowledged[at];
            ensure!(written == 0, CHECKER, "client {at} has written {written} times without space");
            let refused = client.refused_for_space - refused[at];
            ensure!(
                refused >= REFUSALS_MIN,
                CHECKER,
                "{refused} writes of client {at} were refused without space, and it waits for {:?}",
                client.waiting
            );
        }
        self.note(format_args!("etcd has space again"));
        self.store.is_full = false;
        Ok(())
    }

    fn wish_without_space(&mut self, at: usize) -> Ask {
        match (self.chance.below(6), self.clients[at].owned.last().cloned()) {
            (0, _) => Ask::Sync,
            (1, Some(Owned { path, number })) => Ask::Read { path, number },
            (2, Some(Owned { path, .. })) => Ask::Delete { path },
            (3, _) => self.wish_watch(),
            _ => Ask::Create { directory: SHARED.to_owned(), is_ephemeral: self.chance.one_in(2) },
        }
    }
}
