//! Writes to the target, many on their way. They are carried out in the order in which they were made.

use std::collections::VecDeque;

use paddock_client::{Client, CreateMode, Error, ErrorCode, Multi, OpCode, Pending, Reply};
use paddock_proto::encode;
use paddock_proto::jute::Writer;

use super::failure::LiveFailure;
use crate::diff::seen::Seen;

/// Writes that are on their way at a time.
const ON_THEIR_WAY: usize = 256;
/// Children that one request makes and deletes to raise a counter.
const RAISED_AT_ONCE: i64 = 100;
/// Name of the child that is made and deleted to raise a counter.
const RAISING: &str = "paddock-import-counter";

pub(super) struct Writes<'a> {
    target: &'a Client,
    server: &'a str,
    waiting: VecDeque<PendingWrite>,
    /// Writes that did not fit what the target holds: the tree has changed meanwhile, or a session has an ephemeral there.
    missed: u64,
}

struct PendingWrite {
    path: String,
    answer: WriteAnswer,
}

enum WriteAnswer {
    One(Pending<Reply>),
    Raised(Pending<Vec<paddock_client::WriteReply<'static>>>),
}

impl<'a> Writes<'a> {
    pub(super) fn new(target: &'a Client, server: &'a str) -> Writes<'a> {
        Writes { target, server, waiting: VecDeque::new(), missed: 0 }
    }

    pub(super) async fn create(&mut self, znode: &Seen) -> Result<(), LiveFailure> {
        let Seen { path, data, acl, .. } = znode;
        let body = |out: &mut Vec<u8>| {
            encode::create(out, path, data.as_deref(), acl, CreateMode::Persistent);
        };
        self.send(path, OpCode::Create, body).await
    }

    pub(super) async fn set_data(&mut self, znode: &Seen) -> Result<(), LiveFailure> {
        let body = |out: &mut Vec<u8>| encode::set_data(out, &znode.path, znode.data.as_deref(), -1);
        self.send(&znode.path, OpCode::SetData, body).await
    }

    pub(super) async fn set_acl(&mut self, znode: &Seen) -> Result<(), LiveFailure> {
        let body = |out: &mut Vec<u8>| {
            out.put_string(&znode.path);
            encode::put_acl(out, &znode.acl);
            out.put_i32(-1);
        };
        self.send(&znode.path, OpCode::SetAcl, body).await
    }

    pub(super) async fn delete(&mut self, path: &str) -> Result<(), LiveFailure> {
        self.send(path, OpCode::Delete, |out| encode::path_and_version(out, path, -1)).await
    }

    /// Raises the counter of a znode's sequential children.
    pub(super) async fn raise(&mut self, path: &str, mut by: i64) -> Result<(), LiveFailure> {
        let parent = if path == "/" { "" } else { path };
        let child = format!("{parent}/{RAISING}");
        while by > 0 {
            let count = by.min(RAISED_AT_ONCE);
            let step =
                |multi: Multi, _| multi.create(&child, b"", CreateMode::Persistent).delete(&child, None);
            let multi = (0..count).fold(Multi::new(), step);
            let answer = WriteAnswer::Raised(self.target.multi(&multi));
            self.push(path, answer).await?;
            by -= count;
        }
        Ok(())
    }

    /// Waits for all answers; returns the writes that missed.
    pub(super) async fn finish(&mut self) -> Result<u64, LiveFailure> {
        while !self.waiting.is_empty() {
            self.settle_first().await?;
        }
        Ok(std::mem::take(&mut self.missed))
    }

    async fn send(
        &mut self,
        path: &str,
        op: OpCode,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), LiveFailure> {
        let answer = WriteAnswer::One(self.target.send(op, body));
        self.push(path, answer).await
    }

    async fn push(&mut self, path: &str, answer: WriteAnswer) -> Result<(), LiveFailure> {
        self.waiting.push_back(PendingWrite { path: path.to_owned(), answer });
        if self.waiting.len() > ON_THEIR_WAY {
            self.settle_first().await?;
        }
        Ok(())
    }

    async fn settle_first(&mut self) -> Result<(), LiveFailure> {
        let Some(PendingWrite { path, answer }) = self.waiting.pop_front() else { return Ok(()) };
        let answer = match answer {
            WriteAnswer::One(pending) => pending.await.map(drop),
            WriteAnswer::Raised(pending) => pending.await.map(drop),
        };
        let Err(error) = answer else { return Ok(()) };
        let server = self.server.to_owned();
        match error.code() {
            Some(ErrorCode::NoAuth) => Err(LiveFailure::NoWriting { server, path }),
            Some(ErrorCode::InvalidAcl) => Err(LiveFailure::InvalidAcl { server, path }),
            Some(code) if is_miss(code) => {
                self.missed += 1;
                Ok(())
            }
            _ => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: Error) -> LiveFailure {
        LiveFailure::client(self.server, error)
    }
}

/// True for refusals that the next comparison mends, or tells.
fn is_miss(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NoNode
            | ErrorCode::NodeExists
            | ErrorCode::NotEmpty
            | ErrorCode::NoChildrenForEphemerals
            | ErrorCode::ThrottledOp
    )
}
