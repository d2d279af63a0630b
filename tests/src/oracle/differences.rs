//! Answers of Paddock that differ from ZooKeeper's on purpose.
//!
//! The generator makes none of these. Each has an example that must be answered differently, so that the list cannot
//! outlive its reasons.

use paddock_proto::OpCode;

use super::body::Body;
use super::identities::OracleIdentity;
use super::sequence::{Connect, OracleCall, OracleStep, Sequence, WantedSession};

/// A wanted difference.
#[derive(Debug)]
pub struct Difference {
    pub what: &'static str,
    pub why: &'static str,
    /// The last step is answered differently.
    pub example: fn() -> Sequence,
}

pub const DIFFERENCES: &[Difference] = &[
    Difference {
        what: "a frame longer than 1 MB is accepted",
        why: "what a znode may hold is limited by memory; ZooKeeper closes the connection",
        example: || {
            one_call(OracleCall::of("create", OpCode::Create, create("/o@@@@@@/big", &vec![0; 2 << 20])))
        },
    },
    Difference {
        what: "a string that is not UTF-8 is a marshalling error",
        why: "ZooKeeper replaces the bad bytes, so that two names on the wire are one in the tree",
        example: || {
            let mut call = OracleCall::of(
                "exists",
                OpCode::Exists,
                Body::new().string(Some("/o@@@@@@/x")).flag("", false),
            );
            call.body.bytes[12] = 0xff;
            call.body = call.body.remark("with a byte 0xff");
            one_call(call)
        },
    },
    Difference {
        what: "a null path is a marshalling error that takes no zxid; a null scheme or id in an ACL is an empty one",
        why: "ZooKeeper's decoder lets them through; what becomes of them is an accident in each operation",
        example: || {
            let path = Body::new().string(None).int("version", -1);
            one_call(OracleCall::of("delete", OpCode::Delete, path))
        },
    },
    Difference {
        what: "a null vector is an empty one",
        why: "in setWatches ZooKeeper stops halfway with an error, in a multi it takes no zxid: both are accidents",
        example: || {
            let body = ["data", "exist", "child"].iter().fold(Body::new().long("zxid", 0), |body, name| {
                body.list(name, None, |body, path: &&str| body.string(Some(path)))
            });
            one_call(OracleCall::of("setWatches", OpCode::SetWatches, body))
        },
    },
    Difference {
        what: "setWatches tells nothing of a znode that the client may not read",
        why: "nobody finds out its zxids by asking; ZooKeeper tells of it, though no event would",
        example: || {
            let body = Body::new().string(Some("/o@@@@@@/secret")).buffer(Some(b""));
            let body =
                body.int("entries", 1).int("perms", 31).string(Some("digest")).string(Some("bob:hash"));
            let create = OracleCall::of("create", OpCode::Create, body.int("flags", 0));
            let lists: [(&str, &[&str]); 3] =
                [("data", &[]), ("exist", &["/o@@@@@@/secret"]), ("child", &[])];
            let body = lists.iter().fold(Body::new().long("zxid", 0), |body, (name, list)| {
                body.list(name, Some(list), |body, path: &&str| body.string(Some(path)))
            });
            calls_in_steps(vec![vec![create], vec![OracleCall::of("setWatches", OpCode::SetWatches, body)]])
        },
    },
    Difference {
        what: "a ping is answered at once",
        why: "a client must hear from a server whose disk or ensemble is slow; ZooKeeper lets it wait in line",
        example: || {
            let ping = OracleCall { xid: Some(-2), ..OracleCall::of("ping", OpCode::Ping, Body::new()) };
            calls(vec![OracleCall::of("create", OpCode::Create, create("/o@@@@@@/a", b"")), ping])
        },
    },
    Difference {
        what: "createSession from a client is refused",
        why: "sessions are opened by the handshake; ZooKeeper sends a second handshake's answer",
        example: || {
            one_call(OracleCall::of(
                "createSession",
                OpCode::CreateSession,
                Body::new().int("timeout", 10_000),
            ))
        },
    },
    Difference {
        what: "deleteContainer from a client is refused",
        why: "it is the service's own request and checks no ACL",
        example: || {
            let path = Body::new().string(Some("/o@@@@@@"));
            one_call(OracleCall::of("deleteContainer", OpCode::DeleteContainer, path))
        },
    },
    Difference {
        what: "a session with more than 500 ephemerals ends in several transactions",
        why: "readers do not wait until all are gone; ZooKeeper holds everybody up for one long transaction",
        example: || {
            let create = |number| {
                let path = format!("/o@@@@@@/ephemeral-{number}");
                OracleCall::of("create", OpCode::Create, create_with(&path, b"", 1))
            };
            let close = OracleCall::of("closeSession", OpCode::CloseSession, Body::new());
            calls_in_steps(vec![(0..501).map(create).collect(), vec![close]])
        },
    },
];

/// Differences of servers whose clients prove who they are.
pub const DIFFERENCES_WITH_IDENTITIES: &[Difference] = &[
    Difference {
        what: "a session whose client has proved who it is by a certificate is not resumed with another one",
        why: "whoever may see a session's id could end it and take its locks; ZooKeeper asks for the password alone, which is a public \
              function of the id",
        example: || resumed_by(OracleIdentity::Alice, OracleIdentity::Bob),
    },
    Difference {
        what: "a session whose client has proved who it is by SASL is not resumed without that",
        why: "the same; a client without a certificate cannot prove anything before it is greeted, so its first request ends the connection",
        example: || resumed_by(OracleIdentity::Carol, OracleIdentity::Nobody),
    },
];

// Two more have no example, because they end ZooKeeper's process: a createTTL whose mode has no TTL and whose TTL is
// negative, and znodes for quotas in places or with texts that ZooKeeper does not expect. Paddock refuses or ignores them.

fn create(path: &str, data: &[u8]) -> Body {
    create_with(path, data, 0)
}

fn create_with(path: &str, data: &[u8], flags: i32) -> Body {
    let mut body = Body::new().string(Some(path)).buffer(Some(data));
    body.bytes.extend_from_slice(paddock_proto::AclList::OPEN.wire());
    body.int("flags", flags)
}

fn one_call(call: OracleCall) -> Sequence {
    calls(vec![call])
}

fn calls(calls: Vec<OracleCall>) -> Sequence {
    calls_in_steps(vec![calls])
}

fn calls_in_steps(steps: Vec<Vec<OracleCall>>) -> Sequence {
    let connect = OracleStep::Connect { slot: 0, connect: Connect::new_session() };
    let calls = steps.into_iter().map(|calls| OracleStep::Calls { slot: 0, calls });
    Sequence { whole_tree: false, steps: [connect].into_iter().chain(calls).collect() }
}

/// One client opens a session, and another one wants it back with the right password, and reads.
fn resumed_by(owner: OracleIdentity, stranger: OracleIdentity) -> Sequence {
    let opened = Connect { identity: owner, ..Connect::new_session() };
    let resumed = Connect { session: WantedSession::Opened(0), identity: stranger, ..Connect::new_session() };
    let path = Body::new().string(Some("/o@@@@@@")).flag("watch", false);
    let read = OracleCall::of("exists", OpCode::Exists, path);
    let steps = vec![
        OracleStep::Connect { slot: 0, connect: opened },
        OracleStep::Connect { slot: 1, connect: resumed },
        OracleStep::Calls { slot: 1, calls: vec![read] },
    ];
    Sequence { whole_tree: false, steps }
}
