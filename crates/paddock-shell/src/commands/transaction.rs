//! Transactions: operations that are kept until they are carried out together.

use paddock_client::WriteReply;
use serde_json::json;

use super::writing;
use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::shell::{Shell, Transaction};
use crate::table::Verb;

/// True for a command that an open transaction keeps instead of its being carried out.
pub(crate) fn takes(verb: Verb) -> bool {
    matches!(verb, Verb::Create | Verb::Set | Verb::Delete | Verb::Check)
}

pub(crate) fn begin(shell: &mut Shell) -> Result<(), ShellFailure> {
    if shell.transaction.is_some() {
        return Err(ShellFailure::Usage("a transaction is open: commit or abort it first".to_owned()));
    }
    shell.transaction = Some(Transaction::default());
    Ok(())
}

/// Keeps an operation.
pub(crate) fn add(shell: &mut Shell, verb: Verb, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let Transaction { operations, count } = shell.transaction.clone().expect("a transaction is open");
    let operations = match verb {
        Verb::Create => {
            if arguments.has("t") {
                return Err(ShellFailure::Usage("a transaction makes no znodes with a TTL".to_owned()));
            }
            let mode = writing::mode(arguments)?;
            let path = writing::new_path(shell, arguments.at(0), mode)?;
            let data = arguments.at(1).unwrap_or_default().as_bytes();
            operations.create_with_acl(&path, data, &writing::new_acl(arguments)?, mode)
        }
        Verb::Set => {
            let data = arguments.at(1).unwrap_or_default().as_bytes();
            operations.set_data(&path, data, writing::version(arguments, 2)?)
        }
        Verb::Check => operations.check(&path, arguments.number_at(1)?),
        _ => operations.delete(&path, writing::version(arguments, 1)?),
    };
    shell.transaction = Some(Transaction { operations, count: count + 1 });
    Ok(())
}

fn take(shell: &mut Shell) -> Result<Transaction, ShellFailure> {
    shell
        .transaction
        .take()
        .ok_or_else(|| ShellFailure::Usage("no transaction is open: begin one with multi".to_owned()))
}

pub(crate) async fn commit(shell: &mut Shell) -> Result<(), ShellFailure> {
    let Transaction { operations, count } = take(shell)?;
    let replies = shell.client()?.multi(&operations).await?;
    let mut paths = Vec::new();
    for reply in replies {
        match reply {
            WriteReply::Created { path } | WriteReply::CreatedWithStat { path, .. } => {
                paths.push(path.into_owned())
            }
            _ => {}
        }
    }
    if shell.output.is_json() {
        return shell.output.line(&json!({ "operations": count, "created": paths }).to_string());
    }
    paths.iter().try_for_each(|path| shell.output.line(path))
}

pub(crate) fn abort(shell: &mut Shell) -> Result<(), ShellFailure> {
    take(shell).map(drop)
}
