//! The simulator: a whole ensemble in one thread, from one seed, with faults, and checkers that would notice.
//!
//! Members run the code that the server runs, from [`paddock_member::Member`] down. The simulator is the world around
//! them: time passes from event to event, letters are late and lost, disks forget and fail, processes die between two
//! operations, clocks jump, clients come and go. Each run begins with a seed, out of which everything else is thrown. So
//! the same seed gives the same run.
//!
//! In the first part of a run things go wrong, and every checker looks at every step. Then nothing is wrong any more, and
//! the ensemble has to elect, converge, and serve, and must have lost nothing that it acknowledged.
//!
//! With `--etcd` the world is that of front ends on a model of etcd instead, with `--mirror` that of a mirror and its source.

mod answer_limits;
mod ask;
mod checks;
mod client;
mod command;
mod etcd;
mod faults;
mod machine;
mod mirror;
mod names;
mod network;
mod numbering;
mod plan;
mod progress;
mod queue;
mod run;
mod scale;
mod shrink;
mod theme;
mod time;
mod trace;
mod wire;
mod world;

pub use command::main;
pub use scale::main as scale;
