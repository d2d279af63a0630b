//! A round of the engine's thread, without etcd and without workers.

use std::sync::mpsc;
use std::thread;

use paddock_etcd::{Answer, Call, WatchMessage};
use paddock_proto::Zxid;
use paddock_replica::{Membership, Replicated};
use paddock_state::{ConnId, Outbox, ProvenIds};
use paddock_tree::Tree;

use super::*;
use crate::Config;
use crate::clock::Clock;
use crate::config::EtcdEndpoint;
use crate::shared::Opened;

fn shared() -> Arc<Shared> {
    let etcd = EtcdSettings::new(vec![EtcdEndpoint::parse("http://127.0.0.1:1").expect("an address")]);
    let config = Config { etcd: Some(etcd), ..Config::new("data") };
    let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
    Arc::new(Shared::new(config, Opened::default(), Clock::start(), state))
}

fn runner(shared: &Arc<Shared>) -> Runner {
    let settings = shared.config.etcd.clone().expect("it is a front end");
    Runner::new(shared.clone(), &settings, unbounded_channel().0, crossbeam_channel::bounded(0).0)
}

/// Answers what the engine asks an etcd without keys, until it asks nothing more.
fn settle(runner: &mut Runner, mut effects: Effects) -> bool {
    let mut is_written = false;
    while !effects.calls.is_empty() || effects.watch.is_some() {
        let mut inputs = Vec::new();
        for (id, call) in effects.calls.drain(..) {
            let answer = match call {
                Call::Read { .. } => Answer::Page { revision: 1, pairs: Vec::new(), is_last: true },
                Call::Grant { .. } => Answer::Granted,
                Call::Probe { .. } => Answer::Probed { revision: 1 },
                Call::Transact(_) => {
                    is_written = true;
                    Answer::Transacted { is_done: true, revision: 2 }
                }
                Call::Revoke { .. } => Answer::Revoked,
            };
            inputs.push(Input::Answer(id, Ok(answer)));
        }
        let opened = effects.watch.take().map(|order| order.generation);
        inputs.extend(opened.map(|generation| Input::Watch { generation, message: WatchMessage::Opened }));
        effects = runner.work_locked(&mut inputs);
    }
    is_written
}

/// A reader of a state finds in its mailbox all that came before it. The test holds the mailbox: as long as the mail cannot be left there,
/// no reader may see the state that it belongs to.
#[test]
fn mail_is_left_before_the_state_is_let_go() {
    let shared = shared();
    let holds = shared.mailbox(0).hold();
    let (told, ended) = mpsc::channel();
    let engine = thread::spawn({
        let shared = shared.clone();
        move || {
            let mut runner = runner(&shared);
            let effects = runner.work_locked(&mut vec![Input::Tick]);
            settle(&mut runner, effects);
            let effects = runner.work_locked(&mut vec![Input::Tick]);
            settle(&mut runner, effects);
            let (conn, timeout_ms) = (ConnId::new(0, 1), 4000);
            let connect =
                ClientInput::Connect { conn, timeout_ms, may_only_read: false, ids: ProvenIds::default() };
            let effects = runner.work_locked(&mut vec![Input::Client(connect)]);
            assert!(settle(&mut runner, effects), "the session is written");
            told.send(()).expect("the test waits");
        }
    });
    let newest = || shared.state.try_read().map_or(Zxid(0), |state| state.state().tree().zxid());
    let watched_until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < watched_until {
        assert!(newest() < Zxid(2), "the session is shown, and its mail is not there yet");
        assert!(ended.try_recv().is_err(), "the round has ended without its mail");
        thread::yield_now();
    }
    drop(holds);
    ended.recv().expect("the round ends");
    engine.join().expect("the engine goes on");
    assert_eq!(newest(), Zxid(2));
    let mut mail = Outbox::default();
    assert!(shared.mailbox(0).take(&mut mail).is_some() && !mail.is_empty());
}
