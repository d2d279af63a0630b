//! The thread of the HTTP server, and its ports.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paddock_os::Limiter;
use paddock_os::binding::{BindError, LatePort};
use paddock_os::descriptors::{self, is_in_reserve};
use paddock_os::threads::{runtime_with_helpers, spawn};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::connection::{Caller, Site, serve};
use super::places::{Activity, Places};
use super::tls::{HttpTls, Opened};
use super::{Context, Route, Surface};

/// Connections of one port that are served at a time.
const CONNECTIONS_MAX: usize = 64;
/// Requests that are answered at a time.
const ANSWERS_MAX: usize = 4;
/// Time that answers have to end when the member stops.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause before the next try when the operating system has no more sockets to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A port at which the server listens.
#[derive(Debug)]
pub struct HttpPort {
    /// Its socket, which may have to wait for its address.
    pub listener: LatePort,
    /// Routes that are served at it.
    pub surface: Surface,
    /// TLS; plaintext only without.
    pub tls: Option<HttpTls>,
}

/// The thread that serves all HTTP ports of a member, for routes that answer from a `C`.
pub struct HttpServer<C: 'static> {
    thread: JoinHandle<Result<(), BindError>>,
    stop: oneshot::Sender<()>,
    serving: Serving<C>,
}

/// The site of a server, once it is open.
type Serving<C> = Arc<OnceLock<Arc<Site<C>>>>;

impl<C> fmt::Debug for HttpServer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").finish_non_exhaustive()
    }
}

/// Sites of a server before it is open, and after.
struct Sites<S: 'static, C: 'static> {
    starting: Arc<Site<S>>,
    serving: Serving<C>,
}

impl<C: Context> HttpServer<C> {
    /// Starts a server that answers by these routes until it is opened. Their answers have to end the connection: it would go on with them.
    pub fn start<S: Context>(ports: Vec<HttpPort>, routes: &'static [Route<S>], context: S) -> HttpServer<C> {
        let (stop, stopped) = oneshot::channel();
        let serving = Serving::default();
        let starting = Arc::new(Site { routes, context });
        let sites = Arc::new(Sites { starting, serving: serving.clone() });
        let thread = spawn("http", move || run(ports, &sites, stopped));
        HttpServer { thread, stop, serving }
    }

    /// From now on connections are served by these routes.
    pub fn open(&self, routes: &'static [Route<C>], context: C) {
        let is_first = self.serving.set(Arc::new(Site { routes, context })).is_ok();
        assert!(is_first, "a server is opened once");
    }

    /// True if the thread has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread, or says why it has ended: it panicked, or could not listen.
    pub fn stop(self) -> thread::Result<Result<(), BindError>> {
        drop(self.stop);
        self.thread.join()
    }
}

fn run<S: Context, C: Context>(
    ports: Vec<HttpPort>,
    sites: &Arc<Sites<S, C>>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), BindError> {
    let mut builder = Builder::new_current_thread();
    let runtime = runtime_with_helpers(builder.max_blocking_threads(ANSWERS_MAX).thread_name("http-answer"));
    let ended = runtime.block_on(async {
        let mut accepting = JoinSet::new();
        for port in ports {
            accepting.spawn(accept(port, sites.clone()));
        }
        tokio::select! {
            biased;
            _ = stopped => Ok(()),
            Some(ended) = accepting.join_next() => ended.expect("accepting does not panic"),
        }
    });
    runtime.shutdown_timeout(END_TIMEOUT);
    ended
}

impl<S: Context, C: Context> Sites<S, C> {
    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        caller: Caller,
        activity: &Arc<Activity>,
    ) -> hyper::Result<()> {
        match self.serving.get() {
            Some(site) => serve(stream, caller, site, activity).await,
            None => serve(stream, caller, &self.starting, activity).await,
        }
    }
}

/// Returns only if there is nothing to accept from.
async fn accept<S: Context, C: Context>(port: HttpPort, sites: Arc<Sites<S, C>>) -> Result<(), BindError> {
    let HttpPort { listener, surface, tls } = port;
    let listener = listener.listener().await?;
    let places = Places::new(CONNECTIONS_MAX);
    let mut log = Limiter::default();
    loop {
        match listener.accept().await {
            Ok((socket, _)) if is_in_reserve(&socket, descriptors::Caller::Http) => {
                if let Some(others) = log.pass(Instant::now()) {
                    tracing::warn!(
                        others,
                        "connection to an HTTP port refused: the last descriptors are the member's own"
                    );
                }
            }
            Ok((socket, peer)) => {
                let place = places.take(peer.ip().to_canonical()).await;
                let (sites, tls) = (sites.clone(), tls.clone());
                let caller = Caller { peer, surface, is_refused: false, certified: Vec::new() };
                tokio::spawn(async move {
                    let activity = place.activity();
                    tokio::select! {
                        biased;
                        () = activity.gives_way() => {}
                        () = converse(socket, tls, caller, &sites, &activity) => {}
                    }
                    drop(place);
                });
            }
            Err(error) => {
                if let Some(others) = log.pass(Instant::now()) {
                    tracing::warn!(%error, others, "connection to an HTTP port not accepted");
                }
                tokio::time::sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

async fn converse<S: Context, C: Context>(
    socket: TcpStream,
    tls: Option<HttpTls>,
    caller: Caller,
    sites: &Sites<S, C>,
    activity: &Arc<Activity>,
) {
    let peer: SocketAddr = caller.peer;
    if let Err(error) = begin(socket, tls, caller, sites, activity).await {
        tracing::debug!(%peer, error, "connection to an HTTP port ended");
    }
}

/// Serves a connection in what its peer speaks.
async fn begin<S: Context, C: Context>(
    socket: TcpStream,
    tls: Option<HttpTls>,
    caller: Caller,
    sites: &Sites<S, C>,
    activity: &Arc<Activity>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(tls) = tls else { return Ok(sites.serve(socket, caller, activity).await?) };
    let served = match tls.open(socket).await? {
        Opened::Plaintext(socket) => {
            sites.serve(socket, Caller { is_refused: tls.is_required, ..caller }, activity).await
        }
        Opened::Tls { stream, ids } => {
            sites.serve(stream, Caller { certified: ids, ..caller }, activity).await
        }
    };
    Ok(served?)
}
