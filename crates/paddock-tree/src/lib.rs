//! The replicated state of an ensemble: znodes, ACLs, sessions and quota statistics.
//!
//! `Tree::apply` is a plain function of the state and a command: no clock, no chance, no thread, no file, nothing that
//! differs between members. Two trees that were given the same commands answer the same, also when one of them was
//! loaded from a snapshot half-way. What is written and read, which refusal wins and every number in a `Stat` follow
//! Apache ZooKeeper 3.9.
//!
//! Watches are not here: they are each member's own. The tree only reports every `Change`.

mod access;
mod between_groups;
mod command;
mod command_words;
mod computed;
mod create;
mod delete;
mod distinguished_name;
mod draft;
mod ensemble;
mod extended;
mod features;
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod hosts;
mod install;
mod ip;
mod keyed_passwords;
mod list;
mod list_copy;
mod load;
mod long_removal;
mod member_bytes;
mod multi;
mod multis_over_groups;
mod open_multis;
mod origins;
mod outcome;
mod outcome_note;
#[cfg(test)]
mod pair_of_groups;
mod passwords;
mod placement;
mod quota;
mod quota_overruns;
mod read;
mod recent_children;
mod roster;
mod session;
mod set;
mod snapshot;
mod split_points;
mod store;
mod streams;
#[cfg(feature = "testing")]
mod testing;
mod touched_paths;
mod tree;
mod trial;
mod walk;
mod write_paths;
mod znode;

pub use access::allows;
pub use between_groups::BetweenGroups;
pub use command::Command;
pub use command_words::{CommandWords, OperationWords};
pub use computed::COMPUTED;
pub use draft::{Draft, DraftAcl, DraftError, DraftNode, Facts, Repairs};
pub use ensemble::{Ensemble, digest_of_members, lines as member_lines, parse_members};
pub use features::{FEATURES, Feature, FeatureLevel, RaisedLevel, UnknownLevel};
pub use groups::{FoundedGroups, GroupFounders};
pub use install::{AppliedTransaction, InstallError, Installed};
pub use keyed_passwords::keyed_password;
pub use list_copy::{ListCopy, NameList};
pub use load::{LoadError, TreeLoader};
pub use long_removal::{LongRemoval, REMOVED_AT_ONCE};
pub use multis_over_groups::{done_multi, failed_multi, multi_over_groups};
pub use open_multis::{MultiEnd, MultiOutcome};
pub use origins::Origin;
pub use outcome::{Change, Changes, Outcome};
pub use outcome_note::OutcomeNote;
pub use passwords::ShownPassword;
pub use placement::placement;
pub use quota::{QuotaUse, add_to_statistics, is_statistics};
pub use quota_overruns::{QuotaLimit, QuotaOverrun, QuotaOverruns};
pub use read::{Asker, Guess, Guesses, REPLY_BYTES_MAX, check_reply_bytes, multi_read};
pub use recent_children::ChildChange;
pub use roster::Roster;
pub use session::is_proof;
pub use snapshot::{SNAPSHOT_FORMATS, SnapshotScan};
pub use split_points::{
    LeavingSlots, SLOTS, SlotMap, SlotMaps, SplitPathError, SplitPaths, SplitPoint, SplitPoints, slot_of,
};
pub use store::{Copied, Znode, ZnodeKind};
pub use streams::{ItemStream, PendingItem, Streams};
pub use tree::{
    AppliedItem, ChildrenAsOf, EphemeralCursor, ExpiryCursor, GivenPortion, MISPLACED, RelayedAnswer, Tree,
    WholeTree, can_be_relayed, relay_command,
};
pub use trial::Touched;
pub use walk::{StoredZnode, Znodes};
pub use write_paths::for_each_path;
