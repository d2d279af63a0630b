//! The tree as simply as it can be said, for tests and for the simulator: what `paddock-tree` does is compared with it.
//!
//! [`Model`] takes each [`Call`] that the tree takes as a command, and answers each [`Question`] that the tree is asked as
//! a read. It is slow and obviously right, and shares nothing with the tree but the types of its answers.

mod call;
mod dump;
mod model;
mod question;

pub use call::{Call, Wish, acl};
pub use dump::{Dump, Znode, dump};
pub use model::{Asker, Model, Reply};
pub use question::{Answer, Question};
