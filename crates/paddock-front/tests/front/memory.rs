//! Memory that connections hold, and a member that has none left.

use std::sync::Arc;

use paddock_front::{ClientBuffers, Counters, LimitHit, Limits, MemoryLimit};
use paddock_proto::{ErrorCode, Extensions, OpCode, SessionId, encode};
use paddock_state::{ClientInput, ConnId, Now, QueuedRead};

use crate::stage::*;

fn limits_of(bytes: usize) -> Limits {
    let buffers = Arc::new(ClientBuffers::new(bytes));
    Limits { little_bytes: 100, first_reply_bytes: 1, counters: counters(&buffers), ..Limits::default() }
}

#[test]
fn what_a_connection_may_hold_is_a_share_of_what_others_leave() {
    let limits = limits_of(64_000);
    let buffers = limits.counters.buffers.clone();
    let mut stage = FrontStage::new(limits);
    let mut held = vec![0];
    for number in 1..=40 {
        let conn = stage.connect(number, SessionId(0x100 + number as i64), Extensions::default());
        while stage.takes_input(conn) {
            stage.receive(conn, &read(1));
        }
        held.push(buffers.held());
    }
    // When nothing is left, each may still hold little.
    assert!(held.is_sorted() && (40_000..64_000 + 40 * 200).contains(&held[40]), "{held:?}");
    let shares: Vec<usize> = held.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(shares[0] > 8 * shares[39], "{shares:?}");
    // Who asks for little does not notice.
    let other = stage.connect(50, SECOND, Extensions::default());
    stage.receive(other, &read(1));
    assert_eq!(stage.replies(other), [(1, None)]);
    for number in 1..=40 {
        stage.front.leave(ConnId::new(0, number), &stage.around);
    }
    assert_eq!(buffers.held(), 0, "connections that are gone hold nothing");
}

#[test]
fn who_holds_memory_and_does_not_read_is_closed_when_little_is_left() {
    let limits = limits_of(2000);
    let buffers = limits.counters.buffers.clone();
    let mut stage = FrontStage::new(limits);
    let reads: Vec<u8> = (1..=200).flat_map(read).collect();
    let mut conns = Vec::new();
    while !conns.len().is_multiple_of(40) || conns.is_empty() {
        let number = conns.len() as u64 + 1;
        let conn = stage.connect(number, SessionId(0x100 + number as i64), Extensions::default());
        stage.receive(conn, &reads);
        conns.push(conn);
    }
    assert!(buffers.held() > 1500, "{} bytes are held", buffers.held());
    let mut pass = |ms: i64| {
        stage
            .around
            .now
            .set(Now { monotonic_ms: stage.around.now.get().monotonic_ms + ms as u64, wall_ms: 0 });
        stage.front.look_after_memory(&stage.around);
        conns.iter().filter(|conn| stage.is_closing(**conn)).count()
    };
    assert_eq!(pass(250), 0);
    assert_eq!(pass(1900), 0, "they may take their time");
    assert_eq!(pass(250), 40);
    assert_eq!(buffers.held(), 0);
}

#[test]
fn without_memory_what_grows_is_refused_and_the_rest_goes_on() {
    let memory = Arc::new(MemoryLimit::new(1000));
    let limits =
        Limits { counters: Counters { memory: memory.clone(), ..Counters::default() }, ..Limits::default() };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    assert_eq!(memory.note(1000, 500), Some(true));
    let empty = request(2, OpCode::SetData, |out| encode::set_data(out, "/a", None, -1));
    stage.receive(conn, &[create(1, 10), empty, write(3), read(4)].concat());
    assert_eq!(stage.replies(conn), [(1, Some(ErrorCode::ThrottledOp))]);
    let inputs = stage.inputs();
    assert!(
        matches!(
            inputs[..],
            [
                ClientInput::Write { op: OpCode::SetData, .. },
                ClientInput::Write { op: OpCode::Delete, .. },
                ClientInput::Read(_)
            ]
        ),
        "{inputs:?}"
    );
    // In its turn: behind what waits.
    stage.receive(conn, &create(5, 10));
    assert!(matches!(stage.inputs()[..], [ClientInput::Read(QueuedRead { op: OpCode::Create, .. })]));
    assert_eq!(hits.count(LimitHit::Memory), 2);
    assert_eq!(memory.note(100, 500), Some(false));
    stage.receive(conn, &create(6, 10));
    assert!(matches!(stage.inputs()[..], [ClientInput::Write { op: OpCode::Create, .. }]));
}

#[test]
fn clickhouse_is_told_of_its_own_error_when_there_is_no_memory() {
    let memory = Arc::new(MemoryLimit::new(1000));
    let mut stage = FrontStage::new(Limits {
        counters: Counters { memory: memory.clone(), ..Counters::default() },
        ..Limits::default()
    });
    let extensions = Extensions { compression: false, ..Extensions::default() };
    let conn = stage.connect(1, FIRST, Extensions { wide_xids: true, ..extensions });
    memory.note(1000, 500);
    let wide = |frame: Vec<u8>| {
        let (length, body) = frame.split_at(4);
        let length = u32::from_be_bytes(length.try_into().unwrap()) + 4;
        [&length.to_be_bytes()[..], &[0; 4], body].concat()
    };
    stage.receive(conn, &wide(create(1, 10)));
    let sent = stage.sent(conn);
    assert_eq!(sent[4 + 8 + 8..][..4], (-10_i32).to_be_bytes(), "{sent:?}");
}
