//! A request that is done in portions, one in a turn of its connection: other clients wait for one portion, and not for all of them.

use paddock_state::LongList;

use crate::watches::WatchesToSet;

/// A request of which portions are still to be done. Requests behind it have to wait.
#[derive(Debug)]
pub(crate) enum LongRequest<Span> {
    Watches(WatchesToSet<Span>),
    List(ListToCopy<Span>),
}

/// A long list of children that is being copied.
#[derive(Debug)]
pub(crate) struct ListToCopy<Span> {
    pub(crate) list: LongList,
    /// Present if the request is traced.
    pub(crate) span: Option<Span>,
    /// Size of the request, in bytes.
    pub(crate) bytes: usize,
}

impl<Span> LongRequest<Span> {
    /// Size of the memory that it takes, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            LongRequest::Watches(watches) => watches.bytes(),
            LongRequest::List(copy) => copy.list.held_bytes(),
        }
    }

    /// Lets go of memory that is not needed to do it later.
    pub(crate) fn forget(&mut self) {
        if let LongRequest::List(copy) = self {
            copy.list.forget();
        }
    }

    /// A request that will not be answered.
    pub(crate) fn into_span(self) -> Option<Span> {
        match self {
            LongRequest::Watches(watches) => watches.span,
            LongRequest::List(copy) => copy.span,
        }
    }
}
