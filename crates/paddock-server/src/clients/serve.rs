//! The task of one connection: from its socket to the front, until it ends.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use paddock_front::Condition;
use tokio::net::TcpStream;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout, timeout_at};

use super::wire::{Ready, Wire};
use super::worker::Worker;

/// A connection that sends no connect request within this time is closed.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a client may take to read what is left when its connection is to be closed.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a client may take to close its side when it was sent everything.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Behind this many bytes of one connection, others have their turn.
const MUCH_BYTES: usize = 4 << 10;

/// Serves a connection until it ends.
pub(super) async fn serve(wire: Rc<Wire>, worker: Rc<Worker>) {
    let greeted_until = Instant::now() + GREETING_TIMEOUT;
    let mut closed_by = None;
    let mut turn = None;
    let (mut has_heavy_input, mut has_received_much) = (false, false);
    loop {
        if has_heavy_input && turn.is_none() {
            turn = Some(heavy_turn(&worker).await);
        }
        let Some(condition) = advance(&wire, &worker) else { return };
        drop(turn.take());
        if let Some(word) = condition.word {
            Box::pin(worker.answer_word(&wire, word)).await;
            continue;
        }
        has_heavy_input = condition.is_heavy && condition.has_input;
        if std::mem::take(&mut has_received_much) {
            // More has come, most likely. The runtime would go on with it for a hundred turns before others have theirs.
            tokio::task::yield_now().await;
        }
        if wire.was_rationed.take() && condition.unsent_bytes > 0 {
            tokio::task::yield_now().await;
            continue;
        }
        if condition.is_closing && condition.unsent_bytes == 0 {
            // Else each connection would take the room for its farewell from the first byte on.
            wire.say_end();
            return Box::pin(say_farewell(wire.socket())).await;
        }
        if condition.takes_input && condition.has_more {
            tokio::task::yield_now().await;
            continue;
        }
        if condition.is_closing {
            closed_by.get_or_insert_with(|| Instant::now() + CLOSING_TIMEOUT);
        }
        let deadline = if condition.is_greeting { Some(greeted_until) } else { closed_by };
        let deadline = deadline.or_else(|| end_of_rate_wait(condition));
        match next_readiness(&wire, condition, deadline).await {
            None if condition.is_greeting => {
                return count(&worker.shared().statistics.server_metrics.silent_connections);
            }
            // Its tenant may ask again.
            None if condition.rate_wait_ms > 0 && closed_by.is_none() => {}
            None => return,
            Some(Ready::Broken) => return count(&worker.shared().statistics.server_metrics.lost_connections),
            Some(Ready::ToRead) => {
                if condition.is_heavy && !condition.is_greeting {
                    turn = Some(heavy_turn(&worker).await);
                }
                match receive(&wire, &worker) {
                    None => return count(&worker.shared().statistics.server_metrics.lost_connections),
                    Some(bytes) => has_received_much = bytes >= MUCH_BYTES,
                }
            }
            Some(Ready::ToLook) => {}
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Time at which a connection is to be looked at, if a limit of rate keeps it waiting.
fn end_of_rate_wait(condition: Condition) -> Option<Instant> {
    let wait = Duration::from_millis(condition.rate_wait_ms.into());
    (!wait.is_zero()).then(|| Instant::now() + wait)
}

/// Waits until a turn that may take long may begin. What is returned is to be kept until it is over. Few connections have such turns, and all
/// tasks would have the room for it.
fn heavy_turn(worker: &Worker) -> Pin<Box<dyn Future<Output = MutexGuard<'_, ()>> + '_>> {
    Box::pin(async {
        let turn = worker.heavy_turn.lock().await;
        // Other connections that are ready go first.
        tokio::task::yield_now().await;
        turn
    })
}

/// Takes requests that had to wait and sends what there is to send, as far as both can be done now.
fn advance(wire: &Rc<Wire>, worker: &Worker) -> Option<Condition> {
    let condition = worker.condition(wire)?;
    if condition.takes_input && condition.has_input {
        worker.receive(wire, &[]);
    }
    if worker.condition(wire)?.unsent_bytes > 0 && !wire.waits_for_flush.get() {
        worker.send_soon(wire);
    }
    worker.condition(wire)
}

/// Waits until the socket or the worker has something for the connection; `None` if the deadline has passed, for a greeting or
/// for reading the last bytes.
async fn next_readiness(wire: &Wire, condition: Condition, deadline: Option<Instant>) -> Option<Ready> {
    let reads = condition.takes_input;
    let writes = condition.unsent_bytes > 0 && !wire.waits_for_flush.get() || wire.has_sealed();
    let readiness = poll_fn(|context| wire.poll_ready(context, reads, writes));
    match deadline {
        None => Some(readiness.await),
        // Few have one, and all tasks would have the room for it.
        Some(deadline) => Box::pin(timeout_at(deadline, readiness)).await.ok(),
    }
}

/// Reads what has come and takes the frames in it. Returns the number of bytes; `None` when the client is gone.
fn receive(wire: &Wire, worker: &Worker) -> Option<usize> {
    if !worker.condition(wire).is_some_and(|condition| condition.takes_input) {
        return Some(0);
    }
    let mut scratch = worker.scratch.borrow_mut();
    match wire.try_read(&mut scratch) {
        Ok([]) => None,
        Ok(bytes) => {
            worker.receive(wire, bytes);
            Some(bytes.len())
        }
        Err(error) => (error.kind() == io::ErrorKind::WouldBlock).then_some(0),
    }
}

/// Ends a connection so that the client gets all that was sent: a socket closed with bytes unread would take them
/// back.
async fn say_farewell(socket: &TcpStream) {
    let _ = socket2::SockRef::from(socket).shutdown(std::net::Shutdown::Write);
    let drained = async {
        let mut rest = [0; 1024];
        loop {
            match socket.try_read(&mut rest) {
                Ok(0) => return,
                // A client that goes on sending must not hold up the worker's other connections, nor its timers.
                Ok(_) => tokio::task::yield_now().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if socket.readable().await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    };
    let _ = timeout(FAREWELL_TIMEOUT, drained).await;
}

#[cfg(test)]
mod tests {
    use paddock_statistics::stats::ConnStats;

    use super::*;

    fn size_of_task<F>(_: fn(Rc<Wire>, Rc<Worker>) -> F) -> usize {
        size_of::<F>()
    }

    /// Most connections are idle, and there may be very many: what each takes is a decision, not an accident.
    #[test]
    fn an_idle_connection_is_small() {
        let task = size_of_task(serve);
        assert!(task <= 200, "the task of a connection has {task} bytes");
        assert!(size_of::<Wire>() <= 80, "a wire has {} bytes", size_of::<Wire>());
        // With the two counters of an Arc it is as large as a size that allocators have.
        assert!(size_of::<ConnStats>() <= 112, "what is known of one has {} bytes", size_of::<ConnStats>());
    }
}
