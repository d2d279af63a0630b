//! The thread of an engine that is a state machine: what waits is taken together with the state in hand, then what came of it is done.
//!
//! A member has a loop of its own (`engine/owner.rs`): it syncs its log between the two, and lends itself to other threads.

use std::time::Duration;

use paddock_state::{ClientInput, Now, Outboxes, State};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, MissedTickBehavior};

use super::EngineHost;
use crate::engine_report::EngineReport;

/// Inputs that are taken with the state in hand, at most.
const INPUTS_PER_ROUND: usize = 1024;

/// An engine that works on its host's thread.
pub(crate) trait Engine {
    type Input: From<ClientInput>;

    /// The time between two ticks.
    const TICK: Duration;

    /// Takes what has come, and leaves the vector empty.
    fn take(&mut self, now: Now, inputs: &mut Vec<Self::Input>, state: &mut State, out: &mut Outboxes);

    /// Does what came of that. Others have the state meanwhile.
    fn carry_out(&mut self);

    /// The input that tells of a tick, if the engine wants to know.
    fn tick(&mut self, now: Now) -> Option<Self::Input>;

    /// Facts for the other threads: its role, and up to when no session can have ended without being told here.
    fn report(&self, now: Now) -> EngineReport;

    /// True if it takes nothing any more.
    fn has_ended(&self) -> bool {
        false
    }
}

/// Something for the thread of an engine.
#[derive(Debug)]
pub(crate) enum Message<I> {
    /// Inputs from the front of one worker.
    Clients(Vec<ClientInput>),
    /// An input from elsewhere.
    Engine(I),
    Close,
}

/// The way to the thread of an engine.
#[derive(Debug)]
pub(crate) struct Inbox<I>(UnboundedSender<Message<I>>);

impl<I> Clone for Inbox<I> {
    fn clone(&self) -> Inbox<I> {
        Inbox(self.0.clone())
    }
}

impl<I> Inbox<I> {
    pub(crate) fn new() -> (Inbox<I>, UnboundedReceiver<Message<I>>) {
        let (sender, messages) = tokio::sync::mpsc::unbounded_channel();
        (Inbox(sender), messages)
    }

    /// Hands inputs of clients over and leaves the vector empty. After the engine's end their connections are about to end, too.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        if !inputs.is_empty() {
            let _ = self.0.send(Message::Clients(std::mem::take(inputs)));
        }
    }

    /// Tells the engine something. After its end no thread listens.
    pub(crate) fn tell(&self, input: I) {
        let _ = self.0.send(Message::Engine(input));
    }

    /// Ends the engine, which needs nothing any more once the workers have ended.
    pub(crate) fn close(&self) {
        let _ = self.0.send(Message::Close);
    }
}

/// Runs an engine until it is closed, or has ended by itself.
pub(crate) async fn run<E: Engine>(
    mut host: EngineHost,
    mut engine: E,
    mut messages: UnboundedReceiver<Message<E::Input>>,
) {
    let mut tick = tokio::time::interval(E::TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut inputs = Vec::new();
    while !engine.has_ended() {
        let slice = host.next_slice().map(Instant::from_std);
        let mut has_ticked = false;
        let first = tokio::select! {
            message = messages.recv() => Some(message.unwrap_or(Message::Close)),
            _ = tick.tick() => {
                has_ticked = true;
                inputs.extend(engine.tick(host.now()));
                None
            }
            () = tokio::time::sleep_until(slice.unwrap_or_else(Instant::now)), if slice.is_some() => None,
        };
        let mut next = first.or_else(|| messages.try_recv().ok());
        while let Some(message) = next {
            match message {
                Message::Clients(clients) => inputs.extend(clients.into_iter().map(E::Input::from)),
                Message::Engine(input) => inputs.push(input),
                Message::Close => return,
            }
            next = if inputs.len() < INPUTS_PER_ROUND { messages.try_recv().ok() } else { None };
        }
        round(&mut host, &mut engine, &mut inputs, has_ticked);
    }
}

/// Takes inputs, and publishes what came of them before it is done: no client is told of a change by an engine that is thought to look for
/// its cluster still.
pub(crate) fn round<E: Engine>(
    host: &mut EngineHost,
    engine: &mut E,
    inputs: &mut Vec<E::Input>,
    has_ticked: bool,
) {
    let now = host.now();
    if !inputs.is_empty() {
        host.change(|replicated, out| {
            out.begin_round();
            engine.take(now, inputs, replicated.state_mut(), out);
        });
    }
    if engine.has_ended() {
        return;
    }
    let report = engine.report(now);
    if has_ticked || report.role != host.shared().engine.role() {
        host.publish(report);
    } else {
        host.shared().note_contact(report.confirmed_ms);
    }
    host.sweep_watches();
    engine.carry_out();
}
