//! The engine: the member and its log, the thread that owns them, and everything that works for it.

mod combining;
mod handle;
mod housekeeping;
mod links;
pub(crate) mod member_profile;
mod owner;
mod shell;
mod snapshot_thread;

pub(crate) use handle::{BORROWED_TURNS_MAX, MemberHandle, new};
pub(crate) use housekeeping::Housekeeping;
pub(crate) use snapshot_thread::step_back;
