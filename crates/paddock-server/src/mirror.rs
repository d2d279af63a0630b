//! A server that shows the state of another one: its engine is `paddock-forward`'s, on a thread of its own. A member may take its place.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use paddock_forward::{Effects, Held, Input, MirrorEngine, MirrorMode, Retired, SourceRequest};
use paddock_member::Clock as _;
use paddock_os::threads::spawn;
use paddock_proto::SessionId;
use paddock_replica::{Role, Standing};
use paddock_state::{ClientInput, Now, Outboxes, State};
use paddock_tree::{AppliedTransaction, Tree};
use parking_lot::RwLock;

use crate::engine::MemberHandle;
use crate::engine_report::EngineReport;
use crate::error::ServerError;
use crate::host::{Engine, EngineHost, Inbox, run};
use crate::shared::Shared;

/// Ids of sessions of a mirror begin with this byte, as those of a member 126 would: images and guides number members from 1 on.
const SESSIONS: i64 = 0x7e << 56;

/// The way to the source, as long as it is connected. A request that cannot be sent is lost with the connection.
pub type SourceLink = Box<dyn FnMut(Vec<SourceRequest>) + Send>;

/// The way to a server that mirrors a state. Changes are shown in the order in which they are told.
#[derive(Clone, Debug)]
pub struct Mirror {
    inbox: Inbox<MirrorInput>,
}

impl Mirror {
    /// Shows a change, and tells its watchers.
    pub fn show(&self, change: AppliedTransaction) {
        self.tell(Input::Change(Box::new(change)));
    }

    /// Shows another state. All connections are closed: it is not known which watches would have fired.
    pub fn replace(&self, tree: Tree) {
        self.tell(Input::Replace(Box::new(tree)));
    }

    /// The source is connected, and everything has been shown that it had then.
    pub fn begin_link(&self, link: SourceLink) {
        self.inbox.tell(MirrorInput::Link(LinkToSource(link)));
    }

    /// The source is not connected any more.
    pub fn end_link(&self) {
        self.tell(Input::Lost);
    }

    /// The source was heard: it has told everything that it knew until then.
    pub fn note_heard(&self) {
        self.tell(Input::Heard);
    }

    /// The oldest sync is answered.
    pub fn caught_up(&self) {
        self.tell(Input::CaughtUp);
    }

    /// The source has looked for a session whose client came here; `lives` is false if it has ended.
    pub fn revalidated(&self, session: SessionId, lives: bool) {
        self.tell(Input::Revalidated { session, lives });
    }

    /// Holds back what clients ask from now on. The receiver is told once the source has answered all that it was sent, and has nothing
    /// that is not shown. It is told nothing if the source is lost meanwhile, and then nothing is held back.
    pub fn hold(&self) -> mpsc::Receiver<Held> {
        let (done, held) = mpsc::channel();
        self.inbox.tell(MirrorInput::Hold(done));
        held
    }

    /// Requests that are held back go to the source after all.
    pub fn release(&self) {
        self.tell(Input::Release);
    }

    fn tell(&self, input: Input) {
        self.inbox.tell(MirrorInput::Engine(input));
    }
}

/// Something for the thread of the mirror.
#[derive(Debug)]
pub(crate) enum MirrorInput {
    Engine(Input),
    /// The source is connected, and is sent requests by this.
    Link(LinkToSource),
    /// `Input::Hold`, with the one who is told.
    Hold(mpsc::Sender<Held>),
    /// The end: a member takes the mirror's place.
    Retire(Sender<Retired>),
}

pub(crate) struct LinkToSource(SourceLink);

impl std::fmt::Debug for LinkToSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkToSource")
    }
}

impl From<ClientInput> for MirrorInput {
    fn from(input: ClientInput) -> MirrorInput {
        MirrorInput::Engine(Input::Client(input))
    }
}

/// The way to the mirror, for workers, and to the member that takes its place.
#[derive(Clone, Debug)]
pub(crate) struct MirrorHandle {
    inbox: Inbox<MirrorInput>,
    /// Locked for writing while the member takes over, so that no input overtakes another.
    successor: Arc<RwLock<Option<MemberHandle>>>,
}

impl MirrorHandle {
    /// Hands inputs of clients over and leaves the vector empty.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        self.work_off(inputs, 0, || {});
    }

    /// Hands inputs over, as every engine does; a member that has taken over may work at once on this thread.
    pub(crate) fn work_off(&self, inputs: &mut Vec<ClientInput>, turns_max: usize, meanwhile: impl FnMut()) {
        if inputs.is_empty() {
            return;
        }
        let successor = self.successor.read();
        match &*successor {
            Some(member) => member.work_off(inputs, turns_max, meanwhile),
            None => self.inbox.hand_over(inputs),
        }
    }

    /// The member that has taken over.
    pub(crate) fn successor(&self) -> Option<MemberHandle> {
        self.successor.read().clone()
    }

    /// Ends the mirror; `begin` makes the member that goes on in its place. No client is served until it returns.
    pub(crate) fn succeed<T>(
        &self,
        begin: impl FnOnce(Retired) -> Result<(MemberHandle, T), ServerError>,
    ) -> Result<T, ServerError> {
        let mut successor = self.successor.write();
        let (sender, retired) = bounded(1);
        self.inbox.tell(MirrorInput::Retire(sender));
        let retired = retired.recv().map_err(|_| ServerError::Panicked)?;
        let (member, begun) = begin(retired)?;
        *successor = Some(member);
        Ok(begun)
    }

    pub(crate) fn close(&self) {
        match self.successor() {
            Some(member) => member.close(),
            None => self.inbox.close(),
        }
    }
}

/// Starts the thread that answers what the workers cannot.
pub(crate) fn start(shared: &Arc<Shared>, mode: MirrorMode) -> (Mirror, MirrorHandle, JoinHandle<()>) {
    let (inbox, messages) = Inbox::new();
    let next_session = SESSIONS | (shared.clock.now().wall_ms & 0xff_ffff_ffff) << 16;
    let engine = HostedMirror {
        engine: MirrorEngine::new(mode, shared.config.member, SessionId(next_session)),
        link: None,
        holding: None,
        has_ended: false,
    };
    shared.publish(engine.report(shared.clock.now()));
    let host = EngineHost::new(shared.clone());
    let thread = spawn("mirror", move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a clock needs nothing of the system").block_on(run(host, engine, messages));
    });
    (Mirror { inbox: inbox.clone() }, MirrorHandle { inbox, successor: Arc::default() }, thread)
}

/// The engine, with the ways to those who wait for it.
struct HostedMirror {
    engine: MirrorEngine,
    link: Option<SourceLink>,
    /// To be told once nothing is under way.
    holding: Option<mpsc::Sender<Held>>,
    has_ended: bool,
}

impl Engine for HostedMirror {
    type Input = MirrorInput;

    const TICK: Duration = Duration::from_millis(100);

    fn take(&mut self, now: Now, inputs: &mut Vec<MirrorInput>, state: &mut State, out: &mut Outboxes) {
        for input in inputs.drain(..) {
            let input = match input {
                // The member in its place knows of all that comes behind this.
                _ if self.has_ended => continue,
                MirrorInput::Engine(input) => input,
                MirrorInput::Link(LinkToSource(link)) => {
                    self.link = Some(link);
                    Input::Linked
                }
                MirrorInput::Hold(done) => {
                    self.holding = Some(done);
                    Input::Hold
                }
                MirrorInput::Retire(retired) => {
                    self.has_ended = true;
                    // The member that asked waits for it.
                    let _ = retired.send(self.engine.retire());
                    continue;
                }
            };
            self.engine.step(now.monotonic_ms, input, state, out);
        }
    }

    fn carry_out(&mut self) {
        let Effects { requests, held } = self.engine.take_effects();
        if let Some(link) = self.link.as_mut().filter(|_| !requests.is_empty()) {
            link(requests);
        }
        match held {
            // A caller that does not wait for it any more lets it go.
            Some(held) => drop(self.holding.take().map(|done| done.send(held))),
            None if !self.engine.is_coming_to_rest() => self.holding = None,
            None => {}
        }
    }

    fn tick(&mut self, _: Now) -> Option<MirrorInput> {
        None
    }

    fn report(&self, now: Now) -> EngineReport {
        let role = match self.engine.mode() {
            MirrorMode::ReadOnly => Role::ReadOnly,
            MirrorMode::Forwarding if self.engine.is_serving() => Role::Observer,
            MirrorMode::Forwarding => Role::Looking,
        };
        let confirmed_ms = self.engine.confirmed_ms(now.monotonic_ms);
        EngineReport { role, standing: Standing::default(), confirmed_ms }
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}
