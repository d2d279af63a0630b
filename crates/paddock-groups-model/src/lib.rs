//! The design of several Raft groups under one tree as small models, each of whose states a checker visits. `docs/groups-model.md` says
//! what they cover and what they do not.
//!
//! A [`ModelWorld`] is a model with a name and what is expected of it: that its properties hold in every state, or, for a model with a planted
//! mistake, that the checker finds a certain property broken. [`worlds::all`] lists them; `cargo run --release -p paddock-groups-model`
//! runs them.

mod command;
mod table;
mod world;
pub mod worlds;

pub use command::main;
pub use table::row;
pub use world::{Expected, ModelRun, ModelWorld, Size};
