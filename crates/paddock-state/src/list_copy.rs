//! Long lists of children that are copied in portions, with the state let go between them.

use paddock_proto::jute::Writer;
use paddock_proto::{ChildFilter, ErrorCode, OpCode, Read, ReplyHeader, Request, Xid};
use paddock_tree::{Asker, Copied, Guess, ListCopy, check_reply_bytes};

use crate::{Client, State};

/// Length of a frame and a header in front of a list.
const ROOM: usize = 4 + ReplyHeader::BYTES;

/// A request for a long list, and as much of the answer as was copied.
#[derive(Debug)]
pub struct LongList {
    pub xid: Xid,
    pub op: OpCode,
    body: Vec<u8>,
    copy: Option<ChildrenCopy>,
    /// Times that the copying began.
    begun: u32,
}

/// Names of the children of a long list that were copied so far, from one of a state's trees.
#[derive(Debug)]
pub struct ChildrenCopy {
    /// The state's number of replaced trees when the copying began.
    replaced: u64,
    copy: ListCopy,
}

impl ChildrenCopy {
    /// The list as it goes over the wire, behind the room that was asked for.
    pub fn into_bytes(self) -> Vec<u8> {
        self.copy.into_bytes()
    }
}

/// Result of copying a portion of a long list.
#[derive(Debug)]
pub enum LongListStep {
    /// There is more to be copied.
    Portion,
    /// The reply, a whole frame.
    Reply(Vec<u8>),
    /// The list is to be answered as other requests are, in one step: it is not long any more, or it changes too often.
    AtOnce,
}

impl LongList {
    /// Times that copying is begun. Each time the portions are longer, so that fewer changes come between them.
    const BEGUN_MAX: u32 = 4;

    pub fn new(xid: Xid, op: OpCode, body: &[u8]) -> LongList {
        LongList { xid, op, body: body.to_vec(), copy: None, begun: 0 }
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Forgets what was copied: it is begun again.
    pub fn forget(&mut self) {
        self.copy = None;
    }

    /// Size of the memory that it takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.body.capacity() + self.copy.as_ref().map_or(0, |list| list.copy.held_bytes())
    }

    /// Children that a portion has, if one of the first try has `children`.
    fn portion(&self, children: usize) -> usize {
        children.saturating_mul(4_usize.pow(self.begun.saturating_sub(1)))
    }
}

/// Path of a list of all children, and the read that asks for it.
fn list_of<'a>(client: &Client, op: OpCode, body: &'a [u8]) -> Option<(&'a str, Read<'a>)> {
    if !matches!(op, OpCode::GetChildren | OpCode::GetChildren2 | OpCode::FilteredList) {
        return None;
    }
    match Request::decode(op, body, client.dialect) {
        Ok(Request::Read(read)) => match read {
            Read::GetChildren { path, .. }
            | Read::GetChildren2 { path, .. }
            | Read::FilteredList { path, filter: ChildFilter::All, .. } => Some((path, read)),
            _ => None,
        },
        _ => None,
    }
}

impl State {
    /// True if a request is for a list so long that it is to be copied in portions.
    pub fn is_long_list(&self, client: &Client, op: OpCode, body: &[u8]) -> bool {
        list_of(client, op, body).is_some_and(|(path, _)| self.tree().has_long_list(path))
    }

    /// Begins to copy the list of children at a path, with `room` bytes of room in front. `None` if there is none, or none that is long.
    pub fn begin_children_copy(&self, path: &str, room: usize) -> Option<ChildrenCopy> {
        let copy = self.tree().begin_list_copy(path, room)?;
        Some(ChildrenCopy { replaced: self.replaced(), copy })
    }

    /// Copies at most `max` children.
    pub fn copy_children(&self, path: &str, children: &mut ChildrenCopy, max: usize) -> Copied {
        if children.replaced != self.replaced() {
            return Copied::Outdated;
        }
        self.tree().copy_list(path, &mut children.copy, max)
    }

    /// Copies the next children of a list, `children` of them in a portion of a first try. Once it has all, they are what the state shows in this
    /// moment, and a watch that was asked for is set in it.
    pub fn copy_long_list(&self, client: &Client, list: &mut LongList, children: usize) -> LongListStep {
        let Some((path, read)) = list_of(client, list.op, &list.body) else { return LongListStep::AtOnce };
        let asker =
            Asker { session: client.session, ids: client.ids(), dialect: client.dialect, guess: Guess::NONE };
        if list.copy.is_none() {
            // A client that may not read it causes no work.
            let may_read = self.tree().check_list(path, &asker).is_ok();
            let begun = self.begin_children_copy(path, ROOM);
            let Some(begun) = begun.filter(|_| may_read && list.begun < LongList::BEGUN_MAX) else {
                return LongListStep::AtOnce;
            };
            list.copy = Some(begun);
            list.begun += 1;
        }
        let max = list.portion(children);
        let copy = list.copy.as_mut().expect("it was begun");
        let copied = self.copy_children(path, copy, max);
        if check_reply_bytes(copy.copy.held_bytes()).is_err() {
            // The list is refused, as every reply that is longer than a frame.
            (list.copy, list.begun) = (None, LongList::BEGUN_MAX);
            return LongListStep::AtOnce;
        }
        match copied {
            Copied::Portion => LongListStep::Portion,
            Copied::Outdated => {
                list.copy = None;
                LongListStep::Portion
            }
            Copied::All => {
                let stat = match self.end_list(client, path, &read, &asker) {
                    Ok(stat) => stat,
                    Err(_) => return LongListStep::AtOnce,
                };
                let copy = list.copy.take().expect("it was copied");
                let mut reply = copy.into_bytes();
                if let Some(stat) = stat {
                    stat.encode(&mut reply);
                }
                let mut head = Vec::with_capacity(ROOM);
                head.put_count(reply.len() - 4);
                ReplyHeader::ok(list.xid, self.tree().zxid()).encode(&mut head);
                reply[..ROOM].copy_from_slice(&head);
                LongListStep::Reply(reply)
            }
        }
    }

    /// Checks once more whether the client may read a list, sets the watch that it asked for, and gives what stands behind the list.
    fn end_list(
        &self,
        client: &Client,
        path: &str,
        read: &Read<'_>,
        asker: &Asker<'_>,
    ) -> Result<Option<paddock_proto::Stat>, ErrorCode> {
        self.tree().check_list(path, asker)?;
        self.watch_read(client, read, Ok(()))?;
        let has_stat = !matches!(read, Read::GetChildren { .. });
        Ok(self.tree().stat(path).filter(|_| has_stat))
    }
}
