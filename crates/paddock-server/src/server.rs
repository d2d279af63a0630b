//! A running member: its threads, and its end.

mod opening;
mod start_clock;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_front::AuditResult;
use paddock_http::HttpServer;
use paddock_member::Member;
use paddock_os::threads::spawn;
use paddock_proto::MemberNumber;
use paddock_replica::{Membership, Replicated, Role, member_number};
use paddock_storage::Disk;
use paddock_tls::ClientPort;
use paddock_tree::{Tree, member_lines};
use parking_lot::Mutex;

use crate::admin::{self, Admin, HttpAddresses};
use crate::backup_source::BackupSource;
use crate::clients::ClientThreads;
use crate::config::{EnsembleMember, EtcdSettings, PortProtocol};
use crate::engine::{self, Housekeeping};
use crate::engines::EngineHandle;
use crate::error::ServerError;
use crate::etcd::{self, EtcdEngine};
use crate::memory_watch::MemoryWatch;
use crate::operator::Operator;
use crate::shared::Shared;
use crate::timed_disk::TimedDisk;
use crate::whole_copy::take_copy_message;
use crate::{Config, ConfigChanges, Mirror, MirrorMode, mirror, permissions};
use opening::{Opening, Running};
use start_clock::StartClock;

/// Time that a leader which is about to stop waits for another member to lead in its place.
const HAND_OVER: Duration = Duration::from_secs(1);
const HAND_OVER_POLL: Duration = Duration::from_millis(10);

/// A member that serves clients until it is shut down or fails. Dropping it leaves it running, until the process ends.
///
/// Its threads are its own: it needs no async runtime, and its methods block. In an async program call them by `spawn_blocking`.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    engine: EngineHandle,
    engine_thread: JoinHandle<Result<(), ServerError>>,
    clients: ClientThreads,
    /// `None` for a front end on etcd, which has no log.
    housekeeping: Option<Housekeeping>,
    http: Option<HttpServer<Admin>>,
    http_addresses: HttpAddresses,
    memory: MemoryWatch,
    /// Settings as they were asked for, with those that have changed since.
    asked: Mutex<Config>,
    /// Keys and certificates of the HTTP interface, if it speaks TLS.
    admin_keys: Option<Arc<ClientPort>>,
}

impl Server {
    /// Starts a member, or a front end on etcd: when this returns, the state is loaded and clients can connect. A member of an ensemble closes
    /// connections until it has found a leader, unless they are content to read.
    ///
    /// # Errors
    /// Any [`ServerError`] about files, addresses and certificates; nothing is left running then.
    pub fn start(config: Config) -> Result<Server, ServerError> {
        let opening = Opening::open(config)?;
        match opening.config.etcd.clone() {
            Some(etcd) => Server::start_on_etcd(opening, etcd),
            None => Server::start_member(opening),
        }
    }

    fn start_member(opening: Opening) -> Result<Server, ServerError> {
        let Opening { config, clock, metrics, .. } = &opening;
        let disk: Arc<dyn Disk> = Arc::new(TimedDisk::new(config.log_dir(), metrics.syncs.clone()));
        let begun = Instant::now();
        let start_clock = StartClock { clock, progress: &metrics.start_progress };
        let (member, state) = Member::recover(disk.clone(), config.of_member(), &start_clock)?;
        metrics.start.lock().recovery_ms = begun.elapsed().as_millis() as u64;
        if let Err(error) = paddock_member::remove_copies(disk.as_ref(), &config.data_dir) {
            tracing::warn!(%error, "copies of groups that an earlier process has left are still there");
        }
        permissions::warn_of_open_directories(config);
        let (shared, ports) = opening.share(state)?;
        let running = run_member(&shared, member);
        audit_start(&shared, running.is_ok());
        Ok(ports.serve(shared, running?))
    }

    fn start_on_etcd(opening: Opening, settings: EtcdSettings) -> Result<Server, ServerError> {
        etcd::check(&settings)?;
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let (shared, ports) = opening.share(state)?;
        let EtcdEngine { handle, thread, loaded } = etcd::start(&shared, settings);
        // The receiver ends with an error when the other end is dropped.
        let _ = loaded.recv();
        let running = Running {
            engine: EngineHandle::Etcd(handle),
            thread: spawn("etcd-end", move || thread.join().map_err(|_| ServerError::Panicked)),
            housekeeping: None,
        };
        audit_start(&shared, true);
        Ok(ports.serve(shared, running))
    }

    /// Starts a server that shows this state and what the `Mirror` is told of it. As long as no member takes its place ([`Server::take_over`])
    /// it has no data directory.
    ///
    /// # Errors
    /// Those of [`Server::start`] about addresses and certificates.
    pub fn start_mirror(
        config: Config,
        tree: Tree,
        mode: MirrorMode,
    ) -> Result<(Server, Mirror), ServerError> {
        let state = Replicated::new(tree, (0, 0), Membership::default());
        let (shared, ports) = Opening::open(config)?.share(state)?;
        let (mirror, handle, thread) = mirror::start(&shared, mode);
        let running = Running {
            engine: EngineHandle::Mirror(handle),
            thread: spawn("mirror-end", move || thread.join().map_err(|_| ServerError::Panicked)),
            housekeeping: None,
        };
        Ok((ports.serve(shared, running), mirror))
    }

    /// Replaces the mirror by the member in the data directory, whose state is the one that the mirror shows. To be called when the mirror holds
    /// all requests back, and its source has nothing more ([`Mirror::hold`]). Connections and watches stay; the member answers the requests.
    ///
    /// # Errors
    /// Those of [`Server::start`] about the data directory. No handle is left then with which the mirror could be stopped: the process has to end.
    ///
    /// # Panics
    /// If it is not a mirror that runs.
    pub fn take_over(self) -> Result<Server, ServerError> {
        let EngineHandle::Mirror(mirror) = &self.engine else { panic!("a mirror is taken over from") };
        let shared = &self.shared;
        let metrics = &shared.statistics.server_metrics;
        let disk: Arc<dyn Disk> = Arc::new(TimedDisk::new(shared.config.log_dir(), metrics.syncs.clone()));
        let (member, state) = Member::recover(disk, shared.config.of_member(), &shared.clock)?;
        permissions::warn_of_open_directories(&shared.config);
        let housekeeping = Housekeeping::start(member.housekeeper());
        let begun = mirror.succeed(|retired| {
            let former = shared.state.write().succeed(state);
            let (mut owner, engine) = engine::new(shared, member);
            owner.catch_up()?;
            check_ensemble(shared)?;
            owner.adopt(retired.serving);
            engine.connect(&mut owner, take_copy_message)?;
            let (runner, mut held) = (engine.clone(), retired.held);
            let thread = spawn("engine", move || runner.run(owner).map_err(ServerError::from));
            engine.hand_over(&mut held);
            Ok((engine, (thread, former)))
        })?;
        let (engine_thread, former) = begun;
        drop(former);
        Ok(Server { engine_thread, housekeeping: Some(housekeeping), ..self })
    }

    /// The address at which clients connect: that of the settings, with the port that the system has chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.shared.config.listen
    }

    /// The address at which clients connect with TLS only, if there is one.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.shared.config.tls_address()
    }

    /// The address at which metrics are served, if they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.http_addresses.metrics
    }

    /// The address of the HTTP interface for administrators, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.http_addresses.admin
    }

    /// Snapshots and log for a backup; `None` of a process without a log.
    #[doc(hidden)]
    pub fn backup_source(&self) -> Option<BackupSource> {
        let operator = Operator::new(&self.shared, &self.engine);
        operator.is_member().then(|| BackupSource::new(operator))
    }

    /// The settings as they were asked for, with those that have changed since.
    pub fn settings(&self) -> Config {
        self.asked.lock().clone()
    }

    /// Takes over those of these settings that can change while the member runs; the log and the result name them, and the others that
    /// differ. Keys and certificates for clients are read again. After an error everything is as it was.
    ///
    /// # Errors
    /// [`ServerError::ClientTls`] and [`ServerError::AdminTls`], if keys or certificates cannot be read.
    pub fn reload(&self, wanted: &Config) -> Result<ConfigChanges, ServerError> {
        let mut asked = self.asked.lock();
        let mut now = asked.clone();
        let changes = now.take_changes(wanted);
        // All files are read before anything is taken.
        let client_port = self.shared.opened.client_port.as_ref().zip(now.tls.clone());
        let client_port = client_port.map(|(port, tls)| Ok((port, ClientPort::load(tls)?)));
        let client_port = client_port.transpose().map_err(ServerError::ClientTls)?;
        let admin_keys = self.admin_keys.as_deref().zip(now.admin_tls());
        let admin_keys = admin_keys.map(|(keys, tls)| Ok((keys, ClientPort::load(tls)?)));
        let admin_keys = admin_keys.transpose().map_err(ServerError::AdminTls)?;
        client_port.into_iter().chain(admin_keys).for_each(|(port, loaded)| port.take_over(loaded));
        let frame_bytes_max = now.request_bytes_max();
        let mut live = (*self.shared.settings()).clone();
        live.take_changes(&Config { frame_bytes_max, ..now.clone() });
        let is_list_new = changes.taken.contains(&"ensemble.member");
        let members =
            live.ensemble.as_ref().filter(|_| is_list_new).map(|ensemble| member_lines(&ensemble.members));
        self.shared.change_settings(live);
        if let Some(members) = members {
            self.engine.change_file_members(members);
        }
        *asked = now;
        let (taken, need_restart) = (changes.taken.join(", "), changes.need_restart.join(", "));
        match (taken.as_str(), need_restart.as_str()) {
            ("", "") => tracing::info!("read the configuration again: nothing has changed"),
            ("", _) => {
                tracing::warn!(%need_restart, "read the configuration again: these settings need a restart")
            }
            (_, "") => tracing::info!(changed = %taken, "read the configuration again"),
            _ => tracing::warn!(
                changed = %taken,
                %need_restart,
                "read the configuration again: some settings need a restart"
            ),
        }
        Ok(changes)
    }

    /// The member's file has these members from now on, and not this member itself, which is to leave: the leader is told.
    pub fn leave_to(&self, members: &[EnsembleMember]) {
        self.engine.change_file_members(member_lines(members));
    }

    /// True if the member has stopped by itself, which it does when its log fails or an invariant is broken.
    /// `shutdown` tells the reason.
    pub fn has_failed(&self) -> bool {
        self.shared.life.has_failed()
            || self.engine_thread.is_finished()
            || self.housekeeping.as_ref().is_some_and(Housekeeping::is_finished)
            || self.clients.is_any_finished()
            || self.http.as_ref().is_some_and(HttpServer::is_finished)
    }

    /// Stops: no new connection or request is taken, what was taken is answered, sessions live on. A leader waits up to a second for another member to
    /// lead in its place. Returns when everything is on disk and every thread has ended; the ports and the data directory are free then.
    ///
    /// # Errors
    /// The reason for which the member had stopped by itself, or could not stop in good order. It is over all the same; what was acknowledged is on
    /// the disk.
    pub fn shutdown(self) -> Result<(), ServerError> {
        let failed_before = self.has_failed();
        self.shared.life.begin_draining();
        if let Some(audit) = &self.shared.opened.audit {
            audit.server("serverStop", AuditResult::Invoked);
        }
        self.hand_over_lead();
        self.shared.stop();
        if let Some(check) = &self.shared.opened.cross_check {
            check.stop();
        }
        if failed_before {
            // A member whose state was wrong starts again at once.
            self.clients.free_ports();
        } else if !self.clients.join() {
            return Err(ServerError::Panicked);
        }
        if let Some(http) = self.http {
            http.stop().map_err(|_| ServerError::Panicked)??;
        }
        if !self.memory.stop() {
            return Err(ServerError::Panicked);
        }
        if let Some(spans) = &self.shared.statistics.spans {
            spans.flush();
        }
        self.engine.close();
        let ended = self.engine_thread.join().map_err(|_| ServerError::Panicked)?;
        if let Some(audit) = &self.shared.opened.audit {
            audit.end();
        }
        let housekeeping =
            self.housekeeping.map(|house| house.stop().ok_or(ServerError::Panicked)).transpose()?;
        ended?;
        if let Some(error) = self.shared.life.take_failure() {
            return Err(error);
        }
        Ok(housekeeping.transpose().map(drop)?)
    }
}

impl Server {
    /// The HTTP interface without a port.
    #[cfg(test)]
    pub(crate) fn admin(&self) -> Admin {
        assert!(self.http.is_none(), "there is one client inside the member");
        Admin::new(&self.shared, &self.engine)
    }

    /// A leader that is about to stop makes room for another one, so that no client has to notice that it is gone.
    fn hand_over_lead(&self) {
        if !self.engine.is_member() {
            return;
        }
        if self.shared.state.read().membership().voters.len() < 2 {
            return;
        }
        let deadline = Instant::now() + HAND_OVER;
        if self.shared.engine.role() == Role::Leader {
            self.engine.step_down();
        }
        while self.shared.engine.role() == Role::Leader && Instant::now() < deadline && !self.has_failed() {
            std::thread::sleep(HAND_OVER_POLL);
        }
    }
}

/// Brings a recovered member to where it was, and starts its threads.
fn run_member(shared: &Arc<Shared>, member: Member) -> Result<Running, ServerError> {
    let housekeeping = Housekeeping::start(member.housekeeper());
    let (mut owner, engine) = engine::new(shared, member);
    owner.catch_up()?;
    check_ensemble(shared)?;
    engine.connect(&mut owner, take_copy_message)?;
    let runner = engine.clone();
    let thread = spawn("engine", move || runner.run(owner).map_err(ServerError::from));
    Ok(Running { engine: EngineHandle::Member(engine), thread, housekeeping: Some(housekeeping) })
}

fn audit_start(shared: &Shared, is_success: bool) {
    if let Some(audit) = &shared.opened.audit {
        audit.server("serverStart", if is_success { AuditResult::Success } else { AuditResult::Failure });
    }
}

/// Lets the HTTP server answer from the state.
fn open_http(
    server: &HttpServer<Admin>,
    addresses: HttpAddresses,
    shared: &Arc<Shared>,
    engine: &EngineHandle,
) {
    server.open(admin::ROUTES, Admin::new(shared, engine));
    let HttpAddresses { metrics, admin } = addresses;
    if let Some(address) = metrics {
        let address = shared.config.late_names.shown(address);
        tracing::info!(address, "serving metrics at /metrics, and whether the member serves at /ready");
    }
    if let Some(address) = admin {
        let settings = &shared.config.admin;
        let scheme = if settings.tls.protocol == PortProtocol::Tls { "https" } else { "http" };
        let shown = shared.config.late_names.shown(address);
        let (page, commands) = (format!("{scheme}://{shown}/"), &settings.command_url);
        tracing::info!(%page, %commands, "serving the page and the HTTP interface for administrators");
    }
}

/// Refuses to run the data of a member of an ensemble as if there were no others, and says where the configuration is not
/// what counts.
fn check_ensemble(shared: &Shared) -> Result<(), ServerError> {
    let state = shared.state.read();
    let present: Vec<MemberNumber> = state.membership().all().filter_map(member_number).collect();
    let own = shared.config.member;
    let Some(configured) = &shared.config.ensemble else {
        let is_alone = present.iter().all(|id| *id == own);
        let not_alone = || ServerError::NotAlone { path: shared.config.data_dir.clone(), present };
        return is_alone.then_some(()).ok_or_else(not_alone);
    };
    let Some(ensemble) = state.tree().ensemble() else { return Ok(()) };
    let numbers =
        |members: &[EnsembleMember]| members.iter().map(|member| member.id).collect::<Vec<MemberNumber>>();
    if numbers(&configured.members) != numbers(&ensemble.members) {
        let change = if configured.reconfig_enabled {
            "reconfig"
        } else {
            "the configurations, once those of most members agree"
        };
        tracing::warn!(
            configured = ?numbers(&configured.members),
            members = ?numbers(&ensemble.members),
            "the configuration names other members than the ensemble has; the ensemble's count, and are changed by {change}"
        );
    }
    Ok(())
}
