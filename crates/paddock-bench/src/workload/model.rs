//! A server for tests of lanes: just enough of a tree to tell which requests a real one would refuse.

use std::collections::HashMap;
use std::time::Instant;

use paddock_proto::jute::Reader;
use paddock_proto::{
    Dialect, ErrorCode, MultiResult, OpCode, Read, Request as Decoded, RequestHeader, Write, Xid, frame,
    parent_and_name, validate_path,
};

use super::{Lane, NextRequest, Operation, ReplyVerdict, ServerReply, Workload, WorkloadRequest};

/// Numbers of children, by znode.
pub(crate) struct Model {
    children: HashMap<String, usize>,
    versions: HashMap<String, i32>,
    created: HashMap<String, u32>,
    /// Changes that a failed multi takes back.
    undo: Vec<Change>,
}

enum Change {
    Created(String),
    Deleted(String),
}

impl Model {
    /// With the workload's setup.
    pub(crate) fn of(workload: &dyn Workload) -> Model {
        let mut model = Model {
            children: HashMap::from([("/".to_string(), 0)]),
            versions: HashMap::new(),
            created: HashMap::new(),
            undo: Vec::new(),
        };
        for znode in workload.setup() {
            model
                .create(&znode.path, false)
                .unwrap_or_else(|error| panic!("setup of {}: {error:?}", znode.path));
        }
        model
    }

    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    /// Asks a lane for one request and answers it. The request's frame is left in `frame`.
    pub(crate) fn turn(
        &mut self,
        lane: &mut dyn Lane,
        frame: &mut Vec<u8>,
    ) -> (NextRequest, Option<(Operation, ReplyVerdict, i32)>) {
        frame.clear();
        let now = Instant::now();
        let next = lane.next(&mut WorkloadRequest::new(frame, Xid(1), now));
        let NextRequest::Send(operation) = next else {
            assert!(frame.is_empty(), "a request was written that is not to be sent");
            return (next, None);
        };
        let (error, body) = self.answer(frame);
        let verdict = lane.answered(&ServerReply { operation, error, body: &body, now });
        (next, Some((operation, verdict, error)))
    }

    fn answer(&mut self, bytes: &[u8]) -> (i32, Vec<u8>) {
        let (body, taken) = frame::split(bytes, 1 << 20).unwrap().expect("a whole frame");
        assert_eq!(taken, bytes.len(), "one frame");
        let mut reader = Reader::new(body);
        let header = RequestHeader::decode(&mut reader).unwrap();
        let op = OpCode::from_code(header.op).unwrap();
        let mut out = Vec::new();
        let result = match Decoded::decode(op, reader.rest(), Dialect::ZooKeeper).unwrap() {
            Decoded::Write(write) => self.write(&write),
            Decoded::Read(Read::MultiRead(reads)) => {
                // ZooKeeper's form of an error does not say what was asked for.
                let put = |error| MultiResult::encode_read_error(Dialect::ZooKeeper, op, error, &mut out);
                reads.iter().filter_map(|read| self.read(read).err()).for_each(put);
                MultiResult::encode_end(&mut out);
                Ok(())
            }
            Decoded::Read(read) => self.read(&read),
            Decoded::Sync { .. } => Ok(()),
            other => panic!("{other:?} from a lane"),
        };
        (result.map_or_else(ErrorCode::code, |()| 0), out)
    }

    fn write(&mut self, write: &Write<'_>) -> Result<(), ErrorCode> {
        match write {
            Write::Create(create) => self.create(create.path, create.mode().unwrap().is_sequential()),
            Write::Delete { path, version } => self.delete(path, *version),
            Write::SetData { path, version, .. } => {
                self.check(path, *version)?;
                *self.versions.entry(path.to_string()).or_default() += 1;
                Ok(())
            }
            Write::Check { path, version } => self.check(path, *version),
            Write::Multi(writes) => self.multi(writes),
            other => panic!("{other:?} from a lane"),
        }
    }

    fn multi(&mut self, writes: &[Write<'_>]) -> Result<(), ErrorCode> {
        assert!(!writes.is_empty());
        self.undo.clear();
        let result = writes.iter().try_for_each(|write| self.write(write));
        if result.is_err() {
            while let Some(change) = self.undo.pop() {
                match change {
                    Change::Created(path) => self.delete(&path, -1).unwrap(),
                    Change::Deleted(path) => self.create(&path, false).unwrap(),
                }
                self.undo.pop();
            }
        }
        result
    }

    fn read(&self, read: &Read<'_>) -> Result<(), ErrorCode> {
        match read {
            Read::Exists { path, .. }
            | Read::GetData { path, .. }
            | Read::GetAcl { path }
            | Read::GetChildren { path, .. }
            | Read::GetChildren2 { path, .. } => self.check(path, -1),
            other => panic!("{other:?} from a lane"),
        }
    }

    fn check(&self, path: &str, version: i32) -> Result<(), ErrorCode> {
        self.children.get(path).ok_or(ErrorCode::NoNode)?;
        let own = self.versions.get(path).copied().unwrap_or(0);
        if version == -1 || version == own { Ok(()) } else { Err(ErrorCode::BadVersion) }
    }

    fn create(&mut self, path: &str, sequential: bool) -> Result<(), ErrorCode> {
        let (parent, _) = parent_and_name(path).unwrap();
        *self.children.get_mut(parent).ok_or(ErrorCode::NoNode)? += 1;
        let created = self.created.entry(parent.to_string()).or_default();
        let path = if sequential { format!("{path}{created:010}") } else { path.to_string() };
        *created += 1;
        assert_eq!(validate_path(&path), Ok(()), "{path}");
        if self.children.contains_key(&path) {
            *self.children.get_mut(parent).unwrap() -= 1;
            return Err(ErrorCode::NodeExists);
        }
        self.children.insert(path.clone(), 0);
        self.undo.push(Change::Created(path));
        Ok(())
    }

    fn delete(&mut self, path: &str, version: i32) -> Result<(), ErrorCode> {
        self.check(path, version)?;
        if self.children[path] > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.children.remove(path);
        self.versions.remove(path);
        *self.children.get_mut(parent_and_name(path).unwrap().0).unwrap() -= 1;
        self.undo.push(Change::Deleted(path.to_string()));
        Ok(())
    }
}
