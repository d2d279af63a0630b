//! A member in its shell, on a disk in memory.

use std::sync::Arc;

use paddock_member::Member;
use paddock_proto::{CreateMode, IdList, OpCode, Xid, encode};
use paddock_replica::{Founding, Input, Membership};
use paddock_state::{ClientInput, ConnId, ProvenIds, RequestId};
use paddock_statistics::server_metrics::ServerMetrics;
use paddock_storage::MemDisk;
use paddock_tree::Command;

use super::*;
use crate::Config;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::config::AuditTarget;
use crate::shared::{Opened, Shared};
use crate::statistics::Statistics;

/// A session whose ephemerals go in several transactions, between which others have the state.
#[test]
fn the_audit_log_names_the_ephemerals_of_all_portions() {
    const EPHEMERALS: usize = 7;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let audit = Audit::start(Some(&AuditTarget::File(path.clone()))).unwrap();
    let config = paddock_member::Config {
        removed_at_once: 2,
        work_at_once: 1,
        founding: Founding {
            membership: Membership::new(vec![1], vec![]),
            members: String::new(),
            by_majority: false,
            files_change_members: false,
        },
        ..Config::new("/data").of_member()
    };
    let now = Now { monotonic_ms: 1, wall_ms: 1 };
    let (mut member, state) = Member::recover(Arc::new(MemDisk::new(1)), config, &now).unwrap();
    let settings = Config::new("/nowhere");
    let statistics = Statistics::new(&settings, ServerMetrics::default(), 0);
    let opened = Opened { audit, ..Opened::default() };
    let shared = Arc::new(Shared::new(settings, opened, statistics, Clock::start(), state));
    let mut shell = MemberShell::new(EngineHost::new(shared.clone()));
    shell.connect(None);
    let conn = ConnId::new(0, 1);
    let mut ask = |inputs: Vec<ClientInput>| {
        member.take(&shell, inputs.into_iter().map(Input::Client));
        while !matches!(member.work(&mut shell).unwrap(), paddock_member::Work::Nothing) {}
    };
    ask(vec![ClientInput::Connect {
        conn,
        timeout_ms: 10_000,
        may_only_read: false,
        ids: ProvenIds::default(),
    }]);
    let session = shared.state.read().tree().sessions().map(|(session, _)| session).next().unwrap();
    let write = |op, body: &[u8]| {
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, op, body, &mut command);
        ClientInput::Write { conn, request: RequestId::first(Xid(1)), op, command: command.into() }
    };
    let create = |number| {
        let mut body = Vec::new();
        encode::create_open(&mut body, &format!("/{number}"), None, CreateMode::Ephemeral);
        write(OpCode::Create, &body)
    };
    ask((0..EPHEMERALS).map(create).collect());
    let before = shared.state.read().tree().zxid().0;
    ask(vec![write(OpCode::CloseSession, &[])]);
    assert_eq!(shared.state.read().tree().zxid().0, before + 4, "three portions, and the rest");
    shared.opened.audit.as_ref().expect("there is one").end();
    let text = std::fs::read_to_string(&path).unwrap();
    let deleted = text.lines().filter(|line| line.contains("ephemeralZNodeDeletionOnSessionCloseOrExpire"));
    let mut named: Vec<&str> =
        deleted.filter_map(|line| line.split_once("znode=/")?.1.split('\t').next()).collect();
    named.sort_unstable();
    assert_eq!(named, (0..EPHEMERALS).map(|number| number.to_string()).collect::<Vec<_>>());
}
