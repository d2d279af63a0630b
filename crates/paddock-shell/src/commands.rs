//! The commands: one file for each group, and the one place that knows which is which.

mod acl;
mod backups;
mod copying;
mod ensemble;
mod local;
mod quota;
mod reading;
mod removing;
mod transaction;
mod walking;
mod watching;
mod writing;

use std::time::Duration;

use tokio::time::timeout;

use crate::arguments::Arguments;
use crate::events::Happenings;
use crate::failure::ShellFailure;
use crate::shell::{Shell, Step};
use crate::table::{self, Command, FOUR_LETTER_WORDS, Verb};
use crate::words::{Word, shows_secret, split};

impl Shell {
    /// Takes a line apart and carries it out.
    pub async fn run_line(&mut self, line: &str) -> Result<Step, ShellFailure> {
        let words = split(line)?;
        self.run(&words).await
    }

    /// Carries one command out. Its output has been written when this returns.
    pub async fn run(&mut self, words: &[Word]) -> Result<Step, ShellFailure> {
        let Some((name, rest)) = words.split_first() else { return Ok(Step::Next) };
        let done = self.run_named(&name.text, rest).await;
        // What was printed before a failure is printed.
        self.output.flush()?;
        done
    }

    /// Carries a line of a script out, which `history` and `redo` know then.
    pub async fn run_script_line(&mut self, line: &str) -> Result<Step, ShellFailure> {
        let words = split(line)?;
        if !words.is_empty() && !shows_secret(line) {
            self.remember(line);
        }
        self.run_impatiently(&words).await
    }

    /// As `run`, and fails if the server is away for longer than a session lives: a script must end.
    pub async fn run_impatiently(&mut self, words: &[Word]) -> Result<Step, ShellFailure> {
        let told = self.connection.as_ref().map(|connection| connection.told.clone());
        let patience = self.settings.options.session_timeout;
        tokio::select! {
            done = self.run(words) => done,
            () = lost(told, patience) => {
                Err(ShellFailure::Refused(format!("no server has answered for {} s: check that they run", patience.as_secs())))
            }
        }
    }

    async fn run_named(&mut self, name: &str, rest: &[Word]) -> Result<Step, ShellFailure> {
        let Some(command) = table::find(name) else {
            if FOUR_LETTER_WORDS.contains(&name) && rest.is_empty() {
                ensemble::four_letter_word(self, name).await?;
                return Ok(Step::Next);
            }
            let proposal =
                table::nearest(name).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            return Err(ShellFailure::Usage(format!(
                "there is no command {name:?}{proposal}: help lists them all"
            )));
        };
        let arguments = Arguments::parse(command, rest)?;
        self.refuse_writes(command)?;
        carry_out(self, command.verb, &arguments).await
    }

    fn refuse_writes(&self, command: &Command) -> Result<(), ShellFailure> {
        if self.settings.read_only && command.writes {
            return Err(ShellFailure::Usage(format!(
                "{} changes something, and the shell is --readonly",
                command.name
            )));
        }
        Ok(())
    }
}

/// Returns when the connection has been gone for this long.
async fn lost(told: Option<Happenings>, patience: Duration) {
    let Some(mut told) = told else { return std::future::pending().await };
    loop {
        if told.connected.wait_for(|connected| !connected).await.is_err() {
            return std::future::pending().await;
        }
        if timeout(patience, told.connected.wait_for(|connected| *connected)).await.is_err() {
            return;
        }
    }
}

async fn carry_out(shell: &mut Shell, verb: Verb, arguments: &Arguments) -> Result<Step, ShellFailure> {
    if shell.transaction.is_some() && transaction::takes(verb) {
        transaction::add(shell, verb, arguments)?;
        return Ok(Step::Next);
    }
    match verb {
        Verb::Ls => reading::ls(shell, arguments).await,
        Verb::Get => reading::get(shell, arguments).await,
        Verb::Stat => reading::stat(shell, arguments).await,
        Verb::Exists => reading::exists(shell, arguments).await,
        Verb::DirectChildren => reading::direct_children(shell, arguments).await,
        Verb::AllChildren => reading::all_children(shell, arguments).await,
        Verb::Ephemerals => reading::ephemerals(shell, arguments).await,
        Verb::Create => writing::create(shell, arguments).await,
        Verb::Set => writing::set(shell, arguments).await,
        Verb::Touch => writing::touch(shell, arguments).await,
        Verb::Delete => removing::delete(shell, arguments).await,
        Verb::DeleteAll => removing::delete_all(shell, arguments, None).await,
        Verb::RemoveLimited => removing::delete_all(shell, arguments, Some(removing::LIMIT)).await,
        Verb::DeleteStaleBackups => backups::delete_stale(shell, arguments).await,
        Verb::Cp => copying::copy(shell, arguments, false).await,
        Verb::CpAll => copying::copy(shell, arguments, true).await,
        Verb::Mv => copying::rename(shell, arguments, false).await,
        Verb::MvAll => copying::rename(shell, arguments, true).await,
        Verb::Tree => walking::tree(shell, arguments).await,
        Verb::Find => walking::find(shell, arguments).await,
        Verb::Du => walking::du(shell, arguments).await,
        Verb::FindBigFamily => walking::big_family(shell, arguments).await,
        Verb::FindSuperNodes => walking::super_nodes(shell, arguments).await,
        Verb::WalkedChildren => walking::count(shell, arguments).await,
        Verb::GetAcl => acl::get(shell, arguments).await,
        Verb::SetAcl => acl::set(shell, arguments).await,
        Verb::AddAuth => acl::add_auth(shell, arguments).await,
        Verb::WhoAmI => acl::who_am_i(shell).await,
        Verb::AddWatch => watching::add(shell, arguments).await,
        Verb::RemoveWatches => watching::remove(shell, arguments).await,
        Verb::PrintWatches => watching::print(shell, arguments),
        Verb::Watch => watching::watch(shell, arguments).await,
        Verb::Sync => ensemble::sync(shell, arguments).await,
        Verb::Reconfig => ensemble::reconfig(shell, arguments).await,
        Verb::Config => ensemble::config(shell, arguments).await,
        Verb::FourLetterWord => {
            ensemble::four_letter_word(shell, arguments.at(0).expect("the table wants one")).await
        }
        Verb::SetQuota => quota::set(shell, arguments).await,
        Verb::ListQuota => quota::list(shell, arguments).await,
        Verb::DelQuota => quota::delete(shell, arguments).await,
        Verb::Multi => transaction::begin(shell),
        Verb::Check => {
            Err(ShellFailure::Usage("check stands in a transaction: begin one with multi".to_owned()))
        }
        Verb::Commit => transaction::commit(shell).await,
        Verb::Abort => transaction::abort(shell),
        Verb::Cd => local::change_directory(shell, arguments).await,
        Verb::Pwd => local::directory(shell),
        Verb::Connect => local::connect(shell, arguments).await,
        Verb::Close => local::close(shell).await,
        Verb::Version => local::version(shell),
        Verb::History => local::history(shell),
        Verb::Redo => {
            let line = local::line_again(shell, arguments)?;
            // The history tells what was done.
            shell.replace_last_line(&line);
            return Box::pin(shell.run_line(&line)).await;
        }
        Verb::Help => local::help(shell, arguments),
        Verb::Quit => return Ok(Step::Quit),
    }?;
    Ok(Step::Next)
}
