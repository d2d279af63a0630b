//! Watches of the clients: they are set, told of, and set again on the next connection.

use paddock_proto::jute::Reader;
use paddock_proto::{AddWatchMode, ReplyHeader, WatchEvent, WatcherKind, Xid, Zxid, frame, parent_and_name};

use super::checks::NO_NODE;
use super::client::{Ask, EtcdReply, Look};
use super::history::Changes;
use super::world::{CLIENTS, SHARED, World, own_directory};
use crate::checks::watching::{self, SetAgain, Watching};
use crate::checks::{Checked, Violation, ensure};

impl World {
    /// A client wants a watch, or wants one no more.
    pub(super) fn wish_watch(&mut self) -> Ask {
        let path = self.path_to_watch();
        match self.chance.below(16) {
            0..=3 => Ask::Watch { path, how: Look::Exists },
            4..=6 => Ask::Watch { path, how: Look::Data },
            7..=9 => Ask::Watch { path, how: Look::Children },
            10..=11 => Ask::AddWatch { path, mode: AddWatchMode::Persistent },
            12..=13 => {
                let above = parent_and_name(&path).map_or("/", |(parent, _)| parent);
                let path = if self.chance.one_in(2) { above.to_owned() } else { path };
                Ask::AddWatch { path, mode: AddWatchMode::PersistentRecursive }
            }
            _ => {
                let kind = *self.chance.pick(&[
                    WatcherKind::Children,
                    WatcherKind::Data,
                    WatcherKind::Any,
                    WatcherKind::Persistent,
                    WatcherKind::PersistentRecursive,
                ]);
                Ask::RemoveWatches { path, kind }
            }
        }
    }

    /// A directory, a znode in one, or one that is about to be created there.
    fn path_to_watch(&mut self) -> String {
        let client = self.chance.index(CLIENTS);
        let directory = if self.chance.one_in(2) { own_directory(client) } else { SHARED.to_owned() };
        match self.chance.below(3) {
            0 => directory,
            1 => self.checks.any_child(&directory, &mut self.chance).unwrap_or(directory),
            _ => {
                let name = if self.chance.one_in(3) { "e-" } else { "q-" };
                let number = self.checks.children_created(&directory) + self.chance.below(4) as i32;
                format!("{directory}/{name}{number:010}")
            }
        }
    }

    /// A client has its session on another connection: the watches that it knows of are set there, before all else.
    pub(super) fn set_watches_again(&mut self, at: usize) -> Checked {
        let client = &self.clients[at];
        Ask::to_set_again(&client.watching, Zxid(client.zxid)).map_or(Ok(()), |ask| self.ask(at, ask))
    }

    /// Takes the events in front of a reply. Returns the reply.
    pub(super) fn take_events<'a>(&mut self, at: usize, frames: &'a [u8]) -> Checked<Option<EtcdReply<'a>>> {
        let Letter { events, reply } = Letter::read(at, frames)?;
        for WatchEvent { kind, path, zxid } in events {
            self.note(format_args!("client {at} is told {kind:?} of {path} at {zxid}"));
            let (changes, watching) = (&self.checks.changes, &mut self.clients[at].watching);
            watching.tell(changes, zxid, kind, path, &[])?;
        }
        Ok(reply)
    }

    /// A client is shown a zxid, by the reply to this.
    pub(super) fn show(&mut self, at: usize, ask: &Ask, reply: &EtcdReply<'_>) -> Checked {
        show(&self.checks.changes, &mut self.clients[at].watching, ask, reply)
    }

    /// All front ends show the newest revision: every client that is connected has been told of everything, and front ends hold the
    /// watches of their clients and no others.
    pub(super) fn check_watches(&mut self) -> Checked {
        let newest = Zxid(self.checks.newest());
        for client in self.clients.iter_mut().filter(|client| client.is_connected) {
            client.watching.show(&self.checks.changes, newest, &[])?;
        }
        for (front, at) in self.fronts.iter().enumerate() {
            let clients = self.clients.iter().filter(|client| client.front == front && client.is_connected);
            let held = clients.map(|client| client.watching.held_at(&self.checks.changes, newest, &[]));
            watching::check_held(front as u8, at.state.watches().count(), held.sum(), true)?;
        }
        Ok(())
    }
}

fn unreadable(at: usize, error: &dyn std::fmt::Display) -> Violation {
    Violation { checker: "protocol", what: format!("client {at} gets a frame that it cannot read: {error}") }
}

/// Frames for a client: events, and a reply behind them.
pub(crate) struct Letter<'a> {
    pub(crate) events: Vec<WatchEvent<'a>>,
    pub(crate) reply: Option<EtcdReply<'a>>,
}

impl Letter<'_> {
    pub(crate) fn read(at: usize, mut frames: &[u8]) -> Checked<Letter<'_>> {
        let mut events = Vec::new();
        while let Ok(Some((body, len))) = frame::split(frames, i32::MAX) {
            let mut reader = Reader::new(body);
            let header = ReplyHeader::decode(&mut reader).map_err(|error| unreadable(at, &error))?;
            let (frame, rest) = frames.split_at(len);
            if header.xid != Xid::NOTIFICATION {
                ensure!(
                    rest.is_empty(),
                    "protocol",
                    "client {at} gets something behind a reply in its frame"
                );
                let reply = EtcdReply::decode(frame).map_err(|error| unreadable(at, &error))?;
                return Ok(Letter { events, reply: Some(reply) });
            }
            let event = WatchEvent::decode(header.zxid, reader.rest());
            events.push(event.map_err(|error| unreadable(at, &error))?);
            frames = rest;
        }
        ensure!(frames.is_empty(), "protocol", "client {at} gets a frame that is not whole");
        Ok(Letter { events, reply: None })
    }
}

/// A client is shown a zxid, by the reply to this.
pub(crate) fn show(changes: &Changes, watching: &mut Watching, ask: &Ask, reply: &EtcdReply<'_>) -> Checked {
    watching.show(changes, Zxid(reply.zxid), &[])?;
    let is_done = reply.error == 0;
    match ask {
        Ask::Watch { path, how: Look::Exists } if reply.error == NO_NODE => watching.watch_exist(path),
        Ask::Watch { path, how: Look::Exists | Look::Data } if is_done => watching.watch_data(path),
        Ask::Watch { path, how: Look::Children } if is_done => watching.watch_children(path),
        Ask::AddWatch { path, mode } if is_done => watching.watch_mode(path, *mode),
        Ask::RemoveWatches { path, kind } => {
            watching.check(path, *kind, is_done)?;
            watching.remove(path, *kind);
        }
        Ask::SetWatches { relative_zxid, .. } => {
            let now = Zxid(reply.zxid);
            let again = SetAgain {
                relative_zxid: *relative_zxid,
                since: *relative_zxid,
                now,
                watches_per_turn: usize::MAX,
                latest: now,
            };
            watching.set_again(&again, changes, &[])?;
        }
        _ => {}
    }
    Ok(())
}
