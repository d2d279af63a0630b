//! The order in which an engine gives away what it has done: first the mail, then the state.

use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use paddock_proto::ErrorCode;
use paddock_replica::Membership;
use paddock_state::{ConnId, Outbox, Parcel};
use paddock_statistics::server_metrics::ServerMetrics;
use paddock_tree::Tree;

use super::*;
use crate::Config;
use crate::clock::Clock;
use crate::shared::Opened;
use crate::statistics::Statistics;

/// Time for which a thread that must not get the state waits for it.
const PATIENCE: Duration = Duration::from_millis(200);

fn shared() -> Arc<Shared> {
    let config = Config::new("/nowhere");
    let statistics = Statistics::new(&config, ServerMetrics::default(), 0);
    let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
    Arc::new(Shared::new(config, Opened::default(), statistics, Clock::start(), state))
}

/// Something that takes a zxid, and a parcel of which others know by that.
fn write(state: &mut Replicated, out: &mut Outboxes) {
    let zxid = state.tree_mut().refuse(ErrorCode::NoNode).zxid;
    out.close(ConnId::new(0, zxid.0 as u64));
}

#[test]
fn whoever_has_the_state_within_an_entry_finds_the_mail_of_all_that_it_shows() {
    const LOOKS: u64 = 200;
    let shared = shared();
    let (mut host, looks) = (EngineHost::new(shared.clone()), AtomicU64::new(0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut mail, mut parcels, mut missing) = (Outbox::default(), 0, None);
            while looks.fetch_add(1, Relaxed) < LOOKS {
                let state = shared.state.read();
                mail.clear();
                shared.mailboxes.of(0).take(&mut mail);
                parcels += mail.iter().count() as i64;
                let zxid = state.tree().zxid().0;
                missing = missing.or((parcels != zxid).then_some((zxid, parcels)));
            }
            missing
        });
        host.change_in_portions(&mut |held| {
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
    act: impl FnOnce(&mut EngineHost, &mut dyn FnMut(&mut Replicated, &mut Outboxes)) + Send,
) {
    let shared = shared();
    let mut host = EngineHost::new(shared.clone());
    let (written, is_written) = mpsc::channel();
    thread::scope(|scope| {
        let box_is_held = shared.mailboxes.of(0).hold();
        let engine = scope.spawn(move || {
            act(&mut host, &mut |state, out| {
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
    shared.mailboxes.of(0).take(&mut mail);
    assert_eq!(mail.iter().map(|(_, parcel)| parcel).collect::<Vec<_>>(), [Parcel::Close]);
}

#[test]
fn mail_is_in_the_box_before_a_change_lets_the_state_go() {
    check_that_mail_comes_first(|host, write| host.change(|state, out| write(state, out)));
}

#[test]
fn mail_is_in_the_box_before_the_end_of_an_entry_lets_the_state_go() {
    check_that_mail_comes_first(|host, write| {
        host.change_in_portions(&mut |held| {
            let (state, out) = held.parts();
            write(state, out);
        });
    });
}

/// True if the first worker was woken since this was asked last.
fn is_woken(shared: &Shared) -> bool {
    let woken = pin!(shared.mailboxes.of(0).woken());
    woken.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn workers_are_woken_for_mail_while_a_long_entry_is_applied() {
    let shared = shared();
    let since = Instant::now();
    EngineHost::new(shared.clone()).change_in_portions(&mut |held| {
        while !is_woken(&shared) {
            assert!(since.elapsed() < Duration::from_secs(10), "the mail waits for the end of the entry");
            let (state, out) = held.parts();
            write(state, out);
            held.yield_to_others();
        }
    });
}

#[test]
fn workers_with_mail_from_within_an_entry_are_woken_at_its_end() {
    let shared = shared();
    EngineHost::new(shared.clone()).change_in_portions(&mut |held| {
        let (state, out) = held.parts();
        write(state, out);
        held.yield_to_others();
    });
    assert!(is_woken(&shared), "no mail came behind it");
}
