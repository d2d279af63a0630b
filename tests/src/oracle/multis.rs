//! Requests that hold others.

use paddock_chance::Chance;
use paddock_proto::OpCode;

use super::acls;
use super::arguments::{Multis, Paths, version};
use super::body::Body;
use super::requests::{create_body, set_data};
use super::sequence::OracleCall;

/// Digits that the server appends to the name of a sequential znode.
const SEQUENCE_DIGITS: usize = 10;

pub(super) fn multi_header(op: i32, done: bool) -> Body {
    let story = if done { "| end".into() } else { format!("\n        | {op}:") };
    let bytes = Body::new().int("", op).flag("", done).int("", -1).bytes;
    Body { bytes, story }
}

pub(super) fn multi(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let mut operations: Vec<Body> = Vec::new();
    for _ in 0..chance.index(5) {
        let operation = sub_operation(chance, paths);
        let is_undone = |other: &Body| undoes(&operation, other) || undoes(other, &operation);
        if paths.multis == Multis::Anything || !operations.iter().any(is_undone) {
            operations.push(operation);
        }
    }
    let body = operations.into_iter().fold(Body::new(), Body::then);
    OracleCall::of("multi", OpCode::Multi, body.then(multi_header(-1, true)))
}

/// True if the first operation deletes what the second one may write, perhaps as a sequential znode.
fn undoes(delete: &Body, write: &Body) -> bool {
    let (Some((op, deleted)), Some((_, written))) = (op_and_path(delete), op_and_path(write)) else {
        return false;
    };
    let is_of_sequence =
        |number: &[u8]| number.len() == SEQUENCE_DIGITS && number.iter().all(u8::is_ascii_digit);
    let rest = deleted.strip_prefix(written);
    op == OpCode::Delete.code() && rest.is_some_and(|rest| rest.is_empty() || is_of_sequence(rest))
}

/// The operation's code, and its path if it has one.
fn op_and_path(operation: &Body) -> Option<(i32, &[u8])> {
    let (op, rest) = operation.bytes.split_first_chunk::<4>()?;
    // One byte tells whether this is the end, four are an error's code.
    let (length, rest) = rest.get(5..)?.split_first_chunk::<4>()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    Some((i32::from_be_bytes(*op), rest.get(..length)?))
}

/// A multi of one operation.
pub(super) fn of_one(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let body = sub_operation(chance, paths).then(multi_header(-1, true));
    OracleCall::of("multi", OpCode::Multi, body)
}

fn sub_operation(chance: &mut Chance, paths: &Paths) -> Body {
    let op = chance.weighted(&[(5, 1), (2, 15), (1, 19), (1, 21), (3, 2), (5, 5), (3, 13)]);
    let op = if chance.percent(1) { *chance.pick(&[3, 4, 7, 8, 14, 20, 100, -1, 0]) } else { op };
    let path = Body::new().string(paths.any(chance).as_deref());
    let fields = match op {
        1 | 15 => {
            let bad = *chance.pick(&[5, 6, 7]);
            let flags = chance.weighted(&[(20, 0), (5, 1), (8, 2), (4, 3), (4, 4), (1, bad)]);
            create_body(chance, paths, flags)
        }
        19 => {
            let flags = *chance.pick(&[4, 4, 4, 0, 2]);
            create_body(chance, paths, flags)
        }
        21 => {
            let flags = chance.weighted(&[(6, 5), (4, 6), (2, 0), (2, 2), (2, 4), (1, 7)]);
            let ttl = chance.weighted(&[(8, 3_600_000), (1, 0), (1, -1), (1, i64::MAX)]);
            create_body(chance, paths, flags).long("ttl", ttl)
        }
        2 | 13 => path.int("version", version(chance)),
        5 => set_data(chance, paths),
        4 | 8 => path.flag("watch", true),
        _ => path,
    };
    multi_header(op, false).then(fields)
}

pub(super) fn multi_read(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let mut body = Body::new();
    for _ in 0..chance.index(5) {
        let op = *chance.pick(&[4, 4, 8, 8]);
        let op = if chance.percent(2) { *chance.pick(&[2, 3, 12, 99]) } else { op };
        let path = paths.any(chance);
        let fields = match op {
            2 => Body::new().string(path.as_deref()).int("version", -1),
            _ => Body::new().string(path.as_deref()).flag("watch", chance.percent(50)),
        };
        body = body.then(multi_header(op, false).then(fields));
    }
    OracleCall::of("multiRead", OpCode::MultiRead, body.then(multi_header(-1, true)))
}

/// Many children of one parent.
pub(super) fn fan_out(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let parent = paths.good(chance);
    let mut body = Body::new();
    for number in 0..50 {
        let flags = *chance.pick(&[0, 2, 2, 3]);
        let path = format!("{}/f{number}-", parent.trim_end_matches('/'));
        let fields = Body::new().string(Some(&path)).buffer(Some(b""));
        let fields = acls::open(fields);
        body = body.then(multi_header(1, false).then(fields.int("flags", flags)));
    }
    OracleCall::of("multi", OpCode::Multi, body.then(multi_header(-1, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deletes_a_written_znode_undoes_it() {
        let operation = |op: OpCode, path: &str| {
            multi_header(op.code(), false).then(Body::new().string(Some(path)).int("version", -1))
        };
        let check = |deleted: &str, written: &str, expected: bool| {
            let (delete, set) = (operation(OpCode::Delete, deleted), operation(OpCode::SetData, written));
            assert_eq!(undoes(&delete, &set), expected, "{deleted} and {written}");
            assert!(!undoes(&set, &delete));
        };
        check("/a", "/a", true);
        check("/a/s0000000003", "/a/s", true);
        check("/a/b", "/a", false);
        check("/a", "/a/b", false);
    }
}
