//! The cut-over: requests are held back, and a member takes the mirror's place, or they are let go.

use paddock_forward::{Held, Input, SourceRequest};

use super::client::ClientPlace;
use super::successor::Successor;
use super::world::{CLIENTS, MirrorServer, MirrorWorld, SESSIONS_OF_SUCCESSOR};
use crate::checks::{Checked, ensure};

const CHECKER: &str = "cut-over";

/// State of the cut-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cutover {
    NotYet,
    /// The mirror was told to hold requests back. Only the mirror writes at the source.
    Holding,
    /// The mirror has said that nothing is under way.
    AtRest,
}

impl MirrorWorld {
    pub(super) fn work_on_cutover(&mut self) -> Checked {
        let now = self.cutover;
        match now {
            Cutover::NotYet if self.is_linked && self.strikes(self.weather.hold) => self.hold(),
            Cutover::Holding if self.chance.one_in(200) => self.release(),
            Cutover::AtRest if self.chance.one_in(10) => {
                let takes_over = self.weather.takes_over && self.chance.one_in(2);
                if takes_over { self.take_over() } else { self.release() }
            }
            _ => Ok(()),
        }
    }

    pub(super) fn hold(&mut self) -> Checked {
        self.note(format_args!("the mirror holds requests back"));
        self.cutover = Cutover::Holding;
        self.input(Input::Hold)
    }

    pub(super) fn release(&mut self) -> Checked {
        self.note(format_args!("the mirror lets requests go"));
        self.cutover = Cutover::NotYet;
        self.input(Input::Release)
    }

    /// The mirror may say that nothing is under way, and sends nothing from then on.
    pub(super) fn note_held(&mut self, requests: &[SourceRequest], held: Option<Held>) -> Checked {
        let is_silent = !requests.iter().any(asks);
        ensure!(
            is_silent || self.cutover != Cutover::AtRest,
            CHECKER,
            "nothing is under way, and the source is sent {requests:?}"
        );
        let Some(Held { elsewhere }) = held else { return Ok(()) };
        self.note(format_args!("nothing is under way; elsewhere are {elsewhere:?}"));
        let is_expected = self.cutover == Cutover::Holding;
        ensure!(is_expected, CHECKER, "the mirror tells of an end that nobody waits for");
        self.cutover = Cutover::AtRest;
        let words = self.words.iter().flatten();
        let told: Vec<&Input> = words.filter(|word| !matches!(word, Input::Heard)).collect();
        ensure!(
            !self.requests.iter().any(asks) && told.is_empty(),
            CHECKER,
            "nothing should be under way, and there are {:?} and {told:?}",
            self.requests
        );
        let (shown, newest) = (self.state.tree().zxid(), self.source.zxid());
        ensure!(
            shown == newest,
            CHECKER,
            "nothing is under way at zxid {shown}, and the source has {newest}"
        );
        for (at, client) in self.clients.iter().enumerate() {
            let is_here = matches!(client.place, ClientPlace::Mirror(_)) && client.is_connected;
            let session = client.session.filter(|session| is_here && elsewhere.contains(session));
            ensure!(session.is_none(), CHECKER, "client {at} is said to be elsewhere");
        }
        Ok(())
    }

    /// A member takes the mirror's place. It has the state that the mirror shows, and the source is stopped.
    pub(super) fn take_over(&mut self) -> Checked {
        self.note(format_args!("a member takes over"));
        let MirrorServer::Mirror(engine) = &mut self.server else { return Ok(()) };
        let (successor, held) = Successor::new(engine.retire(), SESSIONS_OF_SUCCESSOR);
        self.checks.check_state(self.state.tree())?;
        let served: Vec<_> = successor.sessions().collect();
        self.server = MirrorServer::Successor(successor);
        (self.words, self.is_linked, self.cutover) = (None, false, Cutover::NotYet);
        self.requests.clear();
        for at in 0..CLIENTS {
            let client = &mut self.clients[at];
            match (client.place, client.session.filter(|_| client.is_connected)) {
                (ClientPlace::Source, _) => drop(client.disconnected()),
                (ClientPlace::Mirror(_), Some(session)) => ensure!(
                    served.contains(&session),
                    CHECKER,
                    "client {at} is served, and the member is not told of session {session}"
                ),
                _ => {}
            }
        }
        self.note(format_args!("{} inputs were held back", held.len()));
        held.into_iter().try_for_each(|input| self.input(Input::Client(input)))
    }
}

/// True for a request that must be answered.
fn asks(request: &SourceRequest) -> bool {
    !matches!(request, SourceRequest::Touch { .. })
}
