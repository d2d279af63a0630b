//! Answers of Paddock that differ from ZooKeeper's on purpose.
//!
//! The generator makes none of these. Each has an example that must be answered differently, so that the list cannot
//! outlive its reasons.

use paddock_proto::OpCode;

use super::body::Body;
use super::identities::Identity;
use super::sequence::{Call, Connect, Sequence, Step, WantedSession};

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
        example: || one_call(Call::of("create", OpCode::Create, create("/o@@@@@@/big", &vec![0; 2 << 20]))),
    },
    Difference {
        what: "a string that is not UTF-8 is a marshalling error",
        why: "ZooKeeper replaces the bad bytes, so that two names on the wire are one in the tree",
        example: || {
            let mut call =
                Call::of("exists", OpCode::Exists, Body::new().string(Some("/o@@@@@@/x")).flag("", false));
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
            one_call(Call::of("delete", OpCode::Delete, path))
        },
    },
    Difference {
        what: "a null vector is an empty one",
        why: "in setWatches ZooKeeper stops halfway with an error, in a multi it takes no zxid: both are accidents",
        example: || {
            let body = ["data", "exist", "child"].iter().fold(Body::new().long("zxid", 0), |body, name| {
                body.list(name, None, |body, path: &&str| body.string(Some(path)))
            });
            one_call(Call::of("setWatches", OpCode::SetWatches, body))
        },
    },
    Difference {
        what: "setWatches tells nothing of a znode that the client may not read",
        why: "nobody finds out its zxids by asking; ZooKeeper tells of it, though no event would",
        example: || {
            let body = Body::new().string(Some("/o@@@@@@/secret")).buffer(Some(b""));
            let body =
                body.int("entries", 1).int("perms", 31).string(Some("digest")).string(Some("bob:hash"));
            let create = Call::of("create", OpCode::Create, body.int("flags", 0));
            let lists: [(&str, &[&str]); 3] =
                [("data", &[]), ("exist", &["/o@@@@@@/secret"]), ("child", &[])];
            let body = lists.iter().fold(Body::new().long("zxid", 0), |body, (name, list)| {
                body.list(name, Some(list), |body, path: &&str| body.string(Some(path)))
            });
            calls_in_steps(vec![vec![create], vec![Call::of("setWatches", OpCode::SetWatches, body)]])
        },
    },
    Difference {
        what: "a ping is answered at once",
        why: "a client must hear from a server whose disk or ensemble is slow; ZooKeeper lets it wait in line",
        example: || {
            let ping = Call { xid: Some(-2), ..Call::of("ping", OpCode::Ping, Body::new()) };
            calls(vec![Call::of("create", OpCode::Create, create("/o@@@@@@/a", b"")), ping])
        },
    },
    Difference {
        what: "createSession from a client is refused",
        why: "sessions are opened by the handshake; ZooKeeper sends a second handshake's answer",
        example: || {
            one_call(Call::of("createSession", OpCode::CreateSession, Body::new().int("timeout", 10_000)))
        },
    },
    Difference {
        what: "deleteContainer from a client is refused",
        why: "it is the service's own request and checks no ACL",
        example: || {
            let path = Body::new().string(Some("/o@@@@@@"));
            one_call(Call::of("deleteContainer", OpCode::DeleteContainer, path))
        },
    },
    Difference {
        what: "a session with more than 500 ephemerals ends in several transactions",
        why: "readers do not wait until all are gone; ZooKeeper holds everybody up for one long transaction",
        example: || {
            let create = |number| {
                let path = format!("/o@@@@@@/ephemeral-{number}");
                Call::of("create", OpCode::Create, create_with(&path, b"", 1))
            };
            let close = Call::of("closeSession", OpCode::CloseSession, Body::new());
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
        example: || resumed_by(Identity::Alice, Identity::Bob),
    },
    Difference {
        what: "a session whose client has proved who it is by SASL is not resumed without that",
        why: "the same; a client without a certificate cannot prove anything before it is greeted, so its first request ends the connection",
        example: || resumed_by(Identity::Carol, Identity::Nobody),
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

fn one_call(call: Call) -> Sequence {
    calls(vec![call])
}

fn calls(calls: Vec<Call>) -> Sequence {
    calls_in_steps(vec![calls])
}

fn calls_in_steps(steps: Vec<Vec<Call>>) -> Sequence {
    let connect = Step::Connect { slot: 0, connect: Connect::new_session() };
    let calls = steps.into_iter().map(|calls| Step::Calls { slot: 0, calls });
    Sequence { whole_tree: false, steps: [connect].into_iter().chain(calls).collect() }
}

/// One client opens a session, and another one wants it back with the right password, and reads.
fn resumed_by(owner: Identity, stranger: Identity) -> Sequence {
    let opened = Connect { identity: owner, ..Connect::new_session() };
    let resumed = Connect { session: WantedSession::Opened(0), identity: stranger, ..Connect::new_session() };
    let path = Body::new().string(Some("/o@@@@@@")).flag("watch", false);
    let read = Call::of("exists", OpCode::Exists, path);
    let steps = vec![
        Step::Connect { slot: 0, connect: opened },
        Step::Connect { slot: 1, connect: resumed },
        Step::Calls { slot: 1, calls: vec![read] },
    ];
    Sequence { whole_tree: false, steps }
}
