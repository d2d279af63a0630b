//! A running member: its threads, and its end.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use paddock_member::{Member, MemberError, RecoveryError};
use paddock_replica::{Input, Replicated, Role};
use paddock_state::MemberFacts;
use paddock_storage::{Disk, LogError, OsDisk};

use crate::clock::Clock;
use crate::config::EnsembleMember;
use crate::engine::Engine;
use crate::peers::LinkError;
use crate::shared::Shared;
use crate::shell::MemberShell;
use crate::tls::TlsError;
use crate::{Config, helpers, listener, members, worker};

/// So long a member that stops waits for another one to lead in its place.
const HAND_OVER: Duration = Duration::from_secs(1);
const HAND_OVER_POLL: Duration = Duration::from_millis(10);

/// Why a member did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error("listen for members: the address {0} has no meaning here")]
    PeerAddress(String),
    #[error(
        "data directory {} belongs to an ensemble of the members {present:?}, but the configuration names none: name them, \
         or begin an ensemble of this member alone with --recover",
        path.display()
    )]
    NotAlone { path: PathBuf, present: Vec<u64> },
    #[error(transparent)]
    Links(#[from] LinkError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the log failed, so the member stopped")]
    Log(#[from] LogError),
    #[error("the disk failed, so the member stopped")]
    Member(#[from] MemberError),
    #[error("a thread of the member panicked, so it stopped")]
    Panicked,
}

impl ServerError {
    /// True if the member stopped because its state is not the one that most others have. Started again, it puts its files
    /// aside and fetches the state from the leader.
    pub fn is_divergence(&self) -> bool {
        matches!(self, ServerError::Member(MemberError::Diverged { .. }))
    }
}

/// A member that serves clients until it is shut down or fails. Dropping it leaves it running.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    engine: JoinHandle<Result<(), MemberError>>,
    others: Vec<JoinHandle<()>>,
    housekeeper: JoinHandle<Result<(), LogError>>,
    housekeeper_stop: Sender<()>,
}

impl Server {
    /// Starts a member: when this returns, its data is loaded and clients can connect.
    pub fn start(config: Config) -> Result<Server, ServerError> {
        let listen_failed = |source| ServerError::Listen { address: config.listen, source };
        let listener = listener::bind(config.listen).map_err(listen_failed)?;
        let address = listener.local_addr().map_err(listen_failed)?;
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let clock = Clock::start();
        let (member, state) = Member::recover(disk, config.of_member(), &clock)?;
        Server::run(config, clock, member, state, listener, address)
    }

    fn run(
        config: Config,
        clock: Clock,
        member: Member,
        mut state: Replicated,
        listener: TcpListener,
        address: SocketAddr,
    ) -> Result<Server, ServerError> {
        let (inputs_in, inputs_out) = crossbeam_channel::unbounded();
        let (housekeeper_stop, housekeeper_stopped) = crossbeam_channel::bounded(0);
        let log_housekeeper = member.housekeeper();
        let housekeeper =
            spawn("housekeeper", move || helpers::keep_house(&log_housekeeper, &housekeeper_stopped));

        let frame_bytes_max = members::frame_bytes_max(&config);
        let config = Config { listen: address, frame_bytes_max, ..config };
        state.set_facts(MemberFacts {
            request_bytes_max: Some(frame_bytes_max),
            availability_zone: config.availability_zone.clone(),
        });
        let shared = Arc::new(Shared::new(config, clock, state, inputs_in));
        let mut engine = Engine::new(shared.clone(), member, MemberShell::new(shared.clone()), inputs_out);
        engine.catch_up()?;
        check_ensemble(&shared)?;
        engine.connect()?;
        let room = shared.clone();
        let engine = spawn("engine", move || room.engine.run(engine));
        let others = listener::start(listener, &shared);
        Ok(Server { address, shared, engine, others, housekeeper, housekeeper_stop })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the member has stopped by itself, which it does when its log fails or an invariant is broken.
    /// `shutdown` tells why.
    pub fn has_failed(&self) -> bool {
        self.engine.is_finished()
            || self.housekeeper.is_finished()
            || self.others.iter().any(JoinHandle::is_finished)
    }

    /// Stops: no new connection or request is taken, what was taken is answered, sessions live on. Returns when
    /// everything is on disk and every thread has ended.
    pub fn shutdown(self) -> Result<(), ServerError> {
        let failed_before = self.has_failed();
        self.hand_over_lead();
        self.shared.stop();
        if !failed_before {
            for thread in self.others {
                thread.join().map_err(|_| ServerError::Panicked)?;
            }
        }
        if let Some(spans) = &self.shared.spans {
            spans.flush();
        }
        self.shared.engine.close();
        let engine = self.engine.join().map_err(|_| ServerError::Panicked)?;
        drop(self.housekeeper_stop);
        let housekeeper = self.housekeeper.join().map_err(|_| ServerError::Panicked)?;
        engine?;
        Ok(housekeeper?)
    }
}

impl Server {
    /// A leader that is about to stop makes room for another one, so that nobody has to notice that it is gone.
    fn hand_over_lead(&self) {
        if self.shared.state.read().membership().voters.len() < 2 {
            return;
        }
        let deadline = Instant::now() + HAND_OVER;
        if self.shared.role() == Role::Leader {
            self.shared.engine.hand_over(&mut vec![Input::StepDown]);
        }
        while self.shared.role() == Role::Leader && Instant::now() < deadline && !self.has_failed() {
            std::thread::sleep(HAND_OVER_POLL);
        }
    }
}

/// Refuses to run the data of a member of an ensemble as if there were no others, and says where the configuration is not
/// what counts.
fn check_ensemble(shared: &Shared) -> Result<(), ServerError> {
    let state = shared.state.read();
    let present: Vec<u64> = state.membership().all().collect();
    let own = u64::from(shared.config.member);
    let Some(configured) = &shared.config.ensemble else {
        return match present.iter().any(|id| *id != own) {
            true => Err(ServerError::NotAlone { path: shared.config.data_dir.clone(), present }),
            false => Ok(()),
        };
    };
    let Some(ensemble) = state.tree().ensemble() else { return Ok(()) };
    let numbers = |members: &[EnsembleMember]| members.iter().map(|member| member.id).collect::<Vec<u8>>();
    if numbers(&configured.members) != numbers(&ensemble.members) {
        tracing::warn!(
            configured = ?numbers(&configured.members),
            members = ?numbers(&ensemble.members),
            "the configuration names other members than the ensemble has; the ensemble's count, and change by reconfig"
        );
    }
    Ok(())
}

/// Starts a thread under a name that shows in `top` and in a debugger.
pub(crate) fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .expect("the operating system gives the member its threads")
}

pub(crate) fn spawn_worker(
    number: usize,
    shared: &Arc<Shared>,
    sockets: tokio::sync::mpsc::UnboundedReceiver<std::net::TcpStream>,
) -> JoinHandle<()> {
    let shared = shared.clone();
    spawn(format!("worker-{number}"), move || worker::run(number, shared, sockets))
}
