//! Conversations with a leader that is written down: what it says, and what an observer makes of it.

use paddock_proto::OpCode;

use super::*;

/// A leader whose words are there already; what is said to it is kept.
struct LeaderScript {
    said: io::Cursor<Vec<u8>>,
    heard: Vec<u8>,
}

impl Read for LeaderScript {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.said.read(buffer)
    }
}

impl Write for LeaderScript {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.heard.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn zxid(epoch: i64, counter: i64) -> Zxid {
    Zxid(epoch << EPOCH_SHIFT | counter)
}

fn say(kind: PacketKind, zxid: Zxid, data: Option<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    LearnerPacket::new(kind, zxid, data).encode(&mut bytes);
    bytes
}

/// A transaction that does nothing: a refusal.
fn refusal(zxid: Zxid) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i64(7);
    out.put_i32(1);
    out.put_i64(zxid.0);
    out.put_i64(99);
    out.put_i32(-1);
    out.put_i32(-101);
    out
}

fn inform(zxid: Zxid) -> Vec<u8> {
    say(PacketKind::Inform, zxid, Some(refusal(zxid)))
}

fn leader_info(epoch: i64) -> Vec<u8> {
    say(PacketKind::LeaderInfo, zxid(epoch, 0), Some(vec![0, 1, 0, 0]))
}

fn new_leader(epoch: i64) -> Vec<u8> {
    say(PacketKind::NewLeader, zxid(epoch, 0), Some(b"server.1=a:1:2:participant;3".to_vec()))
}

fn up_to_date() -> Vec<u8> {
    say(PacketKind::UpToDate, Zxid(-1), None)
}

/// One session, no ACL, the root, and the word at the end.
fn snapshot_bytes(signature: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_count(1);
    out.put_i64(7);
    out.put_i32(4000);
    out.put_count(0);
    out.put_string("");
    out.put_buffer(Some(b""));
    out.put_i64(-1);
    out.extend_from_slice(&[0; 60]);
    out.put_string("/");
    out.put_string(signature);
    out
}

/// Events that an observer which has everything up to `last` is told: one word for each, the last for the error.
fn hear(last: Zxid, said: &[Vec<u8>]) -> Vec<String> {
    let script = LeaderScript { said: io::Cursor::new(said.concat()), heard: Vec::new() };
    let mut stream = LearnerStream::greet(script, None, 1, last).unwrap();
    let mut words = Vec::new();
    loop {
        words.push(match stream.next(&mut |_| {}) {
            Ok(Event::Epoch(epoch)) => format!("epoch {epoch}"),
            Ok(Event::Snapshot { zxid, snapshot }) => {
                format!(
                    "snapshot {zxid} znodes={} sessions={}",
                    snapshot.znodes(),
                    snapshot.0.draft.sessions().len()
                )
            }
            Ok(Event::Difference) => "difference".to_owned(),
            Ok(Event::RolledBack(zxid)) => format!("rolled back to {zxid}"),
            Ok(Event::Transaction(entry)) => {
                format!("transaction {}", crate::transaction::Transaction::decode(&entry).unwrap().zxid)
            }
            Ok(Event::Members(members)) => format!("members {}", members.len()),
            Ok(Event::Synced) => "synced".to_owned(),
            Ok(Event::Proposed(zxid)) => format!("proposed {zxid}"),
            Ok(Event::Caught) => "caught".to_owned(),
            Ok(Event::Revalidated(session, lives)) => format!("{session} lives: {lives}"),
            Ok(Event::Nothing) => continue,
            Err(error) => {
                words.push(error.to_string());
                return words;
            }
        });
    }
}

const END: &str = "the file ends before its last field";

#[test]
fn a_snapshot_and_what_is_committed_meanwhile() {
    let two = zxid(2, 2);
    let said = [
        leader_info(2),
        say(PacketKind::Snap, two, None),
        snapshot_bytes("BenWasHere"),
        // Queued before the snapshot was begun, and in it.
        say(PacketKind::Proposal, two, Some(refusal(two))),
        say(PacketKind::Commit, two, None),
        new_leader(2),
        inform(zxid(2, 3)),
        up_to_date(),
        inform(zxid(2, 4)),
        say(PacketKind::Ping, zxid(2, 5), None),
    ];
    let heard = hear(Zxid(0), &said);
    assert_eq!(
        heard,
        [
            "epoch 2",
            "snapshot 0x200000002 znodes=1 sessions=1",
            "members 1",
            "transaction 0x200000003",
            "synced",
            "transaction 0x200000004",
            "proposed 0x200000005",
            END
        ]
    );
}

#[test]
fn a_difference_goes_on_over_epochs() {
    let said = |next: Zxid| {
        [
            leader_info(3),
            say(PacketKind::Diff, zxid(3, 1), None),
            say(PacketKind::Proposal, zxid(1, 6), Some(refusal(zxid(1, 6)))),
            say(PacketKind::Commit, zxid(1, 6), None),
            inform(next),
        ]
    };
    let last = zxid(1, 5);
    assert_eq!(hear(last, &said(zxid(3, 1)))[3], "transaction 0x300000001");
    assert_eq!(
        hear(last, &said(zxid(3, 2))).last().unwrap(),
        "the leader leaves transactions out: 0x100000006 is followed by 0x300000002"
    );
    assert!(hear(last, &said(zxid(1, 6))).last().unwrap().contains("leaves transactions out"));
    assert!(hear(last, &said(zxid(4, 1))).last().unwrap().contains("later epoch than its own"));
}

#[test]
fn every_step_is_answered() {
    let said = [
        leader_info(2),
        say(PacketKind::Diff, zxid(1, 5), None),
        new_leader(2),
        up_to_date(),
        say(PacketKind::Ping, zxid(1, 5), None),
    ];
    let script = LeaderScript { said: io::Cursor::new(said.concat()), heard: Vec::new() };
    let mut stream = LearnerStream::greet(script, None, 1, zxid(1, 5)).unwrap();
    while stream.next(&mut |_| {}).is_ok() {}
    let heard = std::mem::take(&mut stream.stream.get_mut().heard);
    let mut answers = JuteStream::new(&heard[..]);
    let mut kinds = Vec::new();
    while let Ok(packet) = LearnerPacket::read(&mut answers) {
        kinds.push((packet.kind, packet.zxid, packet.data.map(|data| data.len())));
    }
    assert_eq!(
        kinds,
        [
            (PacketKind::ObserverInfo, zxid(1, 0), Some(20)),
            (PacketKind::AckEpoch, zxid(1, 5), Some(4)),
            (PacketKind::Ack, zxid(2, 0), None),
            (PacketKind::Ack, zxid(2, 0), None),
            // Null would end the connection.
            (PacketKind::Ping, zxid(1, 5), Some(0)),
        ]
    );
}

#[test]
fn answers_to_requests_come_among_the_transactions() {
    let revalidated = |lives| [&7i64.to_be_bytes()[..], &[lives]].concat();
    let said = |phase: &[Vec<u8>]| {
        let begin = [leader_info(2), say(PacketKind::Diff, zxid(1, 5), None), new_leader(2)];
        [&begin[..], phase].concat()
    };
    let heard = hear(
        zxid(1, 5),
        &said(&[
            up_to_date(),
            inform(zxid(2, 1)),
            say(PacketKind::Sync, Zxid(0), None),
            say(PacketKind::Revalidate, Zxid(-1), Some(revalidated(1))),
            say(PacketKind::Revalidate, Zxid(-1), Some(revalidated(0))),
            say(PacketKind::Revalidate, Zxid(-1), None),
        ]),
    );
    let expected = [
        "transaction 0x200000001",
        "caught",
        "0x7 lives: true",
        "0x7 lives: false",
        "the leader's answer about a session cannot be read",
    ];
    assert_eq!(heard[4..], expected);
    // Before everything is there no client can have asked.
    let early = hear(zxid(1, 5), &said(&[say(PacketKind::Sync, Zxid(0), None)]));
    assert!(early.last().unwrap().contains("does not belong here"));
}

#[test]
fn a_ping_is_answered_with_the_sessions_that_were_heard() {
    let ping = || say(PacketKind::Ping, zxid(1, 5), None);
    let said = [
        leader_info(2),
        say(PacketKind::Diff, zxid(1, 5), None),
        new_leader(2),
        up_to_date(),
        ping(),
        ping(),
    ];
    let script = LeaderScript { said: io::Cursor::new(said.concat()), heard: Vec::new() };
    let mut stream = LearnerStream::greet(script, None, 1, zxid(1, 5)).unwrap();
    let touched = TouchedSessions::default();
    stream.tell_of(&touched);
    touched.touch(SessionId(7), 4000);
    touched.touch(SessionId(7), 5000);
    while stream.next(&mut |_| {}).is_ok() {}
    let heard = std::mem::take(&mut stream.stream.get_mut().heard);
    let mut answers = JuteStream::new(&heard[..]);
    let packets: Vec<LearnerPacket> = std::iter::from_fn(|| LearnerPacket::read(&mut answers).ok()).collect();
    let tables = packets.iter().filter(|packet| packet.kind == PacketKind::Ping);
    let tables: Vec<Vec<u8>> = tables.map(|packet| packet.data.clone().unwrap()).collect();
    assert_eq!(tables, [[&7i64.to_be_bytes()[..], &5000i32.to_be_bytes()].concat(), Vec::new()]);
}

#[test]
fn requests_are_what_a_leader_reads() {
    let ids = paddock_proto::IdList::encode(&[paddock_proto::Id::new("ip", "10.0.0.1")]);
    let packet = |request: LearnerRequest<'_>| {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        bytes
    };
    let (session, op) = (SessionId(7), OpCode::Delete);
    let bytes = packet(LearnerRequest::Write { session, xid: -5, op, ids: &ids, body: b"body" });
    let data = [&7i64.to_be_bytes()[..], &(-5i32).to_be_bytes(), &2i32.to_be_bytes(), b"body"].concat();
    let head = [&1i32.to_be_bytes()[..], &(-1i64).to_be_bytes(), &(data.len() as i32).to_be_bytes()].concat();
    assert_eq!(bytes, [&head[..], &data, &ids].concat());

    let read = |bytes: Vec<u8>| LearnerPacket::read(&mut JuteStream::new(&bytes[..])).unwrap();
    let sync = read(packet(LearnerRequest::Sync { session }));
    let path = [&1i32.to_be_bytes()[..], b"/"].concat();
    let expected = [&7i64.to_be_bytes()[..], &0i32.to_be_bytes(), &9i32.to_be_bytes(), &path].concat();
    assert_eq!((sync.kind, sync.data), (PacketKind::Request, Some(expected)));
    let moved = read(packet(LearnerRequest::Revalidate { session, timeout_ms: 4000 }));
    let expected = [&7i64.to_be_bytes()[..], &4000i32.to_be_bytes()].concat();
    assert_eq!((moved.kind, moved.data), (PacketKind::Revalidate, Some(expected)));
}

#[test]
fn a_leader_that_lies_is_left() {
    let last = |last, said: &[Vec<u8>]| hear(last, said).pop().unwrap();
    assert_eq!(
        last(zxid(4, 1), &[leader_info(3)]),
        "the leader's epoch is 3, but epoch 4 has been there already"
    );
    let diff = || say(PacketKind::Diff, zxid(2, 1), None);
    let wrong = last(zxid(2, 1), &[leader_info(2), diff(), new_leader(3)]);
    assert_eq!(wrong, "the leader's epoch is 3, but epoch 2 has been there already");
    let cut = snapshot_bytes("BenWas");
    let wrong = last(Zxid(0), &[leader_info(2), say(PacketKind::Snap, zxid(2, 1), None), cut]);
    assert_eq!(wrong, "snapshot that the leader sends: the snapshot does not end as a leader ends it");
    let unproposed = say(PacketKind::Commit, zxid(2, 2), None);
    let wrong = last(zxid(2, 1), &[leader_info(2), diff(), unproposed]);
    assert_eq!(wrong, "the leader commits 0x200000002, but proposed None");
    assert!(
        last(Zxid(0), &[b"HTTP/1.1 400 Bad Request\r\n".to_vec()]).starts_with("this is not the quorum port")
    );
    assert!(last(Zxid(0), &[up_to_date()]).contains("does not belong here"));
    let rolled_back = hear(zxid(2, 9), &[leader_info(2), say(PacketKind::Trunc, zxid(2, 1), None)]);
    assert_eq!(rolled_back[1], "rolled back to 0x200000001");
}

/// A packet of SASL.
fn say_sasl(status: i32, token: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_i64(0x5f24_3501_3501_edcc);
    bytes.put_i32(status);
    bytes.put_buffer(Some(token));
    bytes
}

/// Logs in at a leader that says this; what was said to it, or the error.
fn log_in(said: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let login = paddock_sasl::Login { user: "observer".to_owned(), password: "secret".to_owned() };
    let login = LoginExchange::new(login, paddock_sasl::Service::Quorum, 7);
    let script = LeaderScript { said: io::Cursor::new(said.concat()), heard: Vec::new() };
    let stream = LearnerStream::greet(script, Some(&login), 1, zxid(1, 5));
    stream.map(|mut stream| stream.stream.get_mut().heard.clone()).map_err(|error| error.to_string())
}

#[test]
fn an_observer_logs_in_before_it_greets() {
    let challenge = say_sasl(
        0,
        b"realm=\"zk-quorum-sasl-md5\",nonce=\"abc\",charset=utf-8,algorithm=md5-sess,qop=\"auth\"",
    );
    let refused = log_in(&[challenge.clone(), say_sasl(-1, b"")]).unwrap_err();
    assert_eq!(
        refused,
        "the leader does not let observer in by SASL: the password is wrong, or it has no such user"
    );
    let unproven = log_in(&[challenge.clone(), say_sasl(1, b"rspauth=00")]).unwrap_err();
    assert!(unproven.contains("has not proved that it knows the password"), "{unproven}");
    assert!(log_in(&[]).unwrap_err().contains("leave --sasl out"));
    assert!(log_in(&[leader_info(2)]).unwrap_err().starts_with("this is not the quorum port"));
    assert!(log_in(&[say_sasl(0, b"HTTP/1.1 400")]).unwrap_err().contains("no challenge of DIGEST-MD5"));

    let heard = log_in(&[challenge, say_sasl(1, b"rspauth=6359fa9ad2949ee951904a0214308245")]).unwrap();
    let answer = b"response=c8fba56176434e1c1b3fb71053fc0428";
    let end = heard.windows(answer.len()).position(|window| window == answer).unwrap() + answer.len();
    let mut rest = JuteStream::new(&heard[end..]);
    assert_eq!(LearnerPacket::read(&mut rest).unwrap().kind, PacketKind::ObserverInfo);
}
