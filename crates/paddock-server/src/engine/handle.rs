//! The way to the engine, for workers and links.
//!
//! The engine has a thread of its own, which sleeps when nothing waits. To wake it takes longer than to do a small thing: so a
//! thread that finds the engine idle may let it work right there, if no other connection is kept waiting by that. A request that is
//! alone costs its sync and no hop between threads.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use paddock_member::{Member, MemberError, seal_of_copies};
use paddock_proto::{MemberNumber, Zxid};
use paddock_replica::Input;
use paddock_state::ClientInput;
use paddock_statistics::request_times;

use super::combining::CombiningLock;
use super::links::{self, Delivery};
use super::owner::{Engine, GroupPlaces, Message, TurnEnd};
use super::shell::MemberShell;
use crate::error::ServerError;
use crate::host::EngineHost;
use crate::shared::Shared;

/// An engine that works on another thread gets it for this many turns at most: what members say to what was written in the
/// first comes soon.
pub(crate) const BORROWED_TURNS_MAX: usize = 4;

/// Inputs for which a worker has room as soon as it has handed as many over.
const INPUTS_ROOM_MAX: usize = 1024;

/// The work for more bytes of messages takes so long that the links' thread is needed for others meanwhile.
const QUICK_BYTES_MAX: usize = 4 << 10;

/// The engine of a member, and the way to it.
pub(crate) fn new(shared: &Arc<Shared>, member: Member) -> (Engine, MemberHandle) {
    let (sender, messages) = crossbeam_channel::unbounded();
    let shell = MemberShell::new(EngineHost::new(shared.clone()));
    let engine = Engine::new(shared.clone(), member, shell, messages);
    (engine, MemberHandle { shared: shared.clone(), lock: Arc::new(CombiningLock::new(sender)) })
}

/// Messages of other members that have come together, and are queued one after the other. Only the links' thread has it.
#[derive(Debug, Default)]
struct Burst {
    /// Bytes of those that are queued, if nothing was in the queue before the first of them; else 0.
    bytes_alone: AtomicUsize,
}

#[derive(Clone, Debug)]
pub(crate) struct MemberHandle {
    shared: Arc<Shared>,
    lock: Arc<CombiningLock<Engine, Message>>,
}

impl MemberHandle {
    /// Links the member to the others of its ensemble, if there are any. Their messages come to this engine, and those about copies of groups go
    /// to `take_of_copies`.
    pub(crate) fn connect(
        &self,
        engine: &mut Engine,
        take_of_copies: fn(&Arc<Shared>, &MemberHandle, MemberNumber, &[u8]),
    ) -> Result<(), ServerError> {
        let (cluster, process) = engine.identity();
        let handle = self.clone();
        let burst = Burst::default();
        let of_copies = self.clone();
        let links = links::start(
            &self.shared,
            (cluster, process),
            move |input, bytes, delivery| handle.take_of_link(input, bytes, delivery, &burst),
            move |from, message| take_of_copies(&of_copies.shared, &of_copies, from, message),
        )?;
        engine.connect(links);
        Ok(())
    }

    /// The engine's thread: runs until the engine is closed, or the log fails.
    pub(crate) fn run(&self, engine: Engine) -> Result<(), MemberError> {
        let (engine, end) = self.lock.run_owner(engine, |engine| {
            match engine.failure.take().map_or_else(|| engine.turn(&mut || {}), Err) {
                Ok(TurnEnd::Done) => {
                    engine.sweep_watches();
                    ControlFlow::Continue(engine.rest())
                }
                Ok(TurnEnd::Last) => ControlFlow::Break(Ok(())),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        });
        end?;
        engine.end()
    }

    /// Hands inputs of clients to the engine and leaves the vector empty. After the engine's end they are dropped, and their
    /// connections are about to end too.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        self.work_off(inputs, 0, || {});
    }

    /// Hands inputs over, and lets the engine work at once on this thread, `turns_max` turns at most, if nothing else waits for it
    /// and it was not slow lately. `meanwhile` is called then as often as there may be answers.
    pub(crate) fn work_off(&self, inputs: &mut Vec<ClientInput>, turns_max: usize, meanwhile: impl FnMut()) {
        if !inputs.is_empty() {
            let handed_over = request_times::start_of_timed();
            // Turns of a load are about as large as each other.
            let room = Vec::with_capacity(inputs.len().min(INPUTS_ROOM_MAX));
            let inputs = std::mem::replace(inputs, room);
            self.take(Message::Clients(inputs, handed_over), turns_max, meanwhile);
        }
    }

    fn take(&self, message: Message, turns_max: usize, meanwhile: impl FnMut()) {
        let is_first = self.lock.queue(message);
        self.have_done(is_first, turns_max, meanwhile);
    }

    /// Takes a message of another member. Those that came together are worked off together, on the links' thread if they are small.
    fn take_of_link(&self, input: Input, bytes: usize, delivery: Delivery, burst: &Burst) {
        let is_first = self.lock.queue(Message::Member(input));
        let before = burst.bytes_alone.swap(0, Relaxed);
        let bytes = before + bytes;
        let is_alone = (is_first || before > 0) && bytes <= QUICK_BYTES_MAX;
        match delivery {
            Delivery::Followed if is_alone => burst.bytes_alone.store(bytes, Relaxed),
            Delivery::Last => self.have_done(is_alone, BORROWED_TURNS_MAX, || {}),
            Delivery::Followed | Delivery::Slow => self.lock.wake(),
        }
    }

    /// Sees to it that the engine takes what was queued: on this thread, if that was the first in the queue, or on its own.
    fn have_done(&self, is_first: bool, turns_max: usize, mut meanwhile: impl FnMut()) {
        let work = |engine: &mut Engine| {
            let may_work = !engine.is_slow && engine.failure.is_none();
            may_work.then(|| engine.failure = engine.turns(turns_max, &mut meanwhile).err())
        };
        if turns_max == 0 || !is_first || self.lock.try_run(work).is_none() {
            self.lock.wake();
        }
    }

    /// A leader that is about to stop hands the lead over.
    pub(crate) fn step_down(&self) {
        self.take(Message::Member(Input::StepDown), 0, || {});
    }

    /// The member asks the leader to hand it the lead.
    pub(crate) fn request_lead(&self) {
        self.take(Message::Member(Input::RequestLead), 0, || {});
    }

    /// A command between groups that the operator orders goes to the home group.
    pub(crate) fn order_between_groups(&self, body: Vec<u8>) {
        self.take(Message::Member(Input::BetweenGroups(body)), 0, || {});
    }

    /// The member's configuration file has these members from now on.
    pub(crate) fn change_file_members(&self, lines: String) {
        self.take(Message::FileMembers(lines), 0, || {});
    }

    /// A snapshot is to be taken soon.
    pub(crate) fn order_snapshot(&self) {
        self.take(Message::Snapshot, 0, || {});
    }

    /// The states of the groups beside the home group; `None` if the engine has ended, or does not answer in this time.
    pub(crate) fn group_places(&self, within: Duration) -> Option<GroupPlaces> {
        let (to, places) = crossbeam_channel::bounded(1);
        self.take(Message::GroupPlaces(to), 0, || {});
        places.recv_timeout(within).ok()
    }

    /// Sends a message about copies of groups to another member. It may be lost.
    pub(crate) fn send(&self, to: MemberNumber, message: &[u8]) {
        self.take(Message::Send { to, message: seal_of_copies(message) }, 0, || {});
    }

    /// Asks a group for a transaction with a zxid that is not below this one.
    pub(crate) fn mark(&self, group: u32, at_least: Zxid) {
        self.take(Message::Mark { group, at_least }, 0, || {});
    }

    /// Ends the engine, which needs nothing any more once the workers have ended.
    pub(crate) fn close(&self) {
        self.lock.close();
    }
}
