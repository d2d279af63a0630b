//! Operations, as the metrics of request times name them.

/// Operations as the metric's label names them. The last one is all others.
pub(super) const OPERATIONS: [&str; 25] = [
    "create",
    "delete",
    "exists",
    "get_data",
    "set_data",
    "get_acl",
    "set_acl",
    "get_children",
    "sync",
    "ping",
    "check",
    "multi",
    "reconfig",
    "multi_read",
    "watches",
    "get_ephemerals",
    "get_all_children_number",
    "create_container",
    "create_ttl",
    "create_session",
    "close_session",
    "list",
    "remove_recursive",
    "who_am_i",
    "other",
];

/// Name of the operation that only keeps a session alive.
pub(super) const PING: &str = "ping";

/// Index of an operation's code in `OPERATIONS`.
#[inline]
pub(super) fn operation(code: i32) -> usize {
    match code {
        1 | 15 | 502 => 0,
        2 | 20 | 505 => 1,
        3 => 2,
        4 => 3,
        5 => 4,
        6 => 5,
        7 => 6,
        8 | 12 => 7,
        9 => 8,
        11 => 9,
        13 | 501 | 504 => 10,
        14 => 11,
        16 => 12,
        22 => 13,
        17 | 18 | 101 | 105 | 106 => 14,
        103 => 15,
        104 => 16,
        19 => 17,
        21 => 18,
        -10 => 19,
        -11 => 20,
        500 | 506 | 507 => 21,
        503 => 22,
        107 => 23,
        _ => 24,
    }
}

/// Name of an operation by its code, as the metric's label has it.
pub fn operation_name(code: i32) -> &'static str {
    OPERATIONS[operation(code)]
}

/// True for an operation that goes through the log; ZooKeeper tells the others' times as those of reads, pings among them.
pub(super) fn is_update(operation: usize) -> bool {
    matches!(
        OPERATIONS[operation],
        "create"
            | "delete"
            | "set_data"
            | "set_acl"
            | "check"
            | "multi"
            | "reconfig"
            | "create_container"
            | "create_ttl"
            | "create_session"
            | "close_session"
            | "remove_recursive"
    )
}
