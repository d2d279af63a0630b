//! Trying out writes: their outcomes and what they would change are computed by carrying them out and taking them back.
//!
//! An engine whose order of writes is made elsewhere has to know what a write comes to before it is ordered. It asks the
//! same code that carries writes out, so that the two cannot differ.

use std::collections::BTreeSet;

use paddock_proto::{EventKind, SessionId, Write};

use crate::{Command, Outcome, Tree};

/// Paths that some writes would create, delete or change in any way that an engine has to keep, quota statistics included.
pub type Touched = BTreeSet<String>;

impl Tree {
    /// Carries out the commands one after the other, shows `look` the tree as it would be and what became of each, and takes
    /// everything back.
    pub fn try_out<'a, T>(
        &mut self,
        commands: &[Command<'a>],
        look: impl FnOnce(&Tree, Vec<Outcome<'a>>, Touched) -> T,
    ) -> T {
        let (zxid, ensemble, secret) = (self.zxid, self.ensemble.clone(), self.secret);
        // `look` finds those of the trial.
        let overruns = std::mem::take(&mut self.overruns);
        let ids: BTreeSet<SessionId> = commands.iter().flat_map(sessions_of).collect();
        let sessions: Vec<_> = ids.into_iter().map(|id| (id, self.sessions.get(&id).cloned())).collect();

        self.store.open_journal();
        let outcomes: Vec<Outcome<'a>> = commands.iter().map(|command| self.apply(command)).collect();
        let touched = self.touched(&outcomes);
        let result = look(self, outcomes, touched);
        self.store.roll_back_journal();

        (self.zxid, self.ensemble, self.secret, self.overruns) = (zxid, ensemble, secret, overruns);
        for (id, before) in sessions {
            match before {
                Some(session) => self.sessions.insert(id, session),
                None => self.sessions.remove(&id),
            };
        }
        result
    }

    fn touched(&self, outcomes: &[Outcome<'_>]) -> Touched {
        let mut touched: Touched =
            self.store.journalled().into_iter().map(|id| self.store.path(id)).collect();
        let deleted = outcomes.iter().flat_map(|outcome| &outcome.changes);
        let deleted = deleted.filter(|change| change.kind == EventKind::NodeDeleted);
        touched.extend(deleted.map(|change| change.path.to_string()));
        touched
    }
}

/// Sessions that a command may begin, move or end.
fn sessions_of(command: &Command<'_>) -> [SessionId; 2] {
    match command.write {
        Ok(Write::ExpireSession { session }) => [command.session, session],
        _ => [command.session; 2],
    }
}
