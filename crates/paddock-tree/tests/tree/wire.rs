//! Requests of the tests, and the bytes a client would send for them.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, Id, IdList, OpCode, Perms, SessionId};
use paddock_tree::{Command, Tree};

/// A write that owns what it holds.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    CreateSession {
        timeout_ms: i32,
    },
    CloseSession,
    Create {
        op: OpCode,
        path: String,
        data: Option<Vec<u8>>,
        acl: Vec<Acl>,
        flags: i32,
        ttl_ms: i64,
    },
    Delete {
        path: String,
        version: i32,
    },
    DeleteContainer {
        path: String,
    },
    SetData {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    SetAcl {
        path: String,
        acl: Vec<Acl>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    Multi(Vec<Wish>),
    /// A delete whose body ends too early.
    Broken,
}

impl Wish {
    pub(crate) fn op(&self) -> OpCode {
        match self {
            Wish::CreateSession { .. } => OpCode::CreateSession,
            Wish::CloseSession => OpCode::CloseSession,
            Wish::Create { op, .. } => *op,
            Wish::Delete { .. } | Wish::Broken => OpCode::Delete,
            Wish::DeleteContainer { .. } => OpCode::DeleteContainer,
            Wish::SetData { .. } => OpCode::SetData,
            Wish::SetAcl { .. } => OpCode::SetAcl,
            Wish::Check { .. } => OpCode::Check,
            Wish::Multi(_) => OpCode::Multi,
        }
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        match self {
            Wish::CreateSession { timeout_ms } => out.put_i32(*timeout_ms),
            Wish::CloseSession => {}
            Wish::Broken => out.put_i32(5),
            Wish::Create { op, path, data, acl, flags, ttl_ms } => {
                out.put_string(path);
                out.put_buffer(data.as_deref());
                put_acl(acl, out);
                out.put_i32(*flags);
                if *op == OpCode::CreateTtl {
                    out.put_i64(*ttl_ms);
                }
            }
            Wish::Delete { path, version } | Wish::Check { path, version } => {
                out.put_string(path);
                out.put_i32(*version);
            }
            Wish::DeleteContainer { path } => out.put_string(path),
            Wish::SetData { path, data, version } => {
                out.put_string(path);
                out.put_buffer(data.as_deref());
                out.put_i32(*version);
            }
            Wish::SetAcl { path, acl, version } => {
                out.put_string(path);
                put_acl(acl, out);
                out.put_i32(*version);
            }
            Wish::Multi(wishes) => {
                for wish in wishes {
                    put_multi_header(wish.op().code(), false, out);
                    wish.put_body(out);
                }
                put_multi_header(-1, true, out);
            }
        }
    }
}

fn put_acl(acl: &[Acl], out: &mut Vec<u8>) {
    out.put_count(acl.len());
    acl.iter().for_each(|entry| entry.encode(out));
}

fn put_multi_header(op: i32, done: bool, out: &mut Vec<u8>) {
    out.put_i32(op);
    out.put_bool(done);
    out.put_i32(-1);
}

/// A wish and its circumstances.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) session: SessionId,
    pub(crate) time_ms: i64,
    pub(crate) ids: Vec<Id>,
    pub(crate) wish: Wish,
}

impl Call {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        self.wish.put_body(&mut body);
        let ids = IdList::encode(&self.ids);
        let ids = IdList::decode(&mut Reader::new(&ids)).expect("ids come back as encoded");
        Command::encode(self.session, self.time_ms, ids, self.wish.op(), &body, &mut bytes);
        bytes
    }

    /// The service creates a znode that everybody may do everything with.
    pub(crate) fn plain_create(path: &str) -> Call {
        let create = Wish::Create {
            op: OpCode::Create,
            path: path.to_owned(),
            data: Some(b"d".to_vec()),
            acl: vec![Acl::open()],
            flags: 0,
            ttl_ms: 0,
        };
        Call { session: SessionId::NONE, time_ms: 0, ids: Vec::new(), wish: create }
    }

    /// Applies the call for its effect, which must not be a refusal.
    pub(crate) fn must(&self, tree: &mut Tree) {
        let bytes = self.encode();
        let command = Command::decode(&bytes).expect("a command comes back as encoded");
        let outcome = tree.apply(&command);
        assert!(outcome.result.is_ok(), "{self:?}: {:?}", outcome.result);
    }
}

pub(crate) fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms: Perms(perms), id: Id::new(scheme, id) }
}
