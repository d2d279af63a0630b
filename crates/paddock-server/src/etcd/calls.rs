//! Effects of the engine, carried out on the connection of now.

use std::rc::Rc;
use std::time::Instant;

use paddock_etcd::{Answer, Call, CallError, CallId, Input, WatchMessage, WatchOrder, rpc};

use super::channel::lost;
use super::connection::Connection;
use crate::host::Inbox;

/// Makes a call and tells the engine what came of it.
pub(super) async fn call(connection: Rc<Connection>, id: CallId, call: Call, inbox: Inbox<Input>) {
    let since = Instant::now();
    let result = answer(&connection, &call).await;
    connection.stats.called(&call, since.elapsed(), result.is_err());
    inbox.tell(Input::Answer(id, result));
}

async fn answer(connection: &Connection, call: &Call) -> Result<Answer, CallError> {
    let (path, request) = rpc::encode_call(call);
    let bytes = connection.channel()?.call(path, request).await?;
    rpc::decode_answer(call, &bytes).map_err(lost)
}

/// Tells the engine what a watch stream says, until it ends.
pub(super) async fn watch(connection: Rc<Connection>, order: WatchOrder, inbox: Inbox<Input>) {
    let generation = order.generation;
    let tell = |message| inbox.tell(Input::Watch { generation, message });
    let ended = match follow(&connection, &order, &tell).await {
        Ok(()) => "etcd ended it".to_owned(),
        Err(error) => error.to_string(),
    };
    tell(WatchMessage::Lost(ended));
}

async fn follow(
    connection: &Connection,
    order: &WatchOrder,
    tell: &impl Fn(WatchMessage),
) -> Result<(), CallError> {
    let create = rpc::encode_watch(order);
    let mut stream = connection.channel()?.stream(rpc::WATCH, &[create]).await?;
    while let Some(message) = stream.next().await? {
        tell(rpc::decode_watch(&message).map_err(lost)?);
    }
    stream.end().await
}

/// Renews leases. A lease that was not renewed is due again when its session is heard next.
pub(super) async fn keep_alive(connection: Rc<Connection>, leases: Vec<i64>) {
    let messages: Vec<Vec<u8>> = leases.into_iter().map(rpc::encode_keep_alive).collect();
    let renewed = async { connection.channel()?.call_many(rpc::KEEP_ALIVE, &messages).await };
    if let Err(error) = renewed.await {
        tracing::debug!(%error, "leases were not renewed");
    }
}
