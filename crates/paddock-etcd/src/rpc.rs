//! Calls, their answers and the watch stream as messages of etcd's gRPC interface, version 3.
//!
//! The few messages that are needed are written here by field number, as etcd's `rpc.proto` has them; fields that are not
//! known are skipped. The numbers of its enumerations that are used: compares of `MOD` (2) by `EQUAL` (0), events of `DELETE`
//! (1).

mod fields;
mod pairs;

use crate::contract::{Answer, Call, CallError, WatchMessage, WatchOrder};
use crate::plan::{Compare, Operation, Transaction};
use crate::revisions::KeyEvent;
use fields::{Field, WireMessage, fields};

pub use fields::ProtobufError;
pub use pairs::{PairsPage, TIME_TO_LIVE, decode_pairs, decode_time_to_live, encode_time_to_live};

/// Path of a method, and its request.
pub type RpcRequest = (&'static str, Vec<u8>);

pub const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
pub const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

const COMPARE_MOD: i64 = 2;
const EVENT_DELETE: i64 = 1;

pub fn encode_call(call: &Call) -> RpcRequest {
    let mut message = WireMessage::default();
    match call {
        Call::Read { start, end, revision, limit } => {
            message.bytes(1, start).bytes(2, end).number(3, *limit).number(4, *revision);
            ("/etcdserverpb.KV/Range", message.into_bytes())
        }
        Call::Probe { key } => ("/etcdserverpb.KV/Range", message.bytes(1, key).take()),
        Call::Transact(transaction) => ("/etcdserverpb.KV/Txn", encode_transaction(transaction)),
        Call::Grant { lease, ttl_s } => {
            ("/etcdserverpb.Lease/LeaseGrant", message.number(1, *ttl_s).number(2, *lease).take())
        }
        Call::Revoke { lease } => ("/etcdserverpb.Lease/LeaseRevoke", message.number(1, *lease).take()),
    }
}

fn encode_transaction(transaction: &Transaction) -> Vec<u8> {
    let (mut message, mut inner, mut outer) =
        (WireMessage::default(), WireMessage::default(), WireMessage::default());
    for Compare { key, mod_revision } in &transaction.compares {
        // Zero has to be written: a compare without a number is refused.
        inner.restart().number(2, COMPARE_MOD).bytes(3, key).present(6, *mod_revision);
        message.bytes(1, inner.as_bytes());
    }
    for operation in &transaction.operations {
        let field = match operation {
            Operation::Put { key, value, lease } => {
                inner.restart().bytes(1, key).bytes(2, value).number(3, lease.unwrap_or(0));
                2
            }
            Operation::Delete { key } => {
                inner.restart().bytes(1, key);
                3
            }
        };
        outer.restart().bytes(field, inner.as_bytes());
        message.bytes(2, outer.as_bytes());
    }
    if transaction.operations.is_empty() {
        message.bytes(2, &linearizable_read(&transaction.compares));
    }
    message.into_bytes()
}

/// An operation that counts the key of the first compare. Without any operation etcd takes a transaction for a read that may be
/// of the past, and a member that lags compares what is not so any more.
fn linearizable_read(compares: &[Compare]) -> Vec<u8> {
    let key = compares.first().map_or(&b"\0"[..], |compare| &compare.key);
    let count = WireMessage::default().bytes(1, key).number(9, 1).take();
    WireMessage::default().bytes(1, &count).take()
}

/// The answer to a call.
pub fn decode_answer(call: &Call, bytes: &[u8]) -> Result<Answer, ProtobufError> {
    let mut revision = 0;
    let (mut pairs, mut has_more, mut is_done) = (Vec::new(), false, false);
    let is_read = matches!(call, Call::Read { .. });
    for field in fields(bytes) {
        match field? {
            (1, Field::Bytes(header)) => revision = header_revision(header)?,
            (2, Field::Bytes(pair)) if is_read => pairs.push(decode_pair(pair, false)?),
            (2, Field::Number(number)) => is_done = number != 0,
            (3, Field::Number(number)) => has_more = number != 0,
            _ => {}
        }
    }
    Ok(match call {
        // The next page has to be of the same revision, which etcd's newest one is not.
        Call::Read { revision: asked, .. } => {
            let revision = if *asked == 0 { revision } else { *asked };
            Answer::Page { revision, pairs, is_last: !has_more }
        }
        Call::Transact(_) => Answer::Transacted { is_done, revision },
        Call::Grant { .. } => Answer::Granted,
        Call::Revoke { .. } => Answer::Revoked,
        Call::Probe { .. } => Answer::Probed { revision },
    })
}

/// The first message of a watch stream.
pub fn encode_watch(order: &WatchOrder) -> Vec<u8> {
    let WatchOrder { start, end, first_revision, .. } = order;
    let create =
        WireMessage::default().bytes(1, start).bytes(2, end).number(3, *first_revision).number(4, 1).take();
    WireMessage::default().bytes(1, &create).take()
}

pub fn decode_watch(bytes: &[u8]) -> Result<WatchMessage, ProtobufError> {
    let (mut revision, mut compacted, mut events) = (0, 0, Vec::new());
    let (mut is_created, mut is_canceled, mut reason) = (false, false, String::new());
    for field in fields(bytes) {
        match field? {
            (1, Field::Bytes(header)) => revision = header_revision(header)?,
            (3, Field::Number(number)) => is_created = number != 0,
            (4, Field::Number(number)) => is_canceled = number != 0,
            (5, Field::Number(number)) => compacted = number as i64,
            (6, Field::Bytes(text)) => reason = String::from_utf8_lossy(text).into_owned(),
            (11, Field::Bytes(event)) => events.push(decode_event(event)?),
            _ => {}
        }
    }
    Ok(match (compacted, is_canceled, is_created) {
        (0, true, _) => WatchMessage::Lost(format!("etcd cancelled it: {reason}")),
        (0, _, true) => WatchMessage::Opened,
        // Events of a watcher that catches up come with the newest revision of etcd in their header.
        (0, _, _) => {
            let revision = events.last().map_or(revision, |event: &KeyEvent| event.mod_revision);
            WatchMessage::Events { revision, events }
        }
        _ => WatchMessage::Compacted,
    })
}

pub fn encode_keep_alive(lease: i64) -> Vec<u8> {
    WireMessage::default().number(1, lease).take()
}

pub fn encode_authenticate(user: &str, password: &str) -> Vec<u8> {
    WireMessage::default().bytes(1, user.as_bytes()).bytes(2, password.as_bytes()).take()
}

/// The token that later calls show.
pub fn decode_token(bytes: &[u8]) -> Result<String, ProtobufError> {
    for field in fields(bytes) {
        if let (2, Field::Bytes(token)) = field? {
            return Ok(String::from_utf8_lossy(token).into_owned());
        }
    }
    Ok(String::new())
}

/// The meaning of a status of gRPC that is not 0.
pub fn call_error(status: u32, message: String) -> CallError {
    let says = |text: &str| message.contains(text);
    if says("has been compacted") {
        CallError::Compacted
    } else if says("requested lease not found") {
        CallError::LeaseNotFound
    } else if says("lease already exists") {
        CallError::LeaseExists
    } else if says("database space exceeded") {
        CallError::NoSpace
    } else if says("too many operations") || says("request is too large") || says(TOO_LARGE_FOR_GRPC) {
        CallError::TooLarge(message)
    } else if is_definite(status) && !is_of_member(&message) && !is_of_token(&message) {
        CallError::Refused(message)
    } else {
        CallError::Lost(message)
    }
}

/// gRPC's own words for a request that is so large that etcd does not see it.
const TOO_LARGE_FOR_GRPC: &str = "received message larger than max";

/// True for a status by which etcd says that it has carried nothing out, and would not the next time: invalid argument, not
/// found, permission denied, failed precondition, out of range, unimplemented. All others leave it open.
fn is_definite(status: u32) -> bool {
    matches!(status, 3 | 5 | 7 | 9 | 11 | 12)
}

/// True for the errors of a token that has expired, or of a user whose rights have changed: a new token helps.
pub fn is_of_token(message: &str) -> bool {
    // The last two are one error, as etcd 3.4 and later ones say it.
    let all = ["invalid auth token", "auth: revision in header is old", "revision of auth store is old"];
    all.iter().any(|of| message.contains(of))
}

/// True for the errors of a member that has lost its leader, or was cut off from it, or is not one that serves: another one may.
pub fn is_of_member(message: &str) -> bool {
    let all = ["no leader", "not leader", "not capable", "rpc not supported for learner"];
    message.strip_prefix("etcdserver: ").is_some_and(|error| all.iter().any(|of| error.starts_with(of)))
}

fn header_revision(bytes: &[u8]) -> Result<i64, ProtobufError> {
    let mut revision = 0;
    for field in fields(bytes) {
        if let (3, Field::Number(number)) = field? {
            revision = number as i64;
        }
    }
    Ok(revision)
}

fn decode_event(bytes: &[u8]) -> Result<KeyEvent, ProtobufError> {
    let (mut kind, mut pair) = (0, &[][..]);
    for field in fields(bytes) {
        match field? {
            (1, Field::Number(number)) => kind = number as i64,
            (2, Field::Bytes(bytes)) => pair = bytes,
            _ => {}
        }
    }
    decode_pair(pair, kind == EVENT_DELETE)
}

fn decode_pair(bytes: &[u8], is_deleted: bool) -> Result<KeyEvent, ProtobufError> {
    let (mut key, mut value, mut mod_revision) = (Vec::new(), Vec::new(), 0);
    for field in fields(bytes) {
        match field? {
            (1, Field::Bytes(bytes)) => key = bytes.to_vec(),
            (3, Field::Number(number)) => mod_revision = number as i64,
            (5, Field::Bytes(bytes)) => value = bytes.to_vec(),
            _ => {}
        }
    }
    Ok(KeyEvent { key, value: (!is_deleted).then_some(value), mod_revision })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_written_as_etcd_reads_it() {
        let transaction = Transaction {
            compares: vec![Compare { key: b"k".to_vec(), mod_revision: 0 }],
            operations: vec![
                Operation::Put { key: b"k".to_vec(), value: b"v".to_vec(), lease: Some(300) },
                Operation::Delete { key: b"d".to_vec() },
            ],
        };
        let expected: &[u8] =
            b"\x0a\x07\x10\x02\x1a\x01k\x30\x00\x12\x0b\x12\x09\x0a\x01k\x12\x01v\x18\xac\x02\
            \x12\x05\x1a\x03\x0a\x01d";
        let (path, bytes) = encode_call(&Call::Transact(transaction.into()));
        assert_eq!((path, &bytes[..]), ("/etcdserverpb.KV/Txn", expected));
        let refused = Transaction {
            compares: vec![Compare { key: b"k".to_vec(), mod_revision: 0 }],
            operations: vec![],
        };
        let expected: &[u8] = b"\x0a\x07\x10\x02\x1a\x01k\x30\x00\x12\x07\x0a\x05\x0a\x01k\x48\x01";
        assert_eq!(encode_call(&Call::Transact(refused.into())).1, expected, "it reads what is so now");
    }

    #[test]
    fn a_watch_message_is_told_by_its_fields() {
        let header = WireMessage::default().number(1, 77).number(3, 9).take();
        let pair = WireMessage::default().bytes(1, b"k").number(2, 3).number(3, 8).bytes(5, b"v").take();
        let put = WireMessage::default().bytes(2, &pair).take();
        let delete = WireMessage::default().number(1, 1).bytes(2, &pair).take();
        let events = WireMessage::default().bytes(1, &header).bytes(11, &put).bytes(11, &delete).take();
        let event = |value: Option<&[u8]>| KeyEvent {
            key: b"k".to_vec(),
            value: value.map(<[u8]>::to_vec),
            mod_revision: 8,
        };
        let told = WatchMessage::Events { revision: 8, events: vec![event(Some(b"v")), event(None)] };
        assert_eq!(decode_watch(&events), Ok(told));
        let with = |field, number| WireMessage::default().bytes(1, &header).number(field, number).take();
        assert_eq!(decode_watch(&with(3, 1)), Ok(WatchMessage::Opened));
        assert_eq!(decode_watch(&with(5, 4)), Ok(WatchMessage::Compacted));
        assert!(matches!(decode_watch(&with(4, 1)), Ok(WatchMessage::Lost(_))));
        let idle = WatchMessage::Events { revision: 9, events: vec![] };
        assert_eq!(decode_watch(&WireMessage::default().bytes(1, &header).take()), Ok(idle));
        assert!((1..events.len()).any(|end| decode_watch(&events[..end]).is_err()));
    }

    /// Texts and codes of etcd 3.4 to 3.6 (`rpctypes/error.go`), and what each means for a transaction.
    #[test]
    fn every_error_of_etcd_has_a_meaning() {
        let lost = |message: &str| CallError::Lost(message.into());
        let refused = |message: &str| CallError::Refused(message.into());
        let large = |message: &str| CallError::TooLarge(message.into());
        let expect = |status: u32, message: &str, expected: CallError| {
            assert_eq!(call_error(status, message.into()), expected, "{status} {message}");
        };
        expect(5, "etcdserver: requested lease not found", CallError::LeaseNotFound);
        expect(9, "etcdserver: lease already exists", CallError::LeaseExists);
        expect(8, "etcdserver: mvcc: database space exceeded", CallError::NoSpace);
        expect(11, "etcdserver: mvcc: required revision has been compacted", CallError::Compacted);
        for (status, message) in [
            (3, "etcdserver: too many operations in txn request"),
            (3, "etcdserver: request is too large"),
            (8, "grpc: received message larger than max (3145733 vs. 2097152)"),
        ] {
            expect(status, message, large(message));
        }
        for (status, message) in [
            (3, "etcdserver: key is not provided"),
            (3, "etcdserver: key not found"),
            (3, "etcdserver: value is provided"),
            (3, "etcdserver: lease is provided"),
            (3, "etcdserver: duplicate key given in txn request"),
            (3, "etcdserver: invalid client api version"),
            (3, "etcdserver: invalid sort option"),
            (3, "etcdserver: user name is empty"),
            (3, "etcdserver: authentication failed, invalid user ID or password"),
            (3, "etcdserver: invalid auth management"),
            (7, "etcdserver: permission denied"),
            (9, "etcdserver: authentication is not enabled"),
            (9, "etcdserver: user name not found"),
            (9, "etcdserver: cluster ID mismatch"),
            (11, "etcdserver: mvcc: required revision is a future revision"),
            (11, "etcdserver: too large lease TTL"),
            (12, "unknown service etcdserverpb.KV"),
        ] {
            expect(status, message, refused(message));
        }
        for (status, message) in [
            (1, "etcdserver: request canceled"),
            (1, "etcdserver: watch canceled"),
            (2, "auth: revision in header is old"),
            (3, "etcdserver: revision of auth store is old"),
            (4, "context deadline exceeded"),
            (8, "etcdserver: too many requests"),
            (9, "etcdserver: not leader"),
            (9, "etcdserver: not capable"),
            (9, "etcdserver: rpc not supported for learner"),
            (13, "stream terminated by RST_STREAM"),
            (14, "etcdserver: no leader"),
            (14, "etcdserver: leader changed"),
            (14, "etcdserver: server stopped"),
            (14, "etcdserver: request timed out"),
            (14, "etcdserver: request timed out, possibly due to previous leader failure"),
            (14, "etcdserver: request timed out, possibly due to connection lost"),
            (14, "etcdserver: request timed out, waiting for the applied index took too long"),
            (14, "etcdserver: unhealthy cluster"),
            (14, "etcdserver: rpc not supported for learner"),
            (15, "etcdserver: corrupt cluster"),
            (16, "etcdserver: invalid auth token"),
        ] {
            expect(status, message, lost(message));
        }
        assert!(large("").to_string().contains("--max-txn-ops"));
    }
}
