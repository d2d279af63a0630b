//! Parts of the work that samples belong to.
//!
//! A sample is asked from its innermost frame outwards; the first frame that a rule knows decides.

use super::rules;
use super::samples::Sample;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProfiledStage {
    Sockets,
    Decoding,
    Reading,
    HandingOver,
    Ordering,
    Encoding,
    Syncing,
    Applying,
    Replying,
    Counting,
    Preparing,
    Snapshots,
    Allocator,
    Switching,
    Else,
}

impl ProfiledStage {
    /// In the order of the table: a request's way through the server, then what has no place on it.
    pub(super) const ALL: [ProfiledStage; 15] = [
        ProfiledStage::Sockets,
        ProfiledStage::Decoding,
        ProfiledStage::Reading,
        ProfiledStage::HandingOver,
        ProfiledStage::Ordering,
        ProfiledStage::Encoding,
        ProfiledStage::Syncing,
        ProfiledStage::Applying,
        ProfiledStage::Replying,
        ProfiledStage::Counting,
        ProfiledStage::Preparing,
        ProfiledStage::Snapshots,
        ProfiledStage::Allocator,
        ProfiledStage::Switching,
        ProfiledStage::Else,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            ProfiledStage::Sockets => "waiting for sockets and reading them",
            ProfiledStage::Decoding => "splitting and decoding requests",
            ProfiledStage::Reading => "answering reads",
            ProfiledStage::HandingOver => "handing over between threads",
            ProfiledStage::Ordering => "batches and Raft",
            ProfiledStage::Encoding => "encoding the log's records",
            ProfiledStage::Syncing => "writing and syncing the log",
            ProfiledStage::Applying => "applying to the tree",
            ProfiledStage::Replying => "sending replies",
            ProfiledStage::Counting => "statistics",
            ProfiledStage::Preparing => "preparing the log's next files",
            ProfiledStage::Snapshots => "snapshots",
            ProfiledStage::Allocator => "allocator",
            ProfiledStage::Switching => "interrupts and preemption",
            ProfiledStage::Else => "everything else",
        }
    }

    pub(super) fn of(sample: &Sample) -> ProfiledStage {
        // What helpers do is one thing each, whatever it needs for that.
        let helper = match sample.thread.as_str() {
            "housekeeper" => Some(ProfiledStage::Preparing),
            "snapshot" => Some(ProfiledStage::Snapshots),
            _ => None,
        };
        helper.or_else(|| sample.frames.iter().find_map(rules::stage)).unwrap_or(ProfiledStage::Else)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::Frame;
    use super::*;

    /// Frames from the innermost outwards, as `function file`; the file may be missing.
    fn check(thread: &str, frames: &[&str], expected: ProfiledStage) {
        let frame = |text: &&str| {
            let (function, file) = text.split_once(' ').unwrap_or((text, ""));
            Frame { function: function.to_owned(), file: file.to_owned() }
        };
        let frames = frames.iter().map(frame).collect();
        assert_eq!(ProfiledStage::of(&Sample { thread: thread.to_owned(), frames }), expected);
    }

    const ENGINE: &str =
        "paddock_server::engine::owner::Engine::turn /build/crates/paddock-server/src/engine/owner.rs";
    const SYNC: &str = "paddock_storage::log::Log::sync /build/crates/paddock-storage/src/log.rs";
    const CREATE: &str = "paddock_tree::tree::Tree::carry_out /build/crates/paddock-tree/src/create.rs";
    const SEND: &str = "paddock_server::wire::Wire::flush /build/crates/paddock-server/src/wire.rs";

    #[test]
    fn a_system_call_takes_what_the_kernel_does_for_it() {
        check(
            "engine",
            &["iowrite16", "ext4_sync_file", "__x64_sys_fdatasync", SYNC, ENGINE],
            ProfiledStage::Syncing,
        );
        check(
            "engine",
            &["iowrite16", "ext4_sync_file", "__x64_sys_pwritev2", SYNC, ENGINE],
            ProfiledStage::Syncing,
        );
        check(
            "worker-0",
            &["_copy_from_iter", "tcp_sendmsg", "__arm64_sys_sendto", SEND],
            ProfiledStage::Replying,
        );
        check(
            "worker-0",
            &["schedule", "__x64_sys_epoll_wait", "park /r/tokio-1.5/src/park.rs"],
            ProfiledStage::Sockets,
        );
        check("engine", &["schedule", "__x64_sys_futex", SYNC], ProfiledStage::HandingOver);
    }

    #[test]
    fn an_interrupt_is_nobodys_work() {
        check(
            "engine",
            &["handle_softirqs", "asm_common_interrupt", CREATE, ENGINE],
            ProfiledStage::Switching,
        );
        check(
            "worker-0",
            &["schedule", "exit_to_user_mode_loop", "__libc_send", SEND],
            ProfiledStage::Switching,
        );
    }

    #[test]
    fn what_everyone_uses_belongs_to_its_caller() {
        let find = "find /build/crates/paddock-tree/src/store/index.rs";
        let read = "data /build/crates/paddock-tree/src/read.rs";
        check("engine", &["__memcpy_avx512", find, CREATE, ENGINE], ProfiledStage::Applying);
        check("worker-0", &["__memcpy_avx512", find, read, SEND], ProfiledStage::Reading);
    }

    #[test]
    fn the_allocator_is_a_stage_of_its_own() {
        check(
            "engine",
            &["clear_page", "sysmalloc", "_int_malloc", "malloc", CREATE],
            ProfiledStage::Allocator,
        );
    }

    #[test]
    fn files_of_one_crate_can_differ() {
        let server = |place: &str| format!("f /build/crates/paddock-server/src/{place}");
        check(
            "worker-0",
            &[&server("reports/metrics.rs"), &server("clients/host.rs")],
            ProfiledStage::Counting,
        );
        check("worker-0", &[&server("clients/serve.rs")], ProfiledStage::Sockets);
        check("engine", &[&server("engine/owner.rs")], ProfiledStage::HandingOver);
    }

    #[test]
    fn a_helper_does_one_thing() {
        check("housekeeper", &["ext4_file_write_iter", "__x64_sys_pwrite64"], ProfiledStage::Preparing);
        check("snapshot", &["_rjem_malloc"], ProfiledStage::Snapshots);
    }

    #[test]
    fn a_type_in_a_name_is_no_code_of_it() {
        let generic = "map<paddock_tree::create::Create>";
        check("worker-0", &[&format!("{generic} /rustc/1/library/core/src/option.rs")], ProfiledStage::Else);
    }

    #[test]
    fn every_stage_has_one_row() {
        for (at, stage) in ProfiledStage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, at, "{stage:?} does not stand where it is declared");
        }
    }
}
