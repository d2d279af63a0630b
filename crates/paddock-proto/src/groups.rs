//! Commands of the service between Raft groups: what the home group decides for the others, and how that gets to them. No client sends them.

use crate::jute::{DecodeError, Reader, Writer};
use crate::{AclList, OpCode};

/// A command between groups, for the group in whose log it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsCommand<'a> {
    /// In the home group: children of this znode may be spread over groups from now on.
    Split { path: &'a str },
    /// In the home group: this znode is no split point any more, if all slots are in the home group.
    Join { path: &'a str },
    /// In the home group: another group has applied the items of its stream up to this number.
    Acknowledge { group: u32, number: u64 },
    /// In another group: an item of the home group's stream to it. It counts if the one before it was applied, and it was not.
    Item { number: u64, item: StreamItem<'a> },
}

/// An item of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamItem<'a> {
    /// The znode of a split point as it is in the home group: its ACL, or `None` if it is not there.
    SplitPoint { path: &'a str, acl: Option<AclList<'a>> },
}

const SPLIT: u8 = 1;
const ACKNOWLEDGE: u8 = 2;
const ITEM: u8 = 3;
const JOIN: u8 = 4;
const SPLIT_POINT: u8 = 1;

impl<'a> GroupsCommand<'a> {
    /// Operation of these commands.
    pub const OP: OpCode = OpCode::BetweenGroups;

    /// Appends the body of the command.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            GroupsCommand::Split { path } => {
                out.push(SPLIT);
                out.put_string(path);
            }
            GroupsCommand::Join { path } => {
                out.push(JOIN);
                out.put_string(path);
            }
            GroupsCommand::Acknowledge { group, number } => {
                out.push(ACKNOWLEDGE);
                out.put_i32(*group as i32);
                out.put_i64(*number as i64);
            }
            GroupsCommand::Item { number, item } => {
                out.push(ITEM);
                out.put_i64(*number as i64);
                item.encode(out);
            }
        }
    }

    /// Reads the body of a command.
    ///
    /// # Errors
    /// If it is none that this build knows.
    pub fn decode(r: &mut Reader<'a>) -> Result<GroupsCommand<'a>, DecodeError> {
        match r.u8()? {
            SPLIT => Ok(GroupsCommand::Split { path: r.string()? }),
            JOIN => Ok(GroupsCommand::Join { path: r.string()? }),
            ACKNOWLEDGE => Ok(GroupsCommand::Acknowledge { group: r.i32()? as u32, number: r.i64()? as u64 }),
            ITEM => Ok(GroupsCommand::Item { number: r.i64()? as u64, item: StreamItem::decode(r)? }),
            other => Err(DecodeError::UnknownValue { field: "command between groups", value: other.into() }),
        }
    }
}

impl<'a> StreamItem<'a> {
    /// Appends the item.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let StreamItem::SplitPoint { path, acl } = self;
        out.push(SPLIT_POINT);
        out.put_string(path);
        out.put_bool(acl.is_some());
        acl.iter().for_each(|acl| out.extend_from_slice(acl.wire()));
    }

    /// Reads an item.
    ///
    /// # Errors
    /// If it is none that this build knows.
    pub fn decode(r: &mut Reader<'a>) -> Result<StreamItem<'a>, DecodeError> {
        match r.u8()? {
            SPLIT_POINT => {
                let path = r.string()?;
                let acl = if r.bool()? { Some(AclList::decode(r)?) } else { None };
                Ok(StreamItem::SplitPoint { path, acl })
            }
            other => Err(DecodeError::UnknownValue { field: "item of a stream", value: other.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Write;

    #[test]
    fn commands_come_back_from_their_bytes() {
        let open = StreamItem::SplitPoint { path: "/a", acl: Some(AclList::OPEN) };
        let gone = StreamItem::SplitPoint { path: "/a/b", acl: None };
        for command in [
            GroupsCommand::Split { path: "/a" },
            GroupsCommand::Join { path: "/a" },
            GroupsCommand::Acknowledge { group: 63, number: u64::MAX },
            GroupsCommand::Item { number: 1, item: open },
            GroupsCommand::Item { number: 2, item: gone },
        ] {
            let mut bytes = Vec::new();
            command.encode(&mut bytes);
            let decoded = Write::decode(GroupsCommand::OP, &bytes);
            assert_eq!(decoded, Ok(Write::BetweenGroups(command)));
            for end in 0..bytes.len() {
                assert!(Write::decode(GroupsCommand::OP, &bytes[..end]).is_err(), "{command:?} cut at {end}");
            }
        }
        for unknown in [&[0][..], &[5], &[ITEM, 0, 0, 0, 0, 0, 0, 0, 1, 9]] {
            assert!(Write::decode(GroupsCommand::OP, unknown).is_err());
        }
    }
}
