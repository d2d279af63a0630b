//! A member whose standard error is not read, as with a collector of logs that is stuck: it serves its clients, and ends when it is told to.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Command;

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::server::{Server, ServerKind};
use tempfile::TempDir;

/// A line for each write, and more bytes than the pipe and the member's queue take together.
const SETTINGS: [(&str, &str); 1] = [("audit.enable", "true")];
const WRITES: usize = 30_000;
const UNDER_WAY: usize = 500;
const TOLD: &str = "lines of the log were dropped: nobody read standard error lines=";

/// A pipe with a name, which stays open here, and is read when the test asks.
struct Pipe {
    directory: TempDir,
    end: File,
}

impl Pipe {
    fn new() -> Pipe {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("stderr");
        let made = Command::new("mkfifo").arg(&path).status().expect("run mkfifo");
        assert!(made.success(), "make a pipe");
        // Opened both ways, so that opening does not wait for the other side.
        let end = OpenOptions::new().read(true).write(true).open(&path).expect("open the pipe");
        Pipe { directory, end }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn start(pipe: &Pipe) -> Server {
    let mut server = Server::prepare(ServerKind::Paddock, &SETTINGS);
    let redirected = format!("exec \"$0\" \"$@\" 2>{}/stderr", pipe.path().display());
    server.set_runner(&["sh", "-c", &redirected]);
    server.restart();
    server
}

async fn write(server: &Server) {
    let address = server.address().to_string();
    let client = Client::connect(&address, ClientOptions::default()).await.expect("connect");
    let numbers: Vec<usize> = (0..WRITES).collect();
    for some in numbers.chunks(UNDER_WAY) {
        let pending: Vec<_> = some
            .iter()
            .map(|number| client.create(&format!("/{number}"), b"", CreateMode::Persistent))
            .collect();
        for created in pending {
            created.await.expect("create");
        }
    }
}

#[tokio::test]
async fn clients_are_served_and_the_member_ends_when_it_is_told_to() {
    let pipe = Pipe::new();
    let mut server = start(&pipe);
    write(&server).await;
    assert_eq!(server.stop().code(), Some(0));
}

#[tokio::test]
async fn one_line_tells_how_many_are_missing_once_somebody_reads() {
    let pipe = Pipe::new();
    let mut server = start(&pipe);
    write(&server).await;
    let mut lines = BufReader::new(pipe.end.try_clone().expect("share the pipe")).lines();
    let (mut written, mut told) = (0, None);
    while told.is_none() {
        let line = lines.next().expect("the pipe is open").expect("text");
        written += usize::from(line.contains("operation=create"));
        told = line.split_once(TOLD).map(|(_, count)| count.trim().parse::<usize>().expect("a number"));
    }
    let dropped = told.expect("it was just found");
    assert!(written < WRITES && written + dropped >= WRITES, "{written} written, {dropped} dropped");
    assert_eq!(server.stop().code(), Some(0));
    // What it says at its end comes, too.
    (&pipe.end).write_all(b"END\n").expect("end the log");
    let mut last = lines.map(|line| line.expect("text")).take_while(|line| line != "END");
    assert!(last.any(|line| line.contains("operation=serverStop")));
}
