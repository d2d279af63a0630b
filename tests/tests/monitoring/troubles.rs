//! Alerts for members that do badly, by what makes them do badly.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use paddock_client::{Client, CreateMode};
use paddock_tests::damage::files::falsify;
use paddock_tests::server::{Server, environment, free_port};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::members::{DISK_BYTES, LoneMember, ensemble, hosts, is, zxid};
use crate::prometheus::Prometheus;
use crate::{POLL, connect, wait_for, wait_for_silence, wait_until};

const STATE_DIFFERS: &str = "PaddockStateDiffers";
const LAGS: &str = "PaddockMemberLags";
const DISK: &str = "PaddockDiskNearlyFull";
const SYNCS: &str = "PaddockSlowSyncs";
const CLOCK: &str = "PaddockClockDrift";

/// Znodes that are there before anything happens, one of which is falsified.
const ZNODES: usize = 100;
/// Rounds of writes within which a wrong state is told of.
const ROUNDS: usize = 100;
/// Writes that a member lags behind: so few that only their age can tell.
const WRITES: usize = 20;
/// Room that is left on a nearly full disk, for some files of the log.
const LEFT_BYTES: usize = DISK_BYTES / 16;
/// Each sync takes this much longer.
const SYNC_DELAY: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_wrong_state_a_lag_and_a_full_disk_are_told_of() {
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut members = ensemble(&ports);
    let prometheus = Prometheus::start(&ports);
    let client = connect(&hosts(&members)).await;
    write(&client, "right", ZNODES).await;
    client.close().await.expect("close");
    wait_until("all members have the znodes", || {
        members.iter().all(|it| zxid(it).is_some() && zxid(it) == zxid(&members[0]))
    })
    .await;

    // An increase is seen from one scrape to another.
    wait_until("all are scraped", || prometheus.has_data("count(up == 1) == 3")).await;
    let followers = followers(&members).await;
    let wrong = followers[0];
    members[wrong].kill();
    falsify(&members[wrong].data_directory().join("log"), b"/right-50", b"/wrong-50");
    members[wrong].spawn();
    let client = connect(&hosts(beside(&members, wrong))).await;
    // States are compared at every 64th entry.
    for round in 0.. {
        assert!(round < ROUNDS, "{STATE_DIFFERS} does not fire");
        write(&client, &format!("round-{round}"), 64).await;
        if prometheus.is_firing(STATE_DIFFERS) {
            break;
        }
        sleep(POLL).await;
    }
    client.close().await.expect("close");

    let followers = self::followers(&members).await;
    let (slow, full) = (followers[0], followers[1]);
    let client = connect(&hosts(beside(&members, slow))).await;
    members[slow].pause();
    write(&client, "more", WRITES).await;
    // There is none without root.
    if let Some(disk) = members[full].disk() {
        disk.fill_but(LEFT_BYTES);
        wait_for(&prometheus, &[DISK]).await;
    }
    // A member that is not heard lags for as long as something was written that it has not.
    wait_for(&prometheus, &[LAGS]).await;
    assert!(prometheus.has_data("paddock_member_lag_entries < 100 and paddock_member_lag_entries > 0"));
    members[slow].resume();
    if let Some(disk) = members[full].disk() {
        disk.free();
    }
    wait_for_silence(&prometheus, &[LAGS, DISK, STATE_DIFFERS]).await;
}

#[tokio::test]
async fn slow_syncs_and_a_wrong_clock_are_told_of() {
    let directory = TempDir::new().expect("a directory for the offset of a clock");
    let clock = directory.path().join("offset");
    set_clock(&clock, 0);
    let member = LoneMember::start("", &with_clock(&clock)).await;
    let prometheus = Prometheus::start(&[member.metrics_port]);
    let client = connect(&member.address.to_string()).await;
    let load = tokio::spawn(async move {
        for number in 0.. {
            write(&client, &format!("load-{number}"), 1).await;
            sleep(Duration::from_millis(10)).await;
        }
    });
    wait_until("all rules are evaluated", || prometheus.rules().iter().all(|rule| rule["health"] == "ok"))
        .await;
    for alert in [CLOCK, SYNCS] {
        assert!(!prometheus.is_firing(alert), "{alert} fires before anything happens");
    }
    set_clock(&clock, 30);
    let slowed = SlowSyncs::of(member.pid());
    wait_for(&prometheus, &[CLOCK, SYNCS]).await;
    set_clock(&clock, 0);
    drop(slowed);
    wait_for_silence(&prometheus, &[CLOCK, SYNCS]).await;
    load.abort();
}

/// Creates `count` znodes one after another: what is written at once may be one entry of the log.
async fn write(client: &Client, name: &str, count: usize) {
    for number in 0..count {
        client.create(&format!("/{name}-{number}"), b"x", CreateMode::Persistent).await.expect("create");
    }
}

/// The members that follow, by their places, when all take part.
async fn followers(members: &[Server]) -> Vec<usize> {
    let follow = || (0..members.len()).filter(|place| is(&members[*place], "follower"));
    wait_until("one leads and the others follow", || follow().count() + 1 == members.len()).await;
    follow().collect()
}

fn beside(members: &[Server], left_out: usize) -> impl Iterator<Item = &Server> {
    members.iter().enumerate().filter(move |(place, _)| *place != left_out).map(|(_, member)| member)
}

/// Lines for a shell after which a program's clock is as far off as the file says; what is measured by it is not.
fn with_clock(offset: &Path) -> String {
    format!(
        "export LD_PRELOAD={} FAKETIME_TIMESTAMP_FILE={} FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1",
        environment("LIBFAKETIME"),
        offset.display()
    )
}

fn set_clock(file: &Path, seconds: u32) {
    fs::write(file, format!("+{seconds}s\n")).expect("write the offset of a clock");
}

/// A process whose syncs take long, until this is dropped.
struct SlowSyncs {
    tracer: Child,
}

impl SlowSyncs {
    fn of(pid: u32) -> SlowSyncs {
        let delay = format!("inject=fdatasync,pwritev2:delay_exit={}", SYNC_DELAY.as_micros());
        let tracer = Command::new(environment("STRACE_BIN"))
            .args([
                "--quiet=attach",
                "--follow-forks",
                "--output=/dev/null",
                "-e",
                "trace=fdatasync,pwritev2",
                "-e",
                &delay,
            ])
            .args(["--attach", &pid.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .expect("start strace");
        SlowSyncs { tracer }
    }
}

impl Drop for SlowSyncs {
    fn drop(&mut self) {
        // The tracer lets go of the process, which goes on.
        let asked = Command::new("kill").arg(self.tracer.id().to_string()).status();
        assert!(asked.is_ok_and(|status| status.success()), "end strace");
        let _ = self.tracer.wait();
    }
}
