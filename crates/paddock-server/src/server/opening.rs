//! A server before it serves: its ports are open and its files are read, and there is no state yet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use paddock_cross_check::CrossCheck;
use paddock_http::HttpServer;
use paddock_os::binding::LatePort;
use paddock_replica::Replicated;
use paddock_statistics::server_metrics::ServerMetrics;
use paddock_tls::ClientPort;
use parking_lot::Mutex;

use super::Server;
use crate::admin::{self, Admin, HttpAddresses, STARTING_ROUTES, Starting};
use crate::audit::Audit;
use crate::clients::{self, Port};
use crate::clock::Clock;
use crate::config::PortProtocol;
use crate::engine::Housekeeping;
use crate::engines::EngineHandle;
use crate::error::ServerError;
use crate::memory_watch::MemoryWatch;
use crate::shared::{Opened, Shared};
use crate::statistics::Statistics;
use crate::{Config, kerberos};

#[derive(Debug)]
pub(super) struct Opening {
    /// The settings, with real numbers of ports.
    pub(super) config: Config,
    pub(super) clock: Clock,
    /// Counters that begin before there is a state.
    pub(super) metrics: ServerMetrics,
    client_port: Option<ClientPort>,
    kerberos: Option<paddock_front::Kerberos>,
    ports: Ports,
}

/// Ports that wait for the server to take connections, and what it is told once it does.
#[derive(Debug)]
pub(super) struct Ports {
    asked: Config,
    clients: Vec<Port>,
    http: StartingHttp,
    http_addresses: HttpAddresses,
    admin_keys: Option<Arc<ClientPort>>,
}

/// The HTTP server, if it has a port: it answers before there is a state. A start that fails ends it.
#[derive(Debug)]
struct StartingHttp(Option<HttpServer<Admin>>);

impl Drop for StartingHttp {
    fn drop(&mut self) {
        if let Some(server) = self.0.take() {
            // The error with which the start failed is the one that counts.
            let _ = server.stop();
        }
    }
}

/// An engine that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) engine: EngineHandle,
    pub(super) thread: JoinHandle<Result<(), ServerError>>,
    /// `None` without a log.
    pub(super) housekeeping: Option<Housekeeping>,
}

impl Opening {
    /// Reads the files and opens the ports that the settings name. From now on HTTP says that the member lives, and is not ready.
    pub(super) fn open(config: Config) -> Result<Opening, ServerError> {
        let asked = config.clone();
        let client_port = config.tls.clone().map(ClientPort::load).transpose();
        let client_port = client_port.map_err(ServerError::ClientTls)?;
        let kerberos = kerberos::open(config.kerberos.as_ref())?;
        let (config, clients) = listen(config)?;
        let admin_keys = admin::keys(&config)?;
        let (http, http_addresses) = admin::ports(&config, admin_keys.as_ref())?;
        let metrics = ServerMetrics::default();
        let starting = || Starting::new(config.clone(), metrics.start_progress.clone());
        let http = (!http.is_empty()).then(|| HttpServer::start(http, STARTING_ROUTES, starting()));
        let http = StartingHttp(http);
        let ports = Ports { asked, clients, http, http_addresses, admin_keys };
        Ok(Opening { config, client_port, kerberos, ports, clock: Clock::start(), metrics })
    }

    #[cfg(test)]
    pub(super) fn http_addresses(&self) -> HttpAddresses {
        self.ports.http_addresses
    }

    /// Begins with a state. The audit log and the comparison with a reference begin with it.
    pub(super) fn share(self, state: Replicated) -> Result<(Arc<Shared>, Ports), ServerError> {
        let Opening { config, clock, metrics, client_port, kerberos, ports } = self;
        let audit = Audit::start(config.audit_log.as_ref())?;
        let cross_check = config.cross_check.as_deref().map(CrossCheck::start);
        let admin_keys = ports.admin_keys.clone();
        let opened = Opened { client_port, admin_keys, kerberos, audit, cross_check };
        let frame_bytes_max = config.request_bytes_max();
        let config = Config { frame_bytes_max, ..config };
        let statistics = Statistics::new(&config, metrics, clock.monotonic_ms());
        Ok((Arc::new(Shared::new(config, opened, statistics, clock, state)), ports))
    }
}

impl Ports {
    /// Lets clients and administrators in, now that the state is there and its engine runs.
    pub(super) fn serve(self, shared: Arc<Shared>, running: Running) -> Server {
        let Ports { asked, clients, mut http, http_addresses, admin_keys } = self;
        let Running { engine, thread: engine_thread, housekeeping } = running;
        let clients = clients::start(clients, &shared, &engine);
        let memory = MemoryWatch::start(&shared);
        let http = http.0.take();
        if let Some(http) = &http {
            super::open_http(http, http_addresses, &shared, &engine);
        }
        Server {
            asked: Mutex::new(asked),
            shared,
            engine,
            engine_thread,
            clients,
            housekeeping,
            http,
            http_addresses,
            memory,
            admin_keys,
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
