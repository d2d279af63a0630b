//! Each step: of home, of a group that gets a command or an item, of the client and its owner.

use super::rules::{LevelSessions, LevelSessionsMistake, LevelSessionsRequest};
use super::state::{
    LevelSessionsCommand, LevelSessionsItem, LevelSessionsMessage, LevelSessionsState, LevelSessionsStep,
};
use crate::worlds::level_logs::{GROUPS, HOME};

/// Requests to one group that may be under way together.
const OUTSTANDING_MAX: usize = 2;

impl LevelSessionsState {
    pub(super) fn first() -> LevelSessionsState {
        let mut state = LevelSessionsState::default();
        state.groups[HOME].owner = Some(0);
        state
    }

    pub(super) fn step(&mut self, model: &LevelSessions, action: LevelSessionsStep) -> Option<()> {
        match action {
            LevelSessionsStep::Send => self.send(model),
            LevelSessionsStep::Arrive(index) => {
                let message = self.messages.remove(index);
                self.arrive(model, message);
                Some(())
            }
            LevelSessionsStep::TakeItem(group) => self.take_item(model, group),
            LevelSessionsStep::Move => self.move_session(model),
            LevelSessionsStep::TimeOut => {
                self.has_ended = true;
                self.groups[HOME].has_ended = true;
                self.groups[HOME].has_ephemeral = false;
                self.tell_attached(LevelSessionsItem::End);
                Some(())
            }
            LevelSessionsStep::TellExpired => {
                self.told = true;
                Some(())
            }
            LevelSessionsStep::LookForLock(group) => {
                let lacks_items = (self.groups[group].items as usize) < self.streams[group].len();
                if lacks_items && !model.is(LevelSessionsMistake::CreationShowsNothing) {
                    return None;
                }
                self.found_own_lock |= self.groups[group].has_ephemeral;
                Some(())
            }
        }
    }

    fn move_session(&mut self, model: &LevelSessions) -> Option<()> {
        let at_once = matches!(
            model.mistake,
            Some(
                LevelSessionsMistake::TakenBackAtOnce
                    | LevelSessionsMistake::LeavesUnderWay
                    | LevelSessionsMistake::OwnerItemStalls
            )
        );
        if !at_once && self.has_under_way(model, self.owner + 1) {
            return None;
        }
        self.owner += 1;
        // The client does not learn the end of what was outstanding, and goes on.
        self.outstanding.clear();
        self.groups[HOME].owner = Some(self.owner);
        self.groups[HOME].is_stalled = model.is(LevelSessionsMistake::OwnerItemStalls);
        self.tell_attached(LevelSessionsItem::NewOwner { owner: self.owner });
        Some(())
    }

    fn tell_attached(&mut self, item: LevelSessionsItem) {
        for group in 1..GROUPS {
            if self.is_attached(group) {
                self.streams[group].push(item);
            }
        }
    }

    fn post(&mut self, group: usize, command: LevelSessionsCommand) -> Option<()> {
        let message = LevelSessionsMessage { owner: self.owner, group, command };
        if self.messages.contains(&message) {
            return None;
        }
        self.messages.push(message);
        Some(())
    }

    fn send(&mut self, model: &LevelSessions) -> Option<()> {
        let request = model.program[self.next as usize];
        let Some((group, is_ephemeral)) = target(request) else { return self.sync(model) };
        let has_other =
            |&other: &u8| target(model.program[other as usize]).is_none_or(|other| other.0 != group);
        if self.outstanding.len() >= OUTSTANDING_MAX || self.outstanding.iter().any(has_other) {
            return None;
        }
        let attaches = is_ephemeral || !model.is(LevelSessionsMistake::AttachesForEphemeralsOnly);
        if attaches && !self.is_attached(group) {
            return self.post(HOME, LevelSessionsCommand::Attach(group));
        }
        let knows_session =
            self.groups[group].owner == Some(self.owner) || !attaches && !self.is_attached(group);
        let have_heard = self.have_heard() || model.is(LevelSessionsMistake::WriteWaitsForItsGroup);
        let is_free =
            !self.has_under_way(model, self.owner) || model.is(LevelSessionsMistake::LeavesUnderWay);
        if !knows_session || !have_heard || !is_free {
            return None;
        }
        if self.groups[group].is_stalled {
            return self.post(group, LevelSessionsCommand::GoOn);
        }
        self.post(group, LevelSessionsCommand::Request(self.next))?;
        self.outstanding.push(self.next);
        self.next += 1;
        Some(())
    }

    fn sync(&mut self, model: &LevelSessions) -> Option<()> {
        let is_free = self.have_heard() && !self.has_under_way(model, self.owner);
        if !self.outstanding.is_empty() || !is_free && !model.is(LevelSessionsMistake::SyncWaitsNot) {
            return None;
        }
        self.take_effect(self.next);
        self.next += 1;
        Some(())
    }

    fn take_effect(&mut self, request: u8) {
        self.is_out_of_order |= self.took_effect >> (request + 1) != 0;
        self.took_effect |= 1 << request;
    }

    fn arrive(&mut self, model: &LevelSessions, message: LevelSessionsMessage) {
        match message.command {
            LevelSessionsCommand::Request(request) => self.request(model, message, request),
            LevelSessionsCommand::GoOn => {
                let known = &mut self.groups[message.group];
                known.is_stalled &= !known.owner.is_some_and(|known| model.is_owner(known, message.owner));
            }
            LevelSessionsCommand::Attach(group) => {
                let is_late = self.has_ended && !model.is(LevelSessionsMistake::AttachesAfterEnd);
                if !self.is_attached(group) && !is_late {
                    self.attached |= 1 << group;
                    self.streams[group].push(LevelSessionsItem::Attach { owner: self.owner });
                }
            }
        }
    }

    fn request(&mut self, model: &LevelSessions, message: LevelSessionsMessage, request: u8) {
        let Some((_, is_ephemeral)) = target(model.program[request as usize]) else { return };
        let known = &mut self.groups[message.group];
        let is_owner = match known.owner {
            Some(known) => model.is_owner(known, message.owner),
            None => model.is(LevelSessionsMistake::AttachesForEphemeralsOnly) && !is_ephemeral,
        };
        let is_live = message.owner == self.owner;
        if is_owner && !known.has_ended && !known.is_stalled {
            known.has_ephemeral |= is_ephemeral;
            // A connection's request takes effect, and an earlier one does not.
            self.is_out_of_order |=
                self.refused.iter().any(|&(owner, earlier)| owner == message.owner && earlier < request);
            self.take_effect(request);
        } else {
            if is_live {
                // The owner sends it again.
                self.next = self.next.min(request);
            } else {
                self.refused.push((message.owner, request));
            }
        }
        if is_live {
            self.outstanding.retain(|&other| other != request);
        }
    }

    fn take_item(&mut self, model: &LevelSessions, group: usize) -> Option<()> {
        let known = &mut self.groups[group];
        let item = *self.streams[group].get(known.items as usize)?;
        known.items += 1;
        match item {
            LevelSessionsItem::Attach { owner } => known.owner = Some(owner),
            LevelSessionsItem::NewOwner { owner } => {
                known.owner = Some(owner);
                known.is_stalled = model.is(LevelSessionsMistake::OwnerItemStalls);
            }
            LevelSessionsItem::End => {
                known.has_ended = true;
                known.has_ephemeral = false;
            }
        }
        Some(())
    }
}

/// The group of a write, and whether it creates an ephemeral.
fn target(request: LevelSessionsRequest) -> Option<(usize, bool)> {
    match request {
        LevelSessionsRequest::Write { group } => Some((group, false)),
        LevelSessionsRequest::CreateEphemeral { group } => Some((group, true)),
        LevelSessionsRequest::Sync => None,
    }
}
