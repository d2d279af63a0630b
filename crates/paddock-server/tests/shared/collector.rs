//! An OpenTelemetry collector, as far as it takes spans over HTTP: it keeps what was posted.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};

use paddock_server::{TracesEndpoint, Tracing};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::PATIENCE;

/// The threads of a collector end with the process that runs the tests.
pub(crate) struct Collector {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    posts: UnboundedReceiver<(u16, Value)>,
}

impl Collector {
    /// A collector that answers with this status.
    pub(crate) fn start(status: u16) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let status = Arc::new(AtomicU16::new(status));
        let (sender, posts) = unbounded_channel();
        let answer_with = status.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (status, sender) = (answer_with.clone(), sender.clone());
                std::thread::spawn(move || serve(stream, &status, &sender));
            }
        });
        Collector { address, status, posts }
    }

    pub(crate) fn answer_with(&self, status: u16) {
        self.status.store(status, SeqCst);
    }

    pub(crate) fn config(&self) -> Tracing {
        tracing_to(self.address)
    }

    /// Next post, and the status that it is answered with.
    pub(crate) async fn answered(&mut self) -> (u16, Value) {
        timeout(PATIENCE, self.posts.recv()).await.expect("something is posted").expect("the collector runs")
    }

    pub(crate) async fn post(&mut self) -> Value {
        self.answered().await.1
    }

    /// The next `count` spans, whatever batches they come in.
    pub(crate) async fn spans(&mut self, count: usize) -> Vec<Value> {
        let mut spans = Vec::new();
        while spans.len() < count {
            spans.extend(spans_of(&self.post().await));
        }
        assert_eq!(spans.len(), count, "{spans:?}");
        spans
    }

    /// Posts that have not been asked for.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.posts.try_recv().ok()).map(|(_, post)| post).collect()
    }
}

pub(crate) fn tracing_to(address: SocketAddr) -> Tracing {
    let endpoint = TracesEndpoint::below(&format!("http://{address}")).expect("a URL");
    Tracing { endpoint, service_name: Tracing::SERVICE_NAME.to_owned() }
}

pub(crate) fn spans_of(post: &Value) -> Vec<Value> {
    post["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
}

/// The value of a span's or a resource's attribute, if it has it.
pub(crate) fn attribute<'v>(of: &'v Value, key: &str) -> Option<&'v str> {
    let found = of["attributes"].as_array().expect("attributes").iter().find(|pair| pair["key"] == key)?;
    let value = found["value"].as_object().expect("a value with its kind").values().next();
    Some(value.expect("a value").as_str().expect("a text, or a number as a text"))
}

/// Answers request after request until the other side closes.
fn serve(stream: TcpStream, status: &AtomicU16, posts: &UnboundedSender<(u16, Value)>) {
    let mut writer = stream.try_clone().expect("a second handle");
    let mut reader = BufReader::new(stream);
    while let Some(body) = read_request(&mut reader) {
        let answered = status.load(SeqCst);
        let _ = posts.send((answered, serde_json::from_slice(&body).expect("JSON was posted")));
        let head = format!(
            "HTTP/1.1 {answered} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        if writer.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut lines = reader.by_ref().lines();
    let first = lines.next()?.ok()?;
    assert_eq!(first, "POST /v1/traces HTTP/1.1");
    let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let field = |name: &str| {
        let found = head.iter().filter_map(|line| line.split_once(": "));
        found.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    assert_eq!(field("content-type"), Some("application/json"));
    let mut body = vec![0; field("content-length").expect("a length").parse().expect("a number")];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
