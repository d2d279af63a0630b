//! The oracle: the same sequence of requests goes to Apache ZooKeeper and to the server under test, and everything
//! that comes back is compared.
//!
//! `generate` makes a `Sequence` from a seed: several sessions on raw connections, few paths so that they collide, all
//! operations, good and bad arguments, malformed frames. `play` performs it on one server, one step after the other:
//! a step is over when its connection and then all others have answered a sync, so it is known which answers and events
//! belong to it. `answer` writes them down as text without what may differ: times, session ids, passwords, the server's
//! first zxid, and the order of what ZooKeeper itself keeps in hash tables. `judge` compares the two texts and drops
//! steps for as long as they still differ. `order` compares zxids with a server that counts otherwise. `differences` lists where Paddock answers otherwise on purpose.

pub mod answer;
pub mod body;
pub mod connection;
pub mod differences;
pub mod generate;
pub mod identities;
pub mod judge;
pub mod pair;
pub mod play;
pub mod quotas;
pub mod sequence;

mod acls;
mod arguments;
mod line;
mod malformed;
mod multis;
mod order;
mod requests;
mod tree;
