//! By what a frame is recognised.
//!
//! Rules are for frames that say what is being done (a system call, a file of ours), and leave out those that everyone uses:
//! copying, hashing, the znodes' store, the bytes of the protocol. Those belong to their callers. Our own code is known
//! by its files: the name of an inlined function comes without its module, and that of a generic one is full of others.

use super::samples::Frame;
use super::stages::ProfiledStage;
use Pattern::{Begins, Calls, Functions, Source};

/// The stage that a frame tells of, if it does.
pub(super) fn stage(frame: &Frame) -> Option<ProfiledStage> {
    RULES.iter().find(|(pattern, _)| pattern.matches(frame)).map(|(_, stage)| *stage)
}

enum Pattern {
    /// Such system calls, by the kernel's name without its prefix.
    Calls(&'static [&'static str]),
    /// Functions whose name begins so.
    Begins(&'static [&'static str]),
    /// All of a file, a directory or a crate: a part of the path of the source.
    Source(&'static str),
    /// Functions of a file, by the last part of their name.
    Functions(&'static str, &'static [&'static str]),
}

impl Pattern {
    fn matches(&self, frame: &Frame) -> bool {
        match self {
            Pattern::Calls(names) => system_call(&frame.function).is_some_and(|call| names.contains(&call)),
            Pattern::Begins(starts) => starts.iter().any(|start| frame.function.starts_with(start)),
            Pattern::Source(part) => frame.file.contains(part),
            Pattern::Functions(part, names) => {
                frame.file.contains(part) && names.contains(&last_part(&frame.function).as_str())
            }
        }
    }
}

/// The kernel's function behind a system call is named for it: `__x64_sys_sendto`.
fn system_call(function: &str) -> Option<&str> {
    ["__x64_sys_", "__arm64_sys_"].iter().find_map(|prefix| function.strip_prefix(prefix))
}

/// `send` of `paddock_server::wire::Wire::send`, of `send<u8>` and of `<Wire as Send<u8>>::send`.
fn last_part(function: &str) -> String {
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut plain = String::new();
    for c in function.chars() {
        match c {
            '<' => depth += 1,
            // An arrow closes nothing.
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
        before = c;
    }
    plain.rsplit("::").next().unwrap_or_default().to_owned()
}

/// The first that matches a frame counts.
const RULES: &[(Pattern, ProfiledStage)] = &[
    (
        Begins(&["_int_malloc", "_int_free", "_int_realloc", "malloc", "cfree", "realloc", "calloc"]),
        ProfiledStage::Allocator,
    ),
    (Begins(&["unlink_chunk", "sysmalloc", "systrim", "heap_trim"]), ProfiledStage::Allocator),
    // The kernel. On its way back from a call, a thread may find that another one has to run.
    (Begins(&["asm_sysvec_", "asm_common_interrupt"]), ProfiledStage::Switching),
    (Begins(&["exit_to_user_mode_loop", "irqentry_exit_to_user_mode"]), ProfiledStage::Switching),
    (Calls(&["recvfrom", "recvmsg", "epoll_wait", "epoll_pwait", "epoll_ctl"]), ProfiledStage::Sockets),
    (Calls(&["sendto", "sendmsg", "writev"]), ProfiledStage::Replying),
    (Calls(&["pwrite64", "pwritev2", "fdatasync"]), ProfiledStage::Syncing),
    // An eventfd is written to wake a worker, and read by it.
    (Calls(&["futex", "sched_yield", "write", "read"]), ProfiledStage::HandingOver),
    (Begins(&["__libc_recv", "epoll_wait"]), ProfiledStage::Sockets),
    (Begins(&["__libc_send"]), ProfiledStage::Replying),
    // Libraries.
    (Source("/crossbeam-channel-"), ProfiledStage::HandingOver),
    (Source("/parking_lot"), ProfiledStage::HandingOver),
    (Source("/lock_api-"), ProfiledStage::HandingOver),
    (
        Functions("/tokio-", &["with_scheduler", "wake_by_val", "wake_by_ref", "wake_arc_raw"]),
        ProfiledStage::HandingOver,
    ),
    (Functions("/tokio-", &["notify_one", "notify_waiters", "unpark", "wake"]), ProfiledStage::HandingOver),
    (Functions("/mio-", &["wake"]), ProfiledStage::HandingOver),
    (Source("/tokio-"), ProfiledStage::Sockets),
    (Source("/mio-"), ProfiledStage::Sockets),
    (Source("/raft-0"), ProfiledStage::Ordering),
    (Source("/protobuf-"), ProfiledStage::Ordering),
    (Source("/crc32c-"), ProfiledStage::Encoding),
    // Our own code, by crates and folders: what is deeper in the stack decides first.
    (Source("paddock-proto/src/request.rs"), ProfiledStage::Decoding),
    (Source("paddock-proto/src/reply.rs"), ProfiledStage::Replying),
    (Source("paddock-tree/src/read.rs"), ProfiledStage::Reading),
    (Source("paddock-tree/src/list.rs"), ProfiledStage::Reading),
    // The tree's store serves reads and writes alike: its frames belong to their callers.
    (Source("paddock-tree/src/tree.rs"), ProfiledStage::Applying),
    (Source("paddock-tree/src/create.rs"), ProfiledStage::Applying),
    (Source("paddock-tree/src/delete.rs"), ProfiledStage::Applying),
    (Source("paddock-tree/src/set.rs"), ProfiledStage::Applying),
    (Source("paddock-tree/src/multi.rs"), ProfiledStage::Applying),
    (Source("paddock-state/src/"), ProfiledStage::Applying),
    (Source("paddock-front/src/"), ProfiledStage::Decoding),
    (Source("paddock-replica/src/"), ProfiledStage::Ordering),
    (Source("paddock-member/src/snapshots.rs"), ProfiledStage::Snapshots),
    (Source("paddock-member/src/"), ProfiledStage::Ordering),
    (Source("paddock-storage/src/log/record.rs"), ProfiledStage::Encoding),
    (Source("paddock-storage/src/"), ProfiledStage::Syncing),
    (Source("paddock-links/src/"), ProfiledStage::HandingOver),
    (Source("paddock-os/src/socket.rs"), ProfiledStage::Sockets),
    (Source("paddock-statistics/src/"), ProfiledStage::Counting),
    (Source("paddock-server/src/reports/"), ProfiledStage::Counting),
    (Source("paddock-server/src/clients/"), ProfiledStage::Sockets),
    (Source("paddock-server/src/"), ProfiledStage::HandingOver),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_function_has_a_last_name() {
        for name in
            ["send", "a::Wire::send", "send<b::Vec<u8>, fn(u8) -> c::D>", "<a::Wire as b::Send<u8>>::send"]
        {
            assert_eq!(last_part(name), "send", "{name}");
        }
        assert_eq!(last_part("a::send::{closure#0}"), "{closure#0}");
    }
    /// A rule for what is not there any more would send its samples elsewhere without a word.
    #[test]
    fn rules_know_the_sources_as_they_are() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for (pattern, stage) in RULES {
            let (part, functions) = match pattern {
                Source(part) => (part, &[][..]),
                Functions(part, functions) => (part, *functions),
                Calls(_) | Begins(_) => continue,
            };
            if !part.starts_with("paddock-") {
                continue;
            }
            let path = crates.join(part);
            assert!(path.exists(), "{stage:?} has a rule for {part}, which is not there");
            for function in functions {
                let source = fs::read_to_string(&path).expect("a rule for functions is for one file");
                let is_there = ["(", "<"].iter().any(|next| source.contains(&format!("fn {function}{next}")));
                assert!(is_there, "{part} has no function {function}");
            }
        }
    }
}
