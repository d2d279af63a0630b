//! `paddock shell` at a real terminal: keys go in by `tmux`, and what the terminal shows is looked at.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::screen::Screen;
use paddock_tests::server::{Server, ServerKind, environment, free_port};

/// The shell's command line, with its state below a directory.
fn shell(server: &Server, state: &Path) -> Command {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(["shell", &server.address().to_string()]);
    command.env("XDG_STATE_HOME", state).env_remove("PADDOCK_HOSTS").env_remove("NO_COLOR");
    command
}

/// Carries lines out without a terminal.
fn script(server: &Server, lines: &str) -> String {
    let mut file = tempfile::tempfile().expect("make a file for the script");
    file.write_all(lines.as_bytes()).and_then(|()| file.rewind()).expect("write the script");
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(["shell", &server.address().to_string()]).stdin(Stdio::from(file));
    let output = command.output().expect("run paddock shell");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("what it prints is text")
}

struct ShellTest {
    server: Server,
    state: tempfile::TempDir,
    prompt: String,
}

impl ShellTest {
    fn new() -> ShellTest {
        let server = Server::start(ServerKind::Paddock);
        let state = tempfile::tempdir().expect("make a directory for the history");
        let prompt = format!("{} />", server.address());
        ShellTest { server, state, prompt }
    }

    /// A shell that waits for its first line.
    fn shell(&self, name: &str) -> Screen {
        let screen = Screen::start(name, &shell(&self.server, self.state.path()));
        screen.wait_for_last("prompt", &self.prompt);
        screen
    }
}

/// Gives up the line that was typed, and waits for the next prompt: the editor drops keys that come in one piece with Ctrl-C.
fn give_up_line(screen: &Screen, prompt: &str) {
    screen.press("C-c");
    screen.wait_for_last("next-prompt", prompt);
}

#[test]
fn commands_flags_and_paths_are_completed() {
    let stage = ShellTest::new();
    script(
        &stage.server,
        "create /app '{\"b\":1,\"a\":[2]}'\ncreate \"/app/two words\" x\ncreate /app/config y\ncreate /apple z\n",
    );
    let screen = stage.shell("completion");
    screen.type_text("getA");
    screen.press("Tab");
    screen.press("Tab");
    screen.wait("commands", |shown| shown.contains("getAllChildrenNumber") && shown.contains("getAcl"));
    give_up_line(&screen, &stage.prompt);
    screen.type_text("get /app/c");
    screen.press("Tab");
    screen.wait_for_last("path", &format!("{} get /app/config", stage.prompt));
    screen.press("Enter");
    screen.wait("data", |shown| shown.lines().any(|line| line == "y"));
    screen.type_text("get /app/t");
    screen.press("Tab");
    screen.wait_for_last("blank", &format!("{} get /app/two\\ words", stage.prompt));
    screen.press("Enter");
    screen.wait("data-of-blank", |shown| shown.lines().any(|line| line == "x"));
    // An ambiguous beginning lists what it may become, and the line stays.
    screen.type_text("get /app");
    screen.press("Tab");
    screen.press("Tab");
    screen.wait("list", |shown| shown.lines().any(|line| line.split_whitespace().eq(["app", "apple"])));
    screen.press("Enter");
    screen.wait_for("indented", "  \"b\": 1,\n  \"a\": [\n    2\n  ]\n");
    // Relative paths are seen from where the shell stands.
    screen.enter("cd /app");
    let inside = format!("{} /app>", stage.server.address());
    screen.wait_for_last("inside", &inside);
    screen.type_text("get co");
    screen.press("Tab");
    screen.wait_for_last("relative", &format!("{inside} get config"));
    give_up_line(&screen, &inside);
    screen.type_text("ls -");
    screen.press("Tab");
    screen.press("Tab");
    screen.wait("flags", |shown| {
        shown.lines().any(|line| line.split_whitespace().eq(["-R", "-s", "-w", "-p"]))
    });
    give_up_line(&screen, &inside);
    screen.press("C-d");
    screen.wait_for_end();
}

#[test]
fn the_history_is_kept_for_the_next_run_without_passwords() {
    let stage = ShellTest::new();
    script(&stage.server, "create /a first\n");
    let screen = stage.shell("history");
    screen.enter("get /a");
    screen.wait("get", |shown| shown.contains("first"));
    screen.enter("addauth digest somebody:secret");
    screen.enter("whoami");
    screen.wait_for("whoami", "digest: somebody");
    screen.enter("history");
    screen.wait_for("history", "1 - whoami");
    screen.enter("redo 0");
    screen.wait("redo", |shown| shown.lines().filter(|line| *line == "first").count() == 2);
    screen.enter("quit");
    screen.wait_for_end();

    let file = stage.state.path().join("paddock/shell-history");
    let kept = fs::read_to_string(&file).expect("read the history");
    assert!(kept.contains("get /a") && !kept.contains("secret"), "{kept}");
    let mode = fs::metadata(&file).expect("look at the history").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let screen = stage.shell("history-of-before");
    for line in ["quit", "redo 0", "history", "whoami"] {
        screen.press("Up");
        screen.wait_for_last(&line.replace(' ', "-"), &format!("{} {line}", stage.prompt));
    }
    give_up_line(&screen, &stage.prompt);
    // A search backwards, as in other editors of lines.
    screen.press("C-r");
    screen.type_text("get");
    screen.wait_for("search", "get /a");
    screen.press("Enter");
    screen.wait("found", |shown| shown.lines().any(|line| line == "first"));
}

#[test]
fn a_listing_of_a_million_children_is_cut_short() {
    const COUNT: usize = 1_000_000;
    const AT_ONCE: usize = 10_000;
    let stage = ShellTest::new();
    let mut lines = "create /big\n".to_owned();
    for number in 0..COUNT {
        if number % AT_ONCE == 0 {
            lines += "multi\n";
        }
        lines += &format!("create /big/{number:07}\n");
        if number % AT_ONCE == AT_ONCE - 1 {
            lines += "commit\n";
        }
    }
    script(&stage.server, &lines);
    let screen = stage.shell("million");
    screen.type_text("ls /big/0");
    screen.press("Tab");
    screen.wait_for("no-completion", "no completion: /big has 1000000 children, more than 20000");
    give_up_line(&screen, &stage.prompt);
    for command in ["ls /big", "ls -R /big", "tree /big"] {
        screen.enter("pwd");
        screen.enter(command);
        let name = command.replace([' ', '/'], "");
        screen.wait(&format!("{name}-begun"), |shown| {
            shown.lines().last().is_some_and(|last| last.contains("00"))
        });
        screen.press("C-c");
        let shown = screen.wait_for_last(&format!("{name}-cut"), &stage.prompt);
        assert!(shown.contains("error: interrupted") && !shown.contains("0999999"), "{shown}");
    }
    // The session lives, and answers at once.
    screen.enter("get_direct_children_number /big");
    screen.wait("after", |shown| shown.lines().any(|line| line == "1000000"));
}

#[test]
fn a_line_survives_a_resize() {
    let stage = ShellTest::new();
    let screen = stage.shell("resize");
    let text = "create /resized 0123456789-0123456789-0123456789";
    screen.type_text(text);
    screen.wait_for("wide", text);
    screen.resize(40, 20);
    // The line is drawn again, over two rows.
    let whole = format!("{} {text}", stage.prompt);
    let rows = format!("{}\n{}", &whole[..40], &whole[40..]);
    screen.wait("narrow", |shown| shown.ends_with(&rows));
    screen.type_text("-end");
    screen.wait("longer", |shown| shown.ends_with(&format!("{rows}-end")));
    screen.resize(100, 30);
    screen.wait("wide-again", |shown| shown.ends_with(&format!("{whole}-end")));
    screen.press("Enter");
    screen.wait("made", |shown| shown.lines().any(|line| line == "/resized"));
    assert_eq!(script(&stage.server, "get /resized\n"), "0123456789-0123456789-0123456789-end\n");
}

#[test]
fn a_server_that_goes_away_and_returns_keeps_the_session() {
    let mut stage = ShellTest::new();
    let screen = stage.shell("away");
    screen.enter("create -e /mine 1");
    screen.enter("addWatch /watched");
    screen.enter("create /before 1");
    screen.wait("made", |shown| shown.lines().any(|line| line == "/before"));
    let owner = |server: &Server| {
        let stat = script(server, "stat /mine\n");
        stat.lines().find(|line| line.starts_with("ephemeralOwner")).map(str::to_owned)
    };
    let before = owner(&stage.server);
    assert!(before.is_some());

    // A half line is there while messages come.
    screen.type_text("get /mi");
    stage.server.kill();
    screen.wait_for("lost", "the connection is lost: looking for a server");
    screen.wait_for_last("lost-line", &format!("{} get /mi", stage.prompt));
    screen.press("C-c");
    let address = stage.server.address();
    screen.wait_for_last("lost-prompt", &format!("{address} (connection lost) />"));
    // A command that waits for a server is given up by its user.
    screen.enter("get /mine");
    screen.press("C-c");
    screen.wait_for("given-up", "error: interrupted");
    screen.type_text("get /mi");
    stage.server.restart();
    screen.wait_for("back", "connected again, with the same session");
    screen.type_text("ne");
    screen.press("Enter");
    screen.wait("still-mine", |shown| shown.lines().any(|line| line == "1"));
    screen.wait_for_last("prompt-again", &stage.prompt);
    assert_eq!(owner(&stage.server), before);

    // Its watches have come along, and events do not break the line.
    screen.type_text("get /be");
    screen.wait_for_last("half", &format!("{} get /be", stage.prompt));
    script(&stage.server, "create /watched 1\nset /watched 2\n");
    let shown = screen.wait_for("events", "watch: NodeDataChanged /watched");
    assert!(shown.contains("watch: NodeCreated /watched"), "{shown}");
    screen.type_text("fore");
    screen.wait_for_last("whole", &format!("{} get /before", stage.prompt));
}

#[test]
fn a_transaction_shows_in_the_prompt_and_a_removal_is_confirmed() {
    let stage = ShellTest::new();
    let screen = stage.shell("transaction");
    let address = stage.server.address();
    screen.enter("multi");
    screen.wait_for_last("open", &format!("{address} / (transaction of 0)>"));
    screen.enter("create /t 1");
    screen.enter("create /t/u 2");
    screen.wait_for_last("two", &format!("{address} / (transaction of 2)>"));
    screen.enter("commit");
    screen.wait_for_last("done", &stage.prompt);

    screen.enter("deleteall /t");
    screen.wait_for_last("question", "remove /t and all below it, 2 znodes? [y/N]");
    screen.enter("n");
    screen.wait_for("refused", "error: nothing was removed");
    assert_eq!(script(&stage.server, "ls /t\n"), "u\n");
    screen.enter("rmr /t");
    screen.wait_for_last("question-again", "remove /t and all below it, 2 znodes? [y/N]");
    screen.enter("y");
    screen.wait_for_last("removed", &stage.prompt);
    assert_eq!(script(&stage.server, "exists /t\n"), "0\n");
}

#[test]
fn colours_come_and_stay_away_as_wanted() {
    let stage = ShellTest::new();
    script(&stage.server, "create /a 1\ncreate /a/b 1\n");
    let screen = stage.shell("colours");
    screen.enter("tree /a");
    screen.wait("tree", |shown| shown.lines().any(|line| line == "  b"));
    assert!(screen.shown_with_colours().contains("\x1b[34m/a"), "{:?}", screen.shown_with_colours());

    let mut plain = shell(&stage.server, stage.state.path());
    plain.env("NO_COLOR", "1");
    let screen = Screen::start("no-colours", &plain);
    screen.wait_for_last("prompt", &stage.prompt);
    screen.enter("tree /a");
    screen.wait("tree", |shown| shown.lines().any(|line| line == "  b"));
    assert!(!screen.shown_with_colours().contains('\x1b'), "{:?}", screen.shown_with_colours());
}

#[test]
fn a_shell_without_a_server_says_so_and_connects_later() {
    let mut stage = ShellTest::new();
    stage.server.kill();
    let mut command = shell(&stage.server, stage.state.path());
    command.args(["--connect-timeout", "1s"]);
    let screen = Screen::start("no-server", &command);
    let address = stage.server.address();
    screen.wait_for_last("prompt", &format!("{address} (not connected) />"));
    screen.enter("ls /");
    screen.wait_for("failure", "error: not connected: connect host:port");
    stage.server.restart();
    screen.enter("connect");
    screen.wait_for_last("connected", &stage.prompt);
    screen.enter("help create");
    screen.wait_for("help", "Example: create -e -s /lock- mine");
}

/// Asks for a znode until it is told to end.
fn ask(address: String, path: &str, is_over: &AtomicBool) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("start a runtime");
    runtime.block_on(async {
        let client = Client::connect(&address, ClientOptions::default()).await.expect("connect");
        client.create(path, &[b'x'; 1000], CreateMode::Persistent).await.expect("create");
        while !is_over.load(Relaxed) {
            client.get_data(path).await.expect("read");
        }
        client.close().await.expect("close");
    });
}

#[test]
fn the_busiest_paths_are_seen_live_and_the_terminal_is_as_before_at_the_end() {
    let port = free_port();
    let server = Server::start_with(ServerKind::Paddock, &[("admin.serverPort", &port.to_string())]);
    let is_over = Arc::new(AtomicBool::new(false));
    let (address, told) = (server.address().to_string(), is_over.clone());
    let asking = thread::spawn(move || ask(address, "/busy", &told));
    let http = format!("127.0.0.1:{port}");
    let top =
        format!("{} top {http} --every 200ms; echo \"ended with $?\"; read line", environment("PADDOCK_BIN"));
    let mut command = Command::new("sh");
    command.args(["-c", &top]);
    let screen = Screen::start("top", &command);
    let is_shown = |shown: &str| {
        let has_rate = |line: &str| line.starts_with(&http) && !line.contains("  0.0 ");
        shown.lines().any(has_rate) && shown.lines().any(|line| line.ends_with(" /busy"))
    };
    let shown = screen.wait("busy", is_shown);
    assert!(shown.starts_with("MEMBER") && shown.contains("standalone"), "{shown}");
    assert!(shown.contains("SESSION in the last"), "{shown}");
    assert!(shown.lines().last().is_some_and(|last| last.starts_with("r by requests")), "{shown}");
    screen.press("p");
    screen.wait_for("paused", "(paused)");
    screen.press("p");
    screen.wait("goes-on", |shown| !shown.contains("(paused)"));
    screen.press("b");
    screen.resize(60, 8);
    screen.wait("small", |shown| {
        let lines: Vec<&str> = shown.lines().collect();
        lines.len() == 8 && lines[7].starts_with("r by requests") && lines[0].starts_with("MEMBER")
    });
    screen.press("q");
    let shown = screen.wait_for("end", "ended with 0");
    assert!(!shown.contains("MEMBER"), "the screen is the one of before: {shown}");
    // What is typed is shown again, and a line ends with Enter.
    screen.enter("typed");
    screen.wait_for_end();

    // Once, as text and as JSON.
    let run = |arguments: &[&str]| {
        let mut command = Command::new(environment("PADDOCK_BIN"));
        command.arg("top").args(arguments).output().expect("run paddock top")
    };
    let output = run(&[&http, "--once", "--every", "200ms"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && text.contains(" /busy\n"), "{text}");
    let output = run(&[&http, "--once", "--json", "--every", "200ms"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["paths"][0]["path"], "/busy");
    assert!(value["members"][0]["requests_per_s"].as_f64() > Some(0.0), "{value}");
    assert!(value["members"][0]["p99_us"].as_u64() > Some(0), "{value}");
    let output = run(&[&http]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && told.contains("the output is no terminal: say --once or --json"),
        "{told}"
    );
    let nowhere = format!("127.0.0.1:{}", free_port());
    let output = run(&[&nowhere, "--once", "--every", "10ms"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("no member answers"), "{told}");
    is_over.store(true, Relaxed);
    asking.join().expect("it ends in good order");
}
