//! Writes that own what they hold, and the bytes a client would send for them.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, DecodeError, ErrorCode, Id, IdList, MemberNumber, OpCode, Perms, Reconfig, SessionId, SessionSecret,
    Stat, Write, encode,
};
use paddock_tree::{Command, Tree};

/// A write that owns what it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    CreateSession {
        timeout_ms: i32,
    },
    ResumeSession {
        timeout_ms: i32,
        is_keyed: bool,
        is_asking: bool,
        moves: Option<u32>,
    },
    BindSession,
    SetSecret {
        secret: SessionSecret,
    },
    /// A command between Raft groups, as its body.
    BetweenGroups {
        body: Vec<u8>,
    },
    ExpireSession {
        session: SessionId,
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
    CheckNotExists {
        path: String,
        version: i32,
    },
    CheckStat {
        path: String,
        version: i32,
        stat: Stat,
    },
    TryRemove {
        path: String,
        version: i32,
    },
    RemoveRecursive {
        path: String,
        nodes_max: u32,
    },
    Reconfig {
        joining: Option<String>,
        leaving: Option<String>,
        new_members: Option<String>,
        version: i64,
    },
    FoundEnsemble {
        cluster: u64,
        members: String,
    },
    SettleReconfig {
        error: Option<ErrorCode>,
    },
    Multi(Vec<Wish>),
    /// A delete whose body ends too early.
    Broken,
}

impl Wish {
    /// A command's wish, as far as it could be read.
    pub fn of(write: &Result<Write<'_>, DecodeError>) -> Wish {
        match write {
            Ok(Write::Multi(writes)) => Wish::Multi(writes.iter().map(Wish::of_single).collect()),
            Ok(write) => Wish::of_single(write),
            Err(_) => Wish::Broken,
        }
    }

    fn of_single(write: &Write<'_>) -> Wish {
        match *write {
            Write::CreateSession { timeout_ms } => Wish::CreateSession { timeout_ms },
            Write::ResumeSession { timeout_ms, is_keyed, is_asking, moves } => {
                Wish::ResumeSession { timeout_ms, is_keyed, is_asking, moves }
            }
            Write::BindSession => Wish::BindSession,
            Write::SetSecret { secret } => Wish::SetSecret { secret },
            Write::ExpireSession { session } => Wish::ExpireSession { session },
            Write::CloseSession => Wish::CloseSession,
            Write::Create(create) => Wish::Create {
                op: create.op,
                path: create.path.to_owned(),
                data: create.data.map(<[u8]>::to_vec),
                acl: create.acl.to_vec(),
                flags: create.flags,
                ttl_ms: create.ttl_ms.unwrap_or_default(),
            },
            Write::Delete { path, version } => Wish::Delete { path: path.to_owned(), version },
            Write::DeleteContainer { path } => Wish::DeleteContainer { path: path.to_owned() },
            Write::SetData { path, data, version } => {
                Wish::SetData { path: path.to_owned(), data: data.map(<[u8]>::to_vec), version }
            }
            Write::SetAcl { path, acl, version } => {
                Wish::SetAcl { path: path.to_owned(), acl: acl.to_vec(), version }
            }
            Write::Check { path, version } => Wish::Check { path: path.to_owned(), version },
            Write::CheckNotExists { path, version } => {
                Wish::CheckNotExists { path: path.to_owned(), version }
            }
            Write::CheckStat { path, version, stat } => {
                Wish::CheckStat { path: path.to_owned(), version, stat }
            }
            Write::TryRemove { path, version } => Wish::TryRemove { path: path.to_owned(), version },
            Write::RemoveRecursive { path, nodes_max } => {
                Wish::RemoveRecursive { path: path.to_owned(), nodes_max }
            }
            Write::Reconfig(Reconfig { joining, leaving, new_members, version }) => Wish::Reconfig {
                joining: joining.map(str::to_owned),
                leaving: leaving.map(str::to_owned),
                new_members: new_members.map(str::to_owned),
                version,
            },
            Write::FoundEnsemble { cluster, members } => {
                Wish::FoundEnsemble { cluster, members: members.to_owned() }
            }
            Write::SettleReconfig { error } => Wish::SettleReconfig { error },
            Write::BetweenGroups(command) => {
                let mut body = Vec::new();
                command.encode(&mut body);
                Wish::BetweenGroups { body }
            }
            Write::Multi(_) => unreachable!("a multi within a multi cannot be read"),
        }
    }

    pub fn op(&self) -> OpCode {
        match self {
            Wish::CreateSession { .. } => OpCode::CreateSession,
            Wish::ResumeSession { .. } => OpCode::ResumeSession,
            Wish::BindSession => OpCode::BindSession,
            Wish::SetSecret { .. } => OpCode::SetSecret,
            Wish::ExpireSession { .. } => OpCode::ExpireSession,
            Wish::CloseSession => OpCode::CloseSession,
            Wish::Create { op, .. } => *op,
            Wish::Delete { .. } | Wish::Broken => OpCode::Delete,
            Wish::DeleteContainer { .. } => OpCode::DeleteContainer,
            Wish::SetData { .. } => OpCode::SetData,
            Wish::SetAcl { .. } => OpCode::SetAcl,
            Wish::Check { .. } => OpCode::Check,
            Wish::CheckNotExists { .. } => OpCode::CheckNotExists,
            Wish::CheckStat { .. } => OpCode::CheckStat,
            Wish::TryRemove { .. } => OpCode::TryRemove,
            Wish::RemoveRecursive { .. } => OpCode::RemoveRecursive,
            Wish::Reconfig { .. } => OpCode::Reconfig,
            Wish::FoundEnsemble { .. } => OpCode::FoundEnsemble,
            Wish::SettleReconfig { .. } => OpCode::SettleReconfig,
            Wish::BetweenGroups { .. } => OpCode::BetweenGroups,
            Wish::Multi(_) => OpCode::Multi,
        }
    }

    /// Appends the body of the request.
    pub fn put_body(&self, out: &mut Vec<u8>) {
        match self {
            Wish::CreateSession { timeout_ms } => out.put_i32(*timeout_ms),
            Wish::ResumeSession { timeout_ms, is_keyed, is_asking, moves } => {
                encode::resume_session(out, *timeout_ms, *is_keyed, *is_asking, *moves);
            }
            Wish::SetSecret { secret } => encode::secret(out, secret),
            Wish::ExpireSession { session } => out.put_i64(session.0),
            Wish::CloseSession | Wish::BindSession => {}
            Wish::BetweenGroups { body } => out.extend_from_slice(body),
            Wish::Broken => out.put_i32(5),
            Wish::Create { op, path, data, acl, flags, ttl_ms } => {
                out.put_string(path);
                out.put_buffer(data.as_deref());
                encode::put_acl(out, acl);
                out.put_i32(*flags);
                if *op == OpCode::CreateTtl {
                    out.put_i64(*ttl_ms);
                }
            }
            Wish::Delete { path, version }
            | Wish::Check { path, version }
            | Wish::CheckNotExists { path, version }
            | Wish::TryRemove { path, version } => {
                out.put_string(path);
                out.put_i32(*version);
            }
            Wish::CheckStat { path, version, stat } => {
                out.put_string(path);
                out.put_i32(*version);
                stat.encode(out);
            }
            Wish::RemoveRecursive { path, nodes_max } => {
                out.put_string(path);
                out.put_i32(*nodes_max as i32);
            }
            Wish::DeleteContainer { path } => out.put_string(path),
            Wish::SetData { path, data, version } => {
                out.put_string(path);
                out.put_buffer(data.as_deref());
                out.put_i32(*version);
            }
            Wish::SetAcl { path, acl, version } => {
                out.put_string(path);
                encode::put_acl(out, acl);
                out.put_i32(*version);
            }
            Wish::Reconfig { joining, leaving, new_members, version } => {
                for text in [joining, leaving, new_members] {
                    out.put_buffer(text.as_deref().map(str::as_bytes));
                }
                out.put_i64(*version);
            }
            Wish::FoundEnsemble { cluster, members } => {
                out.put_i64(*cluster as i64);
                out.put_string(members);
            }
            Wish::SettleReconfig { error } => out.put_i32(error.map_or(0, ErrorCode::code)),
            Wish::Multi(wishes) => {
                for wish in wishes {
                    encode::multi_operation(out, wish.op());
                    wish.put_body(out);
                }
                encode::multi_end(out);
            }
        }
    }
}

/// A wish and its circumstances.
#[derive(Clone, Debug)]
pub struct Call {
    pub session: SessionId,
    /// The member that took it from its client.
    pub member: MemberNumber,
    pub time_ms: i64,
    pub ids: Vec<Id>,
    /// Limits of quotas count.
    pub enforces_quotas: bool,
    pub wish: Wish,
}

impl Call {
    pub fn encode(&self) -> Vec<u8> {
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        self.wish.put_body(&mut body);
        let ids = IdList::encode(&self.ids);
        let ids = IdList::decode(&mut Reader::new(&ids)).expect("ids come back as encoded");
        Command::encode(self.session, self.time_ms, ids, self.wish.op(), &body, &mut bytes);
        if self.enforces_quotas {
            Command::enforce_quotas(ids, &mut bytes);
        }
        bytes
    }

    /// The service creates a znode that everybody may do everything with.
    pub fn plain_create(path: &str) -> Call {
        let create = Wish::Create {
            op: OpCode::Create,
            path: path.to_owned(),
            data: Some(b"d".to_vec()),
            acl: vec![Acl::open()],
            flags: 0,
            ttl_ms: 0,
        };
        Call {
            session: SessionId::NONE,
            member: 0,
            time_ms: 0,
            ids: Vec::new(),
            enforces_quotas: false,
            wish: create,
        }
    }

    /// Applies the call for its effect, which must not be a refusal.
    pub fn must(&self, tree: &mut Tree) {
        let bytes = self.encode();
        let command = Command::decode(&bytes).expect("a command comes back as encoded").taken_by(self.member);
        let outcome = tree.apply(&command);
        assert!(outcome.result.is_ok(), "{self:?}: {:?}", outcome.result);
    }
}

pub fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms: Perms(perms), id: Id::new(scheme, id) }
}
