//! Four-letter words, asked at a server's port for clients.

use std::io;

use paddock_client::{Stream, Tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::http_client::within;

/// A longer answer is cut off.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A server's answer to a word, and the certificate that it has shown.
pub(super) struct WordReply {
    pub(super) text: String,
    pub(super) certificate: Option<Vec<u8>>,
}

/// Asks a server for a word.
pub(super) async fn word(address: &str, tls: Option<&Tls>, word: &str) -> io::Result<WordReply> {
    let mut stream = within(Stream::connect(address, tls)).await?;
    let certificate = stream.peer_certificate().map(<[u8]>::to_vec);
    let asked = async {
        stream.write_all(word.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        // A server that speaks TLS may end the connection without its farewell.
        match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof && answer.is_empty() => Err(error),
            _ => Ok(answer),
        }
    };
    let answer = within(asked).await?;
    Ok(WordReply { text: String::from_utf8_lossy(&answer).into_owned(), certificate })
}
