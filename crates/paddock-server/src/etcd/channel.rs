//! gRPC on one HTTP/2 connection to a member of etcd: a call is a request whose body is messages with a length, and its status
//! comes behind the answer.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use hyper::http::{HeaderMap, HeaderValue, Request};
use paddock_etcd::{CallError, rpc};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::login::Login;
use super::transport::{self, Carrier};
use crate::config::{EtcdEndpoint, EtcdSettings};
use crate::etcd_metrics::EtcdStats;

/// Time that a member of etcd gets to take a connection, and to check a password.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A call that has no answer by then is lost, and so is its connection: another member may answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);
/// The largest message that is taken from etcd.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug)]
pub(super) struct Channel {
    requests: SendRequest<Bytes>,
    /// Scheme and `host:port`, in front of the path of a call.
    url: Rc<str>,
    login: Option<Rc<Login>>,
    /// Told when a call shows that the connection is of no use.
    broken: Rc<Notify>,
}

/// A connection that lives as long as this.
#[derive(Debug)]
pub(super) struct Driver {
    carrier: Carrier,
    broken: Rc<Notify>,
}

impl Driver {
    /// Returns when the connection has ended, or is of no use any more, and tells the reason.
    pub(super) async fn ended(&mut self) -> String {
        tokio::select! {
            reason = self.carrier.ended() => reason,
            () = self.broken.notified() => "it does not answer, or has no leader".to_owned(),
        }
    }
}

impl Channel {
    /// Connects, and logs the user in, if there is one.
    pub(super) async fn open(
        endpoint: &EtcdEndpoint,
        settings: &EtcdSettings,
        stats: &Arc<EtcdStats>,
    ) -> Result<(Channel, Driver), CallError> {
        let connected = timeout(CONNECT_TIMEOUT, transport::connect(endpoint, settings.tls.as_ref())).await;
        let (requests, carrier) = connected.unwrap_or_else(|_| Err(lost("no connection in time")))?;
        let broken = Rc::new(Notify::new());
        let login = settings.user.clone().map(|user| Rc::new(Login::new(user, stats.clone())));
        let url = endpoint.url().into();
        let channel = Channel { requests, url, login, broken: broken.clone() };
        if let Some(login) = &channel.login {
            channel.log_in(login).await?;
        }
        Ok((channel, Driver { carrier, broken }))
    }

    async fn log_in(&self, login: &Login) -> Result<(), CallError> {
        let request = rpc::encode_authenticate(&login.user.name, login.user.password.reveal());
        let answer = self.in_time(self.answer(rpc::AUTHENTICATE, &request, None)).await?;
        let token = rpc::decode_token(&answer).map_err(lost)?;
        login.set(HeaderValue::from_str(&token).map_err(lost)?);
        Ok(())
    }

    /// A call with one message and one message in answer.
    pub(super) async fn call(&self, path: &'static str, message: Vec<u8>) -> Result<Vec<u8>, CallError> {
        self.with_token(async |token| self.answer(path, &message, token).await).await
    }

    /// Sends some messages, and waits until as many have come back.
    pub(super) async fn call_many(&self, path: &'static str, messages: &[Vec<u8>]) -> Result<(), CallError> {
        let answers = async |token| {
            let mut stream = self.begin(path, messages, true, token).await?;
            while stream.next().await?.is_some() {}
            stream.end().await
        };
        self.with_token(answers).await
    }

    /// Begins a call whose answers come one after the other.
    pub(super) async fn stream(
        &self,
        path: &'static str,
        messages: &[Vec<u8>],
    ) -> Result<GrpcStream, CallError> {
        self.begin(path, messages, false, self.token()).await
    }

    fn token(&self) -> Option<HeaderValue> {
        self.login.as_ref().and_then(|login| login.token())
    }

    async fn answer(
        &self,
        path: &'static str,
        message: &[u8],
        token: Option<HeaderValue>,
    ) -> Result<Vec<u8>, CallError> {
        let mut stream = self.begin(path, &[message], true, token).await?;
        let answer = stream.next().await?;
        stream.end().await?;
        answer.ok_or_else(|| lost("an answer without a message"))
    }

    /// Makes a call with the user's token, and once more with a new one if etcd does not take it: then nothing was carried out.
    async fn with_token<T>(
        &self,
        call: impl AsyncFn(Option<HeaderValue>) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let shown = self.token();
        let first = self.in_time(call(shown.clone())).await;
        let (Err(error), Some(login)) = (&first, &self.login) else { return first };
        if !is_of_token(error) {
            return first;
        }
        let renewing = login.renewing.lock().await;
        if login.token() == shown {
            self.log_in(login).await?;
            tracing::debug!(user = login.user.name, "renewed the token of etcd");
        }
        drop(renewing);
        let second = self.in_time(call(self.token())).await;
        if second.as_ref().is_err_and(is_of_token) {
            self.broken.notify_one();
        }
        second
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
        let result = timeout(CALL_TIMEOUT, answer).await.unwrap_or_else(|_| {
            self.broken.notify_one();
            Err(lost("no answer in time"))
        });
        if let Err(CallError::Lost(reason)) = &result
            && rpc::is_of_member(reason)
        {
            // Another member may know a leader.
            self.broken.notify_one();
        }
        result
    }

    /// Begins a call. If it `is_last`, no messages follow.
    async fn begin(
        &self,
        path: &'static str,
        messages: &[impl AsRef<[u8]>],
        is_last: bool,
        token: Option<HeaderValue>,
    ) -> Result<GrpcStream, CallError> {
        let mut requests = self.requests.clone().ready().await.map_err(lost)?;
        let mut request = Request::post(format!("{}{path}", self.url))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            // A member without a leader ends the call instead of answering from the past.
            .header("hasleader", "true");
        if let Some(token) = token {
            request = request.header("token", token);
        }
        let request = request.body(()).map_err(lost)?;
        let (response, mut sender) = requests.send_request(request, false).map_err(lost)?;
        let mut body = Vec::new();
        messages.iter().for_each(|message| frame(message.as_ref(), &mut body));
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

fn is_of_token(error: &CallError) -> bool {
    matches!(error, CallError::Lost(reason) | CallError::Refused(reason) if rpc::is_of_token(reason))
}

pub(super) fn lost(reason: impl ToString) -> CallError {
    CallError::Lost(reason.to_string())
}
