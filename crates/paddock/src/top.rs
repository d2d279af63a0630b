//! `paddock top`: members, and their busiest paths and sessions, as a view that lives.
//!
//! All of it comes from the HTTP interface, where members count what they are asked for. A view is made of two looks (`view.rs`), and
//! shown at a terminal (`terminal.rs`), as a table, or as JSON.

mod look;
mod terminal;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::access::{AccessArgs, AccessError};
use crate::http_client::HttpAddress;
use crate::signals::EndSignals;
use look::{TopLook, Watching};
use terminal::{Key, Terminal};
use view::{SortOrder, View};

const EXAMPLES: &str = "\
Examples:
  paddock top zk1:8080,zk2:8080,zk3:8080        a live view; q ends it
  paddock top zk1:8080 --once                   one table
  paddock top zk1:8080 --json                   a line of JSON a second
  paddock top https://zk1:8443 --tls-ca ca.pem --auth @identity

Keys: r sorts by requests, b by bytes, p pauses, q ends.
HOSTS are addresses of HTTP interfaces (admin_listen, admin.serverPort). Each member counts what its own clients ask for, so name all of them.
Paths that everybody may read are shown; for others, show an identity with --auth.";

/// Requests a member is asked for: the busiest paths and sessions, live
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// HTTP interfaces of members, host:port or URL, with commas between several
    #[arg(value_name = "HOSTS", value_delimiter = ',', default_value = "localhost:8080", value_parser = HttpAddress::parse)]
    hosts: Vec<HttpAddress>,
    /// Print one table, and end
    #[arg(long)]
    once: bool,
    /// Print JSON, one value for each look
    #[arg(long)]
    json: bool,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    every: Duration,
    /// Order of paths and sessions
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = SortOrder::Requests)]
    by: SortOrder,
    /// Lines of paths, and of sessions; a live view has as many as there is room for
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    lines: usize,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, thiserror::Error)]
enum TopFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the output is no terminal: say --once or --json")]
    NoTerminal,
    #[error("no member answers: {0}")]
    NoAnswer(String),
    #[error("start the runtime: {0}")]
    Runtime(io::Error),
    #[error("use the terminal: {0}")]
    Terminal(io::Error),
    #[error("write the output: {0}")]
    Output(io::Error),
}

pub(crate) fn run(args: &TopArgs) -> ExitCode {
    match begin(args) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough is no failure.
        Err(TopFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", paddock_tls::with_causes(&failure));
            ExitCode::FAILURE
        }
    }
}

fn begin(args: &TopArgs) -> Result<(), TopFailure> {
    let access = args.access.read()?;
    let watching = Watching {
        hosts: args.hosts.clone(),
        tls: access.tls,
        identity: access.identities.into_iter().next(),
    };
    let is_live = !args.once && !args.json;
    if is_live && !io::stdout().is_terminal() {
        return Err(TopFailure::NoTerminal);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(TopFailure::Runtime)?
        .block_on(async { if is_live { live(args, &watching).await } else { print(args, &watching).await } })
}

/// Looks at all members at the same time.
async fn look(watching: &Watching) -> Vec<TopLook> {
    let mut asked = JoinSet::new();
    for (place, host) in watching.hosts.iter().cloned().enumerate() {
        let (tls, identity) = (watching.tls.clone(), watching.identity.clone());
        asked.spawn(async move { (place, look::look(&host, tls.as_ref(), identity.as_ref()).await) });
    }
    let mut looks = asked.join_all().await;
    looks.sort_by_key(|(place, _)| *place);
    looks.into_iter().map(|(_, look)| look).collect()
}

async fn print(args: &TopArgs, watching: &Watching) -> Result<(), TopFailure> {
    let mut before = look(watching).await;
    loop {
        tokio::time::sleep(args.every).await;
        let now = look(watching).await;
        if let (true, Some(reason)) =
            (args.once, now.iter().all(|look| look.facts.is_err()).then(|| &now[0].facts))
            && let Err(reason) = reason
        {
            return Err(TopFailure::NoAnswer(format!("{}: {reason}", now[0].address)));
        }
        let view = View::between(&before, &now, args.by);
        let text =
            if args.json { format!("{}\n", view.as_json(args.lines)) } else { view.as_text(args.lines) };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(TopFailure::Output)?;
        if args.once {
            return Ok(());
        }
        before = now;
    }
}

async fn live(args: &TopArgs, watching: &Watching) -> Result<(), TopFailure> {
    let mut signals = EndSignals::listen().map_err(TopFailure::Terminal)?;
    let mut terminal = Terminal::enter().map_err(TopFailure::Terminal)?;
    let (mut order, mut is_paused) = (args.by, false);
    let mut before = look(watching).await;
    let mut now = before.clone();
    let mut timer = tokio::time::interval(args.every.max(Duration::from_millis(100)));
    loop {
        let view = View::between(&before, &now, order);
        let (_, rows) = terminal.size().map_err(TopFailure::Terminal)?;
        let text = view.as_text(view.lines_that_fit(rows));
        terminal.show(&text, is_paused).map_err(TopFailure::Terminal)?;
        tokio::select! {
            _ = timer.tick(), if !is_paused => {
                before = std::mem::replace(&mut now, look(watching).await);
            }
            key = terminal.key() => match key {
                Some(Key::End) | None => return Ok(()),
                Some(Key::Pause) => is_paused = !is_paused,
                Some(Key::By(wanted)) => order = wanted,
                Some(Key::Resized | Key::Other) => {}
            },
            _ = signals.next() => return Ok(()),
        }
    }
}
