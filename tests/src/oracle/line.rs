//! A connection of a sequence: the requests on it that wait for an answer, and what comes instead of one.

use std::collections::VecDeque;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    ConnectRequest, ConnectResponse, Extensions, OpCode, Password, RequestHeader, SessionId, WatchEvent, Xid,
    Zxid, frame,
};

use super::answer::{Names, code};
use super::body::with_root;
use super::connection::{Incoming, RawConnection};
use super::identities::{Entrance, answer_challenge};
use super::sequence::{Connect, OracleCall, SeenZxid, Shown, WantedSession};

/// Ids of sessions have the time of their server in them; this one is from before all of them.
const UNKNOWN_SESSION: i64 = 0x0100_0000_0000_1234;

/// No request of a sequence has this xid.
const BARRIER: i32 = 0x5000_0000;

/// End of the answer to a refused handshake. Nothing is asked behind it: see `OracleCall::ends_connection`.
pub(super) const REFUSED: &str = "refused";

/// A connection and the requests on it that are not answered.
#[derive(Debug)]
pub(super) struct AnswerLine {
    pub(super) connection: RawConnection,
    waiting: VecDeque<Expected>,
    next_xid: i32,
    /// The one that it serves; 0 for none.
    session: i64,
    /// The zxid of the newest barrier.
    pub(super) reached: i64,
}

#[derive(Debug)]
struct Expected {
    xid: i32,
    op: i32,
    /// Our own sync: what comes before it belongs to the step.
    barrier: bool,
}

impl AnswerLine {
    /// Opens a connection and performs the handshake. No line if the server closed it.
    pub(super) fn connect(
        entrance: &Entrance,
        connect: &Connect,
        names: &mut Names,
        root: &str,
    ) -> (Option<AnswerLine>, String) {
        let mut line = AnswerLine {
            connection: match entrance.tls(connect.identity) {
                None => RawConnection::open(entrance.address),
                Some((address, config)) => RawConnection::open_tls(address, config),
            },
            waiting: VecDeque::new(),
            next_xid: 1,
            session: 0,
            reached: 0,
        };
        let mut bytes = connect_request(connect, names);
        // With TLS, ZooKeeper's answer to an auth may overtake the one to the greeting.
        let is_one_write = !entrance.has_identities();
        if is_one_write {
            connect.then.iter().for_each(|call| line.put_call(call, root, names, &mut bytes));
        }
        line.connection.write(&bytes);
        let Incoming::Frame(body) = line.connection.read() else { return (None, "closed".into()) };
        let Ok(response) = ConnectResponse::decode(&body) else {
            return (None, format!("undecodable connect response \"{}\"", body.escape_ascii()));
        };
        let id = response.session.0;
        if id != 0 && !names.sessions.contains(&id) {
            names.sessions.push(id);
            names.identities.insert(id, connect.identity);
        }
        let is_granted = response.timeout_ms > 0;
        line.session = if is_granted { id } else { 0 };
        if !is_one_write && is_granted {
            if let Some(user) = connect.identity.user() {
                line.prove(user);
            }
            let mut bytes = Vec::new();
            connect.then.iter().for_each(|call| line.put_call(call, root, names, &mut bytes));
            line.connection.write(&bytes);
        }
        let password = match response.password {
            Password::ZERO => "zero",
            // A password is the same as long as the session lives.
            password if *names.passwords.entry(id).or_insert(password) == password => "right",
            _ => "wrong",
        };
        let answer = format!(
            "session {} timeout_ms={} password={password} read_only={:?} length={} {}",
            names.session(id),
            response.timeout_ms,
            response.read_only,
            body.len(),
            if is_granted { "granted" } else { REFUSED },
        );
        (Some(line), answer)
    }

    /// Proves by SASL to be a user.
    fn prove(&mut self, user: (&str, &str)) {
        let challenge = self.exchange(b"");
        let answer = answer_challenge(&String::from_utf8_lossy(&challenge), user);
        let proof = self.exchange(answer.as_bytes());
        assert!(proof.starts_with(b"rspauth="), "the server proves that it knows the password");
    }

    fn exchange(&mut self, token: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_buffer(Some(token));
        self.connection.write(&request(0, OpCode::Sasl.code(), &body));
        let Incoming::Frame(reply) = self.connection.read() else { panic!("the server takes no SASL") };
        let mut reader = Reader::new(&reply[16..]);
        reader.buffer().expect("a reply to SASL has a token").unwrap_or_default().to_vec()
    }

    /// True if the session that `other` serves has come here: the server closes the connection that it leaves, soon.
    pub(super) fn has_taken_over(&self, other: &AnswerLine) -> bool {
        self.session != 0 && self.session == other.session
    }

    pub(super) fn put_call(&mut self, call: &OracleCall, root: &str, names: &Names, out: &mut Vec<u8>) {
        let xid = call.xid.unwrap_or(self.next_xid);
        self.next_xid += 1;
        self.waiting.push_back(Expected { xid, op: call.op, barrier: false });
        let mut body =
            if root.is_empty() { call.body.bytes.clone() } else { with_root(&call.body.bytes, root) };
        if call.relative_zxid {
            let zxid = i64::from_be_bytes(body[..8].try_into().expect("eight bytes"));
            body[..8].copy_from_slice(&names.shown(zxid).to_be_bytes());
        }
        out.extend_from_slice(&request(xid, call.op, &body));
    }

    /// A sync of our own: when it is answered, everything before it has been.
    pub(super) fn send_barrier(&mut self) {
        self.waiting.push_back(Expected { xid: BARRIER, op: OpCode::Sync.code(), barrier: true });
        let mut body = Vec::new();
        body.put_string("/");
        self.connection.write(&request(BARRIER, OpCode::Sync.code(), &body));
    }

    /// Reads up to the barrier; false when the connection is over.
    pub(super) fn collect(&mut self, names: &Names, prefix: &str, lines: &mut Vec<String>) -> bool {
        let mut auths = Vec::new();
        let open = loop {
            match self.connection.read() {
                Incoming::Closed => {
                    lines.push(format!("{prefix}closed"));
                    break false;
                }
                Incoming::Silence => {
                    lines.push(format!("{prefix}no answer and no end"));
                    break false;
                }
                Incoming::Frame(body) => match self.on_frame(names, &body) {
                    ToldAnswer::Barrier(zxid) => {
                        self.reached = zxid;
                        lines.push(format!("{prefix}now at {}", names.zxid(zxid)));
                        break true;
                    }
                    ToldAnswer::Auth(text) => auths.push(format!("{prefix}{text}")),
                    ToldAnswer::Other(text) => lines.push(format!("{prefix}{text}")),
                },
            }
        };
        // The answer to an auth does not wait for those to earlier requests: where it comes is chance.
        lines.append(&mut auths);
        open
    }

    fn on_frame(&mut self, names: &Names, body: &[u8]) -> ToldAnswer {
        let mut reader = Reader::new(body);
        let (Ok(xid), Ok(zxid), Ok(error)) = (reader.i32(), reader.i64(), reader.i32()) else {
            return ToldAnswer::Other(format!("a frame without a header: \"{}\"", body.escape_ascii()));
        };
        if xid == Xid::NOTIFICATION.0 && !self.waiting.iter().any(|expected| expected.xid == xid) {
            return ToldAnswer::Other(event(names, zxid, reader.rest()));
        }
        let Some(index) = self.waiting.iter().position(|expected| expected.xid == xid) else {
            return ToldAnswer::Other(format!("an answer to nothing: xid={xid}"));
        };
        let expected = self.waiting.remove(index).expect("the position was just found");
        if expected.barrier {
            return ToldAnswer::Barrier(zxid);
        }
        let fields = match (error, reader.rest()) {
            (0, rest) => names.body(expected.op, rest),
            (_, []) => String::new(),
            // ZooKeeper leaves there the results it had before it failed. No client looks at them.
            (_, _) if expected.op == OpCode::MultiRead.code() => String::new(),
            (_, rest) => format!("with a body: \"{}\"", rest.escape_ascii()),
        };
        let text = format!("xid={xid} zxid={} error={} {fields}", names.zxid(zxid), code(error));
        if expected.op == OpCode::Auth.code() { ToldAnswer::Auth(text) } else { ToldAnswer::Other(text) }
    }
}

enum ToldAnswer {
    Barrier(i64),
    Auth(String),
    Other(String),
}

fn event(names: &Names, zxid: i64, body: &[u8]) -> String {
    match WatchEvent::decode(Zxid(zxid), body) {
        Ok(event) => {
            let state = &body[4..8];
            format!("event {:?} {} zxid={} state={}", event.kind, event.path, names.zxid(zxid), state[3])
        }
        Err(error) => format!("an undecodable event ({error}): \"{}\"", body.escape_ascii()),
    }
}

pub(super) fn request(xid: i32, op: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        RequestHeader { xid: Xid(xid), op }.encode(out);
        out.extend_from_slice(body);
    });
    bytes
}

fn connect_request(connect: &Connect, names: &Names) -> Vec<u8> {
    let session = match connect.session {
        WantedSession::New => SessionId::NONE,
        WantedSession::Opened(number) => {
            SessionId(names.sessions.get(number).copied().unwrap_or(UNKNOWN_SESSION))
        }
        WantedSession::Unknown => SessionId(UNKNOWN_SESSION),
    };
    let known = names.passwords.get(&session.0).copied();
    let mut password = known.unwrap_or(Password::of_zookeeper(session)).0;
    if connect.password == Shown::Wrong {
        password[7] ^= 1;
    }
    let mut bytes = Vec::new();
    ConnectRequest {
        protocol_version: connect.protocol_version,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(match connect.last_zxid {
            SeenZxid::Nothing => 0,
            SeenZxid::Newest => names.base,
            SeenZxid::Ahead => i64::MAX,
        }),
        timeout_ms: connect.timeout_ms,
        session,
        password: match connect.password {
            Shown::Right | Shown::Wrong => Some(&password),
            Shown::TooShort => Some(&password[..5]),
            Shown::Null => None,
        },
        read_only: connect.read_only,
    }
    .encode(&mut bytes);
    bytes
}
