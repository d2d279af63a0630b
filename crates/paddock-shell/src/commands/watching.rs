//! Commands about watches.

use std::sync::atomic::Ordering;

use paddock_client::{AddWatchMode, WatcherKind};

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::shell::Shell;

pub(crate) async fn add(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let mode = match arguments.value("m").map(str::to_ascii_uppercase).as_deref() {
        None | Some("PERSISTENT_RECURSIVE") => AddWatchMode::PersistentRecursive,
        Some("PERSISTENT") => AddWatchMode::Persistent,
        Some(other) => {
            return Err(ShellFailure::Usage(format!(
                "there is no mode {other}: PERSISTENT or PERSISTENT_RECURSIVE"
            )));
        }
    };
    shell.client()?.add_watch(&path, mode).await.map_err(ShellFailure::at(&path))
}

pub(crate) async fn remove(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let kind = match (arguments.has("c"), arguments.has("d")) {
        (true, false) => WatcherKind::Children,
        (false, true) => WatcherKind::Data,
        _ => WatcherKind::Any,
    };
    let client = shell.client()?;
    let removal = client.remove_watches(&path, kind);
    if !arguments.has("l") {
        return removal.await.map_err(ShellFailure::at(&path));
    }
    let mut connected = shell.told()?.connected;
    let done = tokio::select! {
        done = removal => done,
        // The request stays in line for the server that is found next.
        _ = connected.wait_for(|connected| !connected) => return Ok(()),
    };
    match done {
        Err(paddock_client::Error::ConnectionLost) => {
            drop(client.remove_watches(&path, kind));
            Ok(())
        }
        done => done.map_err(ShellFailure::at(&path)),
    }
}

pub(crate) fn print(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    match arguments.at(0) {
        None => {
            let prints = shell.prints_events.load(Ordering::Relaxed);
            shell.output.line(if prints { "printwatches is on" } else { "printwatches is off" })
        }
        Some(word @ ("on" | "off")) => {
            shell.prints_events.store(word == "on", Ordering::Relaxed);
            Ok(())
        }
        Some(other) => Err(ShellFailure::Usage(format!("{other:?} is neither on nor off"))),
    }
}

/// Events are printed by who tells them; this waits for as many as were asked for.
pub(crate) async fn watch(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let count = arguments.number::<u64>("n")?;
    let mut fired = shell.told()?.fired;
    let before = *fired.borrow();
    let client = shell.client()?;
    client.add_watch(&path, AddWatchMode::PersistentRecursive).await.map_err(ShellFailure::at(&path))?;
    let _removal = Removal { client: &client, path: &path };
    let enough = |seen: &u64| count.is_some_and(|count| seen - before >= count);
    // The wait ends early if the session does.
    match fired.wait_for(enough).await {
        Ok(_) => Ok(()),
        Err(_) => Err(ShellFailure::Client(paddock_client::Error::SessionExpired)),
    }
}

/// Removes the watch in the end, also if the command is interrupted.
struct Removal<'a> {
    client: &'a paddock_client::Client,
    path: &'a str,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        // The request is on its way; its answer tells nothing new.
        drop(self.client.remove_watches(self.path, WatcherKind::PersistentRecursive));
    }
}
