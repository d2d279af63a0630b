//! The tree seen from outside: bytes in, outcomes and replies out.

mod hostile;
mod random;
mod saved;
mod script;
