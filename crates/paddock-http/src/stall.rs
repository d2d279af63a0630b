//! A connection that is given up when nothing moves on it: a peer that neither sends nor reads.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::places::Activity;

/// A stream that fails with `TimedOut` when it has been waited for too long. While the member works on a request, time does
/// not count.
pub(super) struct StallGuard<S> {
    stream: S,
    timeout: Duration,
    deadline: Pin<Box<Sleep>>,
    is_working: Arc<AtomicBool>,
    activity: Arc<Activity>,
}

impl<S> StallGuard<S> {
    pub(super) fn new(
        stream: S,
        timeout: Duration,
        is_working: Arc<AtomicBool>,
        activity: Arc<Activity>,
    ) -> StallGuard<S> {
        StallGuard { stream, timeout, deadline: Box::pin(tokio::time::sleep(timeout)), is_working, activity }
    }

    /// Passes on what the stream says, unless it has said that nothing moves for too long.
    fn watch<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.deadline.as_mut().reset(Instant::now() + self.timeout);
            return poll;
        }
        while self.deadline.as_mut().poll(context).is_ready() {
            if !self.is_working.load(Ordering::Relaxed) {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            self.deadline.as_mut().reset(Instant::now() + self.timeout);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch(context, poll)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.note_sending(poll.is_ready());
        self.watch(context, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.activity.note_sending(poll.is_ready());
        if poll.is_ready() { poll } else { self.watch(context, poll) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, poll)
    }
}
