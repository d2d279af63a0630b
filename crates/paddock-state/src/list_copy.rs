//! Long lists of children that are copied in portions, with the state let go between them.

use std::sync::Arc;

use paddock_proto::jute::Writer;
use paddock_proto::{ChildFilter, ErrorCode, OpCode, Read, ReplyHeader, Request, Xid};
use paddock_tree::{Asker, Copied, Guess, ListCopy, NameList, REPLY_BYTES_MAX};

use crate::{Client, State};

/// Factor by which the expected bytes of a list are above what a list may take, when it is refused without a copy.
const EXPECTED_TIMES_MAX: usize = 4;

/// A request for a long list, and as much of the answer as was copied.
#[derive(Debug)]
pub struct LongList {
    pub xid: Xid,
    pub op: OpCode,
    body: Vec<u8>,
    /// Bytes that the names are expected to take.
    expected: usize,
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
    /// The list, once all of it was copied.
    pub fn into_list(self) -> NameList {
        self.copy.into_list()
    }
}

/// A portion of a long list.
#[derive(Clone, Copy, Debug)]
pub struct ListPortion {
    /// Children that are copied at a time in a first try.
    pub children: usize,
    /// Bytes of names above which a list is refused.
    pub bytes_max: usize,
}

/// The reply to a request for a long list, a whole frame in pieces.
#[derive(Debug)]
pub struct ListReply {
    /// Bytes in front of the names.
    pub head: Vec<u8>,
    /// Names, which other replies may share.
    pub names: Vec<Arc<Vec<u8>>>,
    /// Bytes behind the names.
    pub tail: Vec<u8>,
}

impl ListReply {
    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.names.iter().map(|names| names.len()).sum::<usize>() + self.tail.len()
    }

    /// Appends the frame.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes());
        out.extend_from_slice(&self.head);
        self.names.iter().for_each(|names| out.extend_from_slice(names));
        out.extend_from_slice(&self.tail);
    }

    fn new(header: ReplyHeader, list: NameList, stat: Option<paddock_proto::Stat>) -> ListReply {
        let mut tail = Vec::new();
        if let Some(stat) = stat {
            stat.encode(&mut tail);
        }
        let mut head = Vec::with_capacity(4 + ReplyHeader::BYTES + 4);
        head.put_count(ReplyHeader::BYTES + 4 + list.bytes() + tail.len());
        header.encode(&mut head);
        head.put_count(list.count as usize);
        ListReply { head, names: list.names, tail }
    }
}

/// Result of copying a portion of a long list.
#[derive(Debug)]
pub enum LongListStep {
    /// There is more to be copied.
    Portion,
    Reply(ListReply),
    /// The list is refused with this error: it takes more bytes than it may, as many as this or about as many.
    Refused(ErrorCode, usize),
    /// The list is to be answered as other requests are, in one step: it is not long any more, or it changes too often.
    AtOnce,
}

impl LongList {
    /// Times that copying is begun. Each time the portions are longer, so that fewer changes come between them.
    const BEGUN_MAX: u32 = 4;

    /// A request for a list whose names take about `expected` bytes.
    pub fn new(xid: Xid, op: OpCode, body: &[u8], expected: usize) -> LongList {
        LongList { xid, op, body: body.to_vec(), expected, copy: None, begun: 0 }
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Forgets what was copied: it is begun again.
    pub fn forget(&mut self) {
        self.copy = None;
    }

    /// Size of the memory that it takes, in bytes. All of the list counts from its beginning on.
    pub fn held_bytes(&self) -> usize {
        let names = if self.is_begun() { self.expected.max(self.copied_bytes()) } else { 0 };
        self.body.capacity() + names
    }

    /// Bytes that the names are expected to take.
    pub fn expected_bytes(&self) -> usize {
        self.expected
    }

    /// True if a part of it was copied.
    pub fn is_begun(&self) -> bool {
        self.copy.is_some()
    }

    /// Bytes of the names that were copied.
    pub fn copied_bytes(&self) -> usize {
        self.copy.as_ref().map_or(0, |list| list.copy.bytes())
    }

    /// Children that a portion has, if one of the first try has `children`.
    fn portion(&self, children: usize) -> usize {
        children.saturating_mul(4_usize.pow(self.begun.saturating_sub(1)))
    }
}

/// True if a request asks for all children of a znode, or for some of them.
pub fn is_list_of_children(op: OpCode) -> bool {
    matches!(op, OpCode::GetChildren | OpCode::GetChildren2 | OpCode::FilteredList)
}

/// Path of a list of all children, and the read that asks for it.
fn list_of<'a>(client: &Client, op: OpCode, body: &'a [u8]) -> Option<(&'a str, Read<'a>)> {
    if !is_list_of_children(op) {
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
    /// Bytes that the names of a list are expected to take, if a request is for one so long that it is to be copied in portions. Also returns a
    /// guess at the znode's place, which is the one that was given if nothing had to be looked up.
    pub fn long_list(
        &self,
        client: &Client,
        op: OpCode,
        body: &[u8],
        guess: Guess,
    ) -> (Option<usize>, Guess) {
        if !self.tree().may_have_long_list() {
            return (None, guess);
        }
        let Some((path, _)) = list_of(client, op, body) else { return (None, guess) };
        let (is_long, guess) = self.tree().has_long_list(path, guess);
        (if is_long { self.tree().list_bytes_expected(path) } else { None }, guess)
    }

    /// Begins to copy the list of children at a path. `None` if there is none, or none that is long.
    pub fn begin_children_copy(&self, path: &str) -> Option<ChildrenCopy> {
        self.begin_copy(path, self.tree().list_bytes_expected(path)?, usize::MAX)
    }

    fn begin_copy(&self, path: &str, expected: usize, bytes_max: usize) -> Option<ChildrenCopy> {
        let copy = self.tree().begin_list_copy(path, expected, bytes_max)?;
        Some(ChildrenCopy { replaced: self.replaced(), copy })
    }

    /// Copies at most `max` children.
    pub fn copy_children(&self, path: &str, children: &mut ChildrenCopy, max: usize) -> Copied {
        if children.replaced != self.replaced() {
            return Copied::Outdated;
        }
        self.tree().copy_list(path, &mut children.copy, max)
    }

    /// Copies the next children of a list. Once it has all, they are what the state shows in this moment, and a watch that was asked for is set
    /// in it. A list that takes more bytes than it may is refused: before it is copied if the length of some of its names tells that, and
    /// otherwise as soon as the copy takes more.
    pub fn copy_long_list(&self, client: &Client, list: &mut LongList, portion: ListPortion) -> LongListStep {
        let Some((path, read)) = list_of(client, list.op, &list.body) else { return LongListStep::AtOnce };
        let asker =
            Asker { session: client.session, ids: client.ids(), dialect: client.dialect, guess: Guess::NONE };
        let bytes_max = portion.bytes_max.min(REPLY_BYTES_MAX);
        if list.copy.is_none() {
            // A client that may not read it causes no work.
            let Some(expected) = self
                .tree()
                .list_bytes_expected(path)
                .filter(|_| self.tree().check_list(path, &asker).is_ok())
            else {
                return LongListStep::AtOnce;
            };
            // The newest names may be longer than the others. The copy tells how long the list really is.
            if expected / EXPECTED_TIMES_MAX > bytes_max {
                return LongListStep::Refused(ErrorCode::BadArguments, expected);
            }
            if list.begun == LongList::BEGUN_MAX {
                return LongListStep::AtOnce;
            }
            // The copy gets no further than to the limit.
            list.expected = expected.min(bytes_max);
            list.copy = self.begin_copy(path, list.expected, bytes_max);
            list.begun += 1;
        }
        let max = list.portion(portion.children);
        let copy = list.copy.as_mut().expect("it was begun");
        let copied = self.copy_children(path, copy, max);
        let bytes = copy.copy.bytes();
        if bytes > bytes_max {
            return LongListStep::Refused(ErrorCode::BadArguments, bytes);
        }
        match copied {
            Copied::Portion => LongListStep::Portion,
            Copied::Outdated => {
                list.copy = None;
                LongListStep::Portion
            }
            Copied::All => {
                let Ok(stat) = self.end_list(client, path, &read, &asker) else {
                    return LongListStep::AtOnce;
                };
                let names = list.copy.take().expect("it was copied").into_list();
                let header = ReplyHeader::ok(list.xid, self.tree().zxid());
                LongListStep::Reply(ListReply::new(header, names, stat))
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
