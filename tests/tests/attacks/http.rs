//! Attacks on the HTTP interface for administrators. The witness is a client of the other port, and an operator who comes afterwards is served.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use paddock_tests::server::{Server, free_port};

use crate::scene::{Goal, Scene, scaled};
use crate::{noise, on_threads, sleep_until};

/// Time that a connection waits for a place in the queue of those that are to be accepted, or for room in what it sends.
const SHORT: Duration = Duration::from_millis(100);
/// Time in which an operator gets an answer, during an attack and after it: silent connections give way, but each newcomer has to get
/// through the queue of the operating system.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

/// Beginnings of requests that never end.
const UNENDING: [&[u8]; 5] = [
    b"",
    b"G",
    b"GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\nX-More: ",
    b"POST /commands/restore HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000000\r\n\r\n",
    b"POST /commands/shed_connections HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"per",
];

/// Requests that are refused, and some that are answered, at that with much.
const REQUESTS: [&str; 12] = [
    "GET /commands/monitor HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "DELETE /commands/monitor HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "BREW /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "PUT /api/v1/storage/small?version=-1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n\r\nx",
    "POST /commands/snapshot HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
    "POST /commands/restore HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1048576\r\n\r\n",
    "POST /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "GET /api/v1/storage/../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET /commands/%00%ff%zz HTTP/9.9\r\nHost: \r\n\r\n",
];

struct HttpScene {
    scene: Scene,
    operators: SocketAddr,
}

impl HttpScene {
    fn new() -> HttpScene {
        let port = free_port();
        let scene = Scene::with(&[
            ("admin.enableServer", "true"),
            ("admin.serverAddress", "127.0.0.1"),
            ("admin.serverPort", &port.to_string()),
        ]);
        HttpScene { scene, operators: SocketAddr::from(([127, 0, 0, 1], port)) }
    }

    /// The attack, after which an operator is served.
    fn attack<T: Send>(&self, name: &str, goal: Goal, attack: impl FnOnce(&Server, Instant) -> T + Send) {
        self.scene.attack(name, goal, attack);
        self.serves_operators(name);
        let lines = self.scene.server.log().lines().count();
        assert!(lines < 200, "{name}: an attacker has filled the log with {lines} lines");
    }

    /// An operator is answered soon.
    fn serves_operators(&self, name: &str) {
        let since = Instant::now();
        while !is_answered(self.operators) {
            assert!(since.elapsed() < ANSWERED_WITHIN, "{name}: /commands/ruok is not answered any more");
            std::thread::sleep(POLL);
        }
    }
}

/// True if a request as it should be has its answer.
fn is_answered(operators: SocketAddr) -> bool {
    let Some(mut stream) = call(operators) else { return false };
    let mut answer = String::new();
    let request = "GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let asked = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    asked.is_ok() && answer.starts_with("HTTP/1.1 200")
}

fn call(operators: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&operators, SHORT).ok()?;
    stream.set_write_timeout(Some(SHORT)).ok()?;
    stream.set_read_timeout(Some(SHORT)).ok()?;
    Some(stream)
}

/// A connection that has sent the beginning of a request.
fn begin(operators: SocketAddr, request: &[u8]) -> Option<TcpStream> {
    let mut stream = call(operators)?;
    stream.write_all(request).ok()?;
    Some(stream)
}

/// Bytes come one at a time, and more connections than are served; some have begun a body that never comes.
#[test]
fn http_requests_that_never_end() {
    let http = HttpScene::new();
    http.attack("HTTP requests that never end", Goal::SET, |_, deadline| {
        let mut slow: Vec<TcpStream> = Vec::new();
        for number in 0..scaled(5000) {
            match begin(http.operators, UNENDING[number % UNENDING.len()]) {
                Some(stream) => slow.push(stream),
                // There is no place in the queue. Meanwhile each that has one says a little more.
                None => slow.retain_mut(|stream| stream.write_all(b"a").is_ok()),
            }
            if Instant::now() > deadline {
                break;
            }
        }
        println!("{} connections", slow.len());
        while Instant::now() < deadline {
            slow.retain_mut(|stream| stream.write_all(b"a").is_ok());
            http.serves_operators("HTTP requests that never end");
            sleep_until(deadline.min(Instant::now() + Duration::from_secs(1)));
        }
        slow
    });
}

#[test]
fn http_requests_that_are_wrong_or_ask_for_much() {
    let http = HttpScene::new();
    let large_head =
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n", "X-More: and more\r\n".repeat(5000));
    let junk = noise(4000);
    let large_body = vec![b'x'; 1 << 20];
    http.attack("HTTP requests that are wrong", Goal::BUSY, |_, deadline| {
        let count = on_threads(4, deadline, |thread| {
            for request in REQUESTS.map(str::as_bytes).into_iter().chain([large_head.as_bytes(), &junk]) {
                let Some(mut stream) = call(http.operators) else { continue };
                let _ = stream.write_all(request);
                if request.ends_with(b"1048576\r\n\r\n") {
                    let _ = stream.write_all(&large_body);
                }
                // Some hear an answer, and some leave without one.
                if thread % 2 == 0 {
                    let _ = stream.read(&mut [0; 64]);
                }
            }
        });
        println!("{} requests", count * (REQUESTS.len() as u64 + 2));
    });
}

/// Logins are guessed, one after another on connections that stay open as long as they are answered.
#[test]
fn http_logins_that_are_guessed() {
    let http = HttpScene::new();
    http.attack("HTTP logins that are guessed", Goal::BUSY, |_, deadline| {
        let count = on_threads(4, deadline, |thread| {
            let Some(mut stream) = call(http.operators) else { return };
            for number in 0..1000 {
                let guess = format!(
                    "GET /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: digest super:{thread}-{number}\r\n\r\n"
                );
                let is_answered = stream.write_all(guess.as_bytes()).is_ok()
                    && stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0);
                if !is_answered || Instant::now() > deadline {
                    break;
                }
            }
        });
        println!("{count} times");
    });
}
