//! Answers of groups beside those of one tree: where they may differ, because a znode lies in parts.
//!
//! A split point's own group counts only its own changes of the list, and the end of a session takes a group's ephemerals along with the group's zxid, not home's. So the pzxid of what
//! lies at or below a split point is not compared, nor the cversion of the split point.

use paddock_model::{Answer, Question, Wish};
use paddock_proto::{ErrorCode, Stat, WriteReply, Zxid, is_at_or_below};

type CommandResult = Result<WriteReply<'static>, ErrorCode>;

fn is_spread(path: &str, split_points: &[String]) -> bool {
    split_points.iter().any(|point| is_at_or_below(path, point))
}

/// A stat without what is not compared.
fn masked(stat: &Stat, path: &str, split_points: &[String]) -> Stat {
    let mut masked = *stat;
    if is_spread(path, split_points) {
        masked.pzxid = Zxid(0);
    }
    if split_points.iter().any(|point| point == path) {
        masked.cversion = 0;
    }
    masked
}

/// True if a command came to the same in its group and in one order.
pub(super) fn agree(
    wish: &Wish,
    found: &CommandResult,
    expected: &CommandResult,
    split_points: &[String],
) -> bool {
    match (found, expected) {
        (Ok(found), Ok(expected)) => replies_agree(wish, found, expected, split_points),
        _ => found == expected,
    }
}

fn replies_agree(wish: &Wish, found: &WriteReply<'_>, expected: &WriteReply<'_>, points: &[String]) -> bool {
    use paddock_proto::MultiResult::Done;
    match (wish, found, expected) {
        (Wish::Multi(wishes), WriteReply::Multi(found), WriteReply::Multi(expected)) => {
            let mut all = wishes.iter().zip(found.iter().zip(expected));
            found.len() == expected.len()
                && all.all(|(wish, (found, expected))| match (found, expected) {
                    (Done(op, found), Done(other, expected)) => {
                        op == other && replies_agree(wish, found, expected, points)
                    }
                    _ => found == expected,
                })
        }
        (
            Wish::SetData { path, .. } | Wish::SetAcl { path, .. },
            WriteReply::Changed { stat: found },
            WriteReply::Changed { stat: expected },
        ) => written(found, path, points) == written(expected, path, points),
        _ => found == expected,
    }
}

/// The stat that a write is answered with says of a split point what its own group knows.
fn written(stat: &Stat, path: &str, split_points: &[String]) -> Stat {
    let mut masked = masked(stat, path, split_points);
    if split_points.iter().any(|point| point == path) {
        masked.num_children = 0;
    }
    masked
}

/// Paths of which an answer speaks; `None` if it may speak of any.
pub(super) fn paths_of(question: &Question) -> Option<Vec<&str>> {
    match question {
        Question::Exists { path }
        | Question::GetData { path }
        | Question::GetAcl { path }
        | Question::GetChildren { path }
        | Question::GetChildren2 { path } => Some(vec![if path.is_empty() { "/" } else { path }]),
        Question::MultiRead(questions) => {
            let paths = questions.iter().map(paths_of).collect::<Option<Vec<_>>>()?;
            Some(paths.concat())
        }
        Question::GetEphemerals { .. } | Question::GetAllChildrenNumber { .. } => None,
    }
}

/// An answer without what is not compared.
pub(super) fn comparable(
    question: &Question,
    answer: Result<Answer, ErrorCode>,
    split_points: &[String],
) -> Result<Answer, ErrorCode> {
    let mask = |stat: &Stat, path: &str| masked(stat, path, split_points);
    answer.map(|answer| match (question, answer) {
        (Question::Exists { path }, Answer::Stat(stat)) => Answer::Stat(mask(&stat, path)),
        (Question::GetData { path }, Answer::Data(data, stat)) => Answer::Data(data, mask(&stat, path)),
        (Question::GetAcl { path }, Answer::Acl(acl, stat)) => Answer::Acl(acl, mask(&stat, path)),
        (Question::GetChildren2 { path }, Answer::Children2(names, stat)) => {
            Answer::Children2(names, mask(&stat, path))
        }
        (Question::MultiRead(questions), Answer::Many(answers)) => {
            let answers = questions.iter().zip(answers);
            Answer::Many(
                answers.map(|(question, answer)| comparable(question, answer, split_points)).collect(),
            )
        }
        (_, answer) => answer,
    })
}
