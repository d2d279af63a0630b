//! A turn of the router: what it finds, what it asks for, and what goes to clients.

use std::collections::BTreeMap;

use paddock_proto::{SessionId, Zxid};
use paddock_state::{ClientInput, Outboxes};

use crate::marks::Marks;
use crate::view::Groups;

/// Something that the router asks of a group.
#[derive(Debug)]
pub enum Order {
    /// A request of a connection is to be taken. For a write [`crate::Router::handed`] is to be told which batch it came into.
    Hand { group: u32, session: SessionId, input: ClientInput },
    /// A command is to be submitted, for which no connection waits.
    Submit { group: u32, command: Vec<u8> },
    /// Something is to be logged with a zxid that is not below this one.
    Mark { group: u32, at_least: Zxid },
}

/// A turn of the router.
#[derive(Debug)]
pub(crate) struct Turn<'t, 'g> {
    pub(crate) groups: Groups<'g>,
    pub(crate) out: &'t mut Outboxes,
    pub(crate) orders: &'t mut Vec<Order>,
    pub(crate) marks: &'t mut Marks,
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
        if self.groups.level(group) >= stamp {
            return true;
        }
        for group in [0, group] {
            if self.groups.get(group).is_some_and(|view| view.tree().zxid() < stamp) {
                self.mark(group, stamp);
            }
        }
        false
    }

    pub(crate) fn mark(&mut self, group: u32, at_least: Zxid) {
        if self.marks.is_due(group, at_least) {
            self.orders.push(Order::Mark { group, at_least });
        }
    }

    /// Lets a group hear of this start of the member's process.
    pub(crate) fn tell_start(&mut self, group: u32) {
        if self.marks.is_start_due(group) {
            self.orders.push(Order::Mark { group, at_least: Zxid(0) });
        }
    }
}
