//! Facts that a script may ask for. To ask changes nothing, and carries no messages.

use paddock_replica::Role;

use super::Script;

/// Facts of each running member.
const OF_MEMBERS: [&str; 12] = [
    "cluster",
    "config",
    "data",
    "differing",
    "entries",
    "foreign",
    "heard",
    "membership",
    "roles",
    "session",
    "silence",
    "watches",
];

impl Script {
    /// The answer, if the command asks for a fact.
    pub(super) fn fact(&mut self, command: &str, words: &[&str]) -> Option<String> {
        let fact = match command {
            "agree" => {
                self.stage.check_agreement();
                "all agree".to_owned()
            }
            "messages" => format!("messages={}", self.stage.messages_carried - self.marked.1),
            "leaders" => format!("leaders={}", self.count(Role::Leader, words)),
            "looking" => format!("looking={}", self.count(Role::Looking, words)),
            "diverged" => {
                let members = self.stage.numbers().into_iter();
                let diverged = members.filter(|member| self.stage.has_diverged(*member));
                format!("diverged: {}", self.listed(diverged))
            }
            _ if OF_MEMBERS.contains(&command) => self.of_each_member(command, words),
            _ => return None,
        };
        Some(fact)
    }

    /// Facts of each running member, as `leader=…`, in the order in which they were named.
    fn of_each_member(&mut self, command: &str, words: &[&str]) -> String {
        let named = self.names.iter().map(|(_, member)| *member);
        let mut members: Vec<u64> = Vec::new();
        for member in named.chain(self.stage.numbers()) {
            if !members.contains(&member) && self.stage.is_running(member) {
                members.push(member);
            }
        }
        let mut answer = format!("{}:", [&[command], words].concat().join(" "));
        for member in members {
            answer += &format!(" {}={}", self.name(member), self.of_member(member, command, words));
        }
        answer
    }

    fn of_member(&mut self, member: u64, command: &str, words: &[&str]) -> String {
        match command {
            "entries" => {
                let before = self.marked.0.get(&member).copied().unwrap_or_default();
                (self.stage.entries(member) - before).to_string()
            }
            "data" => match self.stage.data(member, words[0]) {
                Some(data) if data.len() > 20 => format!("{} bytes", data.len()),
                Some(data) => format!("{data:?}"),
                None => "none".to_owned(),
            },
            "session" => self.stage.has_session_at(member, &self.guest(words[0])).to_string(),
            "roles" => format!("{:?}", self.stage.role(member)),
            "heard" => self.listed(self.stage.heard_followers(member)),
            "silence" => format!("{}ms", self.stage.silence_ms(member)),
            "differing" => self.listed(self.stage.differing(member).iter().copied()),
            "foreign" => self.listed(self.stage.foreign(member).iter().copied()),
            "watches" => self.stage.watch_count(member).to_string(),
            "cluster" => self.stage.cluster(member).map_or("none".to_owned(), |id| self.cluster_name(id)),
            "config" => self.listed(self.stage.config(member)),
            "membership" => {
                let membership = self.stage.membership(member);
                let learners = membership.learners.iter().map(|learner| format!("+{}", self.name(*learner)));
                self.listed(membership.voters) + &learners.collect::<String>()
            }
            other => unreachable!("{other} is no fact of members"),
        }
    }

    /// Letter of an ensemble: A for the one that the story got to know first.
    fn cluster_name(&mut self, id: u64) -> String {
        if !self.clusters.contains(&id) {
            self.clusters.push(id);
        }
        let place = self.clusters.iter().position(|known| *known == id).expect("it is known by now");
        char::from(b'A' + place as u8).to_string()
    }

    /// Number of the running members with a role, among those that are named, or all.
    fn count(&self, role: Role, names: &[&str]) -> usize {
        let named = self.members(names);
        let members = if named.is_empty() { self.stage.numbers() } else { named };
        let running = members.into_iter().filter(|member| self.stage.is_running(*member));
        running.filter(|member| self.stage.role(*member) == role).count()
    }
}
