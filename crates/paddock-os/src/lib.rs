//! The operating system as all parts of a server use it: ports that are listened at, sockets, names, threads, and what a process may have.
//!
//! A port may have an address that is not this machine's yet (`binding.rs`), and a name that is not known yet (`late_names.rs`). A thread
//! is waited for, if the system has none to give (`threads.rs`). Descriptors and memory have limits (`descriptors.rs`, `memory.rs`), and
//! what is used of them is read in `process.rs`.

pub mod binding;
pub mod descriptors;
mod late_names;
mod limiter;
mod look_up;
pub mod memory;
mod ports;
pub mod process;
pub mod socket;
pub mod threads;

pub use late_names::LateNames;
pub use limiter::Limiter;
pub use look_up::LookUp;
pub use ports::free_port;
