//! The page of a member in a real browser: every view, hostile names and data, logins, a member that dies while it is looked at.

mod large;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::{env, fs};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Id, Perms};
use paddock_tests::browser::{Browser, Look, Tab};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, ServerKind, free_port};

/// The hash of `super:test`.
const SUPER_DIGEST: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
const DESK: Look = Look { width: 1280, dark: false };
const NIGHT: Look = Look { width: 1280, dark: true };
const PHONE: Look = Look { width: 390, dark: false };
/// The user of the password `secret`.
const ANN: &str = "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=";
/// A name that would run if a page took it for markup, and one that turns text around.
const SCRIPT: &str = "<img src=x onerror=window.hit=1>";
const TURNED: &str = "a\u{202e}b";
/// Children of a directory of several pages.
const CHILDREN: usize = 3000;

/// Settings of a member with the page at a port, and a superuser.
fn settings(port: u16) -> [(String, String); 4] {
    let settings = [
        ("admin.enableServer", "true"),
        ("admin.serverAddress", "127.0.0.1"),
        ("admin.serverPort", &port.to_string()),
        ("DigestAuthenticationProvider.superDigest", SUPER_DIGEST),
    ];
    settings.map(|(key, value)| (key.to_owned(), value.to_owned()))
}

fn origin(port: u16) -> String {
    format!("http://{}/", SocketAddr::from(([127, 0, 0, 1], port)))
}

fn start() -> (Server, String) {
    let port = free_port();
    let settings = settings(port);
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (&**key, &**value)).collect();
    (Server::start_with(ServerKind::Paddock, &settings), origin(port))
}

/// A tree with everything that a page could stumble over. Its client stays connected.
async fn plant(server: &Server) -> Client {
    let client =
        Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect");
    let create = async |path: &str, data: &[u8], mode| client.create(path, data, mode).await.expect("create");
    create("/hostile", b"<script>window.hit=1</script>", CreateMode::Persistent).await;
    create(
        &format!("/hostile/{SCRIPT}"),
        br#"{"a": "</script><b>", "list": [1, 2]}"#,
        CreateMode::Persistent,
    )
    .await;
    create(&format!("/hostile/{TURNED}"), b"\x00\x01\xff\xfe", CreateMode::Persistent).await;
    create("/hostile/large", &vec![b'x'; 900_000], CreateMode::Persistent).await;
    create("/mine", b"of a session", CreateMode::Ephemeral).await;
    client.watch_data("/hostile").await.expect("watch");
    let owner = Acl { perms: Perms::ALL, id: Id::new("digest", ANN) };
    client
        .create_with_acl("/secret", b"nobody's business", &[owner], CreateMode::Persistent)
        .await
        .expect("create");
    create("/many", b"", CreateMode::Persistent).await;
    let numbers: Vec<usize> = (0..CHILDREN).collect();
    for some in numbers.chunks(1000) {
        let pending: Vec<_> = some
            .iter()
            .map(|number| client.create(&format!("/many/child-{number:07}"), b"", CreateMode::Persistent))
            .collect();
        for created in pending {
            created.await.expect("create");
        }
    }
    client
}

#[tokio::test]
async fn every_view_shows_what_is_there_and_nothing_runs() {
    let (server, origin) = start();
    let client = plant(&server).await;
    let mut browser = Browser::start();
    let mut tab = browser.tab();
    tab.look(DESK, 1000);
    tab.go(&origin);
    tab.wait_for_text("Member 1 serves alone");
    tab.wait_for_text("Requests per second");
    tab.wait_until("samples.length > 1");
    keep(&mut tab, "overview", 1000);

    tab.value("location.hash = '#/tree'");
    tab.wait_for_text("hostile/");
    tab.value(
        "[...document.querySelectorAll('.nodes a')].find(a => a.textContent.includes('hostile')).click()",
    );
    tab.wait_for_text(SCRIPT);
    tab.wait_for_text("a\\u202eb");
    tab.wait_for_text("<script>window.hit=1</script>");
    tab.wait_for_text(&format!("{:#x}", client.session().0));
    keep(&mut tab, "tree", 1000);
    tab.value(&format!("location.hash = toTree('/hostile/{SCRIPT}')"));
    tab.wait_for_text("\"</script><b>\"");
    tab.value(&format!("location.hash = toTree('/hostile/{TURNED}')"));
    tab.wait_for_text("00 01 ff fe");
    tab.value("location.hash = toTree('/hostile/large')");
    tab.wait_for_text("The first 64.0 KiB are shown.");
    assert_eq!(
        tab.value("ask('api/znode', { path: '/hostile/large' }).then(znode => znode.data_length)"),
        900_000
    );

    tab.value("location.hash = toTree('/many')");
    tab.wait_for_text("1 to 200");
    keep(&mut tab, "pages", 1000);
    tab.value("byId('filter').value = 'child-0002'; byId('filter').dispatchEvent(new Event('input'))");
    tab.wait_for_text("1,000 with this beginning");

    tab.value("location.hash = toTree('/secret')");
    tab.wait_for_text("does not let you read it");
    assert_eq!(tab.value("document.body.innerText.includes('business')"), false);

    tab.value("location.hash = '#/sessions'");
    tab.wait_for_text(&format!("{:#x}", client.session().0));
    tab.value("document.querySelector('td a').click()");
    tab.wait_for_text("/mine");
    keep(&mut tab, "sessions", 1000);
    tab.value("location.hash = '#/activity'");
    tab.wait_for_text("/many/child-");
    keep(&mut tab, "activity", 1000);

    assert_eq!(tab.value("window.hit === undefined"), true, "something of the tree has run");
    for place in ["#/", "#/tree?%2Fhostile", "#/sessions", "#/activity"] {
        tab.look(PHONE, 844);
        tab.value(&format!("location.hash = '{place}'"));
        tab.wait_until("document.querySelector('main').innerText.length > 40");
        let wider = tab.value("document.documentElement.scrollWidth - innerWidth");
        assert!(wider.as_i64().expect("a number") <= 0, "{place} is {wider} pixels wider than a phone");
    }
    // A refusal of the znode that only its owner may read is all that the console may tell of.
    let complaints: Vec<String> = tab.complaints(&origin);
    let others: Vec<&String> = complaints.iter().filter(|said| !said.contains("403")).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// True once the member at this port has a page: while it starts, it says so in its place, and asks the browser to come again.
fn has_page(port: u16) -> bool {
    let ask = || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        write!(stream, "GET / HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
        std::io::read_to_string(stream)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200"))
}

/// The leader tells how each member does, and a follower who leads.
#[tokio::test]
async fn an_ensemble_is_seen_at_a_glance() {
    // Each of the three rows has a disk and a version.
    const ALL_TELL_OF_THEMSELVES: &str = "[...document.querySelectorAll('tbody tr')]\
         .filter(row => / of [0-9.]+ [A-Z]/.test(row.textContent) && row.textContent.includes('-paddock-')).length === 3";
    let ports = [(); 3].map(|()| free_port());
    let mut ensemble = Ensemble::start_each(3, &server_lines(3), |id| settings(ports[id - 1]).to_vec());
    let leader = ensemble.leader();
    ensemble.settle();
    let mut browser = Browser::start();
    let mut tab = browser.tab();
    tab.look(DESK, 1000);
    tab.go(&origin(ports[leader]));
    tab.wait_for_text(&format!("Member {} leads", leader + 1));
    tab.wait_for_text("All 3 members are up.");
    tab.wait_until("samples.length > 1");
    tab.wait_until(ALL_TELL_OF_THEMSELVES);
    keep(&mut tab, "leader", 1000);
    let lost = (leader + 1) % 3;
    ensemble.member(lost).kill();
    tab.wait_for_text("down for");
    tab.wait_for_text("2 of 3 members are up.");
    let address = ensemble.member(leader).address().to_string();
    let client = Client::connect(&address, ClientOptions::default()).await.expect("connect");
    client.create("/late", b"", CreateMode::Persistent).await.expect("create");
    // The member that is gone lacks that, and the session.
    tab.wait_for_text("· 2 entries");
    // A sample alone is a dot, and not a beginning without a line.
    tab.wait_until("samples.some(sample => sample.p50 !== null)");
    tab.wait_until("[...document.querySelectorAll('.curve')].every(it => !it.getAttribute('d') || it.getAttribute('d').includes('L'))");
    keep(&mut tab, "one-lost", 1000);
    assert!(tab.complaints(&origin(ports[leader])).is_empty());

    // A write that waits for a member which is asleep for a while is slow, and says of what it is.
    let follower = (leader + 2) % 3;
    ensemble.member(follower).pause();
    let slow = client.create("/waited for", b"", CreateMode::Persistent);
    while tab.value("ask('api/overview').then(now => now.counts.outstanding > 0)") != true {
        // The client sends on this thread.
        tokio::task::yield_now().await;
    }
    tab.value("new Promise(done => setTimeout(done, 100))");
    ensemble.member(follower).resume();
    slow.await.expect("create");
    client.delete("/waited for", None).await.expect("delete");
    tab.value("location.hash = '#/activity'");
    tab.wait_until(
        "[...document.querySelectorAll('section')].some(section => section.innerText.includes('Slow requests') \
         && section.innerText.includes('/waited for'))",
    );
    keep(&mut tab, "slow", 1000);

    // A follower's page tells the same of the others, and leads to theirs.
    tab.go(&origin(ports[follower]));
    tab.wait_for_text(&format!("Member {} leads", leader + 1));
    tab.wait_for_text("2 of 3 members are up, as this one sees it.");
    tab.wait_for_text("down for");
    tab.wait_until("document.querySelector('.headline .dot.warn') !== null");
    let link = format!(
        "[...document.querySelectorAll('tbody a')].some(a => a.href === '{}')",
        origin(ports[leader])
    );
    tab.wait_until(&link);
    keep(&mut tab, "follower", 1000);

    // Alone, it says what is missing.
    ensemble.member(leader).kill();
    tab.wait_for_text("There is no quorum");
    tab.wait_for_text("1 of 3 members is up");
    tab.wait_until("[...document.querySelectorAll('.tag.bad')].filter(tag => tag.innerText.startsWith('down for')).length === 2");
    assert_eq!(tab.value("document.querySelector('.tag.lead') === null"), true, "nobody leads");
    keep(&mut tab, "no-quorum", 1000);

    // A member that has lost its data says that it learns, and not that there is no quorum.
    let data = ensemble.member(lost).data_directory();
    for entry in std::fs::read_dir(&data).expect("list the data").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            std::fs::remove_dir_all(&entry).expect("remove the log and the snapshots");
        } else if !entry.ends_with("myid") {
            std::fs::remove_file(&entry).expect("remove the rest");
        }
    }
    ensemble.member(lost).spawn();
    while !has_page(ports[lost]) {
        assert!(ensemble.member(lost).ended_by_itself().is_none(), "{}", ensemble.member(lost).log());
        tokio::task::yield_now().await;
    }
    tab.go(&origin(ports[lost]));
    tab.wait_for_text("This member is learning");
    tab.wait_for_text("the member has not caught up with the ensemble");
    keep(&mut tab, "learning", 1000);
}

#[tokio::test]
async fn a_user_reads_what_is_theirs_and_a_reload_logs_nobody_out() {
    let (server, origin) = start();
    let _client = plant(&server).await;
    let mut browser = Browser::start();
    let mut tab = browser.tab();
    tab.look(DESK, 900);
    tab.go(&origin);
    tab.wait_for_text("serves alone");
    log_in_as(&mut tab, "ann", "guessed");
    tab.wait_for_text("No ACL names this user with this password");
    tab.value("document.querySelector('dialog[open] button').click()");
    log_in_as(&mut tab, "ann", "secret");
    tab.wait_for_text("Log out ann");
    tab.value("location.hash = toTree('/secret')");
    tab.wait_for_text("nobody's business");
    let refused = "ask('api/delete', null, { path: '/secret', version: -1 }).catch(error => error.status)";
    assert_eq!(tab.value(refused), 403, "changes are for administrators");
    keep(&mut tab, "user", 900);

    load(&mut tab, &format!("{origin}#/tree?%2Fsecret"));
    tab.wait_for_text("Log out ann");
    tab.wait_for_text("nobody's business");
    tab.value("byId('login').click()");
    tab.wait_for_text("does not let you read it");
    load(&mut tab, &format!("{origin}#/tree?%2Fsecret"));
    tab.wait_for_text("does not let you read it");

    // The box leads to a path.
    tab.value("byId('goto').value = '/hostile/large/'; byId('goto').form.requestSubmit()");
    tab.wait_for_text("The first 64.0 KiB are shown.");
    // Charts begin with what was before the page was opened.
    tab.value("location.hash = '#/'");
    while tab.value("ask('api/history').then(answer => answer.moments.some(moment => moment.writes > 0))")
        != true
    {}
    load(&mut tab, &origin);
    tab.wait_until("samples.some(sample => sample.writes > 0)");
}

#[tokio::test]
async fn an_administrator_changes_what_others_only_see() {
    let (server, origin) = start();
    let client =
        Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect");
    let mut browser = Browser::start();
    let mut tab = browser.tab();
    tab.look(DESK, 900);
    tab.go(&format!("{origin}#/tree"));
    tab.wait_for_text("zookeeper/");
    let refused =
        "ask('api/create', null, { path: '/x', data: '', mode: 'persistent' }).catch(error => error.status)";
    assert_eq!(tab.value(refused), 401, "nobody has logged in");

    log_in(&mut tab, "wrong");
    tab.wait_for_text("No ACL names this user with this password");
    tab.value("document.querySelector('dialog[open] button').click()");
    log_in(&mut tab, "test");
    tab.wait_for_text("Log out super");
    tab.wait_for_text("Create a child");

    press(&mut tab, "main", "Create a child");
    fill(&mut tab, "input", "made here");
    fill(&mut tab, "textarea", "first");
    press(&mut tab, "dialog[open]", "Create");
    tab.wait_for_text("Created /made here");
    assert_eq!(
        client.get_data("/made here").await.expect("it is there").bytes.as_deref(),
        Some(&b"first"[..])
    );

    tab.value("location.hash = toTree('/made here')");
    tab.wait_for_text("first");
    tab.wait_until("[...document.querySelectorAll('button')].some(button => button.textContent === 'Edit')");
    press(&mut tab, "main", "Edit");
    fill(&mut tab, "textarea", "second");
    client.set_data("/made here", b"of somebody else", None).await.expect("set");
    press(&mut tab, "dialog[open]", "Save version 1");
    tab.wait_for_text("Somebody else has changed it meanwhile");
    assert_eq!(client.get_data("/made here").await.unwrap().bytes.as_deref(), Some(&b"of somebody else"[..]));
    tab.value("document.querySelector('dialog[open] button').click(); route()");
    tab.wait_for_text("of somebody else");
    press(&mut tab, "main", "Delete");
    press(&mut tab, "dialog[open]", "Delete");
    tab.wait_for_text("That is not its name");
    fill(&mut tab, "input", "made here");
    press(&mut tab, "dialog[open]", "Delete");
    tab.wait_for_text("Deleted");
    assert!(client.get_data("/made here").await.is_err(), "it is gone");

    let created = ["/whole", "/whole/a", "/whole/a/b"];
    for path in created {
        client.create(path, b"", CreateMode::Persistent).await.expect("create");
    }
    tab.value("location.hash = toTree('/whole')");
    tab.wait_until(
        "[...document.querySelectorAll('button')].some(button => button.textContent === 'Change')",
    );
    press(&mut tab, "main", "Change");
    tab.wait_for_text("Who may do what");
    tab.value("document.querySelector('dialog[open] fieldset').remove()");
    press(&mut tab, "dialog[open]", "Add an entry");
    tab.value(&format!("document.querySelector('dialog[open] fieldset input').value = '{ANN}'"));
    keep(&mut tab, "acl", 900);
    press(&mut tab, "dialog[open]", "Save");
    tab.wait_for_text("Saved");
    assert!(client.get_data("/whole").await.is_err(), "it is ann's now");
    tab.wait_for_text(ANN);

    press(&mut tab, "main", "Create a child");
    fill(&mut tab, "input", "short");
    tab.value("document.querySelector('dialog[open] select').value = 'ttl'; document.querySelector('dialog[open] select').dispatchEvent(new Event('change'))");
    tab.value("document.querySelector('dialog[open] input[type=number]').value = '3600'");
    press(&mut tab, "dialog[open]", "Create");
    tab.wait_for_text("Created /whole/short");

    tab.value("location.hash = toTree('/whole'); route()");
    tab.wait_until("document.querySelectorAll('.nodes a').length === 2");
    press(&mut tab, "main", "Delete");
    fill(&mut tab, "input:not([type=checkbox])", "whole");
    press(&mut tab, "dialog[open]", "Delete");
    tab.wait_for_text("tick the box to delete them, too");
    keep(&mut tab, "delete", 900);
    tab.value("document.querySelector('dialog[open] input[type=checkbox]').click()");
    press(&mut tab, "dialog[open]", "Delete");
    tab.wait_for_text("Deleted");
    assert_eq!(tab.value("ask('api/znode', { path: '/whole' }).catch(error => error.status)"), 404);

    tab.value("location.hash = '#/'");
    tab.wait_for_text("Take a snapshot");
    press(&mut tab, "main", "Take a snapshot");
    press(&mut tab, "dialog[open]", "Take it");
    tab.wait_for_text("A snapshot is being taken");
}

#[tokio::test]
async fn a_member_that_dies_is_noticed_and_so_is_its_return() {
    let (mut server, origin) = start();
    let mut browser = Browser::start();
    let mut tab = browser.tab();
    tab.look(NIGHT, 900);
    tab.go(&origin);
    tab.wait_for_text("serves alone");
    server.kill();
    tab.wait_for_text("This member does not answer");
    keep(&mut tab, "gone", 900);
    server.restart();
    tab.wait_until("byId('notice').hidden");
    tab.wait_for_text("serves alone");
}

/// Loads the page anew in the same tab.
fn load(tab: &mut Tab<'_>, address: &str) {
    tab.go("about:blank");
    tab.go(address);
}

fn log_in(tab: &mut Tab<'_>, password: &str) {
    log_in_as(tab, "super", password);
}

fn log_in_as(tab: &mut Tab<'_>, user: &str, password: &str) {
    tab.value("byId('login').click()");
    tab.value(&format!("document.querySelector('dialog[open] input:not([type=password])').value = '{user}'"));
    tab.value(&format!("document.querySelector('dialog[open] input[type=password]').value = '{password}'"));
    press(tab, "dialog[open]", "Log in");
}

/// Presses the button of a text within a part of the page.
fn press(tab: &mut Tab<'_>, within: &str, text: &str) {
    let button = format!(
        "[...document.querySelectorAll('{within} button')].find(button => button.textContent === '{text}')"
    );
    tab.wait_until(&format!("{button} !== undefined"));
    tab.value(&format!("{button}.click()"));
}

fn fill(tab: &mut Tab<'_>, field: &str, text: &str) {
    tab.value(&format!("document.querySelector('dialog[open] {field}').value = '{text}'"));
}

/// Keeps a view as it looks by day, by night and on a phone.
fn keep(tab: &mut Tab<'_>, name: &str, height: u32) {
    let Some(directory) = env::var_os("SCREENSHOTS") else { return };
    for (look, how) in [("phone", PHONE), ("dark", NIGHT), ("light", DESK)] {
        tab.look(how, height);
        tab.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        let picture = tab.screenshot();
        fs::write(Path::new(&directory).join(format!("page-{name}-{look}.png")), picture)
            .expect("write the picture");
    }
}
