//! The way of clients' requests to the groups, while znodes are spread over several: through the member's router.

use paddock_groups::{Order, ReadOnlyRequest, Router};
use paddock_proto::{GroupsCommand, IdList, MemberNumber, OpCode, SessionId, Zxid};
use paddock_replica::{HeldState, Input, Replica, Replicated};
use paddock_state::{ClientInput, Now, Outboxes, QueuedRead};
use paddock_storage::GroupNumber;
use paddock_tree::{Command, Origin, Tree};

use super::Member;
use super::group::MemberGroup;
use super::served::ServedReplicas;
use crate::Shell;
use crate::addressed::{self, LetterWay};

/// Facts of the home group's state that a member looks at when it has applied something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MapFacts {
    /// Number of groups, with the home group.
    groups: u32,
    /// Znodes lie in several of them.
    are_spread: bool,
    /// The largest zxid that clients may have been told by those who read the state while all znodes were in it.
    told: Zxid,
}

impl MapFacts {
    pub(super) fn of(home: &Tree) -> MapFacts {
        let are_spread = home.split_points().are_spread();
        MapFacts { groups: home.groups().count(), are_spread, told: home.zxid() }
    }

    /// Facts of a state that has been read by others meanwhile.
    pub(super) fn behind(home: &Tree, told: Zxid) -> MapFacts {
        MapFacts { told, ..MapFacts::of(home) }
    }
}

/// The home group's state, whose answers go to the router first.
pub(super) struct RoutedState<'a> {
    pub(super) held: &'a mut dyn HeldState,
    pub(super) mail: &'a mut Outboxes,
    pub(super) router: &'a mut Router,
    /// The largest zxid that clients may have been told by those who read the state beside the member, while all znodes are in it.
    pub(super) told: Zxid,
}

impl RoutedState<'_> {
    /// While all znodes are in the home group, those who read its state beside the member have to be told what they see.
    pub(super) fn pass_out(&mut self) {
        if !self.router.are_spread() {
            let (state, out) = self.held.parts();
            let is_away = state.tree().are_znodes_spread();
            if !is_away {
                self.told = state.tree().zxid();
            }
            self.router.pass_out(self.mail, out, is_away.then_some(self.told));
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
        // What a connection has seen, and its end, mean the same while nothing can be written.
        let is_of_any_mode = matches!(input, ClientInput::Seen { .. } | ClientInput::Disconnect { .. });
        let input = match (&mut self.router, input) {
            (Some(router), input) if !home.is_read_only() || is_of_any_mode => router.take(input),
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
    pub(super) fn follow_map(&mut self, map: MapFacts, workers: usize) {
        if map.groups > 1 {
            self.begin_routing();
        }
        if let Some(router) = self.router.as_mut().filter(|_| map.are_spread) {
            router.begin_spread(map.told);
        }
        if self.router.is_some() && self.mail.workers() != workers {
            self.mail = Outboxes::new(workers);
        }
    }

    /// A group has applied something, and its answers are in the mail.
    pub(super) fn take_mail(&mut self, at: usize, shell: &mut impl Shell) {
        let group = &self.groups[at];
        let (mut items, answers) =
            group.own_state.as_ref().map(|state| state.take_applied_items()).unwrap_or_default();
        if at == 0 {
            self.hosting.follow_home();
        }
        let Some(router) = &mut self.router else {
            return self.mail.iter_mut().for_each(|(_, outbox)| outbox.clear());
        };
        if let Some(state) = group.own_state.as_ref().filter(|_| self.hosting.has_guests()) {
            let state = state.look();
            self.hosting.take_mail((group.number.0, state.tree()), &mut self.mail, (&items, &answers));
        }
        let (mut home, mut groups) = (Zxid(0), 0);
        if at == 0 || !self.mail.is_empty() {
            shell.change(|state, _| {
                (home, groups) = (state.tree().zxid(), state.tree().groups().count());
                if at == 0 {
                    items = state.tree_mut().take_applied_items();
                }
            });
        }
        router.take_mail(group.number.0, &mut self.mail, (&items, answers), home, groups);
    }

    /// Closes all connections: what they wait for, or watch, may have happened in a state that has taken the place of another.
    pub(super) fn end_routes(&mut self, at: usize, shell: &mut impl Shell) {
        if !self.presence.serves(self.groups[at].number.0) {
            return;
        }
        for conn in self.hosting.begin_anew(self.groups[at].number.0) {
            self.presence.watches().drop_conn(conn);
        }
        let Some(router) = &mut self.router else { return };
        // The session of a connection may be over, and its last answer wait for a group.
        let conns = router.begin_anew(self.presence.end_serving_all());
        shell.change(|_, out| conns.iter().for_each(|conn| out.close(*conn)));
    }

    /// Takes letters of a guest, or of a host.
    pub(super) fn take_letters(
        &mut self,
        from: MemberNumber,
        way: LetterWay,
        (group, letters): (u32, &[u8]),
    ) {
        let is_here =
            self.place_of(GroupNumber(group)).is_some_and(|at| at > 0) && self.presence.serves(group);
        match (way, &mut self.router) {
            (LetterWay::ToGuest, Some(router)) => router.take_frame(from, group, letters),
            (LetterWay::ToHost, Some(_)) if is_here => match self.hosting.take_frame(from, group, letters) {
                Some(gone) => gone.iter().for_each(|conn| self.presence.watches().drop_conn(*conn)),
                None => tracing::warn!(from, group, "letters of a member that cannot be read dropped"),
            },
            _ => {}
        }
    }

    /// Lets requests, answers and events go on as far as they can.
    pub(super) fn route(&mut self, shell: &mut impl Shell) {
        let is_read_only = self.groups[0].group.is_read_only();
        if let Some(router) = &mut self.router {
            router.follow_mode(is_read_only);
        }
        if !self.has_routes() {
            return;
        }
        let now = shell.now();
        let Member { config, presence, groups, carrier, router, hosting, .. } = self;
        let (mut orders, mut workers) = (Vec::new(), 1);
        let clock = presence.clock_stamp(now);
        shell.change(|home, out| {
            workers = out.workers();
            let replicas = ServedReplicas::new(home, groups, presence, carrier);
            if hosting.has_work() {
                orders = hosting.work(&replicas, config.member, clock);
            }
            if let Some(router) = router.as_mut().filter(|router| router.has_work()) {
                let hosts = |group| presence.hosts_of(home.tree(), group, now);
                orders.extend(router.work(&replicas, &hosts, clock, out));
            }
        });
        if self.mail.workers() != workers {
            self.mail = Outboxes::new(workers);
        }
        orders.into_iter().for_each(|order| self.carry_out(now, order));
        self.send_letters(shell);
    }

    fn send_letters(&mut self, shell: &mut impl Shell) {
        let to_hosts = self.router.as_mut().map(Router::frames).unwrap_or_default();
        for (to, group, frame) in to_hosts {
            shell.send(to, addressed::seal_letters(LetterWay::ToHost, group, &frame));
        }
        for (to, group, frame) in self.hosting.frames() {
            shell.send(to, addressed::seal_letters(LetterWay::ToGuest, group, &frame));
        }
    }

    fn carry_out(&mut self, now: Now, order: Order) {
        match order {
            Order::Hand { group, session, input, .. } => {
                let is_write = matches!(input, ClientInput::Write { .. });
                let Some(batch) = self.hand(now, group, input) else { return };
                if let Some(router) = self.router.as_mut().filter(|_| is_write) {
                    router.handed(session, group, batch);
                }
            }
            Order::Submit { group, command } => {
                let Some(batch) = self.submit_to(group, &command) else { return };
                if let Some(router) = &mut self.router {
                    router.handed(Command::session_of(&command), group, batch);
                }
            }
            Order::HandFor { guest, group, input } => {
                let Some(batch) = self.hand(now, group, input) else { return };
                self.hosting.handed(guest, group, batch);
            }
            Order::SubmitFor { guest, group, command } => {
                if let Some(batch) = self.submit_to(group, &command) {
                    self.hosting.handed(guest, group, batch);
                }
            }
            Order::Mark { group, at_least } => {
                if let Some(at) = self.place_of(GroupNumber(group)) {
                    self.submit_mark(at, at_least);
                }
            }
        }
    }

    /// Gives a request to a group's replica. Returns the last batch that it has a command for.
    fn hand(&mut self, now: Now, group: u32, input: ClientInput) -> Option<(Origin, u64)> {
        let at = self.place_of(GroupNumber(group))?;
        let mut replica = self.replica(at);
        if at == 0 {
            replica.step(now, Input::Client(input));
        } else {
            replica.take_routed(now, input);
        }
        Some(replica.submitted())
    }

    /// Submits a command to a group's replica, for which no connection waits. Returns its batch.
    fn submit_to(&mut self, group: u32, command: &[u8]) -> Option<(Origin, u64)> {
        let at = self.place_of(GroupNumber(group))?;
        let mut replica = self.replica(at);
        replica.submit(command);
        Some(replica.submitted())
    }

    pub(super) fn submit_mark(&mut self, at: usize, at_least: Zxid) {
        let mark = GroupsCommand::Mark { at_least };
        let command = Command::between_groups(SessionId::NONE, IdList::NONE, &mark);
        self.replica(at).submit(&command);
    }

    /// True if requests, answers or events may go on.
    pub(super) fn has_routes(&self) -> bool {
        self.hosting.has_work() || self.router.as_ref().is_some_and(Router::has_work)
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
