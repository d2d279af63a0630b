//! Instructions that the wire takes: a hundred requests out of their frames, a hundred replies into theirs.
//!
//! `cargo xtask instructions` counts them; tests/README.md says what the figures depend on.

use std::hint::black_box;

use gungraun::prelude::*;
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    CreateMode, Dialect, OpCode, ReplyHeader, Request, RequestHeader, Stat, Xid, Zxid, encode, frame,
};

/// Packets that go at once, as in one turn of a busy connection.
const PACKETS: i32 = 100;
const DATA: [u8; 100] = [7; 100];
const PATH: &str = "/app/services/svc-0001/node-00000001";

/// The frames of a client that asks for the same again and again.
fn frames(op: OpCode) -> Vec<u8> {
    let mut frames = Vec::new();
    for xid in 0..PACKETS {
        frame::write(&mut frames, |out| {
            RequestHeader { xid: Xid(xid), op: op.code() }.encode(out);
            put_body(out, op);
        });
    }
    frames
}

fn put_body(out: &mut Vec<u8>, op: OpCode) {
    match op {
        OpCode::Create => encode::create_open(out, PATH, Some(&DATA), CreateMode::Persistent),
        OpCode::SetData => encode::set_data(out, PATH, Some(&DATA), -1),
        OpCode::GetData => encode::path_and_watch(out, PATH, false),
        OpCode::Check => encode::path_and_version(out, PATH, -1),
        OpCode::Multi => {
            for op in [OpCode::Check, OpCode::Create, OpCode::SetData] {
                encode::multi_operation(out, op);
                put_body(out, op);
            }
            encode::multi_end(out);
        }
        other => unreachable!("{other:?} is not measured"),
    }
}

#[library_benchmark]
#[bench::create(frames(OpCode::Create))]
#[bench::set_data(frames(OpCode::SetData))]
#[bench::get_data(frames(OpCode::GetData))]
#[bench::multi(frames(OpCode::Multi))]
fn decode(frames: Vec<u8>) -> Vec<u8> {
    let mut rest = &frames[..];
    while let Some((frame, len)) = frame::split(rest, i32::MAX).expect("lengths are right") {
        let mut reader = Reader::new(frame);
        let header = RequestHeader::decode(&mut reader).expect("a request has a header");
        let op = OpCode::from_code(header.op).expect("the operation is known");
        let request = Request::decode(op, reader.rest(), Dialect::ZooKeeper);
        black_box(request.expect("the request is whole"));
        rest = &rest[len..];
    }
    frames
}

/// A connection's buffer, which has grown by what was sent before.
fn buffer() -> Vec<u8> {
    Vec::with_capacity(64 << 10)
}

fn children() -> Vec<String> {
    (0..10).map(|n| format!("node-{n:08}")).collect()
}

fn put_replies(out: &mut Vec<u8>, body: impl Fn(&mut Vec<u8>)) {
    for xid in 0..PACKETS {
        frame::write(out, |out| {
            ReplyHeader { xid: Xid(xid), zxid: Zxid(7), error: None }.encode(out);
            body(out);
        });
    }
}

#[library_benchmark]
#[bench::with_100_bytes(buffer(), Stat { data_length: 100, ..Stat::default() })]
fn encode_data(mut out: Vec<u8>, stat: Stat) -> Vec<u8> {
    put_replies(&mut out, |out| {
        out.put_buffer(Some(&DATA));
        black_box(&stat).encode(out);
    });
    out
}

#[library_benchmark]
#[bench::of_10(buffer(), children())]
fn encode_children(mut out: Vec<u8>, names: Vec<String>) -> (Vec<u8>, Vec<String>) {
    put_replies(&mut out, |out| {
        out.put_count(names.len());
        names.iter().for_each(|name| out.put_string(name));
    });
    (out, names)
}

library_benchmark_group!(name = proto, benchmarks = [decode, encode_data, encode_children]);

main!(library_benchmark_groups = proto);
