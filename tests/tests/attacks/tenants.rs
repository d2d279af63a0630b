//! A tenant that asks for far more than its limit of rate, beside one that behaves.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paddock_proto::jute::{Reader, Writer as _};
use paddock_proto::{ErrorCode, OpCode, ReplyHeader};

use crate::on_threads;
use crate::rude::{Rude, request};
use crate::scene::{Goal, Scene, attack_time};

const RATE: u64 = 2000;
const CONNECTIONS: usize = 20;
/// Requests of a connection under way: all together ask for ten times the rate, and more.
const UNDER_WAY: usize = 10;

/// Answers to the tenant's requests, and refusals.
#[derive(Debug, Default)]
struct TenantAnswers {
    answers: AtomicU64,
    refusals: AtomicU64,
}

impl TenantAnswers {
    /// Asks as fast as the server lets it.
    fn ask(&self, client: &mut Rude, deadline: Instant) {
        let exists = request(1, OpCode::Exists, |out| {
            out.put_string("/greedy/znode");
            out.put_bool(false);
        });
        client.send(&exists.repeat(UNDER_WAY));
        while Instant::now() < deadline {
            let reply = client.receive();
            let header = ReplyHeader::decode(&mut Reader::new(&reply)).expect("a reply has a header");
            let is_refusal = header.error == Some(ErrorCode::ThrottledOp);
            assert!(is_refusal || header.error == Some(ErrorCode::NoNode), "{header:?}");
            if is_refusal { &self.refusals } else { &self.answers }.fetch_add(1, Relaxed);
            client.send(&exists);
        }
    }
}

/// Attacks with a tenant that asks as fast as it can. Returns the requests that were carried out in a second, and the refusals.
fn attack(scene: &Scene, name: &str) -> (u64, u64) {
    let told = TenantAnswers::default();
    let mut lasted = Duration::ZERO;
    scene.attack(name, Goal::BUSY, |server, deadline| {
        let since = Instant::now();
        on_threads(CONNECTIONS, deadline, |_| told.ask(&mut Rude::connect(server), deadline));
        lasted = since.elapsed();
    });
    let per_second = |count: AtomicU64| (count.into_inner() as f64 / lasted.as_secs_f64()) as u64;
    (per_second(told.answers), per_second(told.refusals))
}

#[test]
fn a_tenant_that_asks_for_ten_times_its_rate() {
    let unlimited = attack(&Scene::new(), "a tenant without a limit");
    let rule = format!("path=/greedy:requests={RATE}");
    let scene = Scene::with(&[("paddock.rate_limits", &rule)]);
    let (answers, refusals) =
        attack(&scene, "a tenant at its limit of rate, which asks for ten times as much");
    println!(
        "TENANT | {} a second without a limit | {answers} and {refusals} refusals with one",
        unlimited.0
    );
    // A quarter of a second of its rate comes at once.
    let most = RATE + RATE / 4 * 1000 / attack_time().as_millis() as u64;
    assert!(answers <= most + most / 20, "{answers} a second, {most} are its limit");
    assert!(answers >= RATE / 2 || unlimited.0 < RATE, "{answers} a second, {RATE} are allowed");
    assert_eq!(refusals, 0, "no request would have to wait a second");
    scene.server.wait_for_log("its tenant asks for more than rate_limits allow");
}
