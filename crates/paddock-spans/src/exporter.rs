//! The thread that posts ended spans to an OpenTelemetry endpoint, in batches.
//!
//! An endpoint that does not answer, or asks for patience, is tried again with the same batch while the queue fills up. A batch
//! that it refuses for good is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, after, select};
use paddock_proto::MemberNumber;
use ureq::Agent;

use super::Span;
use super::otlp::{self, Resource};
use crate::settings::Tracing;

/// Time that the last spans may take when the member stops.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Numbers of spans that left this member, and that were dropped.
#[derive(Debug, Default)]
pub struct Counts {
    /// Spans that the endpoint has taken.
    pub exported: AtomicU64,
    /// Spans that found no room, or were refused.
    pub dropped: AtomicU64,
}

const BATCH_SPANS: usize = 512;
/// Time that the first span of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
const POST_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two tries with the same batch.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Bytes of an answer that are read. It says at most why spans were refused.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

pub(super) struct Exporter {
    agent: Agent,
    url: String,
    resource: Resource,
    queue: Receiver<Box<Span>>,
    stop: Receiver<()>,
    counts: Arc<Counts>,
    /// True if the last try failed: that is logged once.
    failing: bool,
}

/// Reasons for which a batch was not taken.
#[derive(Debug, PartialEq, Eq)]
enum ExportFailure {
    /// The spans may be taken later.
    ForNow(String),
    ForGood(String),
}

impl Exporter {
    pub(super) fn new(
        config: &Tracing,
        member: MemberNumber,
        queue: Receiver<Box<Span>>,
        stop: Receiver<()>,
        counts: Arc<Counts>,
    ) -> Exporter {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("paddock/", env!("CARGO_PKG_VERSION")))
            .build();
        Exporter {
            agent: agent.into(),
            url: config.endpoint.url().to_owned(),
            resource: Resource::new(&config.service_name, member),
            queue,
            stop,
            counts,
            failing: false,
        }
    }

    /// Posts until it is stopped; then what is left, if that is soon done.
    pub(super) fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_SPANS);
        while self.gather(&mut batch) {
            while !self.post(&batch, POST_TIMEOUT) {
                select! {
                    recv(self.stop) -> _ => return self.flush(batch),
                    recv(after(RETRY_PAUSE)) -> _ => {}
                }
            }
            batch.clear();
        }
        self.flush(batch);
    }

    /// Waits for a span and, for a while, for those that come after it. False if the member stops.
    fn gather(&self, batch: &mut Vec<Span>) -> bool {
        let mut full = crossbeam_channel::never();
        while batch.len() < BATCH_SPANS {
            select! {
                recv(self.queue) -> span => {
                    let Ok(span) = span else { return false };
                    if batch.is_empty() {
                        full = after(BATCH_WAIT);
                    }
                    batch.push(*span);
                }
                recv(full) -> _ => break,
                recv(self.stop) -> _ => return false,
            }
        }
        true
    }

    /// The last spans: they are not waited for long.
    fn flush(&mut self, mut batch: Vec<Span>) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        loop {
            let waiting = self.queue.try_iter().take(BATCH_SPANS - batch.len());
            batch.extend(waiting.map(|span| *span));
            let left = deadline.saturating_duration_since(Instant::now());
            if batch.is_empty() || left.is_zero() || !self.post(&batch, left) {
                break;
            }
            batch.clear();
        }
        let lost = batch.len() + self.queue.len();
        if lost > 0 {
            tracing::warn!(
                spans = lost,
                endpoint = self.url,
                "spans are lost: there was no time to post them"
            );
        }
    }

    /// True if this batch is done with.
    fn post(&mut self, batch: &[Span], timeout: Duration) -> bool {
        let (exported, dropped, done) = match self.try_post(batch, timeout) {
            Ok(rejected) => {
                if self.failing {
                    tracing::info!(endpoint = self.url, "the OpenTelemetry endpoint takes spans again");
                    self.failing = false;
                }
                let rejected = rejected.min(batch.len() as u64);
                (batch.len() as u64 - rejected, rejected, true)
            }
            Err(ExportFailure::ForNow(why)) => {
                self.note_failure(&why, "spans are kept as far as there is room");
                (0, 0, false)
            }
            Err(ExportFailure::ForGood(why)) => {
                self.note_failure(&why, "spans are dropped");
                (0, batch.len() as u64, true)
            }
        };
        self.counts.exported.fetch_add(exported, Relaxed);
        self.counts.dropped.fetch_add(dropped, Relaxed);
        done
    }

    fn note_failure(&mut self, why: &str, what_follows: &str) {
        if !self.failing {
            tracing::warn!(
                endpoint = self.url,
                error = why,
                "the OpenTelemetry endpoint does not take spans: {what_follows}"
            );
            self.failing = true;
        }
    }

    /// Returns how many of the spans the endpoint has no use for.
    fn try_post(&self, batch: &[Span], timeout: Duration) -> Result<u64, ExportFailure> {
        let for_now = |error: ureq::Error| ExportFailure::ForNow(error.to_string());
        let request = self.agent.post(&self.url).config().timeout_global(Some(timeout)).build();
        let body = otlp::encode(&self.resource, batch);
        let mut response = request.content_type("application/json").send(&body[..]).map_err(for_now)?;
        let status = response.status();
        if !status.is_success() {
            return Err(match status.as_u16() {
                429 | 502..=504 => ExportFailure::ForNow(status.to_string()),
                _ => ExportFailure::ForGood(status.to_string()),
            });
        }
        let answer =
            response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(for_now)?;
        let Some((count, why)) = otlp::rejected(&answer) else { return Ok(0) };
        tracing::warn!(spans = count, why, "the OpenTelemetry endpoint has refused spans");
        Ok(count)
    }
}
