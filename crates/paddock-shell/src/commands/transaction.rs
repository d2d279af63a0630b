//! Transactions: operations that are kept until they are carried out together.

use paddock_client::{Multi, WriteReply};
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
    let operation = operation(shell, verb, arguments)?;
    let Transaction { operations, count } = shell.transaction.as_mut().expect("a transaction is open");
    *operations = operation(std::mem::take(operations));
    *count += 1;
    Ok(())
}

/// Function that adds the operation of a command to those before it.
type AddsOperation<'a> = Box<dyn FnOnce(Multi) -> Multi + 'a>;

fn operation<'a>(
    shell: &Shell,
    verb: Verb,
    arguments: &'a Arguments,
) -> Result<AddsOperation<'a>, ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    Ok(match verb {
        Verb::Create => {
            if arguments.has("t") {
                return Err(ShellFailure::Usage("a transaction makes no znodes with a TTL".to_owned()));
            }
            let writing::Creation { mode, acl } = writing::Creation::of(arguments)?;
            let path = writing::new_path(shell, arguments.at(0), mode)?;
            let data = writing::created_data(arguments);
            Box::new(move |multi| multi.create_any(&path, data, &acl, mode, None))
        }
        Verb::Set => {
            let version = writing::version(arguments, 2)?;
            let data = writing::new_data(arguments)?;
            Box::new(move |multi| multi.set_data(&path, &data, version))
        }
        Verb::Check => {
            let version = arguments.number_at(1)?;
            Box::new(move |multi| multi.check(&path, version))
        }
        _ => {
            let version = writing::version(arguments, 1)?;
            Box::new(move |multi| multi.delete(&path, version))
        }
    })
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
