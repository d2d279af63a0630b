//! The engine: changes of the source's state are shown, and clients are served by way of them.

use paddock_proto::{MemberNumber, SessionId};
use paddock_state::{ClientInput, Outboxes, Serving, State};
use paddock_tree::{AppliedTransaction, InstallError, Znode};

use crate::contract::{Effects, Input, MirrorMode};
use crate::forwarding::Forwarding;
use crate::read_only::ReadOnly;

#[derive(Debug)]
pub struct MirrorEngine {
    clients: Clients,
    /// Number of the member that sessions of the source are shown to be of.
    member: MemberNumber,
}

#[derive(Debug)]
enum Clients {
    ReadOnly(ReadOnly),
    Forwarding(Box<Forwarding>),
}

/// Parts of a mirror that has ended, for the member in its place.
#[derive(Debug)]
pub struct Retired {
    /// Inputs without an answer, in their order.
    pub held: Vec<ClientInput>,
    /// Connections that stay, with their sessions.
    pub serving: Serving,
}

impl MirrorEngine {
    /// Sessions that begin here get ids from `next_session` on.
    pub fn new(mode: MirrorMode, member: MemberNumber, next_session: SessionId) -> MirrorEngine {
        let clients = match mode {
            MirrorMode::ReadOnly => Clients::ReadOnly(ReadOnly::new(next_session.0)),
            MirrorMode::Forwarding => Clients::Forwarding(Box::new(Forwarding::new(next_session.0))),
        };
        MirrorEngine { clients, member }
    }

    /// Takes an input. `now_ms` is a monotonic time in milliseconds.
    pub fn step(&mut self, now_ms: u64, input: Input, state: &mut State, out: &mut Outboxes) {
        match input {
            Input::Client(input) => match &mut self.clients {
                Clients::ReadOnly(clients) => clients.take(input, state, out),
                Clients::Forwarding(clients) => clients.take(input, state, out),
            },
            Input::Change(change) => self.show(&change, state, out),
            Input::Replace(tree) => {
                state.replace(*tree);
                self.close_all(state, out);
            }
            event => self.note_source(now_ms, event, state, out),
        }
        if let Clients::Forwarding(clients) = &mut self.clients {
            clients.look_at_hold(state);
        }
    }

    /// Everything that is to be done since the last call.
    pub fn take_effects(&mut self) -> Effects {
        match &mut self.clients {
            Clients::ReadOnly(_) => Effects::default(),
            Clients::Forwarding(clients) => clients.take_effects(),
        }
    }

    /// The mode of this mirror.
    pub fn mode(&self) -> MirrorMode {
        match self.clients {
            Clients::ReadOnly(_) => MirrorMode::ReadOnly,
            Clients::Forwarding(_) => MirrorMode::Forwarding,
        }
    }

    /// True if clients can be served: those that only read always can.
    pub fn is_serving(&self) -> bool {
        match &self.clients {
            Clients::ReadOnly(_) => true,
            Clients::Forwarding(clients) => clients.is_serving(),
        }
    }

    /// True while it holds back what clients ask, and has not told yet that nothing is under way.
    pub fn is_coming_to_rest(&self) -> bool {
        matches!(&self.clients, Clients::Forwarding(clients) if clients.is_coming_to_rest())
    }

    /// Monotonic time in milliseconds up to which no session can have been ended without being told here. A state that is only read may
    /// be old, and says so by its zxid.
    pub fn confirmed_ms(&self, now_ms: u64) -> u64 {
        match &self.clients {
            Clients::ReadOnly(_) => now_ms,
            Clients::Forwarding(clients) => clients.confirmed_ms(now_ms),
        }
    }

    /// Ends a mirror that holds everything back and has nothing under way.
    pub fn retire(&mut self) -> Retired {
        let Clients::Forwarding(clients) = &mut self.clients else {
            panic!("a mirror that only reads stays with the copy");
        };
        clients.retire()
    }

    fn show(&mut self, change: &AppliedTransaction, state: &mut State, out: &mut Outboxes) {
        match self.install(change, state, out) {
            Ok(()) => {
                if let Clients::Forwarding(clients) = &mut self.clients {
                    clients.note_transaction(change, state, out);
                }
            }
            Err(error) => {
                // Everything that is told comes from a state that holds together.
                tracing::error!(%error, zxid = %change.zxid, "a change cannot be shown: closing client connections");
                self.close_all(state, out);
            }
        }
    }

    fn install(
        &self,
        change: &AppliedTransaction,
        state: &mut State,
        out: &mut Outboxes,
    ) -> Result<(), InstallError> {
        for &(session, timeout_ms) in &change.began {
            state.tree_mut().install_session(session, timeout_ms, self.member);
        }
        let znodes: Vec<(&str, Option<Znode>)> =
            change.znodes.iter().map(|(path, znode)| (path.as_str(), znode.clone())).collect();
        state.install(change.zxid, &znodes, out)?;
        for &session in &change.ended {
            // A session that still owns znodes is of a source that keeps them: it is shown as it is.
            let _ = state.tree_mut().uninstall_session(session);
        }
        Ok(())
    }

    /// A mirror that only reads has no use for its source.
    fn note_source(&mut self, now_ms: u64, event: Input, state: &State, out: &mut Outboxes) {
        let Clients::Forwarding(clients) = &mut self.clients else { return };
        match event {
            Input::Linked => clients.begin_link(now_ms),
            Input::Lost => clients.end_link(state, out),
            Input::Heard => clients.note_heard(now_ms),
            Input::CaughtUp => clients.note_caught_up(state, out),
            Input::Revalidated { session, lives } => clients.note_revalidated(session, lives, state, out),
            Input::Hold => clients.hold(),
            Input::Release => clients.release(state, out),
            Input::Client(_) | Input::Change(_) | Input::Replace(_) => {
                unreachable!("they are no words of a source")
            }
        }
    }

    fn close_all(&mut self, state: &State, out: &mut Outboxes) {
        match &mut self.clients {
            Clients::ReadOnly(clients) => clients.close_all(out),
            Clients::Forwarding(clients) => clients.close_all(state, out),
        }
    }
}
