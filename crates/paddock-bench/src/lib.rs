//! Measures any server that speaks ZooKeeper's protocol.
//!
//! A `RunPlan` says what to do, `run` does it and returns a `RunReport`. A run is: create what the workload needs
//! (`prepare.rs`), open the sessions, let `driver/` keep them busy, merge what its threads measured, sample the server's
//! processes meanwhile (`sample.rs`). `workload/` holds what can be asked of a server, `report/` turns figures into
//! text and pages, `suite/` starts servers itself and compares them.

mod access;
mod driver;
mod error;
mod measure;
mod plan;
mod prepare;
mod progress;
pub mod report;
mod run;
mod sample;
pub mod suite;
mod tally;
mod until;
pub mod workload;

pub use access::{Access, ShownIdentity};
pub use error::BenchError;
pub use paddock_client::{Login, Tls, TlsFiles};
pub use paddock_proto::Extensions;
pub use plan::{RunPlan, SampleSource};
pub use progress::{RunProgress, Silence, Tick};
pub use report::Pace;
pub use run::run;
pub use until::Until;
