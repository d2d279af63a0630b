//! The lists that ClickHouse Keeper has and ZooKeeper has not.

use paddock_proto::jute::Writer;
use paddock_proto::{ChildFilter, ErrorCode, Perms};

use crate::read::{Asker, check_reply_bytes};
use crate::store::{NodeId, ZnodeKind};
use crate::tree::Tree;

/// Contents of a list, as its request wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListContents {
    pub(crate) filter: ChildFilter,
    pub(crate) stats: bool,
    pub(crate) data: bool,
}

impl Tree {
    /// A filter tells something of the children themselves, so a client that filters must be allowed to read them.
    pub(crate) fn filtered_list(
        &self,
        path: &str,
        filter: ChildFilter,
        asker: &Asker<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let node = self.find_readable(path, asker)?;
        if filter == ChildFilter::All {
            self.put_children(node, out);
        } else {
            let children = self.readable_children(node, filter, asker)?;
            self.put_names(&children, out);
        }
        self.store.stat(node).encode(out);
        Ok(())
    }

    pub(crate) fn list_with_stats_and_data(
        &self,
        path: &str,
        wanted: ListContents,
        asker: &Asker<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let node = self.find_readable(path, asker)?;
        let children = self.readable_children(node, wanted.filter, asker)?;
        let all_data = || children.iter().map(|&child| self.store.data_len(child)).sum();
        check_reply_bytes(if wanted.data { all_data() } else { 0 })?;
        self.put_names(&children, out);
        self.store.stat(node).encode(out);
        let with_stats = if wanted.stats { &children[..] } else { &[] };
        out.put_count(with_stats.len());
        with_stats.iter().for_each(|&child| self.store.stat(child).encode(out));
        let with_data = if wanted.data { &children[..] } else { &[] };
        out.put_count(with_data.len());
        with_data.iter().for_each(|&child| out.put_buffer(self.store.data(child)));
        Ok(())
    }

    /// Lists a tree. Znodes that the asker may not read are left out, with all below them.
    pub(crate) fn list_recursive(
        &self,
        path: &str,
        nodes_max: u32,
        asker: &Asker<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let top = self.find_readable(path, asker)?;
        let nodes_max = usize::try_from(nodes_max).unwrap_or(usize::MAX);
        let mut found: Vec<(NodeId, String)> = Vec::new();
        let mut bytes = 0;
        let (mut parent, mut parent_path) = (top, if path == "/" { "" } else { path }.to_owned());
        let mut looked_at = 0;
        loop {
            let readable = self.store.children(parent).filter(|&child| self.may_read(child, asker));
            for child in readable.take(nodes_max - found.len()) {
                let name = std::str::from_utf8(self.store.name(child)).expect("a name is part of a path");
                let path = format!("{parent_path}/{name}");
                bytes += path.len();
                check_reply_bytes(bytes)?;
                found.push((child, path));
            }
            let Some((next, next_path)) = found.get(looked_at).filter(|_| found.len() < nodes_max) else {
                break;
            };
            (parent, parent_path) = (*next, next_path.clone());
            looked_at += 1;
        }
        out.put_count(found.len());
        found.iter().for_each(|(_, path)| out.put_string(path));
        Ok(())
    }

    fn readable_children(
        &self,
        node: NodeId,
        filter: ChildFilter,
        asker: &Asker<'_>,
    ) -> Result<Vec<NodeId>, ErrorCode> {
        let mut children = Vec::new();
        for child in self.store.children(node) {
            self.check_access(child, Perms::READ, asker.ids)?;
            if self.passes(child, filter) {
                children.push(child);
            }
        }
        Ok(children)
    }

    fn passes(&self, child: NodeId, filter: ChildFilter) -> bool {
        let is_ephemeral = matches!(self.store.kind(child), ZnodeKind::Ephemeral(_));
        match filter {
            ChildFilter::All => true,
            ChildFilter::Persistent => !is_ephemeral,
            ChildFilter::Ephemeral => is_ephemeral,
        }
    }

    fn may_read(&self, node: NodeId, asker: &Asker<'_>) -> bool {
        self.check_access(node, Perms::READ, asker.ids).is_ok()
    }

    fn put_names(&self, children: &[NodeId], out: &mut Vec<u8>) {
        out.put_count(children.len());
        children.iter().for_each(|&child| out.put_buffer(Some(self.store.name(child))));
    }
}
