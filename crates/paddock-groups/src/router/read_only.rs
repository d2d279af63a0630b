//! Requests that come while the home group's replica here cannot write: reads are answered as the groups are here, each as far as it has come.
//!
//! A client that comes back asks for what it missed since the zxid that it was told last. So one that watches is told of no zxid that a group lacks in which it watches: its connection
//! is closed, and it may find more at another member.

use std::collections::BTreeSet;

use paddock_proto::{ErrorCode, Zxid};
use paddock_state::{ConnId, Outboxes, QueuedRead, RequestId};
use paddock_tree::Guess;

use super::Router;
use crate::answer::RoutedAnswer;
use crate::place::{RequestPlace, watched_groups, watched_lists};
use crate::shown::ShownStamps;
use crate::union::Union;
use crate::view::Groups;

/// A request that comes while nothing can be written.
#[derive(Debug)]
pub enum ReadOnlyRequest {
    Read(QueuedRead),
    /// Needs a quorum.
    Refused(ConnId, RequestId),
}

impl Router {
    /// Takes a request of a client while nothing can be written. It is answered with the next turn.
    pub fn take_read_only(&mut self, request: ReadOnlyRequest) {
        self.read_only.push(request);
    }

    /// Answers as the groups are here, or closes the connection if they lack what its client was shown. The zxids of a connection's answers do not
    /// fall when the mode begins or ends.
    pub(super) fn answer_in_read_only(
        &mut self,
        groups: &Groups<'_>,
        request: &ReadOnlyRequest,
        out: &mut Outboxes,
    ) {
        let (conn, slot) = match request {
            ReadOnlyRequest::Read(read) => (read.client.conn, read.request.slot),
            ReadOnlyRequest::Refused(conn, request) => (*conn, request.slot),
        };
        let one = self.conversation_of_asker(conn, Zxid(0), groups);
        let answer = match request {
            // What came before has to be answered, and told, before it.
            _ if !one.is_at_rest() => None,
            ReadOnlyRequest::Read(read) => answer_as_is(groups, read, one.shown()),
            ReadOnlyRequest::Refused(_, request) => {
                let mut bytes = Vec::new();
                groups.home().state.refuse(request.xid, ErrorCode::NotReadOnly, &mut bytes);
                Some(RoutedAnswer::new(bytes).showing(Zxid(0)))
            }
        };
        let watched = match request {
            ReadOnlyRequest::Read(read) => watched_groups(groups, read.op, &read.body, read.client.dialect),
            ReadOnlyRequest::Refused(..) => BTreeSet::new(),
        };
        let Some(mut answer) = answer.filter(|answer| one.may_be_told(answer.zxid, &watched, groups)) else {
            return out.close(conn);
        };
        if let ReadOnlyRequest::Read(read) = request
            && !watched.is_empty()
        {
            one.watch_in(watched.into_iter());
            // The groups are shown as they are, each as far as it has come.
            let shown = groups.replicas().map(|(_, group)| group.tree().zxid()).max().unwrap_or_default();
            let is_spread =
                |path: &str| groups.points().get(path).is_some_and(|point| !point.slots().is_home());
            one.watch_lists(watched_lists(read.op, &read.body, read.client.dialect), shown, is_spread);
        }
        answer.set_zxid(one.tell_as_is(answer.zxid));
        out.reply(conn, slot, |out| out.extend(answer.bytes));
    }
}

/// The answer to a read as the groups are; `None` if they lack what the client was shown, which does not come while nothing can be written, if they are not here,
/// and while the znodes are on their way from one group to another.
fn answer_as_is(groups: &Groups<'_>, read: &QueuedRead, shown: &ShownStamps) -> Option<RoutedAnswer> {
    let QueuedRead { client, request, op, body, refusal } = read;
    let (home, mut bytes) = (groups.home().state, Vec::new());
    if let Some(error) = refusal {
        home.refuse(request.xid, *error, &mut bytes);
        return Some(RoutedAnswer::new(bytes).showing(Zxid(0)));
    }
    match RequestPlace::of_read(groups, *op, body, client.dialect) {
        RequestPlace::OnTheWay => return None,
        RequestPlace::One { group, .. } if groups.is_away(group) => return None,
        RequestPlace::One { group, .. } if groups.level(group) < shown.of_others(group) => return None,
        RequestPlace::One { group, .. } => {
            let state = groups.get(group).map_or(home, |view| view.state);
            state.answer(client, request.xid, *op, body, Guess::NONE, &mut bytes);
        }
        _ if groups.numbers().any(|group| groups.level(group) < shown.of_others(group)) => return None,
        RequestPlace::All | RequestPlace::Several | RequestPlace::Sync => {
            let mut union = Union::as_is(*groups, client);
            let mut answer = Vec::new();
            let result = union.answer(*op, body, &mut bytes, &mut answer);
            if union.is_incomplete() {
                return None;
            }
            home.write_answer(request.xid, union.shown, &mut bytes, |out| {
                out.extend_from_slice(&answer);
                result
            });
        }
    }
    Some(RoutedAnswer::new(bytes))
}
