//! The writes that only ClickHouse Keeper's protocol has.

use paddock_proto::{ErrorCode, WriteReply, validate_path};

use super::rules::{fits, is_below, is_special, up};
use super::{Changes, Model, Reply};
use crate::{Call, Wish};
use ErrorCode::*;

impl Model {
    pub(super) fn extended(&mut self, call: &Call, wish: &Wish, changes: &mut Changes) -> Reply {
        match wish {
            Wish::CheckNotExists { path, version } => {
                let valid = validate_path(path).map_err(|_| BadArguments);
                if !path.contains('/') || path.contains('\0') {
                    return Err(BadArguments);
                }
                if let Ok(parent) = self.get(up(path)) {
                    self.may(parent, 1, &call.ids)?;
                }
                valid?;
                match self.get(path) {
                    Ok(node) if fits(*version, node.stat.version).is_ok() => Err(NodeExists),
                    _ => Ok(WriteReply::Done),
                }
            }
            Wish::CheckStat { path, version, stat } => {
                self.single(call, &Wish::Check { path: path.clone(), version: *version }, changes)?;
                let actual = self.stat_of(path, self.get(path)?);
                let (expected, actual) = (format!("{stat:?}"), format!("{actual:?}"));
                let differs =
                    |(expected, actual): (&str, &str)| expected != actual && !expected.contains("-1");
                if expected.split(", ").zip(actual.split(", ")).any(differs) {
                    Err(BadVersion)
                } else {
                    Ok(WriteReply::Done)
                }
            }
            Wish::TryRemove { path, version } => {
                match self.single(call, &Wish::Delete { path: path.clone(), version: *version }, changes) {
                    Err(NoNode | BadVersion | NotEmpty) => Ok(WriteReply::Done),
                    reply => reply,
                }
            }
            Wish::RemoveRecursive { path, nodes_max } => {
                if is_special(path) || !path.contains('/') || path.contains('\0') {
                    return Err(BadArguments);
                }
                let Ok(parent) = self.get(up(path)) else { return Ok(WriteReply::Done) };
                self.may(parent, 8, &call.ids)?;
                if !self.nodes.contains_key(&**path) {
                    return Ok(WriteReply::Done);
                }
                let within = |other: &&str| *other == path || is_below(other, path);
                let doomed: Vec<String> = self.paths().filter(within).map(str::to_owned).collect();
                if doomed.len() > *nodes_max as usize {
                    return Err(NotEmpty);
                }
                for path in &doomed {
                    self.may(&self.nodes[&**path], 8, &call.ids)?;
                }
                doomed.iter().rev().for_each(|path| self.remove(path, changes));
                Ok(WriteReply::Done)
            }
            other => panic!("{other:?} is not one of them"),
        }
    }
}
