//! Groups that the member does not have: requests go to their hosts by letters, and answers and events come from there.

use std::collections::BTreeSet;

use paddock_proto::{GroupsCommand, MemberNumber, SessionId, Zxid, is_at_or_below};
use paddock_state::{Client, ClientInput, ConnId};
use paddock_tree::{Command, SplitPoint, Tree};

use super::{Router, watchers};
use crate::away::{GuestLetter, GuestRequest, Guests, NewsOfHost, PendingQuestion, SessionStanding};
use crate::moment::NewItems;
use crate::turn::{HostQuestion, Order, session_command};
use crate::under_way::{HandedBy, UnderWay};
use crate::view::{GroupView, Groups, Replicas};

/// Watches of a member above which it does not look for those whose znodes have moved: it would keep clients waiting, and all connections that watch are closed.
const WATCHES_LOOKED_AT_MAX: usize = 200_000;

/// Members that can be the hosts of a group that is not here, the best ones first.
pub type HostChoice<'a> = &'a dyn Fn(u32) -> Vec<MemberNumber>;

impl Router {
    /// Takes a message of a group's host.
    pub fn take_frame(&mut self, from: MemberNumber, group: u32, bytes: &[u8]) {
        if !self.guests.take_frame(from, group, bytes) {
            self.lost_hosts.insert(group);
        }
    }

    /// Another process has taken the place of a member's: it knows nothing of what its guests have asked for, nor where their clients watch.
    pub fn begin_anew_with(&mut self, host: MemberNumber) {
        self.lost_hosts.extend(self.guests.at_host(host));
        self.look_for_hosts();
    }

    /// Messages for hosts, with their groups.
    pub fn frames(&mut self) -> Vec<(MemberNumber, u32, Vec<u8>)> {
        self.guests.frames()
    }

    /// True if there may be groups that need a host, or another one, or need it no more.
    pub(super) fn has_to_follow_hosts(&self, replicas: &dyn Replicas) -> bool {
        self.is_looking_for_hosts
            || !self.lost_hosts.is_empty()
            || self.host_decisions != home_of(replicas).tree().host_decisions()
    }

    /// Groups have other hosts, or none: those who wait for the former ones, or watch there, are closed, and their sessions go on.
    pub(super) fn follow_hosts(
        &mut self,
        (replicas, choice): (&dyn Replicas, HostChoice<'_>),
        guests: &mut Guests,
    ) -> Vec<Order> {
        let home = home_of(replicas);
        let mut orders = Vec::new();
        self.host_decisions = home.tree().host_decisions();
        self.has_guests = (1..replicas.count()).any(|group| !replicas.has(group));
        self.are_groups_placed = home.tree().groups().have_placement();
        if self.is_looking_for_hosts {
            guests.keep_sessions(|session| home.tree().session_timeout_ms(session).is_some());
        }
        for group in 1..replicas.count() {
            let is_lost = self.lost_hosts.remove(&group) || guests.is_silent(group);
            let decided = home.tree().host_of(self.member, group);
            if replicas.has(group) {
                if guests.has(group) {
                    guests.end(group);
                    self.close_those_of(group, home);
                }
                if decided.is_some() && self.marks.is_host_due(group, self.member) {
                    orders.push(self.choose_host(group, self.member));
                }
                continue;
            }
            if !guests.has(group) {
                // The member may have had a replica until now.
                self.close_those_of(group, home);
            }
            let candidates = choice(group);
            if let Some(host) = decided.filter(|host| guests.host(group) != Some(*host) || is_lost) {
                guests.begin(group, host, home.origin.incarnation);
                self.close_those_of(group, home);
            }
            let is_good = decided.is_some_and(|host| candidates.contains(&host)) && !is_lost;
            let other = candidates.iter().copied().find(|host| Some(*host) != decided);
            if let Some(host) = other.filter(|host| !is_good && self.marks.is_host_due(group, *host)) {
                orders.push(self.choose_host(group, host));
            }
        }
        orders
    }

    /// Has the home group decide that this member has a host for a group, or, if it is its own, none.
    fn choose_host(&self, group: u32, host: MemberNumber) -> Order {
        let chosen = GroupsCommand::Host { guest: self.member, group, host };
        Order::Submit { group: 0, command: session_command(SessionId::NONE, chosen) }
    }

    /// Closes the connections that wait for a group or watch there.
    fn close_those_of(&mut self, group: u32, home: GroupView<'_>) {
        let needing = self.conversations.iter().filter(|(_, one)| one.needs_host(group));
        // Some may have been set before there was a router, and it is not known where.
        let unknown = watchers(home).filter(|conn| !self.conversations.contains_key(conn));
        let conns: BTreeSet<ConnId> = needing.map(|(conn, _)| *conn).chain(unknown).collect();
        conns.into_iter().for_each(|conn| self.close(conn));
    }

    /// The map of slots has changed. Hosts do not take watches over from each other, or from a group that is here: the connections that watch what has moved, or a split point that was not
    /// spread before, are closed, and their clients set their watches again.
    pub(super) fn close_moved_watchers(&mut self, groups: &Groups<'_>) {
        let (points, before) = (groups.points(), &self.slots);
        let are_here = |former: u32, group: u32| groups.is_here(former) && groups.is_here(group);
        let newly_spread =
            |(point, now): &(&str, &SplitPoint)| !now.slots().is_home() && !before.is_spread(point);
        let newly_spread: Vec<&str> = points.iter().filter(newly_spread).map(|(point, _)| point).collect();
        let has_moved = |path: &str| {
            let (former, group) = (before.group_of(path), points.group_of(path));
            former != group && !are_here(former, group)
                || newly_spread.iter().any(|point| is_at_or_below(point, path))
        };
        let watches = groups.home().state.watches();
        let is_all = watches.count() > WATCHES_LOOKED_AT_MAX;
        let is_meant = |path: &str| is_all || has_moved(path);
        let set = (0..).map_while(|slice| watches.watchers_at(slice, is_meant)).flatten();
        let about_to = self.conversations.iter().filter(|(_, one)| one.is_about_to_watch_at(is_meant));
        let conns: BTreeSet<ConnId> = set.chain(about_to.map(|(conn, _)| *conn)).collect();
        conns.into_iter().filter(|conn| !conn.is_of_guest()).for_each(|conn| self.close(conn));
    }

    /// Takes everything that hosts have said, in its order.
    pub(super) fn hear_hosts(&mut self, replicas: &dyn Replicas, guests: &mut Guests) {
        while let Some((group, news)) = guests.next_news() {
            let level = guests.level(group);
            let groups = Groups::new(replicas, self.member, guests);
            let unwatched = match news {
                NewsOfHost::Further { items } => {
                    self.come_further(&NewItems::new(group, &items));
                    None
                }
                NewsOfHost::Reply { conn, slot, bytes } => {
                    self.ready.insert(conn);
                    if let Some(one) = self.conversations.get_mut(&conn) {
                        one.take_reply_of_host((group, level), slot, bytes);
                    }
                    None
                }
                NewsOfHost::Parts { conn, parts } => {
                    self.ready.insert(conn);
                    if let Some(one) = self.conversations.get_mut(&conn) {
                        one.take_parts(group, parts);
                    }
                    None
                }
                NewsOfHost::Relayed { answer } => {
                    self.take_relayed(group, answer);
                    continue;
                }
                NewsOfHost::LostAnswers => {
                    let relaying = self.conversations.iter().filter(|(_, one)| one.has_relays());
                    let conns: Vec<ConnId> = relaying.map(|(conn, _)| *conn).collect();
                    conns.into_iter().for_each(|conn| self.close(conn));
                    continue;
                }
                NewsOfHost::Close { conn } => {
                    // The connection may be gone by now.
                    if self.conversations.contains_key(&conn) {
                        self.close(conn);
                    }
                    continue;
                }
                NewsOfHost::Event { conn, bytes } => {
                    self.ready.insert(conn);
                    let one = self.conversations.get_mut(&conn);
                    one.and_then(|one| one.take_event_of_host(group, bytes, &groups)).map(|path| (conn, path))
                }
            };
            if let Some((conn, path)) = unwatched {
                guests.tell(group, GuestLetter::Unwatch { conn, path });
            }
        }
    }

    /// Turns orders to groups that are not here into letters. Returns the others.
    pub(super) fn write_letters(
        &mut self,
        (orders, questions): (Vec<Order>, Vec<(u32, HostQuestion)>),
        replicas: &dyn Replicas,
        guests: &mut Guests,
    ) -> Vec<Order> {
        let (is_here, home) = (|group: u32| replicas.has(group), home_of(replicas).tree());
        questions.into_iter().for_each(|(group, question)| ask(group, question, home, guests));
        let mut rest = Vec::new();
        for order in orders {
            match order {
                Order::Hand { group, session, needs, input } if !is_here(group) => {
                    let standing = standing(home, session);
                    let is_write = matches!(input, ClientInput::Write { .. });
                    let Some((letter, asked)) = request(input, needs, (session, standing)) else { continue };
                    if let Some((line, number)) = guests.ask(group, letter, asked).filter(|_| is_write) {
                        self.note_handed(session, UnderWay { group, by: HandedBy::Letter(line, number) });
                    }
                }
                Order::Submit { group, command } if !is_here(group) => {
                    let session = Command::session_of(&command);
                    let letter = GuestLetter::Submit { session, command };
                    if let Some((line, number)) =
                        guests.ask(group, letter, PendingQuestion::Submit { session })
                    {
                        self.note_handed(session, UnderWay { group, by: HandedBy::Letter(line, number) });
                    }
                }
                Order::Mark { group, at_least } if !is_here(group) => guests.await_level(group, at_least),
                order => rest.push(order),
            }
        }
        rest
    }
}

fn home_of(replicas: &dyn Replicas) -> GroupView<'_> {
    replicas.look(0).expect("every member has the home group")
}

/// The letter about a request of a client.
fn request(
    input: ClientInput,
    needs: Zxid,
    (session, standing): (SessionId, SessionStanding),
) -> Option<(GuestLetter, PendingQuestion)> {
    let (client, request, what) = match input {
        ClientInput::Write { conn, request, op, command } => {
            (Client::new(conn, session, &[]), request, GuestRequest::Write { op, command })
        }
        ClientInput::Read(read) => {
            (read.client, read.request, GuestRequest::Read { op: read.op, body: read.body })
        }
        _ => return None,
    };
    let asked = PendingQuestion::Request { conn: client.conn, slot: request.slot };
    Some((GuestLetter::Request { client, xid: request.xid, needs, standing, what }, asked))
}

fn ask(group: u32, question: HostQuestion, home: &Tree, guests: &mut Guests) {
    let (letter, asked) = match question {
        HostQuestion::Parts { client, as_of, queries } => {
            let asked = PendingQuestion::Parts { conn: client.conn, queries: queries.clone() };
            (GuestLetter::Parts { client, as_of, queries }, asked)
        }
        HostQuestion::Outcome { session, multi } => {
            (GuestLetter::Outcome { session, multi }, PendingQuestion::Outcome { session, multi })
        }
        HostQuestion::Attend { session, moves } => (
            GuestLetter::Attend { session, standing: standing(home, session) },
            PendingQuestion::Attend { session, moves },
        ),
        HostQuestion::Unwatch { conn, path } => {
            return guests.tell(group, GuestLetter::Unwatch { conn, path });
        }
    };
    guests.ask(group, letter, asked);
}

/// A session as it is in the home group's state.
fn standing(home: &Tree, session: SessionId) -> SessionStanding {
    SessionStanding { moves: home.session_moves(session), home: home.zxid() }
}
