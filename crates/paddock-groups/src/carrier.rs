//! The way of items from the home group's state into the logs of other groups, and of acknowledgements back.
//!
//! A member looks at its own replicas: what one of them has applied is committed. The leader of a group proposes the items that its replica of the home group has and its
//! replica of the group has not, and submits to the home group what the group has to answer: acknowledgements, votes, znodes of slots that leave. The home group's leader needs
//! no replica of the group for that. Leaders change, and two may propose the same: the group applies each item once and in order whatever its log says, and an acknowledgement that is old changes nothing. So all that is
//! remembered here is what was proposed in the term in which the member leads, and it may be forgotten.
//!
//! Invariant: an item is proposed only behind those before it, and nothing is acknowledged that the group's replica here has not applied.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paddock_proto::jute::Reader;
use paddock_proto::{GroupsCommand, StreamItem, Zxid};
use paddock_tree::{PendingItem, Tree};

use crate::givings::Givings;
use crate::last_proposal::LOST_TICKS;
use crate::votes::Votes;

/// Items that are proposed to a group at a time.
const ITEMS_AT_ONCE: u64 = 256;

/// Streams of the home group and what the other groups have of them, as the replicas of one member know it.
#[derive(Debug, Default)]
pub struct Carrier {
    by_group: BTreeMap<u32, Carried>,
    votes: Votes,
    givings: Givings,
    home: Zxid,
    /// Progress of the home group's streams, as far as they were looked at.
    streams: u64,
    /// Groups for which, or of which, there may be something to propose.
    stirred: BTreeSet<u32>,
}

/// The stream to one group.
#[derive(Debug, Default)]
struct Carried {
    /// Number of the last item that the home group knows to be applied.
    acknowledged: u64,
    /// Number of the last item that is not kept here any more.
    dropped: u64,
    /// Items behind that one: those that were not acknowledged, and those that the group's replica here has not applied.
    kept: VecDeque<PendingItem>,
    /// Number of the last item that the group has applied.
    received: u64,
    lacking: LackingDecisions,
    items: Proposed,
    acknowledgement: Proposed,
}

/// Decisions that change znodes, and whose items a group's replica here lacks. Those of one entry of the home group need not stand in the order of their zxids, so each is
/// kept that is earlier than all behind it: the first is the earliest of all.
#[derive(Debug, Default)]
struct LackingDecisions(VecDeque<(u64, Zxid)>);

impl LackingDecisions {
    fn add(&mut self, number: u64, item: &PendingItem) {
        if item.changes_znodes() {
            while self.0.pop_back_if(|(_, last)| *last >= item.decided).is_some() {}
            self.0.push_back((number, item.decided));
        }
    }

    /// The replica has the items up to this one.
    fn drop_until(&mut self, received: u64) {
        while self.0.pop_front_if(|(number, _)| *number <= received).is_some() {}
    }

    fn first(&self) -> Option<Zxid> {
        self.0.front().map(|(_, decided)| *decided)
    }
}

/// The last number that was proposed in a term.
#[derive(Debug, Default)]
struct Proposed {
    term: u64,
    number: u64,
    /// Ticks since it was proposed.
    ticks: u32,
}

impl Proposed {
    /// The number, if it was proposed in this term and may yet be applied.
    fn in_term(&self, term: u64) -> u64 {
        if self.term == term && self.ticks < LOST_TICKS { self.number } else { 0 }
    }

    fn note(&mut self, term: u64, number: u64) {
        *self = Proposed { term, number, ticks: 0 };
    }
}

impl Carried {
    fn last(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    fn item(&self, number: u64) -> Option<&PendingItem> {
        let place = number.checked_sub(self.dropped + 1)?;
        self.kept.get(usize::try_from(place).ok()?)
    }

    /// Adds an item behind the last one.
    fn keep(&mut self, item: PendingItem) {
        let number = self.last() + 1;
        if number > self.received {
            self.lacking.add(number, &item);
        }
        self.kept.push_back(item);
    }

    /// The group's replica here has applied the items up to this one.
    fn receive(&mut self, received: u64) {
        let is_another = received < self.received;
        self.received = received;
        self.lacking.drop_until(received);
        if is_another {
            self.lacking = LackingDecisions::default();
            let kept = (self.dropped + 1..).zip(&self.kept);
            kept.filter(|(number, _)| *number > received)
                .for_each(|(number, item)| self.lacking.add(number, item));
        }
    }

    /// Drops items that are needed no more: the group's replica here knows them, and no other can lack them.
    fn drop_known(&mut self) {
        let known = self.acknowledged.min(self.received).saturating_sub(self.dropped);
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(self.kept.len());
        self.kept.drain(..known);
        self.dropped += known as u64;
    }
}

impl Carrier {
    /// The home group's replica here has come so far.
    pub fn follow_home(&mut self, home: &Tree) {
        self.home = home.zxid();
        self.votes.await_these(home.awaited_votes());
        self.givings.follow_home(home);
        self.stirred.extend(self.votes.awaited_groups());
        self.stirred.extend(self.givings.groups());
        if home.streams().progress() == self.streams {
            return;
        }
        self.streams = home.streams().progress();
        for (group, stream) in home.streams().iter() {
            let carried = self.by_group.entry(group).or_default();
            if stream.last() == carried.last() && stream.acknowledged() == carried.acknowledged {
                continue;
            }
            if stream.acknowledged() > carried.last() {
                // Items have come and gone that this member has not seen: its replica of the home group was replaced.
                (carried.dropped, carried.kept) = (stream.acknowledged(), VecDeque::new());
                carried.lacking = LackingDecisions::default();
            }
            carried.acknowledged = stream.acknowledged();
            let known = carried.last();
            stream.behind(known).for_each(|(_, item)| carried.keep(item.clone()));
            carried.drop_known();
            self.stirred.insert(group);
        }
    }

    /// Zxid of the home group's replica here.
    pub fn home(&self) -> Zxid {
        self.home
    }

    /// Groups whose states are to be shown by [`Carrier::follow_group`]: the home group waits for what they have.
    pub fn awaited_groups(&self) -> Vec<u32> {
        self.givings.from().collect()
    }

    /// A group's replica here is in this state.
    pub fn follow_group(&mut self, group: u32, state: &Tree) {
        self.stirred.insert(group);
        self.votes.are_given(group, state.zxid(), state.votes());
        self.givings.follow_group(group, state);
        let received = state.received_items();
        if received > 0 {
            let carried = self.by_group.entry(group).or_default();
            carried.receive(received);
            carried.drop_known();
        }
    }

    /// The member has no replica of the group any more: a later one begins with nothing.
    pub fn forget_group(&mut self, group: u32) {
        if let Some(carried) = self.by_group.get_mut(&group) {
            carried.receive(0);
        }
    }

    /// This member leads the group, in a term in which nothing of it was proposed.
    pub fn stir(&mut self, group: u32) {
        self.stirred.insert(group);
    }

    /// Groups for which there may be something to propose by [`Carrier::propose_items`] and [`Carrier::propose_answers`], since this was asked last.
    pub fn take_stirred(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.stirred)
    }

    /// Stamp up to which another group's replica here lacks no decision of the home group, whose replica here has applied it up to `home`.
    pub fn settled(&self, group: u32, home: Zxid) -> Zxid {
        let Some(carried) = self.by_group.get(&group) else { return home };
        if carried.received < carried.dropped {
            // What the replica lacks is not known here. It is in the group's log, and comes.
            return Zxid(0);
        }
        carried.lacking.first().map_or(home, |lacking| home.min(Zxid(lacking.0 - 1)))
    }

    /// A tick has passed.
    pub fn tick(&mut self) {
        self.votes.tick();
        self.givings.tick();
        // What was proposed may be lost.
        self.stirred.extend(self.votes.awaited_groups());
        self.stirred.extend(self.givings.groups());
        for (group, carried) in &mut self.by_group {
            if carried.last() > carried.acknowledged {
                self.stirred.insert(*group);
            }
            for proposed in [&mut carried.items, &mut carried.acknowledgement] {
                proposed.ticks = proposed.ticks.saturating_add(1);
            }
        }
    }

    /// Number of items that are not known to be applied, of all groups together.
    pub fn pending(&self) -> u64 {
        self.by_group.values().map(|carried| carried.last() - carried.acknowledged).sum()
    }

    /// Gives `propose` the items that are to be put into the log of a group, which this member leads in this term.
    pub fn propose_items(&mut self, group: u32, term: u64, mut propose: impl FnMut(&GroupsCommand<'_>)) {
        let Some(carried) = self.by_group.get_mut(&group) else { return };
        let first = carried.received.max(carried.items.in_term(term)) + 1;
        let last = carried.last().min(carried.received + ITEMS_AT_ONCE);
        if first > last {
            return;
        }
        for number in first..=last {
            let Some(item) = carried.item(number) else { return };
            let decided = item.decided;
            let item = StreamItem::decode(&mut Reader::new(&item.bytes));
            let item = item.expect("a state has items that can be read");
            propose(&GroupsCommand::Item { number, decided, item });
        }
        carried.items.note(term, last);
    }

    /// Gives `submit` what the home group is to be told of a group, which this member leads in this term.
    pub fn propose_answers(&mut self, group: u32, term: u64, mut submit: impl FnMut(&GroupsCommand<'_>)) {
        self.votes.propose(group, term, &mut submit);
        self.givings.propose(group, term, &mut submit);
        let Some(carried) = self.by_group.get_mut(&group) else { return };
        let number = carried.received.min(carried.last());
        if number > carried.acknowledged.max(carried.acknowledgement.in_term(term)) {
            submit(&GroupsCommand::Acknowledge { group, number });
            carried.acknowledgement.note(term, number);
        }
    }

    /// Gives `propose` the votes of groups that have not voted for too long, for the log of the home group, which this member leads in this term.
    pub fn propose_missing(&mut self, term: u64, propose: impl FnMut(&GroupsCommand<'_>)) {
        self.votes.propose_missing(term, propose);
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{CreateMode, IdList, OpCode, SessionId, encode};
    use paddock_tree::{Command, FeatureLevel, GroupFounders, RaisedLevel};

    use super::*;

    /// The home group's state, whose stream to group 1 gets an item with each change.
    struct Home(Tree);

    impl Home {
        fn new() -> Home {
            let mut tree = Tree::new();
            tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
            tree.found_groups(2, GroupFounders::default());
            let mut home = Home(tree);
            home.take(&GroupsCommand::Split { path: "/a" });
            home
        }

        fn apply(&mut self, op: OpCode, body: &[u8]) {
            let mut bytes = Vec::new();
            Command::encode(SessionId::NONE, 5, IdList::NONE, op, body, &mut bytes);
            self.0.apply(&Command::decode(&bytes).unwrap()).result.unwrap();
        }

        fn take(&mut self, command: &GroupsCommand<'_>) {
            let mut body = Vec::new();
            command.encode(&mut body);
            self.apply(GroupsCommand::OP, &body);
        }

        /// Adds items.
        fn add(&mut self, items: usize) {
            for _ in 0..items {
                let mut body = Vec::new();
                if self.0.stat("/a").is_some() {
                    encode::path_and_version(&mut body, "/a", -1);
                    self.apply(OpCode::Delete, &body);
                } else {
                    encode::create_open(&mut body, "/a", None, CreateMode::Persistent);
                    self.apply(OpCode::Create, &body);
                }
            }
        }
    }

    /// A group's state that has applied `items`.
    fn received(items: u64) -> Tree {
        let mut tree = Tree::new();
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        for number in 1..=items {
            let (mut body, mut bytes) = (Vec::new(), Vec::new());
            let item = StreamItem::SplitPoint { path: "/a", acl: None };
            GroupsCommand::Item { number, decided: Zxid(0), item }.encode(&mut body);
            Command::encode(SessionId::NONE, 5, IdList::NONE, GroupsCommand::OP, &body, &mut bytes);
            tree.apply(&Command::decode(&bytes).unwrap()).result.unwrap();
        }
        tree
    }

    fn items(carrier: &mut Carrier, term: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        carrier.propose_items(1, term, |command| match command {
            GroupsCommand::Item { number, .. } => numbers.push(*number),
            other => panic!("{other:?}"),
        });
        numbers
    }

    fn acknowledged(carrier: &mut Carrier, term: u64) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        carrier.propose_answers(1, term, |command| match command {
            GroupsCommand::Acknowledge { group, number } => found.push((*group, *number)),
            other => panic!("{other:?}"),
        });
        found
    }

    #[test]
    fn items_are_proposed_once_in_a_term_until_they_seem_to_be_lost() {
        let (mut home, mut carrier) = (Home::new(), Carrier::default());
        assert_eq!(items(&mut carrier, 3), []);
        home.add(2);
        carrier.follow_home(&home.0);
        assert_eq!((items(&mut carrier, 3), carrier.pending()), (vec![1, 2], 2));
        home.add(1);
        carrier.follow_home(&home.0);
        assert_eq!(items(&mut carrier, 3), [3]);
        assert_eq!(items(&mut carrier, 4), [1, 2, 3], "another leader may have been between");
        carrier.follow_group(1, &received(2));
        assert_eq!(items(&mut carrier, 4), []);
        (0..LOST_TICKS).for_each(|_| carrier.tick());
        assert_eq!((items(&mut carrier, 4), items(&mut carrier, 4)), (vec![3], vec![]));
    }

    #[test]
    fn a_group_is_named_when_there_may_be_something_to_propose() {
        let (mut home, mut carrier) = (Home::new(), Carrier::default());
        let named = |carrier: &mut Carrier| carrier.take_stirred().into_iter().collect::<Vec<_>>();
        home.add(1);
        carrier.follow_home(&home.0);
        assert_eq!((named(&mut carrier), named(&mut carrier)), (vec![1], vec![]));
        carrier.follow_home(&home.0);
        assert_eq!(named(&mut carrier), [], "the stream is as it was");
        carrier.tick();
        assert_eq!(named(&mut carrier), [1], "what was proposed may be lost");
        carrier.follow_group(1, &received(1));
        assert_eq!(named(&mut carrier), [1]);
        home.take(&GroupsCommand::Acknowledge { group: 1, number: 1 });
        carrier.follow_home(&home.0);
        named(&mut carrier);
        carrier.tick();
        assert_eq!(named(&mut carrier), []);
    }

    #[test]
    fn what_is_applied_is_acknowledged_and_no_more() {
        let (mut home, mut carrier) = (Home::new(), Carrier::default());
        home.add(5);
        carrier.follow_home(&home.0);
        assert_eq!(items(&mut carrier, 3).len(), 5);
        assert_eq!(acknowledged(&mut carrier, 7), [], "they are proposed only");
        carrier.follow_group(1, &received(3));
        assert_eq!(acknowledged(&mut carrier, 7), [(1, 3)]);
        assert_eq!(acknowledged(&mut carrier, 7), []);
        assert_eq!(acknowledged(&mut carrier, 8), [(1, 3)]);
        home.take(&GroupsCommand::Acknowledge { group: 1, number: 3 });
        carrier.follow_home(&home.0);
        assert_eq!((acknowledged(&mut carrier, 9), carrier.pending()), (vec![], 2));
        assert_eq!(items(&mut carrier, 4), [4, 5]);
        // The replica of the home group lags: the group has had more than it knows of.
        carrier.follow_group(1, &received(9));
        assert_eq!((items(&mut carrier, 5), acknowledged(&mut carrier, 9)), (vec![], vec![(1, 5)]));
    }

    #[test]
    fn a_member_that_comes_later_begins_where_the_others_are() {
        let mut home = Home::new();
        home.add(5);
        home.take(&GroupsCommand::Acknowledge { group: 1, number: 4 });
        let mut carrier = Carrier::default();
        carrier.follow_home(&home.0);
        // Its replica of the group lags: the items before are in the group's log, and it does not lead.
        assert_eq!(items(&mut carrier, 3), []);
        carrier.follow_group(1, &received(4));
        assert_eq!(items(&mut carrier, 3), [5]);
    }

    #[test]
    fn a_long_stream_is_proposed_in_portions() {
        let (mut home, mut carrier) = (Home::new(), Carrier::default());
        home.add(ITEMS_AT_ONCE as usize + 3);
        carrier.follow_home(&home.0);
        assert_eq!(items(&mut carrier, 3).len(), ITEMS_AT_ONCE as usize);
        carrier.follow_group(1, &received(2));
        assert_eq!(items(&mut carrier, 3), [ITEMS_AT_ONCE + 1, ITEMS_AT_ONCE + 2]);
    }
}
