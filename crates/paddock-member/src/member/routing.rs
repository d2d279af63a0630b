//! The way of clients' requests to the groups, while znodes are spread over several: through the member's router.

use paddock_groups::{GroupView, Order, ReadOnlyRequest, Router};
use paddock_proto::{GroupsCommand, IdList, OpCode, SessionId, Zxid};
use paddock_replica::{HeldState, Input, Replica, Replicated};
use paddock_state::{ClientInput, Now, Outboxes, QueuedRead};
use paddock_tree::Command;
use parking_lot::MutexGuard;

use super::{Member, MemberGroup};
use crate::Shell;

/// The home group's state, whose answers go to the router first.
pub(super) struct RoutedState<'a> {
    pub(super) held: &'a mut dyn HeldState,
    pub(super) mail: &'a mut Outboxes,
    pub(super) router: &'a mut Router,
}

impl RoutedState<'_> {
    /// While all znodes are in the home group, those who read its state beside the member have to be told what they see.
    pub(super) fn pass_out(&mut self) {
        if !self.router.are_spread() {
            let (state, out) = self.held.parts();
            let home = state.tree().are_znodes_spread().then(|| state.tree().zxid());
            self.router.pass_out(self.mail, out, home);
        }
    }
}

impl HeldState for RoutedState<'_> {
    fn parts(&mut self) -> (&mut Replicated, &mut Outboxes) {
        (self.held.parts().0, self.mail)
    }

    fn yield_to_others(&mut self) {
        self.pass_out();
        self.held.yield_to_others();
    }
}

impl Member {
    /// Takes an input of a client.
    pub(super) fn take_from_client(&mut self, now: Now, input: ClientInput) {
        if let ClientInput::Seen { conn, zxid } = input
            && !self.may_have_been_given(now, zxid)
            && let Some(router) = &mut self.router
        {
            return router.refuse(conn);
        }
        let home = &self.groups[0].group;
        let needs_quorum = |read: &QueuedRead| self.config.linearizable_reads || read.op == OpCode::Sync;
        let input = match (&mut self.router, input) {
            (Some(router), input) if !home.is_read_only() => router.take(input),
            (Some(router), ClientInput::Write { conn, request, .. }) if router.are_spread() => {
                router.take_read_only(ReadOnlyRequest::Refused(conn, request));
                None
            }
            (Some(router), ClientInput::Read(read)) if router.are_spread() && needs_quorum(&read) => {
                router.take_read_only(ReadOnlyRequest::Refused(read.client.conn, read.request));
                None
            }
            (Some(router), ClientInput::Read(read)) if router.are_spread() && !home.refuses_reads() => {
                router.take_read_only(ReadOnlyRequest::Read(read));
                None
            }
            (_, input) => Some(input),
        };
        if let Some(input) = input.filter(|input| !matches!(input, ClientInput::Seen { .. })) {
            self.replica(0).step(now, Input::Client(input));
        }
    }

    /// True if a group can have given this stamp by now. Clocks that were turned back are behind what was given before: the states know.
    fn may_have_been_given(&self, now: Now, zxid: Zxid) -> bool {
        let is_known = |group: &MemberGroup| {
            group.own_state.as_ref().is_some_and(|state| zxid <= state.look().tree().zxid())
        };
        zxid <= self.presence.latest_stamp(now)
            || zxid <= self.carrier.home()
            || self.groups.iter().any(is_known)
    }

    /// Begins to note requests on their way to the home group. That has to be before any znode can lie in another one: by then the answers to all that was
    /// asked before have left.
    pub(super) fn begin_routing(&mut self) {
        if self.router.is_none() {
            let fence = self.replica(0).submitted();
            let are_reads_linearizable = self.config.linearizable_reads;
            self.router = Some(Router::new(self.config.member, are_reads_linearizable, fence));
        }
    }

    /// The home group has applied something: from the moment on at which znodes are spread, requests are routed.
    pub(super) fn follow_map(&mut self, are_spread: bool, workers: usize) {
        if self.groups.len() > 1 {
            self.begin_routing();
        }
        if let Some(router) = self.router.as_mut().filter(|_| are_spread) {
            router.begin_spread();
        }
        if self.router.is_some() && self.mail.workers() != workers {
            self.mail = Outboxes::new(workers);
        }
    }

    /// A group has applied something, and its answers are in the mail.
    pub(super) fn take_mail(&mut self, at: usize, shell: &mut impl Shell) {
        let groups = self.groups.len() as u32;
        let Some(router) = &mut self.router else {
            return self.mail.iter_mut().for_each(|(_, outbox)| outbox.clear());
        };
        let group = &self.groups[at];
        let items = group.own_state.as_ref().map(|state| state.take_applied_items()).unwrap_or_default();
        let mut home = Zxid(0);
        if !self.mail.is_empty() {
            shell.change(|state, _| home = state.tree().zxid());
        }
        router.take_mail(group.number.0, &mut self.mail, &items, home, groups);
    }

    /// Closes all connections: what they wait for, or watch, may have happened in a state that has taken the place of another.
    pub(super) fn end_routes(&mut self, shell: &mut impl Shell) {
        let Some(router) = &mut self.router else { return };
        // The session of a connection may be over, and its last answer wait for a group.
        let mut conns = router.begin_anew();
        conns.extend(self.presence.end_serving_all());
        shell.change(|_, out| conns.iter().for_each(|conn| out.close(*conn)));
    }

    /// Lets requests, answers and events go on as far as they can.
    pub(super) fn route(&mut self, shell: &mut impl Shell) {
        let Some(router) = self.router.as_mut().filter(|router| router.has_work()) else { return };
        let Member { groups, carrier, .. } = self;
        let states: Vec<MutexGuard<'_, Replicated>> =
            groups.iter().filter_map(|group| Some(group.own_state.as_ref()?.look())).collect();
        let origins: Vec<_> = groups.iter().map(|group| group.group.origin()).collect();
        let (mut orders, mut workers) = (Vec::new(), 1);
        shell.change(|home, out| {
            workers = out.workers();
            let home_zxid = home.tree().zxid();
            let mut views = vec![GroupView { state: home.state(), level: home_zxid, origin: origins[0] }];
            for (number, state) in (1..).zip(&states) {
                let level = carrier.level(number, state.tree().zxid(), home_zxid);
                views.push(GroupView { state: state.state(), level, origin: origins[number as usize] });
            }
            orders = router.work(&views, out);
        });
        drop(states);
        if self.mail.workers() != workers {
            self.mail = Outboxes::new(workers);
        }
        let now = shell.now();
        orders.into_iter().for_each(|order| self.carry_out(now, order));
    }

    fn carry_out(&mut self, now: Now, order: Order) {
        match order {
            Order::Hand { group, session, input } => {
                let is_write = matches!(input, ClientInput::Write { .. });
                let mut replica = self.replica(group as usize);
                if group == 0 {
                    replica.step(now, Input::Client(input));
                } else {
                    replica.take_routed(now, input);
                }
                let batch = replica.submitted();
                if let Some(router) = self.router.as_mut().filter(|_| is_write) {
                    router.handed(session, group, batch);
                }
            }
            Order::Submit { group, command } => {
                let mut replica = self.replica(group as usize);
                replica.submit(&command);
                let batch = replica.submitted();
                if let Some(router) = &mut self.router {
                    router.handed(Command::session_of(&command), group, batch);
                }
            }
            Order::Mark { group, at_least } => self.submit_mark(group as usize, at_least),
        }
    }

    pub(super) fn submit_mark(&mut self, at: usize, at_least: Zxid) {
        let (mut body, mut command) = (Vec::new(), Vec::new());
        GroupsCommand::Mark { at_least }.encode(&mut body);
        Command::encode(SessionId::NONE, 0, IdList::NONE, GroupsCommand::OP, &body, &mut command);
        self.replica(at).submit(&command);
    }

    /// True if requests, answers or events may go on.
    pub(super) fn has_routes(&self) -> bool {
        self.router.as_ref().is_some_and(Router::has_work)
    }

    /// Applies what a group that is not the home group has committed.
    pub(super) fn apply_in_other(&mut self, at: usize, shell: &mut impl Shell) {
        let MemberGroup { group, effects, writes, own_state, .. } = &mut self.groups[at];
        #[cfg(feature = "testing")]
        shell.committed_in(group.number(), &effects.committed);
        let state = own_state.as_ref().expect("another group has its own state");
        let mail = &mut self.mail;
        let mut replica = Replica::new(&mut self.presence, group);
        let now = shell.now();
        state.change(|state| {
            let mut held = paddock_replica::OwnState(state, mail);
            *writes += replica.apply(now, effects, &mut held).commands as u64;
        });
        self.take_mail(at, shell);
        self.follow_received(at);
        self.carry_between_groups();
    }
}
