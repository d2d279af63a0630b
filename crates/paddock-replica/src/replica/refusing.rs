//! What a member does that cannot write: its quorum is lost, its disk is full, it has not caught up since it came without
//! data, its state may be wrong, or it was removed from the ensemble.
//!
//! For a while writes wait, because most losses of a leader are short. Then the connections that wait are closed, for
//! nobody knows what becomes of their writes, and new writes are refused. Reads go on, and clients that said that they
//! can do with that get read-only sessions; they are closed when there is a quorum again, so that their clients come
//! back for real ones.

use std::collections::{BTreeSet, VecDeque};

use paddock_proto::{ErrorCode, OpCode, ReplyHeader, SessionId, Xid};
use paddock_state::{ConnId, Now, Outboxes, QueuedRead, State};

use super::{Item, Replica};

/// So many ticks writes wait for a leader.
const PATIENCE_TICKS: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    NoQuorum,
    DiskFull,
    /// It came without data.
    Learning,
    Removed,
    /// Its state differs from another member's, and it is not known which of them is right.
    InDoubt,
}

/// What is answered at once, in this order.
#[derive(Debug)]
enum Direct {
    Item(Item),
    Refuse { conn: ConnId, xid: Xid },
    Greet { conn: ConnId, session: Option<SessionId>, timeout_ms: i32, may_only_read: bool },
}

#[derive(Debug, Default)]
pub(super) struct Refusing {
    reason: Option<Reason>,
    ticks_without_leader: u32,
    is_disk_full: bool,
    is_learning: bool,
    /// It began or ended, and the connections have not been told.
    has_turned: bool,
    queue: VecDeque<Direct>,
    read_only: BTreeSet<ConnId>,
}

impl Refusing {
    pub(super) fn is_active(&self) -> bool {
        self.reason.is_some()
    }

    /// Not even reads: what this member knows is old, or its own past.
    pub(super) fn serves_nobody(&self) -> bool {
        matches!(self.reason, Some(Reason::Learning | Reason::Removed | Reason::InDoubt))
    }

    pub(super) fn is_disk_full(&self) -> bool {
        self.is_disk_full
    }

    pub(super) fn is_learning(&self) -> bool {
        self.is_learning
    }

    pub(super) fn begin_learning(&mut self) {
        self.is_learning = true;
        self.has_turned |= self.reason.is_none();
        self.reason = self.reason.or(Some(Reason::Learning));
    }

    /// Takes effect with the next tick.
    pub(super) fn end_learning(&mut self) {
        self.is_learning = false;
    }

    /// The connections with sessions that only read. They are to be closed.
    pub(super) fn take_read_only(&mut self) -> BTreeSet<ConnId> {
        std::mem::take(&mut self.read_only)
    }

    pub(super) fn has_work(&self) -> bool {
        self.has_turned || !self.queue.is_empty()
    }

    pub(super) fn write(&mut self, conn: ConnId, xid: Xid) {
        self.queue.push_back(Direct::Refuse { conn, xid });
    }

    pub(super) fn read(&mut self, read: QueuedRead, needs_quorum: bool) {
        self.queue.push_back(match needs_quorum {
            true => Direct::Refuse { conn: read.client.conn, xid: read.xid },
            false => Direct::Item(Item::Read(read)),
        });
    }

    pub(super) fn disconnect(&mut self, conn: ConnId) {
        self.read_only.remove(&conn);
        self.queue.push_back(Direct::Item(Item::Disconnect { conn }));
    }

    pub(super) fn greet(
        &mut self,
        conn: ConnId,
        session: Option<SessionId>,
        timeout_ms: i32,
        may_only_read: bool,
    ) {
        self.queue.push_back(Direct::Greet { conn, session, timeout_ms, may_only_read });
    }
}

impl Replica {
    pub(super) fn on_disk_full(&mut self, now: Now, is_full: bool) {
        self.refusing.is_disk_full = is_full;
        if is_full {
            self.step_down();
        }
        self.judge_refusing(now);
    }

    /// Hands the lead over, if this member has it and there is somebody to take it.
    pub(super) fn step_down(&mut self) {
        if let Some(heir) = self.heir().filter(|_| self.consensus.is_leader()) {
            tracing::info!(to = heir, "handing the lead over");
            self.hand_over(heir);
        }
    }

    pub(super) fn tick_refusing(&mut self, now: Now) {
        let has_leader = self.consensus.leadership().leader.is_some();
        let ticks = &mut self.refusing.ticks_without_leader;
        *ticks = if has_leader { 0 } else { ticks.saturating_add(1) };
        self.judge_refusing(now);
    }

    fn judge_refusing(&mut self, now: Now) {
        let refusing = &mut self.refusing;
        let reason = match () {
            _ if self.is_removed => Some(Reason::Removed),
            _ if refusing.is_learning => Some(Reason::Learning),
            _ if self.digests.is_in_doubt() => Some(Reason::InDoubt),
            _ if refusing.is_disk_full => Some(Reason::DiskFull),
            _ if refusing.ticks_without_leader >= PATIENCE_TICKS => Some(Reason::NoQuorum),
            _ => None,
        };
        if reason == refusing.reason {
            return;
        }
        match reason {
            Some(Reason::NoQuorum) => {
                tracing::error!("no quorum: writes are refused until there is one again")
            }
            Some(Reason::InDoubt) => tracing::error!(
                "no majority of the members has the state of this one: it serves no clients until there is one"
            ),
            // Whoever owns the disk, or the list of members, says so.
            Some(Reason::DiskFull | Reason::Learning | Reason::Removed) => {}
            None => tracing::info!("writes go on"),
        }
        if reason.is_none() {
            // Nobody could come back to a session meanwhile.
            self.liveness.renew_all(now.monotonic_ms);
        }
        refusing.has_turned |= reason.is_some() != refusing.reason.is_some();
        refusing.reason = reason;
    }

    /// Answers what can be answered at once.
    pub(super) fn refuse(&mut self, state: &State, out: &mut Outboxes) {
        if std::mem::take(&mut self.refusing.has_turned) {
            match self.refusing.is_active() {
                true => self.abandon_waiting(state, out),
                false => {
                    self.refusing.take_read_only().into_iter().for_each(|conn| out.close(conn));
                }
            }
        }
        while let Some(direct) = self.refusing.queue.pop_front() {
            match direct {
                // Its connection was closed when that began.
                Direct::Item(Item::Read(read)) if self.refusing.serves_nobody() => {
                    out.close(read.client.conn)
                }
                Direct::Item(item) => self.run(item, state, out),
                Direct::Refuse { conn, xid } => {
                    let header = ReplyHeader::refused(xid, state.tree().zxid(), ErrorCode::NotReadOnly);
                    out.write_reply(conn, header, |_| {});
                }
                Direct::Greet { conn, session, timeout_ms, may_only_read } => {
                    self.greet_read_only(conn, session, timeout_ms, may_only_read, state, out);
                }
            }
        }
    }

    /// Nobody knows when, and whether, what waits will be carried out. Their clients ask elsewhere.
    fn abandon_waiting(&mut self, state: &State, out: &mut Outboxes) {
        let mut waiting = self.outstanding.abandon();
        // Their commands stay in the batch.
        let (commands, others) = std::mem::take(&mut self.items).into_iter().partition(Item::is_command);
        let commands: Vec<Item> = commands;
        self.items = commands.iter().map(|_| Item::Abandoned).collect();
        waiting.extend(commands);
        waiting.extend::<Vec<Item>>(others);
        for item in waiting {
            match item {
                Item::Disconnect { .. } => self.run(item, state, out),
                item => item.conn().into_iter().for_each(|conn| out.close(conn)),
            }
        }
        if let Some((conn, _)) = self.waits_for_members.take() {
            out.close(conn);
        }
        self.gates.closed_forever().for_each(|conn| out.close(conn));
        if self.refusing.serves_nobody() {
            self.serving.end_all().into_iter().for_each(|conn| out.close(conn));
        }
    }

    fn greet_read_only(
        &mut self,
        conn: ConnId,
        session: Option<SessionId>,
        timeout_ms: i32,
        may_only_read: bool,
        state: &State,
        out: &mut Outboxes,
    ) {
        let is_known = session.is_none_or(|session| state.tree().session_timeout_ms(session).is_some());
        let may_serve = may_only_read && is_known && !self.refusing.serves_nobody() && !self.has_met_foreign;
        if !may_serve {
            return out.close(conn);
        }
        // A new one is known here only, and only as long as its connection.
        let session = session.unwrap_or_else(|| self.take_session_id());
        self.refusing.read_only.insert(conn);
        out.connected(conn, session, timeout_ms, true);
    }

    /// Whether a request has to see what was written anywhere before.
    pub(super) fn needs_quorum(&self, op: OpCode) -> bool {
        op == OpCode::Sync || self.options.linearizable_reads
    }
}
