//! A session, with what commands need of it. `commands.rs` carries them out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use paddock_client::{Client, ClientOptions, Multi, Tls};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::events::{self, Happenings};
use crate::failure::ShellFailure;
use crate::output::{Form, Printer, Sink, harmless};
use crate::paths;

/// Servers, the way in to them, and the form of what is printed.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// `host:port`, with commas between several.
    pub servers: String,
    /// TLS, the login and the time limits of the session.
    pub options: ClientOptions,
    /// Scheme and proof of the identities that are shown at the beginning.
    pub identities: Vec<(String, Vec<u8>)>,
    pub form: Form,
    pub colours: bool,
    /// True if commands that write are refused.
    pub read_only: bool,
    /// True if a subtree is removed only when its user agrees: lines are typed.
    pub confirms: bool,
    /// True if JSON is shown with indents: a person reads it.
    pub indents: bool,
}

/// Result of a line that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Next,
    Quit,
}

/// A session of commands: the connection, the znode where it stands, and an open transaction.
pub struct Shell {
    pub(crate) settings: ShellSettings,
    pub(crate) output: Printer,
    pub(crate) directory: String,
    pub(crate) transaction: Option<Transaction>,
    /// Identities, also those of `addauth`: `connect` shows them again.
    pub(crate) identities: Vec<(String, Vec<u8>)>,
    pub(crate) prints_events: Arc<AtomicBool>,
    /// Lines that were carried out.
    pub(crate) history: Vec<String>,
    /// True while a command is carried out to which its user has agreed.
    pub(crate) is_confirmed: bool,
    pub(crate) connection: Option<ServerConnection>,
}

/// A session on a server.
pub(crate) struct ServerConnection {
    pub client: Client,
    pub told: Happenings,
}

/// Operations that wait for `commit`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub operations: Multi,
    pub count: usize,
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Shell {
    /// A shell that is not connected yet.
    pub fn new(settings: ShellSettings, sink: Sink) -> Shell {
        let output = Printer::new(settings.form, settings.colours, sink);
        Shell {
            output,
            directory: "/".to_owned(),
            transaction: None,
            identities: settings.identities.clone(),
            prints_events: Arc::new(AtomicBool::new(true)),
            history: Vec::new(),
            is_confirmed: false,
            connection: None,
            settings,
        }
    }

    /// Opens a new session, and shows the identities.
    pub async fn connect(&mut self) -> Result<(), ShellFailure> {
        self.close().await;
        let (sender, receiver) = mpsc::unbounded_channel();
        let options = ClientOptions { events: Some(sender), ..self.settings.options.clone() };
        let client = Client::connect(&self.settings.servers, options).await?;
        let told = events::tell(receiver, self.output.clone(), Arc::clone(&self.prints_events));
        for (scheme, auth) in &self.identities {
            client.add_auth(scheme, auth).await?;
        }
        if client.is_read_only() {
            eprintln!(
                "note: the server has no contact to a quorum: it takes no writes, and what it tells may be old"
            );
        }
        self.connection = Some(ServerConnection { client, told });
        Ok(())
    }

    /// Ends the session, whose ephemerals go with it.
    pub async fn close(&mut self) {
        /// A server that is away is not waited for: the session expires.
        const PATIENCE: Duration = Duration::from_secs(2);
        if let Some(ServerConnection { client, .. }) = self.connection.take() {
            let _ = timeout(PATIENCE, client.close()).await;
        }
    }

    /// Keeps a line for `history` and `redo`.
    pub(crate) fn remember(&mut self, line: &str) {
        self.history.push(line.to_owned());
    }

    /// Puts a line of the history in the place of the last one, which stood for it.
    pub(crate) fn replace_last_line(&mut self, line: &str) {
        if let Some(last) = self.history.last_mut() {
            line.clone_into(last);
        }
    }

    /// Prompt of a shell at a terminal: the servers, the state of the connection, where the shell stands, and an open transaction.
    pub(crate) fn prompt(&self) -> String {
        let servers = short_list(&self.settings.servers);
        let state = match &self.connection {
            None => " (not connected)",
            Some(connection) if *connection.told.expired.borrow() => " (session expired)",
            Some(connection) if !*connection.told.connected.borrow() => " (connection lost)",
            Some(connection) if connection.client.is_read_only() => " (read-only server)",
            Some(_) => "",
        };
        let open = self.transaction.as_ref().map(|open| format!(" (transaction of {})", open.count));
        format!("{servers}{state} {}{}> ", harmless(&self.directory), open.unwrap_or_default())
    }

    /// True if the session is over while the shell still holds it.
    pub(crate) fn has_expired(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| *connection.told.expired.borrow())
    }

    pub(crate) fn client(&self) -> Result<Client, ShellFailure> {
        Ok(self.connection.as_ref().ok_or(ShellFailure::NotConnected)?.client.clone())
    }

    pub(crate) fn told(&self) -> Result<Happenings, ShellFailure> {
        Ok(self.connection.as_ref().ok_or(ShellFailure::NotConnected)?.told.clone())
    }

    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.settings.options.tls.as_ref()
    }

    /// The path of an argument, or where the shell stands.
    pub(crate) fn path(&self, typed: Option<&str>) -> Result<String, ShellFailure> {
        paths::resolve(&self.directory, typed.unwrap_or("."))
    }
}

/// The first server of a list, and the number of the others.
fn short_list(servers: &str) -> String {
    match servers.split(',').count() {
        1 => harmless(servers),
        count => format!("{}+{}", harmless(servers.split(',').next().unwrap_or_default()), count - 1),
    }
}
