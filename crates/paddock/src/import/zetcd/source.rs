//! The etcd of a zetcd: its keys, read page by page in one revision, and what is asked and written besides.

use paddock_etcd::{Answer, Call, CallError, PageSize, Transaction, Zetcd, rpc};
use paddock_server::{EtcdClient, EtcdSettings};

use super::failure::ZetcdFailure;
use crate::moving::ProgressLine;

/// Attempts to read a page that does not come in time, each with half as many keys as the one before.
const ATTEMPTS: usize = 5;

pub(super) struct ZetcdSource {
    client: EtcdClient,
    /// Revision of the read; 0 before the first page.
    revision: i64,
}

impl ZetcdSource {
    pub(super) fn connect(settings: &EtcdSettings) -> Result<ZetcdSource, ZetcdFailure> {
        let client = EtcdClient::connect(settings).map_err(during("connect to etcd"))?;
        Ok(ZetcdSource { client, revision: 0 })
    }

    /// The revision that was read.
    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    /// Refuses a prefix below which there is anything.
    pub(super) fn check_free(&self, prefix: &str) -> Result<(), ZetcdFailure> {
        let (start, end) = paddock_etcd::Keys::new(prefix).range();
        let page = self.page(start, end, 0, 1, "read below the new prefix")?;
        if page.pairs.is_empty() { Ok(()) } else { Err(ZetcdFailure::NotEmpty(prefix.to_owned())) }
    }

    /// Reads all keys, and how long the leases of the sessions live.
    pub(super) fn read(&mut self, line: &mut ProgressLine) -> Result<Zetcd, ZetcdFailure> {
        let mut zetcd = Zetcd::default();
        let (mut start, end) = Zetcd::range();
        let (mut keys, mut size, mut attempts) = (0, PageSize::default(), 0);
        loop {
            let limit = size.keys();
            let page = match self.page(start.clone(), end.clone(), self.revision, limit, "read zetcd's keys")
            {
                Err(ZetcdFailure::Call { error: CallError::Lost(_), .. }) if attempts < ATTEMPTS => {
                    attempts += 1;
                    size.was_lost();
                    continue;
                }
                page => page?,
            };
            attempts = 0;
            let bytes = page.pairs.iter().map(|pair| pair.key.len() + pair.value.len()).sum();
            size.came(page.pairs.len(), bytes);
            if self.revision == 0 {
                self.revision = page.revision;
            }
            keys += page.pairs.len();
            line.show_text(|| format!("etcd: {keys} keys"));
            if let Some(last) = page.pairs.last() {
                start = [&last.key[..], b"\0"].concat();
            }
            page.pairs.into_iter().try_for_each(|pair| zetcd.take(pair))?;
            if page.is_last {
                break;
            }
        }
        if keys == 0 {
            return Err(ZetcdFailure::Nothing);
        }
        for session in zetcd.sessions() {
            let question = rpc::encode_time_to_live(session.0);
            let action = "ask for the lease of a session";
            let answer = self.client.call(rpc::TIME_TO_LIVE, question).map_err(during(action))?;
            let ttl_s = rpc::decode_time_to_live(&answer).map_err(broken(action))?;
            let timeout_ms = ttl_s.map(|ttl_s| i32::try_from(ttl_s * 1000).unwrap_or(i32::MAX));
            zetcd.set_timeout(session, timeout_ms);
        }
        Ok(zetcd)
    }

    fn page(
        &self,
        start: Vec<u8>,
        end: Vec<u8>,
        revision: i64,
        limit: i64,
        action: &'static str,
    ) -> Result<rpc::PairsPage, ZetcdFailure> {
        let (path, request) = rpc::encode_call(&Call::Read { start, end, revision, limit });
        let answer = self.client.call(path, request).map_err(during(action))?;
        rpc::decode_pairs(&answer).map_err(broken(action))
    }

    /// False if a compare did not hold.
    pub(super) fn transact(&self, transaction: Transaction) -> Result<bool, ZetcdFailure> {
        let action = "write to etcd";
        let call = Call::Transact(transaction.into());
        let (path, request) = rpc::encode_call(&call);
        let answer = self.client.call(path, request).map_err(during(action))?;
        match rpc::decode_answer(&call, &answer).map_err(broken(action))? {
            Answer::Transacted { is_done, .. } => Ok(is_done),
            other => unreachable!("a transaction is answered as one, not by {other:?}"),
        }
    }
}

fn during(action: &'static str) -> impl Fn(CallError) -> ZetcdFailure {
    move |error| ZetcdFailure::Call { action, error }
}

fn broken<E: ToString>(action: &'static str) -> impl Fn(E) -> ZetcdFailure {
    move |error| during(action)(CallError::Lost(error.to_string()))
}
