//! Each step: of home, of a group that gets a message or an item, of the client and its owner.

use super::rules::{Owners, OwnersMistake, OwnersRequest};
use super::state::{GROUPS, OwnersAttachment, OwnersItem, OwnersMessage, OwnersRun, OwnersState, OwnersStep};

impl OwnersState {
    pub(super) fn step(&mut self, model: &Owners, action: OwnersStep) -> Option<()> {
        match action {
            OwnersStep::Send => self.send(model),
            OwnersStep::SendDecision => {
                let owner = self.groups[0].staged_by?;
                self.post(OwnersMessage::Decide { owner })
            }
            OwnersStep::Arrive(message) => {
                self.messages.retain(|known| *known != message);
                self.arrive(model, message)
            }
            OwnersStep::Item { group, number } => self.item(model, group, number),
            OwnersStep::Move { supersedes } => {
                self.owner += 1;
                self.moves += 1;
                self.give_up_run(model);
                self.skip_outstanding();
                self.supersede(model, supersedes);
                self.tell_attached(OwnersItem::NewOwner { owner: self.owner });
                Some(())
            }
            OwnersStep::TimeOut { supersedes } => {
                self.has_ended = true;
                self.give_up_run(model);
                self.supersede(model, supersedes);
                self.tell_attached(OwnersItem::Fence);
                Some(())
            }
            OwnersStep::Detach(group) => self.detach(model, group),
            OwnersStep::TellExpired => {
                let is_fenced = |group: usize| {
                    self.attachments[group] == OwnersAttachment::No || self.groups[group].is_fenced
                };
                self.told = (0..GROUPS).all(is_fenced);
                Some(())
            }
        }
    }

    fn post(&mut self, message: OwnersMessage) -> Option<()> {
        if self.messages.contains(&message) {
            return None;
        }
        self.messages.push(message);
        self.messages.sort_unstable();
        Some(())
    }

    fn tell_attached(&mut self, item: OwnersItem) {
        for group in 0..GROUPS {
            if self.attachments[group] != OwnersAttachment::No {
                self.streams[group].push(item);
            }
        }
    }

    /// Drops items that were not sent yet and that an item of a newer owner, or of the end, replaces.
    fn supersede(&mut self, model: &Owners, supersedes: bool) {
        for (group, stream) in self.streams.iter_mut().enumerate() {
            let is_replaced = |item: &OwnersItem| match item {
                OwnersItem::NewOwner { .. } => true,
                OwnersItem::Release => model.is(OwnersMistake::SupersedesRelease),
                OwnersItem::Attach { .. } | OwnersItem::Detach | OwnersItem::Fence => false,
            };
            while supersedes
                && stream.len() > self.groups[group].items as usize
                && stream.last().is_some_and(is_replaced)
            {
                stream.pop();
            }
        }
    }

    fn give_up_run(&mut self, model: &Owners) {
        if self.run == OwnersRun::Open && !model.is(OwnersMistake::RunOutlivesOwner) {
            self.run = OwnersRun::GivenUp;
        }
    }

    /// The client does not learn the end of a request that was outstanding when its connection broke, and goes on.
    fn skip_outstanding(&mut self) {
        self.next += u8::from(self.is_outstanding);
        self.is_outstanding = false;
    }

    fn answer(&mut self, owner: u8) {
        if owner == self.owner && self.is_outstanding {
            self.skip_outstanding();
        }
    }

    fn send(&mut self, model: &Owners) -> Option<()> {
        let request = model.program[self.next as usize];
        let groups = match request {
            OwnersRequest::Write { group }
            | OwnersRequest::CreateEphemeral { group }
            | OwnersRequest::Sync { group } => group..group + 1,
            OwnersRequest::Run => 0..GROUPS,
        };
        let attaches = match request {
            OwnersRequest::Write { .. } => !model.is(OwnersMistake::AttachesForEphemeralsOnly),
            OwnersRequest::Sync { .. } => false,
            _ => true,
        };
        if let Some(group) =
            groups.clone().find(|&group| attaches && self.attachments[group] != OwnersAttachment::Yes)
        {
            return self.post(OwnersMessage::Attach { group });
        }
        let has_heard = |group: usize| match self.groups[group].owner {
            Some(owner) => owner == self.owner,
            None => self.attachments[group] != OwnersAttachment::Yes,
        };
        let awaits_all = match request {
            OwnersRequest::Sync { .. } => !model.is(OwnersMistake::SyncWaitsForItsGroup),
            _ => !model.is(OwnersMistake::WriteWaitsForItsGroup),
        };
        let mut awaits = if awaits_all { 0..GROUPS } else { groups.clone() };
        if !awaits.all(has_heard) {
            return None;
        }
        let owner = self.owner;
        match request {
            OwnersRequest::Sync { .. } => {
                self.take_effect(self.next);
                self.next += 1;
                return Some(());
            }
            // The model has one run of one attempt.
            OwnersRequest::Run if self.run != OwnersRun::Open => self.next += 1,
            OwnersRequest::Run => {
                for group in groups {
                    self.post(OwnersMessage::Stage { group, owner })?;
                }
                self.is_outstanding = true;
            }
            OwnersRequest::Write { .. } | OwnersRequest::CreateEphemeral { .. } => {
                self.post(OwnersMessage::Command { request: self.next, owner })?;
                self.is_outstanding = true;
            }
        }
        Some(())
    }

    fn take_effect(&mut self, request: u8) {
        self.is_out_of_order |= self.took_effect >> (request + 1) != 0;
        self.took_effect |= 1 << request;
    }

    fn write(&mut self, request: u8) {
        self.wrote_after_told |= self.told;
        self.take_effect(request);
    }

    fn arrive(&mut self, model: &Owners, message: OwnersMessage) -> Option<()> {
        match message {
            OwnersMessage::Command { request, owner } => self.command(model, request, owner),
            OwnersMessage::Stage { group, owner } => {
                let group = &mut self.groups[group];
                let is_owner = group.owner.is_some_and(|known| model.is_owner(known, owner));
                if !group.is_fenced && is_owner || model.is(OwnersMistake::FormerOwnerStages) {
                    group.staged_by = Some(owner);
                }
            }
            OwnersMessage::Decide { owner } => {
                let is_owner =
                    owner == self.owner && !self.has_ended || model.is(OwnersMistake::RunOutlivesOwner);
                if self.run == OwnersRun::Open && is_owner {
                    self.run = OwnersRun::Decided;
                    let run = model.program.iter().position(|request| *request == OwnersRequest::Run)?;
                    self.write(run as u8);
                    self.tell_attached(OwnersItem::Release);
                    self.answer(owner);
                }
            }
            OwnersMessage::Attach { group } => match self.attachments[group] {
                OwnersAttachment::No if !self.has_ended || model.is(OwnersMistake::AttachesAfterEnd) => {
                    self.attachments[group] = OwnersAttachment::Yes;
                    self.streams[group].push(OwnersItem::Attach { owner: self.owner });
                }
                // The owner asks again when the group has let go.
                _ => {}
            },
        }
        Some(())
    }

    fn command(&mut self, model: &Owners, request: u8, owner: u8) {
        let (group, is_ephemeral) = match model.program[request as usize] {
            OwnersRequest::Write { group } => (group, false),
            OwnersRequest::CreateEphemeral { group } => (group, true),
            OwnersRequest::Run | OwnersRequest::Sync { .. } => return,
        };
        let known = &mut self.groups[group];
        let is_owner = match known.owner {
            Some(known) => model.is_owner(known, owner),
            None => model.is(OwnersMistake::AttachesForEphemeralsOnly) && !is_ephemeral,
        };
        if is_owner && !known.is_fenced {
            known.has_ephemeral |= is_ephemeral;
            self.write(request);
            self.answer(owner);
        } else if owner == self.owner {
            // The owner sends it again, when it has attached the session again.
            self.is_outstanding = false;
        }
    }

    fn item(&mut self, model: &Owners, group: usize, number: u8) -> Option<()> {
        let next = self.groups[group].items;
        let passes = number < next && model.is(OwnersMistake::ItemTwice)
            || number > next && model.is(OwnersMistake::ItemAfterGap);
        if number != next && !passes {
            return None;
        }
        let known = &mut self.groups[group];
        known.items = next.max(number + 1);
        let drops_part =
            !model.is(OwnersMistake::ItemKeepsPart) && !model.is(OwnersMistake::RunOutlivesOwner);
        match self.streams[group][number as usize] {
            OwnersItem::Attach { owner } => (known.owner, known.is_fenced) = (Some(owner), false),
            OwnersItem::NewOwner { owner } => {
                known.owner = known.owner.map(|_| owner);
                known.staged_by = known.staged_by.filter(|_| !drops_part);
            }
            OwnersItem::Fence => {
                known.has_ephemeral &= known.owner.is_none();
                known.is_fenced = known.owner.is_some();
                known.staged_by = known.staged_by.filter(|_| !drops_part);
            }
            OwnersItem::Release => known.has_run |= known.staged_by.take().is_some(),
            OwnersItem::Detach => {
                // The group decides when it applies the item, since it alone knows then.
                let is_idle = !known.has_ephemeral && known.staged_by.is_none() && !known.is_fenced;
                if is_idle || model.is(OwnersMistake::DetachLeavesEphemeral) {
                    known.owner = None;
                }
                if self.attachments[group] == OwnersAttachment::Leaving {
                    self.attachments[group] =
                        if known.owner.is_none() { OwnersAttachment::No } else { OwnersAttachment::Yes };
                }
            }
        }
        Some(())
    }

    fn detach(&mut self, model: &Owners, group: usize) -> Option<()> {
        if self.is_outstanding || self.has_ended {
            return None;
        }
        self.detaches += 1;
        self.streams[group].push(OwnersItem::Detach);
        self.attachments[group] = if model.is(OwnersMistake::DetachForgets) {
            OwnersAttachment::No
        } else {
            OwnersAttachment::Leaving
        };
        Some(())
    }
}
