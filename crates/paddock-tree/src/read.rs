//! Answering questions. Nothing here changes the state, and nothing but the state decides the answer.

use paddock_proto::jute::Writer;
use paddock_proto::{Acl, Dialect, ErrorCode, IdList, MultiResult, OpCode, Perms, Read, SessionId};

use crate::Tree;
use crate::access::allows;
use crate::list::ListContents;
use crate::store::{Ahead, NodeId, TOGETHER};

/// Session, identities and dialect of a reader.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    pub session: SessionId,
    pub ids: IdList<'a>,
    pub dialect: Dialect,
    /// Guess at the place of the znode that it asks about.
    pub guess: Guess,
}

/// Place where a znode may be. It is checked, so a wrong one costs only time.
#[derive(Clone, Copy, Debug)]
pub struct Guess(pub(crate) NodeId);

/// Guesses about some paths, in their order. The default is none.
#[derive(Debug)]
pub struct Guesses(<Ahead<NodeId> as IntoIterator>::IntoIter);

impl Asker<'_> {
    /// No identities, without a guess.
    pub const NOBODY: Asker<'static> = Asker {
        session: SessionId::NONE,
        ids: IdList::NONE,
        dialect: Dialect::ZooKeeper,
        guess: Guess::NONE,
    };
}

impl Guess {
    pub const NONE: Guess = Guess(NodeId::NONE);
}

impl Default for Guesses {
    fn default() -> Guesses {
        Guesses(Ahead::new().into_iter())
    }
}

impl Iterator for Guesses {
    type Item = Guess;

    fn next(&mut self) -> Option<Guess> {
        self.0.next().map(Guess)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Guesses {}

/// Bytes that fit into one reply: the length of a frame has 31 bits.
pub const REPLY_BYTES_MAX: usize = 1 << 30;

impl Tree {
    /// Appends the body of the reply; after an error `out` is as before. Watches are not set here.
    pub fn read(&self, read: &Read<'_>, asker: &Asker<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        match read {
            Read::Exists { path, .. } => self.exists(path, asker, out),
            Read::GetData { path, .. } => self.get_data(path, asker, out),
            Read::GetAcl { path } => self.get_acl(path, asker, out),
            Read::GetChildren { path, .. } => {
                let node = self.find_readable(path, asker)?;
                self.put_children(node, out);
                Ok(())
            }
            Read::GetChildren2 { path, .. } => {
                let node = self.find_readable(path, asker)?;
                self.put_children(node, out);
                self.store.stat(node).encode(out);
                Ok(())
            }
            Read::GetEphemerals { prefix } => {
                self.get_ephemerals(prefix.unwrap_or_default(), asker, out);
                Ok(())
            }
            Read::GetAllChildrenNumber { path } => self.get_all_children_number(path, asker, out),
            Read::FilteredList { path, filter, .. } => self.filtered_list(path, *filter, asker, out),
            Read::FilteredListWithStatsAndData { path, filter, with_stats, with_data, .. } => {
                let wanted = ListContents { filter: *filter, stats: *with_stats, data: *with_data };
                self.list_with_stats_and_data(path, wanted, asker, out)
            }
            Read::ListRecursive { path, nodes_max } => self.list_recursive(path, *nodes_max, asker, out),
            Read::MultiRead(reads) => {
                multi_read(reads, asker.dialect, out, |read, out| self.read(read, asker, out))
            }
        }
    }

    /// Number of paths that are best given together to `look_ahead`.
    pub const LOOK_AHEAD_PATHS: usize = TOGETHER;

    /// True if it is so large that `look_ahead` is of use.
    pub fn is_worth_looking_ahead(&self) -> bool {
        self.store.is_worth_looking_ahead()
    }

    /// Requests about these paths come next, and are done sooner if they are said together. If there are two or more, each
    /// has its guess.
    pub fn look_ahead(&self, paths: &[&str]) -> Guesses {
        Guesses(self.store.look_ahead(paths).into_iter())
    }

    pub(crate) fn find_readable(&self, path: &str, asker: &Asker<'_>) -> Result<NodeId, ErrorCode> {
        let node = self.store.find_guessed(path, asker.guess.0).ok_or(ErrorCode::NoNode)?;
        self.check_access(node, Perms::READ, asker.ids)?;
        Ok(node)
    }

    fn exists(&self, path: &str, asker: &Asker<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        // The only read that looks at the path itself.
        if path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let node = self.find_readable(path, asker)?;
        self.store.stat(node).encode(out);
        Ok(())
    }

    fn get_data(&self, path: &str, asker: &Asker<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let node = self.find_readable(path, asker)?;
        let data = self.store.data(node);
        out.put_buffer(data);
        self.store.stat_of_data(node, data).encode(out);
        Ok(())
    }

    /// Reads an ACL. An asker who may only read sees that there are digests, but not the digests.
    fn get_acl(&self, path: &str, asker: &Asker<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let node = self.store.find_guessed(path, asker.guess.0).ok_or(ErrorCode::NoNode)?;
        self.check_access(node, Perms::READ | Perms::ADMIN, asker.ids)?;
        let list = self.store.acl_list(node);
        let unmasked = allows(list, Perms::ADMIN, asker.ids);
        out.put_count(list.len());
        for entry in list.iter() {
            if unmasked { entry.encode(out) } else { masked(entry).encode(out) }
        }
        self.store.stat(node).encode(out);
        Ok(())
    }

    pub(crate) fn put_children(&self, node: NodeId, out: &mut Vec<u8>) {
        out.put_count(self.store.child_count(node) as usize);
        self.store.put_names_of_children(node, out);
    }

    fn get_ephemerals(&self, prefix: &str, asker: &Asker<'_>, out: &mut Vec<u8>) {
        let is_all = matches!(prefix.trim_matches(|c| c <= ' '), "" | "/");
        let mut paths = self.sorted_paths(self.store.ephemerals_of(asker.session));
        paths.retain(|path| is_all || path.starts_with(prefix));
        out.put_count(paths.len());
        paths.iter().for_each(|path| out.put_string(path));
    }

    fn get_all_children_number(
        &self,
        path: &str,
        asker: &Asker<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let node = self.find_readable(path, asker)?;
        let descendants = match path {
            "/" => self.store.node_count() - 1,
            // By its other name the root counts itself, for its path begins with its path and a slash.
            "" => self.store.node_count(),
            _ => self.store.subtree(node).count() - 1,
        };
        out.put_i32(descendants as i32);
        Ok(())
    }
}

/// Appends what `answer` makes of each read. Each fails on its own, unless all together are too much for one reply.
pub fn multi_read(
    reads: &[Read<'_>],
    dialect: Dialect,
    out: &mut Vec<u8>,
    mut answer: impl FnMut(&Read<'_>, &mut Vec<u8>) -> Result<(), ErrorCode>,
) -> Result<(), ErrorCode> {
    let start = out.len();
    for read in reads {
        let before = out.len();
        MultiResult::encode_read_header(op_of(read), out);
        if let Err(error) = answer(read, out) {
            out.truncate(before);
            MultiResult::encode_read_error(dialect, op_of(read), error, out);
        }
        check_reply_bytes(out.len() - start)?;
    }
    MultiResult::encode_end(out);
    Ok(())
}

/// A reply can be larger than all that is stored, if it tells of the same thing again and again.
pub fn check_reply_bytes(bytes: usize) -> Result<(), ErrorCode> {
    if bytes > REPLY_BYTES_MAX { Err(ErrorCode::BadArguments) } else { Ok(()) }
}

fn op_of(read: &Read<'_>) -> OpCode {
    match read {
        Read::Exists { .. } => OpCode::Exists,
        Read::GetData { .. } => OpCode::GetData,
        Read::GetAcl { .. } => OpCode::GetAcl,
        Read::GetChildren { .. } => OpCode::GetChildren,
        Read::GetChildren2 { .. } => OpCode::GetChildren2,
        Read::GetEphemerals { .. } => OpCode::GetEphemerals,
        Read::GetAllChildrenNumber { .. } => OpCode::GetAllChildrenNumber,
        Read::FilteredList { .. } => OpCode::FilteredList,
        Read::FilteredListWithStatsAndData { .. } => OpCode::FilteredListWithStatsAndData,
        Read::ListRecursive { .. } => OpCode::ListRecursive,
        Read::MultiRead(_) => OpCode::MultiRead,
    }
}

fn masked(entry: &Acl) -> Acl {
    let mut entry = entry.clone();
    if entry.id.scheme == "digest"
        && let Some(colon) = entry.id.id.find(':')
    {
        entry.id.id.truncate(colon);
        entry.id.id.push_str(":x");
    }
    entry
}
