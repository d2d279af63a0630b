//! A round of the engine's thread, without etcd and without workers.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use paddock_etcd::{Answer, Call, WatchMessage};
use paddock_proto::Zxid;
use paddock_replica::{Membership, Replicated};
use paddock_state::{ClientInput, ConnId, Outbox, ProvenIds};
use paddock_statistics::server_metrics::ServerMetrics;
use paddock_tree::Tree;

use super::*;
use crate::Config;
use crate::clock::Clock;
use crate::config::EtcdEndpoint;
use crate::shared::Opened;
use crate::statistics::Statistics;

fn shared() -> Arc<Shared> {
    let etcd = EtcdSettings::new(vec![EtcdEndpoint::parse("http://127.0.0.1:1").expect("an address")]);
    let config = Config { etcd: Some(etcd), ..Config::new("data") };
    let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
    let statistics = Statistics::new(&config, ServerMetrics::default(), 0);
    Arc::new(Shared::new(config, Opened::default(), statistics, Clock::start(), state))
}

/// The engine without its connection: effects are kept for the test.
struct Kept(HostedEtcd);

impl host::Engine for Kept {
    type Input = Input;

    const TICK: Duration = HostedEtcd::TICK;

    fn take(&mut self, now: Now, inputs: &mut Vec<Input>, state: &mut State, out: &mut Outboxes) {
        self.0.take(now, inputs, state, out);
    }

    fn carry_out(&mut self) {}

    fn tick(&mut self, now: Now) -> Option<Input> {
        self.0.tick(now)
    }

    fn report(&self, now: Now) -> EngineReport {
        self.0.report(now)
    }
}

/// Takes inputs, and answers what the engine asks an etcd without keys, until it asks nothing more. Writes are carried out at `revision`.
/// True if there was one.
fn settle(host: &mut EngineHost, engine: &mut Kept, mut inputs: Vec<Input>, revision: i64) -> bool {
    let mut is_written = false;
    while !inputs.is_empty() {
        host::round(host, engine, &mut inputs, false);
        let Effects { calls, watch, .. } = std::mem::take(&mut engine.0.effects);
        for (id, call) in calls {
            let answer = match call {
                Call::Read { .. } => Answer::Page { revision: 1, pairs: Vec::new(), is_last: true },
                Call::Grant { .. } => Answer::Granted,
                Call::Probe { .. } => Answer::Probed { revision: 1 },
                Call::Transact(_) => {
                    is_written = true;
                    Answer::Transacted { is_done: true, revision }
                }
                Call::Revoke { .. } => Answer::Revoked,
            };
            inputs.push(Input::Answer(id, Ok(answer)));
        }
        let opened = watch.map(|order| order.generation);
        inputs.extend(opened.map(|generation| Input::Watch { generation, message: WatchMessage::Opened }));
    }
    is_written
}

/// A reader of a state finds in its mailbox all that came before it. The test holds the mailbox: as long as the mail cannot be left there,
/// no reader may see the state that it belongs to.
#[test]
fn mail_is_left_before_the_state_is_let_go() {
    let shared = shared();
    let holds = shared.mailboxes.of(0).hold();
    let (told, ended) = mpsc::channel();
    let engine = thread::spawn({
        let shared = shared.clone();
        move || {
            let settings = shared.config.etcd.clone().expect("it is a front end");
            let mut host = EngineHost::new(shared);
            let is_loading = crossbeam_channel::bounded(0).0;
            let mut engine = Kept(HostedEtcd::new(&host, &settings, Inbox::new().0, is_loading));
            settle(&mut host, &mut engine, vec![Input::Tick], 2);
            settle(&mut host, &mut engine, vec![Input::Tick], 2);
            let (conn, timeout_ms) = (ConnId::new(0, 1), 4000);
            let connect =
                ClientInput::Connect { conn, timeout_ms, may_only_read: false, ids: ProvenIds::default() };
            let is_written = settle(&mut host, &mut engine, vec![Input::Client(connect)], 3);
            assert!(is_written, "the session is written");
            told.send(()).expect("the test waits");
        }
    });
    let newest = || shared.state.try_read().map_or(Zxid(0), |state| state.state().tree().zxid());
    let watched_until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < watched_until {
        assert!(newest() < Zxid(3), "the session is shown, and its mail is not there yet");
        assert!(ended.try_recv().is_err(), "the round has ended without its mail");
        thread::yield_now();
    }
    drop(holds);
    ended.recv().expect("the round ends");
    engine.join().expect("the engine goes on");
    assert_eq!(newest(), Zxid(3));
    let mut mail = Outbox::default();
    assert!(shared.mailboxes.of(0).take(&mut mail).is_some() && !mail.is_empty());
}
