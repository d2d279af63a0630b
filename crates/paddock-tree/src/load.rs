//! Building a tree from the blocks of a snapshot.
//!
//! The bytes may be anything: nothing is believed that has not been checked, and no memory is reserved for a number that
//! is only claimed. The tree comes out only if it is one.

use std::collections::BTreeMap;

use paddock_proto::jute::Reader;
use paddock_proto::{Acl, DecodeError, Id, MemberNumber, SessionId, SessionSecret, Zxid, validate_path};

use crate::Tree;
use crate::between_groups::BetweenGroups;
use crate::ensemble::{Ensemble, parse_members};
use crate::features::{FeatureLevel, RaisedLevel, UnknownLevel};
use crate::groups::FoundedGroups;
use crate::hosts::Hosts;
use crate::member_bytes::read_member;
use crate::origins::Origins;
use crate::quota_overruns::QuotaOverruns;
use crate::recent_children::RecentChildren;
use crate::session::Session;
use crate::snapshot::{
    FORMAT, FORMAT_OF_NARROW_NUMBERS, FORMAT_WITHOUT_LEVEL, FORMAT_WITHOUT_MOVES, FORMAT_WITHOUT_SECRET,
    HEADER_BLOCK, SNAPSHOT_FORMATS, ZNODE_BLOCK,
};
use crate::store::{AclId, NodeId, Record, Store, ZnodeKind};
use crate::tree::{QUOTA, SYSTEM_PATHS};

/// Errors of bytes that are not a snapshot.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("decode snapshot block")]
    Decode(#[from] DecodeError),
    #[error("snapshot has an unknown block {0:#04x}")]
    UnknownBlock(u8),
    #[error("snapshot has format {0}, and this build reads {first} to {last}: run the release that wrote it, or a later one", first = SNAPSHOT_FORMATS.start(), last = SNAPSHOT_FORMATS.end())]
    UnknownFormat(i32),
    #[error(transparent)]
    FeatureLevel(#[from] UnknownLevel),
    #[error("snapshot does not have one header, before everything else")]
    Header,
    #[error("header is followed by {0} bytes of something else")]
    Trailing(usize),
    #[error("session {0} is there twice")]
    RepeatedSession(SessionId),
    #[error("secret has {0} bytes, not {want}", want = SessionSecret::BYTES)]
    Secret(usize),
    #[error("member {0} is there twice")]
    RepeatedMember(MemberNumber),
    #[error("ACL {0} is there twice")]
    RepeatedAcl(u32),
    #[error("the first znode is not the root")]
    NoRoot,
    #[error("znode {0} comes after one with a higher number")]
    OutOfOrder(u32),
    #[error("znode {0} has no valid name")]
    Name(u32),
    #[error("znode {id} has the unknown ACL {acl}")]
    UnknownAcl { id: u32, acl: u32 },
    #[error("znode {id} belongs to the unknown session {session}")]
    UnknownOwner { id: u32, session: SessionId },
    #[error("znode {0} has no parent")]
    NoParent(u32),
    #[error("znode {0} is the child of an ephemeral znode")]
    EphemeralParent(u32),
    #[error("znode {0} has the name of another child of its parent")]
    RepeatedName(u32),
    #[error("some znodes are not below the root")]
    Unreachable,
    #[error("snapshot says it has {expected} znodes and has {found}")]
    Count { expected: i64, found: usize },
    #[error("the members of the ensemble cannot be read")]
    Ensemble,
    #[error("what was loaded is not what was saved: its digest is {found:016x}, not {expected:016x}")]
    Digest { expected: u64, found: u64 },
    #[error("the znode {0} is missing")]
    NoSystemNode(&'static str),
}

/// Takes the blocks of one snapshot, in order.
#[derive(Debug)]
pub struct TreeLoader {
    header: Option<Header>,
    store: Store,
    /// The number of each znode in the snapshot, ascending; its number in the store is its place here.
    ids: Vec<u32>,
}

#[derive(Debug)]
struct Header {
    zxid: Zxid,
    nodes: i64,
    digest: u64,
    sessions: BTreeMap<SessionId, Session>,
    origins: Origins,
    ensemble: Option<Ensemble>,
    secret: Option<SessionSecret>,
    raised: RaisedLevel,
    groups: FoundedGroups,
    between_groups: BetweenGroups,
    hosts: Hosts,
    /// The ACL that each number means.
    acls: BTreeMap<u32, AclId>,
}

impl Default for TreeLoader {
    fn default() -> TreeLoader {
        TreeLoader::new()
    }
}

impl TreeLoader {
    pub fn new() -> TreeLoader {
        TreeLoader { header: None, store: Store::empty(), ids: Vec::new() }
    }

    /// Takes what one call of `Tree::scan_snapshot` gave.
    pub fn block(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            HEADER_BLOCK => self.read_header(&mut reader),
            ZNODE_BLOCK => self.read_znodes(&mut reader),
            other => Err(LoadError::UnknownBlock(other)),
        }
    }

    /// The tree, if the blocks make the one that was saved.
    pub fn finish(self) -> Result<Tree, LoadError> {
        let expected = self.header.as_ref().map(|header| header.digest);
        let tree = self.assemble()?;
        match tree.digest() {
            found if Some(found) == expected => Ok(tree),
            found => Err(LoadError::Digest { expected: expected.unwrap_or_default(), found }),
        }
    }

    /// The tree, if the blocks make one.
    pub(crate) fn assemble(mut self) -> Result<Tree, LoadError> {
        let header = self.header.take().ok_or(LoadError::Header)?;
        if i64::try_from(self.ids.len()) != Ok(header.nodes) {
            return Err(LoadError::Count { expected: header.nodes, found: self.ids.len() });
        }
        if self.ids.is_empty() {
            return Err(LoadError::NoRoot);
        }
        self.bind_children()?;
        let TreeLoader { mut store, .. } = self;
        for &acl in header.acls.values() {
            store.release_acl(acl);
        }
        if !store.weigh() {
            return Err(LoadError::Unreachable);
        }
        if let Some(missing) = SYSTEM_PATHS.into_iter().find(|path| store.find(path).is_none()) {
            return Err(LoadError::NoSystemNode(missing));
        }
        let quota = store.find(QUOTA).expect("the system znodes are there");
        let Header {
            zxid, sessions, origins, ensemble, secret, raised, groups, between_groups, hosts, ..
        } = header;
        let overruns = QuotaOverruns::default();
        let floor = Zxid(0);
        Ok(Tree {
            zxid,
            floor,
            store,
            sessions,
            origins,
            ensemble,
            secret,
            raised,
            groups,
            is_among_groups: between_groups.is_among_groups(),
            are_znodes_spread: between_groups.are_znodes_spread(),
            between_groups,
            hosts,
            host_decisions: 0,
            recent_children: RecentChildren::default(),
            applied_items: Vec::new(),
            relayed_answers: None,
            changed_limits: Vec::new(),
            quota,
            overruns,
        })
    }

    fn read_header(&mut self, r: &mut Reader<'_>) -> Result<(), LoadError> {
        if self.header.is_some() {
            return Err(LoadError::Header);
        }
        let format = r.i32()?;
        let has_wide_numbers = matches!(format, FORMAT | FORMAT_WITHOUT_LEVEL);
        let (has_secret, has_moves) = match format {
            FORMAT | FORMAT_WITHOUT_LEVEL | FORMAT_OF_NARROW_NUMBERS => (true, true),
            FORMAT_WITHOUT_MOVES => (true, false),
            FORMAT_WITHOUT_SECRET => (false, false),
            other => return Err(LoadError::UnknownFormat(other)),
        };
        let raised = if format == FORMAT { read_level(r)? } else { RaisedLevel::default() };
        let has_groups = raised.level >= FeatureLevel::SEVERAL_GROUPS;
        let mut groups = if has_groups { FoundedGroups::decode(r)? } else { FoundedGroups::default() };
        let is_split = raised.level >= FeatureLevel::SPLIT_POINTS;
        let between_groups = if is_split { BetweenGroups::decode(r)? } else { BetweenGroups::default() };
        let mut hosts = Hosts::default();
        if raised.level >= FeatureLevel::HOSTS {
            groups.decode_replicas(r)?;
            hosts = Hosts::decode(r)?;
        }
        let (zxid, nodes, digest) = (Zxid(r.i64()?), r.i64()?, r.i64()? as u64);
        let mut sessions = BTreeMap::new();
        for _ in 0..r.count()? {
            let (session, mut known) =
                (SessionId(r.i64()?), Session::new(r.i32()?, read_member(r, has_wide_numbers)?));
            if has_secret {
                known.is_keyed = r.bool()?;
                known.proven = if r.bool()? { Some(Box::new(Id::decode(r)?)) } else { None };
            }
            if has_moves {
                known.moves = r.i32()? as u32;
            }
            if sessions.insert(session, known).is_some() {
                return Err(LoadError::RepeatedSession(session));
            }
        }
        let mut origins = Origins::default();
        for _ in 0..r.count()? {
            let (member, incarnation, number) =
                (read_member(r, has_wide_numbers)?, r.i64()? as u64, r.i64()? as u64);
            if origins.last.insert(member, (incarnation, number)).is_some() {
                return Err(LoadError::RepeatedMember(member));
            }
        }
        let ensemble = read_ensemble(r)?;
        let secret = if has_secret { read_secret(r)? } else { None };
        let mut acls = BTreeMap::new();
        for _ in 0..r.count()? {
            let (number, list) = (r.i32()? as u32, r.list(Acl::decode)?);
            if acls.insert(number, self.store.hold_acl(list)).is_some() {
                return Err(LoadError::RepeatedAcl(number));
            }
        }
        if !r.is_empty() {
            return Err(LoadError::Trailing(r.rest().len()));
        }
        self.header = Some(Header {
            zxid,
            nodes,
            digest,
            sessions,
            origins,
            ensemble,
            secret,
            raised,
            groups,
            between_groups,
            hosts,
            acls,
        });
        Ok(())
    }

    fn read_znodes(&mut self, r: &mut Reader<'_>) -> Result<(), LoadError> {
        let header = self.header.as_ref().ok_or(LoadError::Header)?;
        while !r.is_empty() {
            let record = Record::decode(r)?;
            check_record(&record, header, self.ids.last().copied())?;
            let acl = header.acls.get(&record.acl).copied();
            let acl = acl.ok_or(LoadError::UnknownAcl { id: record.id, acl: record.acl })?;
            self.store.place(&record, acl);
            self.ids.push(record.id);
        }
        Ok(())
    }

    fn bind_children(&mut self) -> Result<(), LoadError> {
        for place in 1..self.ids.len() {
            let (id, number) = (NodeId::from_number(place as u32), self.ids[place]);
            let parent = self.place_of(self.store.parent(id).number());
            let parent = parent.ok_or(LoadError::NoParent(number))?;
            if self.store.is_ephemeral(parent) {
                return Err(LoadError::EphemeralParent(number));
            }
            self.store.bind(id, parent);
        }
        let filled = self.store.fill_index();
        filled.map_err(|id| LoadError::RepeatedName(self.ids[id.number() as usize]))
    }

    /// The place of a znode in the store. Where no number is missing, it is the number.
    fn place_of(&self, number: u32) -> Option<NodeId> {
        let place = match self.ids.get(number as usize) {
            Some(&same) if same == number => number as usize,
            _ => self.ids.binary_search(&number).ok()?,
        };
        Some(NodeId::from_number(place as u32))
    }
}

fn read_ensemble(r: &mut Reader<'_>) -> Result<Option<Ensemble>, LoadError> {
    let members = |r: &mut Reader<'_>| parse_members(r.string()?).ok_or(LoadError::Ensemble);
    if !r.bool()? {
        return Ok(None);
    }
    let (cluster, members_now, version) = (r.i64()? as u64, members(r)?, r.i64()?);
    let target = if r.bool()? { Some(members(r)?) } else { None };
    Ok(Some(Ensemble { cluster, members: members_now, version, target }))
}

/// A level that is not known is refused at once: what follows it may have another form.
fn read_level(r: &mut Reader<'_>) -> Result<RaisedLevel, LoadError> {
    let number = r.i32()?;
    let unknown = DecodeError::UnknownValue { field: "feature level", value: number };
    let level = FeatureLevel(u16::try_from(number).map_err(|_| unknown)?);
    let raised = RaisedLevel { level, since: r.string()?.to_owned() };
    raised.check(FeatureLevel::KNOWN)?;
    Ok(raised)
}

fn read_secret(r: &mut Reader<'_>) -> Result<Option<SessionSecret>, LoadError> {
    let secret = r.buffer()?;
    secret.map(|bytes| SessionSecret::from_bytes(bytes).ok_or(LoadError::Secret(bytes.len()))).transpose()
}

fn check_record(record: &Record<'_>, header: &Header, last: Option<u32>) -> Result<(), LoadError> {
    let id = record.id;
    match last {
        None if id != 0 || record.parent != 0 || !record.name.is_empty() => return Err(LoadError::NoRoot),
        None => return Ok(()),
        Some(last) if id <= last => return Err(LoadError::OutOfOrder(id)),
        Some(_) => {}
    }
    if record.name.is_empty()
        || record.name.contains('/')
        || validate_path(&format!("/{}", record.name)).is_err()
    {
        return Err(LoadError::Name(id));
    }
    match record.kind {
        ZnodeKind::Ephemeral(session) if !header.sessions.contains_key(&session) => {
            Err(LoadError::UnknownOwner { id, session })
        }
        _ => Ok(()),
    }
}
