//! A running member: its threads, and its end.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paddock_front::AuditResult;
use paddock_member::Member;
use paddock_replica::{Membership, Replicated, Role};
use paddock_storage::Disk;
use paddock_tree::Tree;
use parking_lot::Mutex;

use crate::admin::{self, Admin, HttpAddresses};
use crate::binding::LatePort;
use crate::clients::{ClientThreads, Port};
use crate::clock::Clock;
use crate::config::{EnsembleMember, PortProtocol};
use crate::engine::Housekeeping;
use crate::engines::EngineHandle;
use crate::error::ServerError;
use crate::etcd::EtcdEngine;
use crate::http::{HttpPort, HttpServer};
use crate::memory_watch::MemoryWatch;
use crate::shared::{Opened, Shared};
use crate::statistics::audit::Audit;
use crate::statistics::server_metrics::ServerMetrics;
use crate::threads::spawn;
use crate::timed_disk::TimedDisk;
use crate::{
    Config, ConfigChanges, Mirror, MirrorMode, clients, engine, etcd, kerberos, mirror, permissions,
};
use paddock_tls::ClientPort;

/// Time that a leader which is about to stop waits for another member to lead in its place.
const HAND_OVER: Duration = Duration::from_secs(1);
const HAND_OVER_POLL: Duration = Duration::from_millis(10);

/// A member that serves clients until it is shut down or fails. Dropping it leaves it running.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    engine: EngineHandle,
    engine_thread: JoinHandle<Result<(), ServerError>>,
    clients: ClientThreads,
    /// `None` for a front end on etcd, which has no log.
    housekeeping: Option<Housekeeping>,
    http: Option<HttpServer>,
    http_addresses: HttpAddresses,
    memory: MemoryWatch,
    /// Settings as they were asked for, with those that have changed since.
    asked: Mutex<Config>,
    /// Keys and certificates of the HTTP interface, if it speaks TLS.
    admin_keys: Option<Arc<ClientPort>>,
}

impl Server {
    /// Starts a member: when this returns, its data is loaded and clients can connect.
    pub fn start(config: Config) -> Result<Server, ServerError> {
        let asked = config.clone();
        let client_port = config.tls.clone().map(ClientPort::load).transpose();
        let client_port = client_port.map_err(ServerError::ClientTls)?;
        let kerberos = kerberos::open(config.kerberos.as_ref())?;
        let (config, ports) = listen(config)?;
        let admin_keys = admin::keys(&config)?;
        let (http_ports, http_addresses) = admin::ports(&config, admin_keys.as_ref())?;
        let metrics = ServerMetrics::default();
        let disk: Arc<dyn Disk> = Arc::new(TimedDisk::new(config.log_dir(), metrics.syncs.clone()));
        let clock = Clock::start();
        let recovered = match &config.etcd {
            Some(etcd) => {
                etcd::check(etcd)?;
                None
            }
            None => {
                let begun = Instant::now();
                let recovered = Member::recover(disk, config.of_member(), &clock)?;
                metrics.start.lock().recovery_ms = begun.elapsed().as_millis() as u64;
                permissions::warn_of_open_directories(&config);
                Some(recovered)
            }
        };
        let audit = Audit::start(config.audit_log.as_ref())?;
        let opened = Opened { client_port, kerberos, audit: audit.clone(), server_metrics: metrics };
        let started = match recovered {
            Some((member, state)) => Server::run(config, opened, clock, member, state, ports),
            None => Ok(Server::run_on_etcd(config, opened, clock, ports)),
        };
        if let Some(audit) = &audit {
            let result = if started.is_ok() { AuditResult::Success } else { AuditResult::Failure };
            audit.server("serverStart", result);
        }
        let mut server = Server { asked: Mutex::new(asked), admin_keys, http_addresses, ..started? };
        server.serve_http(http_ports);
        Ok(server)
    }

    fn run(
        config: Config,
        opened: Opened,
        clock: Clock,
        member: Member,
        state: Replicated,
        ports: Vec<Port>,
    ) -> Result<Server, ServerError> {
        let housekeeping = Housekeeping::start(member.housekeeper());
        let frame_bytes_max = config.request_bytes_max();
        let config = Config { frame_bytes_max, ..config };
        let shared = Arc::new(Shared::new(config, opened, clock, state));
        let (mut owner, engine) = engine::new(&shared, member);
        owner.catch_up()?;
        check_ensemble(&shared)?;
        engine.connect(&mut owner)?;
        let runner = engine.clone();
        let engine_thread = spawn("engine", move || runner.run(owner).map_err(ServerError::from));
        let engine = EngineHandle::Member(engine);
        Ok(Server::serve(shared, ports, engine, engine_thread, Some(housekeeping)))
    }

    /// Starts a front end on etcd: when this returns, it has read the state and clients can connect.
    fn run_on_etcd(config: Config, opened: Opened, clock: Clock, ports: Vec<Port>) -> Server {
        let settings = config.etcd.clone().expect("a front end has settings for etcd");
        let frame_bytes_max = config.request_bytes_max();
        let config = Config { frame_bytes_max, ..config };
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let shared = Arc::new(Shared::new(config, opened, clock, state));
        let EtcdEngine { handle, thread, loaded } = etcd::start(&shared, settings);
        // The receiver ends with an error when the other end is dropped.
        let _ = loaded.recv();
        let engine = EngineHandle::Etcd(handle);
        let engine_thread = spawn("etcd-end", move || thread.join().map_err(|_| ServerError::Panicked));
        Server::serve(shared, ports, engine, engine_thread, None)
    }

    /// Starts a server that shows this state and what the `Mirror` is told of it. As long as no member takes its place ([`Server::take_over`])
    /// it has no data directory.
    pub fn start_mirror(
        config: Config,
        tree: Tree,
        mode: MirrorMode,
    ) -> Result<(Server, Mirror), ServerError> {
        let asked = config.clone();
        let client_port = config.tls.clone().map(ClientPort::load).transpose();
        let client_port = client_port.map_err(ServerError::ClientTls)?;
        let kerberos = kerberos::open(config.kerberos.as_ref())?;
        let (config, ports) = listen(config)?;
        let admin_keys = admin::keys(&config)?;
        let (http_ports, http_addresses) = admin::ports(&config, admin_keys.as_ref())?;
        let audit = Audit::start(config.audit_log.as_ref())?;
        let opened = Opened { client_port, kerberos, audit, ..Opened::default() };
        let frame_bytes_max = config.request_bytes_max();
        let config = Config { frame_bytes_max, ..config };
        let state = Replicated::new(tree, (0, 0), Membership::default());
        let shared = Arc::new(Shared::new(config, opened, Clock::start(), state));
        let (mirror, handle, thread) = mirror::start(&shared, mode);
        let engine = EngineHandle::Mirror(handle);
        let engine_thread = spawn("mirror-end", move || thread.join().map_err(|_| ServerError::Panicked));
        let server = Server::serve(shared, ports, engine, engine_thread, None);
        let mut server = Server { asked: Mutex::new(asked), admin_keys, http_addresses, ..server };
        server.serve_http(http_ports);
        Ok((server, mirror))
    }

    /// Replaces the mirror by the member in the data directory, whose state is the one that the mirror shows. To be called when the mirror holds
    /// all requests back, and its source has nothing more ([`Mirror::hold`]). Connections and watches stay; the member answers the requests.
    pub fn take_over(self) -> Result<Server, ServerError> {
        let EngineHandle::Mirror(mirror) = &self.engine else { panic!("a mirror is taken over from") };
        let shared = &self.shared;
        let metrics = &shared.server_metrics;
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
            engine.connect(&mut owner)?;
            let (runner, mut held) = (engine.clone(), retired.held);
            let thread = spawn("engine", move || runner.run(owner).map_err(ServerError::from));
            engine.hand_over(&mut held);
            Ok((engine, (thread, former)))
        })?;
        let (engine_thread, former) = begun;
        drop(former);
        Ok(Server { engine_thread, housekeeping: Some(housekeeping), ..self })
    }

    /// Lets clients in, now that the state is there and its engine runs.
    fn serve(
        shared: Arc<Shared>,
        ports: Vec<Port>,
        engine: EngineHandle,
        engine_thread: JoinHandle<Result<(), ServerError>>,
        housekeeping: Option<Housekeeping>,
    ) -> Server {
        let clients = clients::start(ports, &shared, &engine);
        let memory = MemoryWatch::start(&shared);
        Server {
            asked: Mutex::new(shared.config.clone()),
            admin_keys: None,
            shared,
            engine,
            engine_thread,
            clients,
            housekeeping,
            http: None,
            http_addresses: HttpAddresses::default(),
            memory,
        }
    }

    /// The address at which clients connect.
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

    /// The settings as they were asked for, with those that have changed since.
    pub fn settings(&self) -> Config {
        self.asked.lock().clone()
    }

    /// Takes over those of these settings that can change while the member runs; the log and the result name them, and the others that
    /// differ. Keys and certificates for clients are read again. After an error everything is as it was.
    pub fn reload(&self, wanted: &Config) -> Result<ConfigChanges, ServerError> {
        let mut asked = self.asked.lock();
        let mut now = asked.clone();
        let changes = now.take_over(wanted);
        // All files are read before anything is taken.
        let client_port = self.shared.client_port.as_ref().zip(now.tls.clone());
        let client_port = client_port.map(|(port, tls)| Ok((port, ClientPort::load(tls)?)));
        let client_port = client_port.transpose().map_err(ServerError::ClientTls)?;
        let admin_keys = self.admin_keys.as_deref().zip(now.admin_tls());
        let admin_keys = admin_keys.map(|(keys, tls)| Ok((keys, ClientPort::load(tls)?)));
        let admin_keys = admin_keys.transpose().map_err(ServerError::AdminTls)?;
        client_port.into_iter().chain(admin_keys).for_each(|(port, loaded)| port.take_over(loaded));
        let frame_bytes_max = now.request_bytes_max();
        let mut live = (*self.shared.settings()).clone();
        live.take_over(&Config { frame_bytes_max, ..now.clone() });
        self.shared.change_settings(live);
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

    /// True if the member has stopped by itself, which it does when its log fails or an invariant is broken.
    /// `shutdown` tells the reason.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed()
            || self.engine_thread.is_finished()
            || self.housekeeping.as_ref().is_some_and(Housekeeping::is_finished)
            || self.clients.is_any_finished()
            || self.http.as_ref().is_some_and(HttpServer::is_finished)
    }

    /// Stops: no new connection or request is taken, what was taken is answered, sessions live on. Returns when
    /// everything is on disk and every thread has ended.
    pub fn shutdown(self) -> Result<(), ServerError> {
        let failed_before = self.has_failed();
        self.shared.begin_draining();
        if let Some(audit) = &self.shared.audit {
            audit.server("serverStop", AuditResult::Invoked);
        }
        self.hand_over_lead();
        self.shared.stop();
        if let Some(check) = &self.shared.cross_check {
            check.stop();
        }
        if failed_before {
            // A member whose state was wrong starts again at once.
            self.clients.free_ports();
        } else if !self.clients.join() {
            return Err(ServerError::Panicked);
        }
        self.http.map(HttpServer::stop).transpose()?;
        if !self.memory.stop() {
            return Err(ServerError::Panicked);
        }
        if let Some(spans) = &self.shared.spans {
            spans.flush();
        }
        self.engine.close();
        let ended = self.engine_thread.join().map_err(|_| ServerError::Panicked)?;
        if let Some(audit) = &self.shared.audit {
            audit.end();
        }
        let housekeeping =
            self.housekeeping.map(|house| house.stop().ok_or(ServerError::Panicked)).transpose()?;
        ended?;
        if let Some(error) = self.shared.take_failure() {
            return Err(error);
        }
        Ok(housekeeping.transpose().map(drop)?)
    }
}

impl Server {
    fn serve_http(&mut self, ports: Vec<HttpPort>) {
        if ports.is_empty() {
            return;
        }
        let context = Admin::new(&self.shared, &self.engine);
        self.http = Some(HttpServer::start(ports, admin::ROUTES, context));
        let HttpAddresses { metrics, admin } = self.http_addresses;
        if let Some(address) = metrics {
            let address = self.shared.config.late_names.shown(address);
            tracing::info!(address, "serving metrics at /metrics, and whether the member serves at /ready");
        }
        if let Some(address) = admin {
            let settings = &self.shared.config.admin;
            let scheme = if settings.tls.protocol == PortProtocol::Tls { "https" } else { "http" };
            let shown = self.shared.config.late_names.shown(address);
            let (page, commands) = (format!("{scheme}://{shown}/"), &settings.command_url);
            tracing::info!(%page, %commands, "serving the page and the HTTP interface for administrators");
        }
    }

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
        if self.shared.role() == Role::Leader {
            self.engine.step_down();
        }
        while self.shared.role() == Role::Leader && Instant::now() < deadline && !self.has_failed() {
            std::thread::sleep(HAND_OVER_POLL);
        }
    }
}

/// Listens on every port for clients. The addresses in what is returned have their real ports.
fn listen(mut config: Config) -> Result<(Config, Vec<Port>), ServerError> {
    let (bind_tries, names) = (config.bind_tries, config.late_names.clone());
    let port = |address: &mut SocketAddr, protocol| {
        let (listener, bound) = LatePort::open(*address, &names, bind_tries)?;
        *address = bound;
        Ok::<Port, ServerError>(Port { listener, protocol })
    };
    let protocol = config.protocol_at_listen();
    let mut ports = vec![port(&mut config.listen, protocol)?];
    if let Some(address) = config.tls.as_mut().and_then(|tls| tls.listen.as_mut()) {
        ports.push(port(address, PortProtocol::Tls)?);
    }
    Ok((config, ports))
}

/// Refuses to run the data of a member of an ensemble as if there were no others, and says where the configuration is not
/// what counts.
fn check_ensemble(shared: &Shared) -> Result<(), ServerError> {
    let state = shared.state.read();
    let present: Vec<u64> = state.membership().all().collect();
    let own = u64::from(shared.config.member);
    let Some(configured) = &shared.config.ensemble else {
        let is_alone = present.iter().all(|id| *id == own);
        let not_alone = || ServerError::NotAlone { path: shared.config.data_dir.clone(), present };
        return is_alone.then_some(()).ok_or_else(not_alone);
    };
    let Some(ensemble) = state.tree().ensemble() else { return Ok(()) };
    let numbers = |members: &[EnsembleMember]| members.iter().map(|member| member.id).collect::<Vec<u8>>();
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
