//! Sequential names below split points. The home group has a part of the children and counts only those: so a name is taken as its counter gives it, and one tree says what comes of that.

use std::borrow::Cow;
use std::collections::BTreeMap;

use paddock_model::{Call, Wish};
use paddock_proto::{OpCode, parent_and_name};
use paddock_tree::Tree;

/// Flag of the create modes with a suffix, beside which there is only that of ephemerals.
const SEQUENTIAL: i32 = 2;

/// Numbers of children that the home group's parents of sequential znodes had ever had, before a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildCounts(BTreeMap<String, i32>);

impl ChildCounts {
    /// Counters in a group's state by which it is to name what a write creates.
    pub(super) fn of(wish: &Wish, tree: &Tree) -> ChildCounts {
        let wishes = match wish {
            Wish::Multi(wishes) => &wishes[..],
            wish => std::slice::from_ref(wish),
        };
        let parents = wishes.iter().filter_map(sequential_parent);
        let counted = parents
            .filter_map(|parent| tree.znode(parent).map(|znode| (parent.to_owned(), znode.children_created)));
        ChildCounts(counted.collect())
    }

    #[cfg(test)]
    pub(super) fn one(parent: &str, count: i32) -> ChildCounts {
        ChildCounts(BTreeMap::from([(parent.to_owned(), count)]))
    }

    /// The write with the names that the home group gives.
    pub(super) fn named<'c>(&mut self, call: &'c Call, split_points: &[String]) -> Cow<'c, Call> {
        if self.0.is_empty() {
            return Cow::Borrowed(call);
        }
        let wish = match &call.wish {
            Wish::Multi(wishes) => {
                Wish::Multi(wishes.iter().map(|wish| self.named_step(wish, split_points)).collect())
            }
            wish => self.named_step(wish, split_points),
        };
        Cow::Owned(Call { wish, ..call.clone() })
    }

    /// Likewise of the home group's next operation of a multi.
    pub(super) fn named_step(&mut self, wish: &Wish, split_points: &[String]) -> Wish {
        let mut named = wish.clone();
        let Wish::Create { path, flags, .. } = &mut named else { return named };
        let parent = parent_and_name(path).map_or("", |(parent, _)| parent).to_owned();
        let is_split_point = |path: &String| split_points.contains(path);
        if let Some(count) = self.0.get_mut(&parent).filter(|_| is_split_point(&parent)) {
            if sequential_parent(wish).is_some() {
                *path = format!("{path}{count:010}");
                *flags &= !SEQUENTIAL;
            }
            *count += 1;
        }
        if is_split_point(path) {
            self.0.insert(path.clone(), 0);
        }
        named
    }
}

/// The parent, if a write creates a sequential znode.
fn sequential_parent(wish: &Wish) -> Option<&str> {
    let Wish::Create { op: OpCode::Create | OpCode::Create2, path, flags, .. } = wish else { return None };
    let is_plain = flags & !(SEQUENTIAL | 1) == 0;
    (is_plain && flags & SEQUENTIAL != 0).then_some(())?;
    parent_and_name(path).map(|(parent, _)| parent)
}
