//! Stories of several members. The test carries their messages, and loses them; it stops members, and starts them again
//! with what they had on disk. Everything is decided by the test and its seed. Most are scripts (`scripts/ensemble/`); what is
//! drawn at random, or answered differently in each variant, is Rust.

mod ensemble {
    mod random;
    mod script;
    mod stage;
    mod variants;
}

#[path = "shared/scripts.rs"]
mod scripts;
