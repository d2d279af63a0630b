//! Spans: what this member did for requests that carry a tracing context, as OpenTelemetry collects it.
//!
//! A worker begins a span when it takes such a request and ends it with the reply. Ended spans go into a bounded queue;
//! a thread of their own posts them (`exporter.rs`). A thread that serves clients never waits for it: a span that finds the
//! queue full is dropped and counted.

mod context;
mod exporter;
mod otlp;
mod settings;
mod span;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use paddock_os::threads::spawn;
use paddock_proto::MemberNumber;

pub use context::TraceContext;
pub use exporter::Counts;
use exporter::{Exporter, FLUSH_TIMEOUT};
pub use settings::{EndpointError, TracesEndpoint, Tracing};
pub use span::{Ending, Span};

/// Beside a batch that is under way. A span has a few hundred bytes.
const QUEUE_SPANS: usize = 4096;

/// The way of ended spans to the thread that posts them.
#[derive(Debug)]
pub struct Spans {
    queue: Sender<Box<Span>>,
    /// Spans that were exported, and dropped.
    pub counts: Arc<Counts>,
    stop: Sender<()>,
    /// Closes when the thread has ended.
    ended: Receiver<()>,
}

impl Spans {
    /// Starts the thread.
    pub fn start(config: &Tracing, member: MemberNumber) -> Spans {
        let (queue, queued) = bounded(QUEUE_SPANS);
        let (stop, stopped) = bounded(1);
        let (end, ended) = bounded(0);
        let counts = Arc::new(Counts::default());
        let exporter = Exporter::new(config, member, queued, stopped, counts.clone());
        spawn("spans", move || {
            exporter.run();
            drop(end);
        });
        Spans { queue, counts, stop, ended }
    }

    /// Ends a span, and queues it to be posted.
    pub fn end(&self, mut span: Box<Span>, ending: Ending) {
        span.end(ending);
        if self.queue.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Lets the thread post what it has, and waits for that as long as is bearable.
    pub fn flush(&self) {
        // A stop that is in the channel already is as good as another one.
        let _ = self.stop.try_send(());
        if self.ended.recv_timeout(FLUSH_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the last spans are lost: the OpenTelemetry endpoint does not answer");
        }
    }
}
