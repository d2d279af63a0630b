//! Znodes on their way to the target: many in one request, and some requests at a time. They are carried out in their order.

use std::collections::VecDeque;

use paddock_client::{CreateMode, Error, Multi, OpCode, Pending, Reply, WriteReply};
use paddock_proto::encode;
use paddock_proto::jute::Writer as _;

use super::failure::LoadFailure;
use super::target::LoadTarget;
use crate::dump::line::DumpLine;

/// Znodes of one request, and the bytes from which it is sent: servers refuse more than 1 MiB unless they are told otherwise.
const ZNODES_MAX: usize = 100;
const BYTES_MAX: usize = 256 << 10;
/// Requests on their way at a time.
const ON_THEIR_WAY: usize = 8;

pub(super) struct Writing<'a> {
    target: &'a LoadTarget<'a>,
    batch: Multi,
    batch_bytes: usize,
    batch_lines: Vec<(u64, String)>,
    waiting: VecDeque<Sent>,
}

/// A request that is on its way, with the lines that it is about.
struct Sent {
    lines: Vec<(u64, String)>,
    answer: SentAnswer,
}

enum SentAnswer {
    Batch(Pending<Vec<WriteReply<'static>>>),
    One(Pending<Reply>),
}

impl<'a> Writing<'a> {
    pub(super) fn new(target: &'a LoadTarget<'a>) -> Writing<'a> {
        Writing {
            target,
            batch: Multi::new(),
            batch_bytes: 0,
            batch_lines: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(super) async fn create(
        &mut self,
        number: u64,
        path: &str,
        line: &DumpLine,
    ) -> Result<(), LoadFailure> {
        let (data, acl) = parts(line);
        let bytes = path.len() + data.as_ref().map_or(0, Vec::len);
        if self.batch_lines.len() >= ZNODES_MAX || self.batch_bytes + bytes > BYTES_MAX {
            self.send_batch().await?;
        }
        let mode = match (line.container, line.ttl_ms) {
            (true, _) => CreateMode::Container,
            (false, Some(_)) => CreateMode::PersistentWithTtl,
            (false, None) => CreateMode::Persistent,
        };
        let batch = std::mem::take(&mut self.batch);
        self.batch =
            batch.create_any(path, data.as_deref(), &acl, mode, line.ttl_ms.filter(|_| !line.container));
        self.batch_bytes += bytes;
        self.batch_lines.push((number, path.to_owned()));
        Ok(())
    }

    /// Sets the data and the ACL of a znode that is there.
    pub(super) async fn set(&mut self, number: u64, path: &str, line: &DumpLine) -> Result<(), LoadFailure> {
        self.send_batch().await?;
        let (data, acl) = parts(line);
        let client = self.target.client;
        let set = client.send(OpCode::SetData, |out| encode::set_data(out, path, data.as_deref(), -1));
        self.push(vec![(number, path.to_owned())], SentAnswer::One(set)).await?;
        let set = client.send(OpCode::SetAcl, |out| {
            out.put_string(path);
            encode::put_acl(out, &acl);
            out.put_i32(-1);
        });
        self.push(vec![(number, path.to_owned())], SentAnswer::One(set)).await
    }

    pub(super) async fn finish(&mut self) -> Result<(), LoadFailure> {
        self.send_batch().await?;
        while !self.waiting.is_empty() {
            self.settle_first().await?;
        }
        Ok(())
    }

    async fn send_batch(&mut self) -> Result<(), LoadFailure> {
        if self.batch_lines.is_empty() {
            return Ok(());
        }
        let (batch, lines) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.batch_lines));
        self.batch_bytes = 0;
        let sent = SentAnswer::Batch(self.target.client.multi(&batch));
        self.push(lines, sent).await
    }

    async fn push(&mut self, lines: Vec<(u64, String)>, answer: SentAnswer) -> Result<(), LoadFailure> {
        self.waiting.push_back(Sent { lines, answer });
        if self.waiting.len() > ON_THEIR_WAY {
            self.settle_first().await?;
        }
        Ok(())
    }

    async fn settle_first(&mut self) -> Result<(), LoadFailure> {
        let Some(Sent { lines, answer }) = self.waiting.pop_front() else { return Ok(()) };
        let error = match answer {
            SentAnswer::Batch(pending) => pending.await.map(drop),
            SentAnswer::One(pending) => pending.await.map(drop),
        };
        let Err(error) = error else { return Ok(()) };
        let index = if let Error::MultiFailed { index, .. } = error { index } else { 0 };
        let (line, path) = lines.get(index).unwrap_or(&lines[0]);
        Err(self.target.failed(*line, path, error))
    }
}

/// The data and the ACL of a line.
fn parts(line: &DumpLine) -> (Option<Vec<u8>>, Vec<paddock_client::Acl>) {
    const CHECKED: &str = "it was read once before";
    (line.data().expect(CHECKED), line.acl().expect(CHECKED))
}
