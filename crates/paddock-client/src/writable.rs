//! The search for a server that takes writes, while the session is at one that has no quorum.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

use crate::Tls;
use crate::stream::Stream;

/// Pause before each question.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks one server after the other, beginning at `first`, and returns the place of the first one that takes writes.
pub(crate) async fn find(servers: Vec<String>, tls: Option<Tls>, first: usize) -> usize {
    /// A server that does not answer within this time is passed over.
    const PATIENCE: Duration = Duration::from_secs(2);
    for place in first.. {
        sleep(PAUSE).await;
        let server = &servers[place % servers.len()];
        if timeout(PATIENCE, takes_writes(server, tls.as_ref()))
            .await
            .is_ok_and(|answer| answer.unwrap_or(false))
        {
            return place % servers.len();
        }
    }
    unreachable!("places do not come to an end")
}

async fn takes_writes(server: &str, tls: Option<&Tls>) -> io::Result<bool> {
    /// The answer is `rw` or `ro`.
    const ANSWER_BYTES: u64 = 2;
    let mut stream = Stream::connect(server, tls).await?;
    stream.write_all(b"isro").await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    (&mut stream).take(ANSWER_BYTES).read_to_end(&mut answer).await?;
    Ok(answer == b"rw")
}
