//! The tree seen from outside: bytes in, outcomes and replies out.

mod dump;
mod hostile;
mod model;
mod random;
mod script;
mod wire;
