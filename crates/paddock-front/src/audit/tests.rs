//! Lines as Apache ZooKeeper 3.9.5 has written them for the same requests.

use std::sync::Mutex;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{AclList, ErrorCode, Id, MultiResult, ReplyHeader, WriteReply, Xid, Zxid, encode, frame};

use super::*;

#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl AuditLog for Lines {
    fn record(&self, event: &AuditEvent, result: AuditResult) {
        self.0.lock().unwrap().push(event.line(result).replace('\t', " "));
    }
}

fn reply(error: Option<ErrorCode>, body: &WriteReply<'_>) -> Vec<u8> {
    let mut out = b"\0\0\0\x04junk".to_vec();
    frame::write(&mut out, |out| {
        ReplyHeader { xid: Xid(1), zxid: Zxid(2), error }.encode(out);
        body.encode(out);
    });
    out
}

fn lines(op: OpCode, body: &[u8], reply: Option<&[u8]>) -> Vec<String> {
    lines_of(&[Id::new("ip", "127.0.0.1"), Id::new("digest", "alice:hash")], op, body, reply)
}

fn lines_of(ids: &[Id], op: OpCode, body: &[u8], reply: Option<&[u8]>) -> Vec<String> {
    let ids = IdList::encode(ids);
    let ids = IdList::decode(&mut Reader::new(&ids)).unwrap();
    let mut command = Vec::new();
    Command::encode(SessionId(0x10000194c430000), 0, ids, op, body, &mut command);
    let lines = Lines::default();
    let write = AuditedWrite::of(op, &command, "::ffff:127.0.0.1".parse().unwrap()).unwrap();
    write.finish(reply, &lines);
    lines.0.into_inner().unwrap()
}

fn create(path: &str, flags: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_string(path);
    body.put_buffer(Some(b""));
    body.extend_from_slice(AclList::OPEN.wire());
    body.put_i32(flags);
    body
}

const WHO: &str = "session=0x10000194c430000 user=127.0.0.1,alice(unproven) ip=127.0.0.1";

#[test]
fn a_create_names_the_path_that_was_made() {
    let body = create("/a/s", 2);
    let done = reply(None, &WriteReply::Created { path: "/a/s0000000001".into() });
    let made = format!(
        "{WHO} operation=create znode=/a/s0000000001 znode_type=persistent_sequential result=success"
    );
    assert_eq!(lines(OpCode::Create, &body, Some(&done)), [made]);

    let refused = reply(Some(ErrorCode::NodeExists), &WriteReply::Done);
    let asked = format!("{WHO} operation=create znode=/a/s znode_type=persistent_sequential result=");
    assert_eq!(lines(OpCode::Create, &body, Some(&refused)), [format!("{asked}failure")]);
    assert_eq!(lines(OpCode::Create, &body, None), [format!("{asked}invoked")]);
}

#[test]
fn an_acl_is_printed_entry_behind_entry() {
    let mut body = Vec::new();
    body.put_string("/a\tb");
    encode::put_acl(
        &mut body,
        &[
            Acl { id: Id::new("digest", "bob:hash"), ..Acl::open() },
            Acl { perms: paddock_proto::Perms(5), id: Id::new("world", "anyone") },
        ],
    );
    body.put_i32(-1);
    let done = reply(None, &WriteReply::Done);
    let line = format!(
        "{WHO} operation=setAcl znode=/a\\tb acl=digest:bob:hash:cdrwaworld:anyone:cr result=success"
    );
    assert_eq!(lines(OpCode::SetAcl, &body, Some(&done)), [line]);
}

#[test]
fn a_multi_is_its_operations_or_one_failure() {
    let mut body = Vec::new();
    encode::multi_operation(&mut body, OpCode::Create);
    body.extend(create("/m-", 2));
    encode::multi_operation(&mut body, OpCode::Check);
    body.put_string("/m");
    body.put_i32(-1);
    encode::multi_operation(&mut body, OpCode::Delete);
    body.put_string("/d");
    body.put_i32(-1);
    encode::multi_end(&mut body);
    let results = vec![
        MultiResult::Done(OpCode::Create, WriteReply::Created { path: "/m-0000000004".into() }),
        MultiResult::Done(OpCode::Check, WriteReply::Done),
        MultiResult::Done(OpCode::Delete, WriteReply::Done),
    ];
    let done = reply(None, &WriteReply::Multi(results));
    assert_eq!(
        lines(OpCode::Multi, &body, Some(&done)),
        [
            format!(
                "{WHO} operation=create znode=/m-0000000004 znode_type=persistent_sequential result=success"
            ),
            format!("{WHO} operation=delete znode=/d result=success"),
        ]
    );
    let failed = vec![MultiResult::Failed(Some(ErrorCode::NoNode)); 3];
    let failed = reply(None, &WriteReply::Multi(failed));
    let line = format!("{WHO} operation=multiOperation result=failure");
    assert_eq!(lines(OpCode::Multi, &body, Some(&failed)), [line]);
}

/// A path that is refused is written down, too.
#[test]
fn what_a_client_says_is_one_value_of_one_line() {
    let refused = reply(Some(ErrorCode::BadArguments), &WriteReply::Done);
    for (path, shown) in [
        ("/a\nsession=0x1\toperation=delete\r", "/a\\nsession=0x1\\toperation=delete\\r"),
        ("/\u{1b}[2J\u{9b}1m\u{7f}\0", "/\\u{1b}[2J\\u{9b}1m\\u{7f}\\u{0}"),
        ("/\u{85}\u{2028}\u{2029}\u{0b}\u{0c}", "/\\u{85}\\u{2028}\\u{2029}\\u{b}\\u{c}"),
        ("/txt.\u{202e}gpj", "/txt.\\u{202e}gpj"),
        ("/a\\nb", "/a\\\\nb"),
        ("/jürgen 牯潴", "/jürgen 牯潴"),
    ] {
        let line = format!("{WHO} operation=create znode={shown} znode_type=persistent result=failure");
        assert_eq!(lines(OpCode::Create, &create(path, 0), Some(&refused)), [line]);
    }
}

#[test]
fn users_are_told_apart_and_by_proof() {
    #[track_caller]
    fn check(ids: &[(&str, &str)], expected: &str) {
        let ids: Vec<Id> = ids.iter().map(|(scheme, id)| Id::new(*scheme, *id)).collect();
        let lines = lines_of(&ids, OpCode::Create, &create("/a", 0), None);
        let user = lines[0].split(" user=").nth(1).expect("a user").split(" ip=").next();
        assert_eq!(user, Some(expected));
    }
    let ip = ("ip", "10.0.0.1");
    check(&[ip, ("sasl", "alice")], "10.0.0.1,alice");
    check(&[ip, ("digest", "alice:hash")], "10.0.0.1,alice(unproven)");
    check(&[ip, ("digest", "root,alice:hash")], "10.0.0.1,\"root,alice\"(unproven)");
    check(&[ip, ("digest", "\"root\",x:hash")], "10.0.0.1,\"\\\"root\\\",x\"(unproven)");
    check(&[ip, ("digest", "a\\\t\u{85}:hash")], "10.0.0.1,a\\\\\\t\\u{85}(unproven)");
    check(&[ip, ("x509", "CN=a\\,b,O=c")], "10.0.0.1,\"CN=a\\\\,b,O=c\"");
    // The super user has proved the digest in front of it, and no other.
    check(&[ip, ("digest", "super:hash"), ("super", "")], "10.0.0.1,super");
    let both = [ip, ("sasl", "root"), ("super", ""), ("digest", "eve:hash")];
    check(&both, "10.0.0.1,root,eve(unproven)");
}
