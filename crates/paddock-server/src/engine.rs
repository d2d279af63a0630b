//! The engine: the member and its log, the thread that owns them, and everything that works for it.

mod combining;
mod handle;
mod housekeeping;
mod links;
mod owner;
mod quota_report;
mod shell;
mod snapshot_thread;

pub(crate) use handle::{BORROWED_TURNS_MAX, EngineHandle, new};
pub(crate) use housekeeping::Housekeeping;
pub(crate) use links::frame_bytes_max;
