//! The load: threads that keep sessions busy, thinner than any client so that the server is what is measured.
//!
//! Each thread is a `Reactor` with its share of the sessions and nothing shared with the others. It is told to play a
//! phase, plays it to its end, and sends what it measured once a second.

mod form;
mod handshake;
mod pacer;
mod reactor;
mod session;
mod timer;
mod wire;

pub(crate) use handshake::probe;
pub(crate) use reactor::{Driver, News, ReactorCommand, Share};
