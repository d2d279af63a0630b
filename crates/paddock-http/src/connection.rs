//! One connection: requests are read within limits, sent to their routes, and answered.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use paddock_proto::Id;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::body::AnswerBody;
use super::places::{Activity, UnderWay};
use super::request;
use super::route;
use super::stall::StallGuard;
use super::{Access, Context, Request, Response, Route, Surface};

/// Time in which the head of a request has to come.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which a body has to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
const LIFETIME: Lifetime = Lifetime { taking: Duration::from_secs(60), reading: Duration::from_secs(30) };
/// The largest request head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The routes of a server and the side that answers, for all its connections.
pub(super) struct Site<C: 'static> {
    pub(super) routes: &'static [Route<C>],
    pub(super) context: C,
}

/// A connection before its first request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) peer: SocketAddr,
    pub(super) surface: Surface,
    /// The client speaks plaintext where TLS is required.
    pub(super) is_refused: bool,
    pub(super) certified: Vec<Id>,
}

/// Time that a connection has.
#[derive(Clone, Copy, Debug)]
struct Lifetime {
    /// After this time it takes no further request.
    taking: Duration,
    /// Time that it then has to read its last response, unless that may take long.
    reading: Duration,
}

/// Progress of a connection, as its timeouts need it.
#[derive(Debug, Default)]
struct Progress {
    /// The member works on a request, so the peer is not to blame for silence.
    is_working: Arc<AtomicBool>,
    /// An administrator has asked for something that may take long.
    may_take_long: AtomicBool,
}

/// Serves requests until the peer closes, or a limit is reached.
pub(super) async fn serve<C: Context>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    caller: Caller,
    site: &Arc<Site<C>>,
    activity: &Arc<Activity>,
) -> hyper::Result<()> {
    serve_for(LIFETIME, stream, caller, site, activity).await
}

async fn serve_for<C: Context>(
    lifetime: Lifetime,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    caller: Caller,
    site: &Arc<Site<C>>,
    activity: &Arc<Activity>,
) -> hyper::Result<()> {
    let progress = Progress::default();
    let idle_timeout = site.context.idle_timeout();
    let stream = StallGuard::new(stream, idle_timeout, progress.is_working.clone(), activity.clone());
    let service = service_fn(|request| {
        let answer = answer(request, site, &caller, &progress, activity);
        async move {
            let (response, under_way) = answer.await;
            Ok::<_, Infallible>(response.into_hyper().map(|body| AnswerBody::new(body, under_way)))
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    if let Ok(ended) = timeout(lifetime.taking, connection.as_mut()).await {
        return ended;
    }
    connection.as_mut().graceful_shutdown();
    match timeout(lifetime.reading, connection.as_mut()).await {
        Ok(ended) => ended,
        Err(_) if progress.may_take_long.load(Relaxed) => connection.await,
        Err(_) => Ok(()),
    }
}

async fn answer<C: Context>(
    request: hyper::Request<Incoming>,
    site: &Arc<Site<C>>,
    caller: &Caller,
    progress: &Progress,
    activity: &Arc<Activity>,
) -> (Response, Option<UnderWay>) {
    let (route, mut request, incoming) = match accept(request, site, caller) {
        Ok(accepted) => accepted,
        Err(refused) => return (refused, None),
    };
    if route.access == Access::Administrator {
        progress.may_take_long.store(true, Relaxed);
    }
    if !route.reads_body {
        let refused = (route.answer)(&site.context, request);
        return (refused.with_header(header::CONNECTION, "close"), None);
    }
    request.body = match timeout(BODY_TIMEOUT, collect(incoming, route.body_bytes_max)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(refused)) => return (refused, None),
        Err(_) => {
            let refused = Response::text(StatusCode::REQUEST_TIMEOUT, "The body did not come in time.\n");
            return (refused, None);
        }
    };
    let under_way = activity.begin();
    progress.is_working.store(true, Relaxed);
    let (answer, site) = (route.answer, site.clone());
    let answered = tokio::task::spawn_blocking(move || answer(&site.context, request)).await;
    progress.is_working.store(false, Relaxed);
    let failed = |_| Response::text(StatusCode::INTERNAL_SERVER_ERROR, "The member failed.\n");
    let response = answered.unwrap_or_else(failed);
    progress.may_take_long.fetch_or(response.may_take_long, Relaxed);
    (response, Some(under_way))
}

/// Finds the route of a request, and makes sure that the caller may ask for it.
fn accept<C: Context>(
    request: hyper::Request<Incoming>,
    site: &Site<C>,
    caller: &Caller,
) -> Result<(&'static Route<C>, Request, Incoming), Response> {
    if caller.is_refused {
        let text = "This port speaks HTTPS only: begin the address with https://\n";
        return Err(Response::text(StatusCode::BAD_REQUEST, text).with_header(header::CONNECTION, "close"));
    }
    let (head, incoming) = request.into_parts();
    if caller.surface == Surface::Admin {
        site.context.admit_host(&head.headers)?;
    }
    let path = site.context.canonical(head.uri.path());
    let (route, rest) = route::find(site.routes, caller.surface, &head.method, &path)?;
    let unreadable = || Response::text(StatusCode::BAD_REQUEST, "The path is no text in UTF-8.\n");
    let request = Request {
        method: head.method,
        rest: request::decode(rest).ok_or_else(unreadable)?,
        query: request::parameters(&head.uri),
        headers: head.headers,
        peer: caller.peer,
        certified: caller.certified.clone(),
        body: Bytes::new(),
    };
    site.context.admit(route.proof(), &request)?;
    Ok((route, request, incoming))
}

/// The body of a request.
async fn collect(mut incoming: Incoming, bytes_max: usize) -> Result<Bytes, Response> {
    let too_large = || {
        let limit = format!("A body here has {bytes_max} bytes at most.\n");
        Response::text(StatusCode::PAYLOAD_TOO_LARGE, limit).with_header(header::CONNECTION, "close")
    };
    if incoming.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(piece) = next_piece(&mut incoming).await {
        let cut = |_| Response::text(StatusCode::BAD_REQUEST, "The body was cut off.\n");
        bytes.extend_from_slice(&piece.map_err(cut)?);
        if bytes.len() > bytes_max {
            return Err(too_large());
        }
    }
    Ok(bytes.into())
}

/// The next bytes of a body; trailers are read over.
async fn next_piece(incoming: &mut Incoming) -> Option<io::Result<Bytes>> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await?;
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(io::Error::other(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hyper::header::HeaderMap;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::places::Places;
    use super::*;

    const BYTES: usize = 1 << 20;
    const ROUTES: &[Route<Anyone>] = &[
        Route::get("/bounded", |_, _| Response::of("text/plain", vec![b'x'; BYTES])),
        Route::get("/patient", |_, _| Response::of("text/plain", vec![b'x'; BYTES]).may_take_long()),
    ];
    const SHORT: Lifetime =
        Lifetime { taking: Duration::from_millis(50), reading: Duration::from_millis(50) };

    struct Anyone;

    impl Context for Anyone {
        fn canonical<'a>(&self, path: &'a str) -> std::borrow::Cow<'a, str> {
            path.into()
        }

        fn idle_timeout(&self) -> Duration {
            Duration::from_secs(3600)
        }

        fn admit_host(&self, _: &HeaderMap) -> Result<(), Response> {
            Ok(())
        }

        fn admit(&self, _: super::super::RequiredProof, _: &Request) -> Result<(), Response> {
            Ok(())
        }
    }

    /// Bytes that a requester gets who reads on only when its connection's time is over.
    async fn read_late(path: &str) -> usize {
        let (mut near, far) = tokio::io::duplex(1 << 12);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let caller = Caller { peer, surface: Surface::Admin, is_refused: false, certified: Vec::new() };
        let activity = Places::new(1).take(peer.ip()).await.activity();
        let site = Arc::new(Site { routes: ROUTES, context: Anyone });
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let asking = async {
            near.write_all(request.as_bytes()).await.expect("the site reads");
            let mut answer = vec![near.read_u8().await.expect("the site answers")];
            tokio::time::sleep(3 * (SHORT.taking + SHORT.reading)).await;
            near.read_to_end(&mut answer).await.expect("the rest comes, or an end");
            answer.len()
        };
        tokio::join!(asking, async move { serve_for(SHORT, far, caller, &site, &activity).await }).0
    }

    #[tokio::test]
    async fn a_late_reader_gets_all_of_what_may_take_long_and_no_more_of_the_rest() {
        assert!(read_late("/patient").await > BYTES);
        assert!(read_late("/bounded").await < BYTES);
    }
}
