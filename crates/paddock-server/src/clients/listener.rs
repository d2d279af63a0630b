//! Takes connections, on every port for clients, and gives them to the workers in turn.

use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_os::Limiter;
use paddock_os::binding::LatePort;
use paddock_os::descriptors::{Caller, is_in_reserve};
use paddock_os::threads::{runtime_with_helpers, spawn};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::tasks;
use crate::config::PortProtocol;
use crate::engines::EngineHandle;
use crate::operator::Operator;
use crate::reports::word_thread::WordThread;
use crate::server_limit::ServerLimit;
use crate::shared::Shared;

/// Pause before the next try when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A port for clients.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) listener: LatePort,
    pub(crate) protocol: PortProtocol,
}

/// A connection that was not looked at yet.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) socket: TcpStream,
    /// Protocol of its port.
    pub(super) protocol: PortProtocol,
}

/// The threads that serve clients. They end after `Shared::stop`.
#[derive(Debug)]
pub(crate) struct ClientThreads {
    /// The workers, and the thread of four-letter words.
    serving: Vec<JoinHandle<()>>,
    /// The task has the ports.
    listener: JoinHandle<()>,
}

impl ClientThreads {
    pub(crate) fn is_any_finished(&self) -> bool {
        self.listener.is_finished() || self.serving.iter().any(JoinHandle::is_finished)
    }

    /// Waits until all have ended. Returns false if one has panicked.
    pub(crate) fn join(self) -> bool {
        self.serving.into_iter().chain([self.listener]).all(|thread| thread.join().is_ok())
    }

    /// Waits until the ports are free, and no longer: workers of a member that has failed may wait for answers that never come.
    pub(crate) fn free_ports(self) {
        // If it has panicked, the ports are free as well.
        let _ = self.listener.join();
    }
}

/// Starts the workers and the thread that feeds them.
pub(crate) fn start(ports: Vec<Port>, shared: &Arc<Shared>, engine: &EngineHandle) -> ClientThreads {
    let (words, word_thread) = WordThread::start(Operator::new(shared, engine));
    let spawn_worker = |number| {
        let (sender, sockets) = unbounded_channel();
        let (shared, engine, words) = (shared.clone(), engine.clone(), words.clone());
        let run = move || tasks::run(number, shared, engine, words, sockets);
        (sender, spawn(format!("worker-{number}"), run))
    };
    let (senders, mut serving): (Vec<_>, Vec<_>) =
        (0..shared.config.worker_count()).map(spawn_worker).unzip();
    serving.push(word_thread);
    let shared = shared.clone();
    let listener = spawn("listener", move || accept_all(ports, &senders, &shared));
    ClientThreads { serving, listener }
}

fn accept_all(ports: Vec<Port>, workers: &[UnboundedSender<Accepted>], shared: &Shared) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // A name is looked up by a helper.
    let runtime = if ports.iter().any(|port| port.listener.is_waiting()) {
        runtime_with_helpers(&mut builder)
    } else {
        let runtime = builder.enable_all().build();
        runtime.expect("the operating system gives the listener its event queue")
    };
    // There is a second port at most, for TLS.
    let accept_on_all = async {
        let mut ports = ports.into_iter();
        match (ports.next(), ports.next(), ports.next()) {
            (Some(port), None, None) => accept(port, workers, shared).await,
            (Some(port), Some(other), None) => {
                tokio::join!(accept(port, workers, shared), accept(other, workers, shared));
            }
            _ => panic!("clients have one port or two"),
        }
    };
    runtime.block_on(async {
        tokio::select! {
            biased;
            () = shared.life.stopped() => {}
            () = accept_on_all => {}
        }
    });
    // The end of a member does not wait for a name.
    runtime.shutdown_background();
}

async fn accept(Port { listener, protocol }: Port, workers: &[UnboundedSender<Accepted>], shared: &Shared) {
    let listener = match listener.listener().await {
        Ok(listener) => listener,
        Err(error) => return shared.life.fail(error.into()),
    };
    let mut next = workers.iter().cycle();
    let mut pace = Pace::new(0);
    let mut log = Limiter::default();
    loop {
        match listener.accept().await.and_then(|(socket, client)| Ok((socket.into_std()?, client))) {
            Ok((socket, client)) if is_in_reserve(&socket, Caller::Client) => {
                shared.hit(ServerLimit::Descriptors, client, &"");
            }
            Ok((socket, client)) => {
                pace.per_second_max = shared.settings().client_limits.accepts_per_second_max;
                if let Some(pause) = pace.pause(Instant::now()) {
                    shared.hit(ServerLimit::AcceptRate, client, &"");
                    tokio::time::sleep(pause).await;
                }
                let accepted = Accepted { socket, protocol };
                // The worker is gone only if the member stops.
                let _ = next.next().expect("there is at least one worker").send(accepted);
            }
            Err(error) => {
                if let Some(others) = log.pass(Instant::now()) {
                    tracing::warn!(%error, others, "client connection not accepted");
                }
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

/// The pace at which a port takes connections.
#[derive(Debug)]
struct Pace {
    per_second_max: u32,
    /// Begin of the second that is counted, and the connections in it.
    since: Instant,
    taken: u32,
}

impl Pace {
    const SECOND: Duration = Duration::from_secs(1);

    fn new(per_second_max: u32) -> Pace {
        Pace { per_second_max, since: Instant::now(), taken: 0 }
    }

    /// Counts a connection. Returns the time until it may be served, if that is not now.
    fn pause(&mut self, now: Instant) -> Option<Duration> {
        if self.per_second_max == 0 {
            return None;
        }
        let passed = now.saturating_duration_since(self.since);
        if passed >= Pace::SECOND {
            (self.since, self.taken) = (now, 0);
        }
        self.taken += 1;
        if self.taken <= self.per_second_max {
            return None;
        }
        self.since += Pace::SECOND;
        self.taken = 1;
        Some(self.since.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_a_second_may_have_wait_for_the_next_one() {
        let mut pace = Pace::new(2);
        let start = pace.since;
        let mut pause = |ms| pace.pause(start + Duration::from_millis(ms)).map(|pause| pause.as_millis());
        assert_eq!([pause(0), pause(10), pause(100)], [None, None, Some(900)]);
        assert_eq!([pause(1000), pause(1500)], [None, Some(500)], "the third one belongs to this second");
        assert_eq!([pause(9000), pause(9000), pause(9000)], [None, None, Some(1000)]);
        assert_eq!(Pace::new(0).pause(start), None);
    }
}
