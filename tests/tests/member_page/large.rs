//! A directory of a million children: the page opens it, turns its pages, finds a name in it, and other clients do not wait for that.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Multi};
use paddock_tests::browser::Browser;

use super::{DESK, press, start};

const CHILDREN: usize = 1_000_000;
/// Creates of one multi.
const TOGETHER: usize = 1000;
/// Multis that are under way at a time.
const UNDER_WAY: usize = 20;
/// Time within which another client has each of its reads answered meanwhile. With the list copied in one step, a server that is not optimised
/// takes half as long again.
const LONGEST: Duration = Duration::from_millis(250);

#[tokio::test]
async fn a_directory_of_a_million_children_is_turned_page_by_page() {
    let (server, origin) = start();
    fill(server.address()).await;
    let mut browser = Browser::start();
    let mut tab = browser.tab();
    tab.look(DESK, 1000);
    tab.go(&format!("{origin}#/tree"));
    tab.wait_for_text("zookeeper/");

    let is_over = AtomicBool::new(false);
    let longest = thread::scope(|scope| {
        let other = scope.spawn(|| longest_answer(server.address(), &is_over));
        tab.value("location.hash = toTree('/many')");
        tab.wait_for_text("1 to 200");
        tab.wait_for_text("1,000,000");
        press(&mut tab, ".pager", "Next");
        tab.wait_for_text("201 to 400");
        tab.wait_for_text("child-0000200");
        press(&mut tab, ".pager", "Last");
        tab.wait_for_text("999,801 to 1,000,000");
        tab.wait_for_text("child-0999999");
        assert_eq!(
            tab.value(
                "[...document.querySelectorAll('.pager button:disabled')].map(it => it.textContent).join()"
            ),
            "Next,Last"
        );
        press(&mut tab, ".pager", "Back");
        tab.wait_for_text("999,601 to 999,800");
        tab.value("byId('filter').value = 'child-07654'; byId('filter').dispatchEvent(new Event('input'))");
        tab.wait_for_text("100 with this beginning");
        tab.value("[...document.querySelectorAll('.nodes a')].find(it => it.textContent.includes('0765432')).click()");
        tab.wait_until("decodeURIComponent(location.hash).endsWith('/many/child-0765432')");
        tab.wait_for_text("It has no children.");
        is_over.store(true, Relaxed);
        other.join().expect("the other client is served")
    });
    assert!(longest < LONGEST, "another client has waited {longest:?} for an answer");
    let complaints = tab.complaints(&origin);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Creates the directory, with the children in an order that is not theirs.
async fn fill(server: SocketAddr) {
    let options = ClientOptions { session_timeout: Duration::from_secs(40), ..ClientOptions::default() };
    let client = Client::connect(&server.to_string(), options).await.expect("connect");
    client.create("/many", b"", CreateMode::Persistent).await.expect("create");
    let multis = CHILDREN / TOGETHER;
    for first in (0..multis).step_by(UNDER_WAY) {
        let pending: Vec<_> = (first..first + UNDER_WAY)
            .map(|number| {
                // Each has every so-manieth child.
                let children = (0..TOGETHER).map(|place| place * multis + number);
                let multi = children.fold(Multi::new(), |multi, child| {
                    multi.create(&format!("/many/child-{child:07}"), b"", CreateMode::Persistent)
                });
                client.multi(&multi)
            })
            .collect();
        for created in pending {
            created.await.expect("create");
        }
    }
    client.close().await.expect("close");
}

/// Reads and writes one after another until it is over; the longest time that a read took. Writes wait for the disk, too.
fn longest_answer(server: SocketAddr, is_over: &AtomicBool) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("make a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.to_string(), ClientOptions::default()).await.expect("connect");
        client.create("/other", b"", CreateMode::Persistent).await.expect("create");
        let mut longest = Duration::ZERO;
        while !is_over.load(Relaxed) {
            let begun = Instant::now();
            client.get_data("/other").await.expect("read");
            longest = longest.max(begun.elapsed());
            client.set_data("/other", b"new", None).await.expect("write");
        }
        longest
    })
}
