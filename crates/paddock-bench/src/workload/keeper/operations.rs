//! The operations that a file's requests are reported as.

use paddock_proto::OpCode;

use super::requests::{RequestKind, Single};
use crate::workload::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Delete,
    Set,
    Get,
    List,
    Multi,
    MultiRead,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Create, Kind::Delete, Kind::Set, Kind::Get, Kind::List, Kind::Multi, Kind::MultiRead];

    /// The kind of an operation that stands alone.
    pub(super) fn of(op: OpCode) -> Kind {
        match op {
            OpCode::Create => Kind::Create,
            OpCode::Delete => Kind::Delete,
            OpCode::SetData => Kind::Set,
            OpCode::GetData => Kind::Get,
            OpCode::GetChildren2 => Kind::List,
            other => unreachable!("lanes never send {other:?} alone"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Create => "create",
            Kind::Delete => "delete",
            Kind::Set => "set",
            Kind::Get => "get",
            Kind::List => "list",
            Kind::Multi => "multi",
            Kind::MultiRead => "multi_read",
        }
    }

    fn occurs_in(self, request: &RequestKind) -> bool {
        match (self, request) {
            (Kind::Create, RequestKind::Single(Single::Create { .. })) => true,
            (Kind::Delete, RequestKind::Single(Single::Create { remove_factor, .. })) => *remove_factor > 0.0,
            (Kind::Set, RequestKind::Single(Single::Set { .. })) => true,
            (Kind::Get, RequestKind::Single(Single::Get { .. })) => true,
            (Kind::List, RequestKind::Single(Single::List { .. })) => true,
            (Kind::Multi, RequestKind::Multi { parts, .. }) => !parts[0].request.is_read(),
            (Kind::MultiRead, RequestKind::Multi { parts, .. }) => parts[0].request.is_read(),
            _ => false,
        }
    }
}

/// Those that may occur, and their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operations {
    occurs: [bool; Kind::ALL.len()],
}

impl Operations {
    pub(super) fn of<'a>(requests: impl Iterator<Item = &'a RequestKind> + Clone) -> Operations {
        Operations { occurs: Kind::ALL.map(|kind| requests.clone().any(|request| kind.occurs_in(request))) }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let occurring = Kind::ALL.into_iter().filter(|kind| self.occurs[*kind as usize]);
        occurring.map(|kind| kind.name().to_string()).collect()
    }

    pub(super) fn number(&self, kind: Kind) -> Operation {
        Operation(self.occurs[..kind as usize].iter().filter(|occurs| **occurs).count())
    }

    pub(super) fn is(&self, operation: Operation, kind: Kind) -> bool {
        self.occurs[kind as usize] && self.number(kind) == operation
    }
}
