//! The operations that a file's requests are reported as.

use paddock_proto::OpCode;

use super::requests::{RequestKind, Single};
use crate::workload::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Create,
    Delete,
    Set,
    Get,
    List,
    Multi,
    MultiRead,
}

impl OperationKind {
    const ALL: [OperationKind; 7] = [
        OperationKind::Create,
        OperationKind::Delete,
        OperationKind::Set,
        OperationKind::Get,
        OperationKind::List,
        OperationKind::Multi,
        OperationKind::MultiRead,
    ];

    /// The kind of an operation that stands alone.
    pub(super) fn of(op: OpCode) -> OperationKind {
        match op {
            OpCode::Create => OperationKind::Create,
            OpCode::Delete => OperationKind::Delete,
            OpCode::SetData => OperationKind::Set,
            OpCode::GetData => OperationKind::Get,
            OpCode::GetChildren2 => OperationKind::List,
            other => unreachable!("lanes never send {other:?} alone"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            OperationKind::Create => "create",
            OperationKind::Delete => "delete",
            OperationKind::Set => "set",
            OperationKind::Get => "get",
            OperationKind::List => "list",
            OperationKind::Multi => "multi",
            OperationKind::MultiRead => "multi_read",
        }
    }

    fn occurs_in(self, request: &RequestKind) -> bool {
        match (self, request) {
            (OperationKind::Create, RequestKind::Single(Single::Create { .. })) => true,
            (OperationKind::Delete, RequestKind::Single(Single::Create { remove_factor, .. })) => {
                *remove_factor > 0.0
            }
            (OperationKind::Set, RequestKind::Single(Single::Set { .. })) => true,
            (OperationKind::Get, RequestKind::Single(Single::Get { .. })) => true,
            (OperationKind::List, RequestKind::Single(Single::List { .. })) => true,
            (OperationKind::Multi, RequestKind::Multi { parts, .. }) => !parts[0].request.is_read(),
            (OperationKind::MultiRead, RequestKind::Multi { parts, .. }) => parts[0].request.is_read(),
            _ => false,
        }
    }
}

/// Operations that may occur, and their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operations {
    occurs: [bool; OperationKind::ALL.len()],
}

impl Operations {
    pub(super) fn of<'a>(requests: impl Iterator<Item = &'a RequestKind> + Clone) -> Operations {
        Operations {
            occurs: OperationKind::ALL.map(|kind| requests.clone().any(|request| kind.occurs_in(request))),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let occurring = OperationKind::ALL.into_iter().filter(|kind| self.occurs[*kind as usize]);
        occurring.map(|kind| kind.name().to_string()).collect()
    }

    pub(super) fn number(&self, kind: OperationKind) -> Operation {
        Operation(self.occurs[..kind as usize].iter().filter(|occurs| **occurs).count())
    }

    pub(super) fn is(&self, operation: Operation, kind: OperationKind) -> bool {
        self.occurs[kind as usize] && self.number(kind) == operation
    }
}
