//! Commands about the ensemble and its members.

use std::time::Duration;

use paddock_client::{Data, OpCode, Stream};
use paddock_proto::Stat;
use paddock_proto::jute::{Reader, Writer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::output::data_json;
use crate::shell::Shell;

const CONFIG: &str = "/zookeeper/config";

pub(crate) async fn sync(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    shell.client()?.sync(&path).await.map(drop).map_err(ShellFailure::at(&path))
}

/// A change of the members: of some of them, or of all.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Some { joining: String, leaving: String },
    All(String),
}

fn change(arguments: &Arguments) -> Result<(Change, Option<i64>), ShellFailure> {
    let usage = || {
        ShellFailure::Usage(
            "say -add, -remove, -members or -file, or one of add, remove and set with its text".to_owned(),
        )
    };
    let some = |joining: &str, leaving: &str| Change::Some {
        joining: joining.to_owned(),
        leaving: leaving.to_owned(),
    };
    if let Some(kind) = arguments.at(0) {
        let text = arguments.at(1).ok_or_else(usage)?;
        let change = match kind {
            "add" => some(text, ""),
            "remove" => some("", text),
            "set" => Change::All(text.to_owned()),
            _ => return Err(usage()),
        };
        return Ok((change, arguments.number_at(2)?));
    }
    let (joining, leaving) = (arguments.values("add").join(","), arguments.values("remove").join(","));
    let change = match (arguments.value("members"), arguments.value("file")) {
        (None, None) if joining.is_empty() && leaving.is_empty() => return Err(usage()),
        (None, None) => some(&joining, &leaving),
        (Some(members), None) if joining.is_empty() && leaving.is_empty() => Change::All(members.to_owned()),
        (None, Some(file)) if joining.is_empty() && leaving.is_empty() => {
            let io = |error| ShellFailure::Io { what: format!("read {file}"), error };
            let text = std::fs::read_to_string(file).map_err(io)?;
            let members = text.lines().map(str::trim).filter(|line| line.starts_with("server."));
            Change::All(members.collect::<Vec<_>>().join(","))
        }
        _ => {
            return Err(ShellFailure::Usage(
                "-members, -file, and -add with -remove do not go together".to_owned(),
            ));
        }
    };
    Ok((change, arguments.value("v").map(version).transpose()?))
}

/// A version of the configuration, which is a zxid in hexadecimal as `config` shows it.
fn version(text: &str) -> Result<i64, ShellFailure> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    i64::from_str_radix(digits, 16).map_err(|_| {
        ShellFailure::Usage(format!("{text:?} is no version of a configuration, which is hexadecimal"))
    })
}

pub(crate) async fn reconfig(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let (change, version) = change(arguments)?;
    let client = shell.client()?;
    let data = match change {
        Change::Some { joining, leaving } => client.reconfig(&joining, &leaving, version).await?,
        Change::All(members) => {
            let body = |out: &mut Vec<u8>| {
                // Null, not empty: only then the server looks at all members.
                out.put_buffer(None);
                out.put_buffer(None);
                out.put_string(&members);
                out.put_i64(version.unwrap_or(-1));
            };
            let reply = client.send(OpCode::Reconfig, body).await?;
            let mut reader = Reader::new(&reply.body);
            let mut read =
                || Ok(Data { bytes: reader.buffer()?.map(<[u8]>::to_vec), stat: Stat::decode(&mut reader)? });
            let bad = |source| paddock_client::Error::BadReply { op: OpCode::Reconfig, source };
            read().map_err(bad)?
        }
    };
    show_config(shell, &data, arguments)
}

pub(crate) async fn config(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let client = shell.client()?;
    let pending = if arguments.has("w") { client.watch_data(CONFIG) } else { client.get_data(CONFIG) };
    let data = pending.await.map_err(ShellFailure::at(CONFIG))?;
    if arguments.has("c") {
        let text = String::from_utf8_lossy(data.bytes.as_deref().unwrap_or_default()).into_owned();
        let (version, addresses) = clients_part(&text);
        let shown = format!("{version} {addresses}");
        return shell.output.show(|| json!({ "version": version, "clients": addresses }), || shown);
    }
    show_config(shell, &data, arguments)
}

fn show_config(shell: &Shell, data: &Data, arguments: &Arguments) -> Result<(), ShellFailure> {
    let out = &shell.output;
    if out.is_json() {
        let (_, text) = data_json(data.bytes.as_deref());
        return out.line(&json!({ "config": text }).to_string());
    }
    out.data(data.bytes.as_deref())?;
    if arguments.has("s") { out.stat(&data.stat) } else { Ok(()) }
}

/// The version of a configuration, and the addresses for clients with commas between them.
fn clients_part(text: &str) -> (String, String) {
    let mut version = String::new();
    let mut addresses = Vec::new();
    for line in text.lines() {
        match line.split_once('=') {
            Some(("version", value)) => version = value.to_owned(),
            Some((name, value)) if name.starts_with("server.") => {
                addresses.extend(value.rsplit_once(';').map(|(_, client)| client.to_owned()));
            }
            _ => {}
        }
    }
    (version, addresses.join(","))
}

/// Asks the first server that answers, on a connection of its own: such words need no session.
pub(crate) async fn four_letter_word(shell: &Shell, word: &str) -> Result<(), ShellFailure> {
    /// A server that does not answer within this time is passed over.
    const PATIENCE: Duration = Duration::from_secs(5);
    let mut last = None;
    for server in shell.settings.servers.split(',').map(str::trim) {
        match timeout(PATIENCE, ask(shell, server, word)).await {
            Ok(Ok(answer)) if answer.is_empty() => {
                return Err(ShellFailure::Refused(format!("{server} does not answer {word}")));
            }
            Ok(Ok(answer)) => {
                let answer = String::from_utf8_lossy(&answer).into_owned();
                return shell.output.show(|| json!(answer), || answer.trim_end_matches('\n').to_owned());
            }
            Ok(Err(error)) => last = Some((server, error)),
            Err(_) => last = Some((server, std::io::ErrorKind::TimedOut.into())),
        }
    }
    let (server, error) = last.expect("there is a server, or the session would not be");
    Err(ShellFailure::Io { what: format!("ask {server} {word}"), error })
}

async fn ask(shell: &Shell, server: &str, word: &str) -> std::io::Result<Vec<u8>> {
    /// An answer is shorter.
    const ANSWER_BYTES_MAX: u64 = 256 << 20;
    let mut stream = Stream::connect(server, shell.tls()).await?;
    stream.write_all(word.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match (&mut stream).take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await {
        // Some servers end the connection without a word of TLS.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_for_clients_is_taken_out() {
        let text = "server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:observer;b:2182\nversion=1000a";
        assert_eq!(clients_part(text), ("1000a".to_owned(), "0.0.0.0:2181,b:2182".to_owned()));
        assert_eq!(version("1000a").unwrap(), 0x1000a);
        assert!(version("x").is_err());
    }
}
