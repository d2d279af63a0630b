//! Bodies of responses, whole or in pieces: a blocking function writes one while the connection moves it.

use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

use super::places::UnderWay;

/// Pieces that wait between a connection and the function on its other end.
const PIECES_MAX: usize = 4;
/// Bytes that a writer gathers before it passes them on.
const PIECE_BYTES: usize = 64 << 10;

/// Body of a response.
#[derive(Debug)]
pub(super) enum ResponseBody {
    Whole(Bytes),
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            ResponseBody::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            ResponseBody::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            ResponseBody::Pieces(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Pieces(_) => SizeHint::default(),
        }
    }
}

/// Body of an answer. The request is under way until it has left, or is given up.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: ResponseBody,
    _under_way: Option<UnderWay>,
}

impl AnswerBody {
    pub(super) fn new(body: ResponseBody, under_way: Option<UnderWay>) -> AnswerBody {
        AnswerBody { body, _under_way: under_way }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The writing end of a response whose body is made while it leaves. Without `finish` the peer sees that the body was cut.
#[derive(Debug)]
pub struct BodyWriter {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    gathered: Vec<u8>,
}

impl BodyWriter {
    pub(super) fn new() -> (BodyWriter, ResponseBody) {
        let (pieces, receiver) = mpsc::channel(PIECES_MAX);
        (BodyWriter { pieces, gathered: Vec::new() }, ResponseBody::Pieces(receiver))
    }

    /// Ends the body: all of it was written.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()
    }

    /// Cuts the body off, so that what came is not taken for the whole.
    pub fn abort(self, error: io::Error) {
        let _ = self.pieces.blocking_send(Err(error));
    }
}

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.gathered));
        self.pieces.blocking_send(Ok(piece)).map_err(|_| ErrorKind::BrokenPipe.into())
    }
}
