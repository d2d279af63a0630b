//! The tree seen from outside: bytes in, outcomes and replies out.

mod hostile;
mod installed;
mod lists;
mod older;
mod random;
mod saved;
mod script;
