//! The costs of a write that no server can avoid: one sync of the disk, and one echo over loopback.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::Error;

const ROUNDS: usize = 1000;
/// About what a create of a small znode takes in a log and on the wire.
const BYTES: [u8; 200] = [1; 200];

/// A line of a Markdown list, of a file in this directory.
pub(super) fn describe(directory: &Path) -> Result<String, Error> {
    let file = directory.join("floor");
    let sync = syncs(&file).map_err(Error::io("sync", &file))?;
    std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
    let echo = echoes().map_err(|error| Error::new(format!("echo over loopback: {error}")))?;
    let [sync, echo] = [sync, echo].map(|times| middle(times).as_micros());
    Ok(format!(
        "- Floor: a sync of the disk takes {sync} us and an echo over loopback {echo} us, {} us together (p50 of {ROUNDS})\n",
        sync + echo
    ))
}

/// Into room that was made before, as a log does it.
fn syncs(file: &Path) -> io::Result<Vec<Duration>> {
    let mut file = File::create(file)?;
    file.write_all(&vec![0; ROUNDS * BYTES.len()])?;
    file.sync_all()?;
    let sync = |round: usize| {
        let start = Instant::now();
        file.write_all_at(&BYTES, (round * BYTES.len()) as u64)?;
        file.sync_data()?;
        Ok(start.elapsed())
    };
    (0..ROUNDS).map(sync).collect()
}

fn echoes() -> io::Result<Vec<Duration>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    [&client, &server].iter().try_for_each(|stream| stream.set_nodelay(true))?;
    let echo = thread::spawn(move || {
        let mut bytes = BYTES;
        while server.read_exact(&mut bytes).and_then(|()| server.write_all(&bytes)).is_ok() {}
    });
    let mut bytes = BYTES;
    let mut ask = || {
        let start = Instant::now();
        client.write_all(&bytes)?;
        client.read_exact(&mut bytes)?;
        Ok(start.elapsed())
    };
    let times = (0..ROUNDS).map(|_| ask()).collect();
    drop(client);
    echo.join().expect("the echo does not panic");
    times
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::middle;
    use std::time::Duration;

    #[test]
    fn half_are_faster() {
        assert_eq!(middle([9, 1, 5].map(Duration::from_micros).to_vec()), Duration::from_micros(5));
    }
}
