//! A turn of the router: what it finds, what it asks for, and what goes to clients.

use std::collections::BTreeMap;

use paddock_proto::{GroupsCommand, IdList, MemberNumber, SessionId, Zxid};
use paddock_state::{Client, ClientInput, ConnId, Outboxes};
use paddock_tree::Command;

use crate::marks::{Marks, RaisedStamps};
use crate::parts::PartQuery;
use crate::view::Groups;

/// Something that the router asks of a group.
#[derive(Debug)]
pub enum Order {
    /// A request of a connection is to be taken by a group that lacks nothing up to `needs`. For a write [`crate::Router::handed`] is to be told which batch it
    /// came into.
    Hand { group: u32, session: SessionId, needs: Zxid, input: ClientInput },
    /// A command is to be submitted, for which no connection waits.
    Submit { group: u32, command: Vec<u8> },
    /// Something is to be logged with a zxid that is not below this one.
    Mark { group: u32, at_least: Zxid },
    /// A request of another member's client is to be taken: [`crate::Hosting::handed`] is to be told which batch a write came into.
    HandFor { guest: MemberNumber, group: u32, input: ClientInput },
    /// A command of another member is to be submitted, of which [`crate::Hosting::handed`] is to be told.
    SubmitFor { guest: MemberNumber, group: u32, command: Vec<u8> },
}

/// Something that a group's host is asked for, and that no replica here need be.
#[derive(Debug)]
pub(crate) enum HostQuestion {
    /// Parts of an answer as of a stamp.
    Parts { client: Client, as_of: Zxid, queries: Vec<PartQuery> },
    /// The outcome of a multi over groups.
    Outcome { session: SessionId, multi: i64 },
    /// Waits until the group takes the writes of a session, whose moves this counts.
    Attend { session: SessionId, moves: u32 },
    /// A client does not watch a path any more.
    Unwatch { conn: ConnId, path: String },
}

/// A command between groups, of a session or of none.
pub(crate) fn session_command(session: SessionId, command: GroupsCommand<'_>) -> Vec<u8> {
    Command::between_groups(session, IdList::NONE, &command)
}

/// A turn of the router.
#[derive(Debug)]
pub(crate) struct Turn<'t, 'g> {
    pub(crate) groups: Groups<'g>,
    pub(crate) out: &'t mut Outboxes,
    pub(crate) orders: &'t mut Vec<Order>,
    /// Questions to the hosts of groups.
    pub(crate) questions: &'t mut Vec<(u32, HostQuestion)>,
    pub(crate) marks: &'t mut Marks,
    pub(crate) raised: &'t mut RaisedStamps,
    /// Split points with children in several groups, each with the stamp from which on that has been so.
    pub(crate) spread_since: &'t BTreeMap<String, Zxid>,
    /// Every read has to see what was written anywhere before it.
    pub(crate) are_reads_linearizable: bool,
    /// Slots move, or have moved of late: a read that is under way may be refused by its group.
    pub(crate) may_slots_move: bool,
}

impl Turn<'_, '_> {
    /// True if a group's replica lacks nothing up to a stamp; asks for entries if that is missing.
    pub(crate) fn is_at(&mut self, group: u32, stamp: Zxid) -> bool {
        self.bring_home(stamp);
        if self.groups.level(group) >= stamp {
            return true;
        }
        if group > 0 && (self.groups.is_away(group) || self.groups.zxid(group) < stamp) {
            self.mark(group, stamp);
        }
        false
    }

    /// True if a group, whose replica is here, may be given a write of a session that was shown this stamp elsewhere. What is handed to it from now on is stamped above that; else an entry of
    /// home's is asked for.
    pub(crate) fn takes_write(&mut self, group: u32, shown: Zxid) -> bool {
        if group > 0 {
            self.bring_home(shown);
        }
        let takes = self.groups.takes_writes(group, shown);
        if takes && self.raised.needs_mark(group, self.groups.zxid(group), shown) {
            self.orders.push(Order::Mark { group, at_least: shown });
        }
        takes
    }

    /// Asks for an entry of home's, if it is not as far as is waited for.
    fn bring_home(&mut self, awaited: Zxid) {
        if let Some(at_least) = self.groups.home_mark(awaited) {
            self.mark(0, at_least);
        }
    }

    pub(crate) fn ask(&mut self, group: u32, question: HostQuestion) {
        self.questions.push((group, question));
    }

    pub(crate) fn mark(&mut self, group: u32, at_least: Zxid) {
        if self.groups.is_away(group) || self.marks.is_due(group, at_least) {
            self.orders.push(Order::Mark { group, at_least });
        }
    }

    /// Lets a session come to a group, with its moves.
    pub(crate) fn bring(&mut self, session: SessionId, group: u32) {
        let moves = self.groups.home().tree().session_moves(session);
        if self.marks.is_coming_due((session, moves), group) {
            let command = session_command(session, GroupsCommand::Through { moves });
            self.orders.push(Order::Submit { group, command });
        }
    }

    /// Lets a group hear of this start of the member's process.
    pub(crate) fn tell_start(&mut self, group: u32) {
        if self.marks.is_start_due(group) {
            self.orders.push(Order::Mark { group, at_least: Zxid(0) });
        }
    }
}
