use std::io::{BufRead, BufReader};

use super::*;

const DELAY: Duration = Duration::from_millis(60);

/// A server that says its name to each caller, and answers each line with the same one.
fn server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for mut caller in listener.incoming().flatten() {
            thread::spawn(move || {
                writeln!(caller, "{name}").expect("say the name");
                let lines = BufReader::new(caller.try_clone().expect("share the socket")).lines();
                lines.map_while(Result::ok).for_each(|line| writeln!(caller, "{line}").expect("answer"));
            });
        }
    });
    address
}

struct RelayedCaller {
    socket: TcpStream,
    lines: BufReader<TcpStream>,
}

impl RelayedCaller {
    fn connect(relay: &Relay) -> RelayedCaller {
        let socket = TcpStream::connect(relay.address()).expect("connect");
        socket.set_nodelay(true).expect("send at once");
        RelayedCaller { lines: BufReader::new(socket.try_clone().expect("share the socket")), socket }
    }

    /// The next line; an empty one at the end of the connection.
    fn line(&mut self) -> String {
        let mut line = String::new();
        // A connection that is cut may end with an error.
        let _ = self.lines.read_line(&mut line);
        line.trim_end().to_owned()
    }

    fn ask(&mut self, question: &str) -> (String, Duration) {
        let asked = Instant::now();
        writeln!(self.socket, "{question}").expect("ask");
        (self.line(), asked.elapsed())
    }
}

#[test]
fn each_direction_takes_its_own_time() {
    let relay = Relay::start(server("one")).expect("start");
    let mut caller = RelayedCaller::connect(&relay);
    assert_eq!(caller.line(), "one");
    let slow = LinkQuality { delay: DELAY, ..LinkQuality::default() };
    for (there, back, ways) in
        [(slow, LinkQuality::default(), 1), (LinkQuality::default(), slow, 1), (slow, slow, 2)]
    {
        relay.set_quality(there, back);
        let (answer, took) = caller.ask("question");
        assert_eq!(answer, "question");
        assert!(took >= DELAY * ways, "{took:?} for {ways} slow ways");
    }
}

#[test]
fn callers_are_brought_elsewhere() {
    let relay = Relay::start(server("one")).expect("start");
    let mut first = RelayedCaller::connect(&relay);
    assert_eq!(first.line(), "one");
    relay.move_to(server("two"));
    assert_eq!(first.line(), "", "the connection is cut");
    assert_eq!(RelayedCaller::connect(&relay).line(), "two");
}

#[test]
fn a_relay_ends_with_its_connections() {
    let relay = Relay::start(server("one")).expect("start");
    let shared = Arc::downgrade(&relay.shared);
    let mut caller = RelayedCaller::connect(&relay);
    assert_eq!(caller.line(), "one");
    drop(relay);
    assert_eq!(caller.line(), "");
    // The thread that listens goes when it has been woken.
    while shared.strong_count() > 0 {
        thread::yield_now();
    }
}
