//! The part that joins the Raft groups of a member, as a state machine without Raft, sockets, files and the clock.
//!
//! A group knows nothing of the others. The home group decides for all of them: what it has decided for another one stands in that group's stream, which
//! is a part of the home group's state ([`paddock_tree::Streams`]). [`Carrier`] carries items from there into the logs of the groups that the member
//! leads, and answers to the home group. What is submitted to the home group goes over a link, as every command does.
//!
//! [`Router`] leads requests of clients to the groups. A replica has a *level*, the stamp up to which it lacks nothing; a session looks at a group only when that is not below all
//! that it was shown of others, and writes there when the replica lacks no decision up to there ([`Carrier::settled`]). Decision 0123 says why that is enough.
//!
//! A group that the member does not have is asked for by letters to its host ([`Router`] writes them), and [`Hosting`] does for other members what they ask for.

mod answer;
mod away;
mod carrier;
mod conversation;
mod givings;
mod hosting;
mod last_proposal;
mod marks;
mod moment;
mod parts;
mod place;
mod router;
mod shown;
mod turn;
mod under_way;
mod union;
mod view;
mod votes;

pub use carrier::Carrier;
pub use hosting::Hosting;
pub use router::{HostChoice, ReadOnlyRequest, Router};
pub use turn::Order;
pub use view::{GroupView, Replicas};
