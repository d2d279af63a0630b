//! The whole tree below a root, as one client sees it: a difference that no answer showed is found there.

use paddock_proto::OpCode;
use paddock_proto::jute::{Reader, Writer};

use super::answer::{Names, code};
use super::connection::{Incoming, RawConnection};
use super::line::request;

/// Requests about every znode; the children come last.
const QUESTIONS: [OpCode; 3] = [OpCode::GetAcl, OpCode::GetData, OpCode::GetChildren];

/// ZooKeeper stops reading from a client while a thousand requests are under way, and sometimes for good.
const ASKED_AT_ONCE: usize = 100;

/// Every znode from `root` on that `connection` may read, level by level.
pub(super) fn describe(connection: &mut RawConnection, root: &str, names: &Names) -> Vec<String> {
    let mut lines = Vec::new();
    let mut level = vec![root.to_string()];
    while !level.is_empty() {
        let mut below = Vec::new();
        for some in level.chunks(ASKED_AT_ONCE) {
            ask(connection, some);
            for path in some {
                below.extend(hear(connection, path, names, &mut lines));
            }
        }
        below.sort();
        level = below;
    }
    lines
}

fn ask(connection: &mut RawConnection, paths: &[String]) {
    let mut bytes = Vec::new();
    for path in paths {
        for op in QUESTIONS {
            let mut body = Vec::new();
            body.put_string(path);
            if op != OpCode::GetAcl {
                body.put_bool(false);
            }
            bytes.extend_from_slice(&request(1, op.code(), &body));
        }
    }
    connection.write(&bytes);
}

/// Takes the answers about `path`; returns the paths of its children.
fn hear(connection: &mut RawConnection, path: &str, names: &Names, lines: &mut Vec<String>) -> Vec<String> {
    let mut children = Vec::new();
    for op in QUESTIONS {
        let reply = match connection.read() {
            Incoming::Frame(reply) => reply,
            other => panic!("no answer about {path}: {other:?}"),
        };
        let mut reader = Reader::new(&reply);
        let header = (reader.i32(), reader.i64(), reader.i32());
        let (Ok(_), Ok(_), Ok(error)) = header else { panic!("no header in an answer about {path}") };
        let text = if error == 0 { names.body(op.code(), reader.rest()) } else { code(error) };
        lines.push(format!("{path:?} {op:?}: {text}"));
        if error == 0 && op == OpCode::GetChildren {
            children =
                reader.strings().unwrap_or_default().into_iter().map(|name| join(path, name)).collect();
        }
    }
    children
}

fn join(parent: &str, name: &str) -> String {
    format!("{}/{name}", parent.trim_end_matches('/'))
}
