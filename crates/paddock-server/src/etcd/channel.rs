//! One HTTP/2 connection to a member of etcd, and gRPC on it: a call is a request whose body is messages with a length, and
//! its status comes behind the answer.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use hyper::http::{HeaderMap, HeaderValue, Request};
use paddock_etcd::{CallError, rpc};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::{EtcdEndpoint, EtcdUser};

/// Time that a member of etcd gets to take a connection, and to check a password.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A call that has no answer by then is lost, and so is its connection: another member may answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// Bytes that etcd may send ahead of what is read.
const WINDOW_BYTES: u32 = 8 << 20;
/// The largest message that is taken from etcd.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug)]
pub(super) struct Channel {
    requests: SendRequest<Bytes>,
    authority: Rc<str>,
    token: Option<HeaderValue>,
    /// Told when a call shows that the connection is of no use.
    broken: Rc<Notify>,
}

/// A connection that lives as long as this.
#[derive(Debug)]
pub(super) struct Driver {
    task: JoinHandle<()>,
    broken: Rc<Notify>,
}

impl Driver {
    /// Returns when the connection has ended, or is of no use any more.
    pub(super) async fn ended(mut self) {
        tokio::select! {
            _ = &mut self.task => {}
            () = self.broken.notified() => {}
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Channel {
    /// Connects, and logs the user in, if there is one.
    pub(super) async fn open(
        endpoint: &EtcdEndpoint,
        user: Option<&EtcdUser>,
    ) -> Result<(Channel, Driver), CallError> {
        let opened = timeout(CONNECT_TIMEOUT, Channel::connect(endpoint)).await;
        let (mut channel, driver) = opened.unwrap_or_else(|_| Err(lost("no connection in time")))?;
        if let Some(user) = user {
            let request = rpc::encode_authenticate(&user.name, user.password.reveal());
            let token = channel.call(rpc::AUTHENTICATE, request).await?;
            let token = rpc::decode_token(&token).map_err(lost)?;
            channel.token = Some(HeaderValue::from_str(&token).map_err(lost)?);
        }
        Ok((channel, driver))
    }

    async fn connect(endpoint: &EtcdEndpoint) -> Result<(Channel, Driver), CallError> {
        let socket = TcpStream::connect(endpoint.authority()).await.map_err(lost)?;
        socket.set_nodelay(true).map_err(lost)?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(2 * WINDOW_BYTES);
        let (requests, connection) = builder.handshake(socket).await.map_err(lost)?;
        let task = tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to etcd ended");
            }
        });
        let broken = Rc::new(Notify::new());
        let authority = endpoint.authority().into();
        let channel = Channel { requests, authority, token: None, broken: broken.clone() };
        Ok((channel, Driver { task, broken }))
    }

    /// A call with one message and one message in answer.
    pub(super) async fn call(&self, path: &'static str, message: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let answer = async {
            let mut stream = self.stream(path, &[message], true).await?;
            let answer = stream.next().await?;
            stream.end().await?;
            answer.ok_or_else(|| lost("an answer without a message"))
        };
        self.in_time(answer).await
    }

    /// Sends some messages, and waits until as many have come back.
    pub(super) async fn call_many(&self, path: &'static str, messages: &[Vec<u8>]) -> Result<(), CallError> {
        let answers = async {
            let mut stream = self.stream(path, messages, true).await?;
            while stream.next().await?.is_some() {}
            stream.end().await
        };
        self.in_time(answers).await
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
        let result = timeout(CALL_TIMEOUT, answer).await.unwrap_or_else(|_| {
            self.broken.notify_one();
            Err(lost("no answer in time"))
        });
        if let Err(CallError::Lost(reason) | CallError::Refused(reason)) = &result
            && rpc::is_of_token(reason)
        {
            // The next connection gets another token.
            self.broken.notify_one();
            return Err(lost(reason));
        }
        result
    }

    /// Begins a call. If it `is_last`, no messages follow.
    pub(super) async fn stream(
        &self,
        path: &'static str,
        messages: &[Vec<u8>],
        is_last: bool,
    ) -> Result<GrpcStream, CallError> {
        let mut requests = self.requests.clone().ready().await.map_err(lost)?;
        let mut request = Request::post(format!("http://{}{path}", self.authority))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            // A member without a leader ends the call instead of answering from the past.
            .header("hasleader", "true");
        if let Some(token) = &self.token {
            request = request.header("token", token);
        }
        let request = request.body(()).map_err(lost)?;
        let (response, mut sender) = requests.send_request(request, false).map_err(lost)?;
        let mut body = Vec::new();
        messages.iter().for_each(|message| frame(message, &mut body));
        sender.send_data(body.into(), is_last).map_err(lost)?;
        let (head, body) = response.await.map_err(lost)?.into_parts();
        check_status(&head.headers)?;
        Ok(GrpcStream { _sender: sender, body, received: Vec::new() })
    }
}

/// A call whose answers come one after the other.
#[derive(Debug)]
pub(super) struct GrpcStream {
    /// The call would end with it.
    _sender: SendStream<Bytes>,
    body: RecvStream,
    received: Vec<u8>,
}

const PREFIX_BYTES: usize = 5;

impl GrpcStream {
    /// The next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, CallError> {
        loop {
            if let Some(prefix) = self.received.first_chunk::<PREFIX_BYTES>() {
                let len = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
                if prefix[0] != 0 || len > MESSAGE_BYTES_MAX {
                    return Err(lost("a message in a form that was not asked for"));
                }
                if self.received.len() >= PREFIX_BYTES + len {
                    let rest = self.received.split_off(PREFIX_BYTES + len);
                    let mut message = std::mem::replace(&mut self.received, rest);
                    message.drain(..PREFIX_BYTES);
                    return Ok(Some(message));
                }
            }
            match self.body.data().await {
                Some(chunk) => {
                    let chunk = chunk.map_err(lost)?;
                    self.received.extend_from_slice(&chunk);
                    self.body.flow_control().release_capacity(chunk.len()).map_err(lost)?;
                }
                None if self.received.is_empty() => return Ok(None),
                None => return Err(lost("the call ended in the middle of a message")),
            }
        }
    }

    /// The status behind the last message.
    pub(super) async fn end(&mut self) -> Result<(), CallError> {
        while let Some(chunk) = self.body.data().await {
            chunk.map_err(lost)?;
        }
        match self.body.trailers().await.map_err(lost)? {
            Some(trailers) => check_status(&trailers),
            None => Ok(()),
        }
    }
}

fn frame(message: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    let len = u32::try_from(message.len()).expect("etcd's limit for a request is far below 4 GiB");
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(message);
}

fn check_status(headers: &HeaderMap) -> Result<(), CallError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status").map(|status| status.parse().unwrap_or(2)) {
        None | Some(0) => Ok(()),
        Some(status) => {
            Err(rpc::call_error(status, text("grpc-message").unwrap_or("without a reason").to_owned()))
        }
    }
}

pub(super) fn lost(reason: impl ToString) -> CallError {
    CallError::Lost(reason.to_string())
}
