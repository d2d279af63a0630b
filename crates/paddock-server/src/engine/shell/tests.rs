//! The order in which the engine gives away what it has done: first the mail, then the state.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use paddock_member::Member;
use paddock_proto::{CreateMode, ErrorCode, IdList, OpCode, Xid, encode};
use paddock_replica::{Founding, Input, Membership};
use paddock_state::{ClientInput, ConnId, Outbox, Parcel, ProvenIds};
use paddock_storage::MemDisk;
use paddock_tree::{Command, Tree};

use super::*;
use crate::config::AuditTarget;
use crate::shared::Opened;
use crate::statistics::audit::Audit;
use crate::{Config, clock};

/// Time for which a thread that must not get the state waits for it.
const PATIENCE: Duration = Duration::from_millis(200);

fn shared(opened: Opened, state: Replicated) -> Arc<Shared> {
    Arc::new(Shared::new(Config::new("/nowhere"), opened, clock::Clock::start(), state))
}

fn empty() -> Replicated {
    Replicated::new(Tree::new(), (0, 0), Membership::default())
}

/// Something that takes a zxid, and a parcel of which others know by that.
fn write(state: &mut Replicated, out: &mut Outboxes) {
    let zxid = state.tree_mut().refuse(ErrorCode::NoNode).zxid;
    out.close(ConnId::new(0, zxid.0 as u64));
}

#[test]
fn whoever_has_the_state_within_an_entry_finds_the_mail_of_all_that_it_shows() {
    const LOOKS: u64 = 200;
    let shared = shared(Opened::default(), empty());
    let (mut shell, looks) = (MemberShell::new(shared.clone()), AtomicU64::new(0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut mail, mut parcels, mut missing) = (Outbox::default(), 0, None);
            while looks.fetch_add(1, Relaxed) < LOOKS {
                let state = shared.state.read();
                mail.clear();
                shared.mailbox(0).take(&mut mail);
                parcels += mail.iter().count() as i64;
                let zxid = state.tree().zxid().0;
                missing = missing.or((parcels != zxid).then_some((zxid, parcels)));
            }
            missing
        });
        shell.apply(&mut |held| {
            while looks.load(Relaxed) < LOOKS {
                let (state, out) = held.parts();
                write(state, out);
                held.yield_to_others();
            }
        });
        assert_eq!(
            reader.join().unwrap(),
            None,
            "a zxid that was shown, and the parcels that had come by then"
        );
    });
}

/// A thread looks into the mailbox, so that nothing can be put into it, until no other could have got the state.
fn check_that_mail_comes_first(
    act: impl FnOnce(&mut MemberShell, &mut dyn FnMut(&mut Replicated, &mut Outboxes)) + Send,
) {
    let shared = shared(Opened::default(), empty());
    let mut shell = MemberShell::new(shared.clone());
    let (written, is_written) = mpsc::channel();
    thread::scope(|scope| {
        let box_is_held = shared.mailbox(0).hold();
        let engine = scope.spawn(move || {
            act(&mut shell, &mut |state, out| {
                write(state, out);
                written.send(()).unwrap();
            });
        });
        is_written.recv().unwrap();
        let shown = shared.state.try_read_for(PATIENCE).map(|state| state.tree().zxid());
        assert_eq!(shown, None, "the state was let go, and its mail is not there");
        drop(box_is_held);
        engine.join().unwrap();
    });
    let mut mail = Outbox::default();
    shared.mailbox(0).take(&mut mail);
    assert_eq!(mail.iter().map(|(_, parcel)| parcel).collect::<Vec<_>>(), [Parcel::Close]);
}

#[test]
fn mail_is_in_the_box_before_a_change_lets_the_state_go() {
    check_that_mail_comes_first(|shell, write| shell.change(|state, out| write(state, out)));
}

#[test]
fn mail_is_in_the_box_before_the_end_of_an_entry_lets_the_state_go() {
    check_that_mail_comes_first(|shell, write| {
        shell.apply(&mut |held| {
            let (state, out) = held.parts();
            write(state, out);
        });
    });
}

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
    let shared = shared(Opened { audit, ..Opened::default() }, state);
    let mut shell = MemberShell::new(shared.clone());
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
        ClientInput::Write { conn, xid: Xid(1), op, command }
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
    shared.audit.as_ref().expect("there is one").end();
    let text = std::fs::read_to_string(&path).unwrap();
    let deleted = text.lines().filter(|line| line.contains("ephemeralZNodeDeletionOnSessionCloseOrExpire"));
    let mut named: Vec<&str> =
        deleted.filter_map(|line| line.split_once("znode=/")?.1.split('\t').next()).collect();
    named.sort_unstable();
    assert_eq!(named, (0..EPHEMERALS).map(|number| number.to_string()).collect::<Vec<_>>());
}
