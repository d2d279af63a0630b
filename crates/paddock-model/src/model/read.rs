//! Answering questions.

use std::collections::BTreeSet;

use paddock_proto::{Acl, ErrorCode, Id, SessionId};

use super::rules::{is_below, real, up};
use super::{Model, ZnodeKind};
use crate::{Answer, Question};

const READ: i32 = 1;
const ADMIN: i32 = 16;

/// Session and identities of a reader.
#[derive(Clone, Debug)]
pub struct Asker {
    pub session: SessionId,
    pub ids: Vec<Id>,
}

impl Model {
    pub fn read(&self, question: &Question, asker: &Asker) -> Result<Answer, ErrorCode> {
        let path = match question {
            Question::MultiRead(questions) => {
                let answers = questions.iter().map(|question| self.read(question, asker));
                return Ok(Answer::Many(answers.collect()));
            }
            Question::GetEphemerals { prefix } => return Ok(self.ephemerals(prefix, asker.session)),
            Question::Exists { path } if path.contains('\0') => return Err(ErrorCode::BadArguments),
            Question::Exists { path }
            | Question::GetData { path }
            | Question::GetAcl { path }
            | Question::GetChildren { path }
            | Question::GetChildren2 { path }
            | Question::GetAllChildrenNumber { path } => path,
        };
        let node = self.get(path)?;
        let is_admin = self.may(node, ADMIN, &asker.ids).is_ok();
        if !(is_admin && matches!(question, Question::GetAcl { .. })) {
            self.may(node, READ, &asker.ids)?;
        }
        let stat = self.stat_of(real(path), node);
        Ok(match question {
            Question::Exists { .. } => Answer::Stat(stat),
            Question::GetData { .. } => Answer::Data(node.data.clone(), stat),
            Question::GetAcl { .. } if is_admin => Answer::Acl(node.acl.clone(), stat),
            Question::GetAcl { .. } => Answer::Acl(node.acl.iter().map(masked).collect(), stat),
            Question::GetChildren { .. } => Answer::Children(self.children(path)),
            Question::GetChildren2 { .. } => Answer::Children2(self.children(path), stat),
            _ => Answer::Number(self.descendants(path)),
        })
    }

    fn children(&self, path: &str) -> BTreeSet<String> {
        let name = |child: &str| child[up(child).len() + 1..].to_owned();
        self.names_below(real(path)).into_iter().map(name).collect()
    }

    /// The root has itself below it when it is called by its other name.
    fn descendants(&self, path: &str) -> i32 {
        let count = match path {
            "/" => self.nodes.len() - 1,
            "" => self.nodes.len(),
            _ => self.nodes.keys().filter(|other| is_below(other, path)).count(),
        };
        count as i32
    }

    fn ephemerals(&self, prefix: &str, session: SessionId) -> Answer {
        let is_all = matches!(prefix.trim_matches(|c| c <= ' '), "" | "/");
        let owned = self.nodes.iter().filter(|(_, node)| node.kind == ZnodeKind::Ephemeral(session));
        let paths = owned.map(|(path, _)| path.to_string());
        Answer::Paths(paths.filter(|path| is_all || path.starts_with(prefix)).collect())
    }
}

/// An entry as a client sees it that may not administer.
fn masked(entry: &Acl) -> Acl {
    let hidden = match entry.id.id.split_once(':') {
        Some((name, _)) if entry.id.scheme == "digest" => format!("{name}:x"),
        _ => entry.id.id.clone(),
    };
    Acl { perms: entry.perms, id: Id::new(entry.id.scheme.clone(), hidden) }
}
