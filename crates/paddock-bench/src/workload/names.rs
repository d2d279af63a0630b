//! Paths of znodes that one session makes and removes again, without an allocation for each.

use std::fmt::Write;

/// Children of one znode, with names of 13 characters and more: `node-00000001`, `node-00000002`, …
#[derive(Debug)]
pub(super) struct Names {
    path: String,
    /// Length of the parent in `path`, in bytes.
    parent_len: usize,
    created: u64,
    deleted: u64,
}

impl Names {
    pub(super) fn below(parent: &str) -> Names {
        Names::with_prefix(&format!("{parent}/node-"))
    }

    /// Paths that are `prefix` and a number.
    pub(super) fn with_prefix(prefix: &str) -> Names {
        Names { path: prefix.to_owned(), parent_len: prefix.len(), created: 0, deleted: 0 }
    }

    /// A path that was never used.
    pub(super) fn create(&mut self) -> &str {
        self.created += 1;
        self.path(self.created)
    }

    /// The oldest of those that were created and not yet deleted.
    pub(super) fn delete(&mut self) -> Option<&str> {
        if self.deleted == self.created {
            return None;
        }
        self.deleted += 1;
        Some(self.path(self.deleted))
    }

    pub(super) fn last_created(&mut self) -> Option<&str> {
        (self.created > 0).then(|| self.path(self.created))
    }

    fn path(&mut self, number: u64) -> &str {
        self.path.truncate(self.parent_len);
        write!(self.path, "{number:08}").expect("a string takes any text");
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_deleted_in_the_order_of_their_creation() {
        let mut names = Names::below("/a");
        assert_eq!(names.delete(), None);
        assert_eq!(names.create(), "/a/node-00000001");
        assert_eq!(names.create(), "/a/node-00000002");
        assert_eq!(names.delete(), Some("/a/node-00000001"));
        assert_eq!(names.last_created(), Some("/a/node-00000002"));
        assert_eq!(names.delete(), Some("/a/node-00000002"));
        assert_eq!(names.delete(), None);
        assert_eq!(names.create(), "/a/node-00000003");
    }
}
