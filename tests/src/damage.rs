//! Data directories with a known history, and members that are started on damaged copies of them; and whatever else it
//! takes to see whether something was lost.
//!
//! `history` writes and kills, and knows every znode that was acknowledged. `files` copies a data directory and does
//! harm to the copy. `member` starts a process that may refuse.
//! `tree` reads everything a member has. `load` writes much at once, `gate` keeps a client from its server.

pub mod files;
pub mod gate;
pub mod history;
pub mod load;
pub mod member;
pub mod tree;
