//! DIGEST-MD5 of RFC 2831 without layers of integrity or confidentiality (`qop=auth`), both sides of it: the mechanism of SASL by which
//! clients and members of ZooKeeper prove that they know a password without showing it.
//!
//! The server sends a challenge, the client answers it, and the server proves that it knows the password too. How tokens travel is for
//! others: a client's in requests, a member's in packets of its quorum port.

mod client;
mod digest;
mod directives;
mod server;

pub use client::{ChallengeError, Login, LoginExchange, ServerProof, Service};
pub use server::{AnswerError, Challenge};
