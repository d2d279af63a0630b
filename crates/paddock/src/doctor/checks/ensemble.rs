//! Checks of the ensemble as a whole: who answers, a quorum, lag, and members that differ where they should not.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::MemberRole;

use super::common::of_servers;
use crate::doctor::facts::{DoctorFacts, ServerFacts};
use crate::doctor::finding::{Finding, Level};

/// Settings that clients notice when they move from one member to another.
const COMMON_SETTINGS: [&str; 4] = ["tickTime", "minSessionTimeout", "maxSessionTimeout", "maxClientCnxns"];
/// A server that has run for a shorter time, in milliseconds, was started again just now.
const UPTIME_MS_MIN: f64 = 600_000.0;

/// Servers that do not answer, or do not serve.
pub(super) fn reach(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "reach", "every server answers and serves", |server| {
        let address = &server.address;
        if let Some(reason) = &server.unreachable {
            let advice =
                "see that it runs and that nothing between blocks the port; its log says why it ended";
            return Some(Finding::new(
                Level::Error,
                "reach",
                address,
                format!("no answer: {reason}"),
                advice,
            ));
        }
        match (&server.mode, &server.not_ready) {
            (None, reason) => {
                let reason = reason.as_deref().unwrap_or("no leader is known to it");
                let text = format!("answers, and serves nothing: {reason}");
                let advice =
                    "start the members that are down, and see that this one reaches their quorum ports";
                Some(Finding::new(Level::Error, "reach", address, text, advice))
            }
            (Some(mode), Some(reason)) => {
                let text = format!("serves as {mode}, and is not ready: {reason}");
                let advice = "wait if it was started just now; else its log says what it waits for";
                Some(Finding::new(Level::Error, "reach", address, text, advice))
            }
            (Some(mode), None) if mode == "read-only" => {
                let text = "serves reads alone: it has no contact to a quorum, or its disk is full";
                let advice =
                    "see that it reaches the quorum ports of the other members, and that its disk has room";
                Some(Finding::new(Level::Error, "reach", address, text, advice))
            }
            (Some(mode), None) => match server.metric("uptime") {
                Some(uptime_ms) if uptime_ms < UPTIME_MS_MIN => {
                    let text = format!("serves as {mode}, since {:.0} s", uptime_ms / 1e3);
                    let advice = "if it was not started on purpose, its log says why it ended before";
                    Some(Finding::new(Level::Note, "reach", address, text, advice))
                }
                _ => Some(Finding::ok("reach", address, format!("{address} serves as {mode}"))),
            },
        }
    })
}

/// A leader, a majority, and room for one more failure.
pub(super) fn quorum(facts: &DoctorFacts) -> Vec<Finding> {
    if facts.servers.is_empty() {
        return Vec::new();
    }
    let told = |level, text: String, advice: &str| vec![Finding::new(level, "quorum", "", text, advice)];
    let modes =
        |wanted: &str| facts.servers.iter().filter(|server| server.mode.as_deref() == Some(wanted)).count();
    let (leaders, alone, followers) = (modes("leader"), modes("standalone"), modes("follower"));
    if alone > 1 || alone > 0 && leaders + followers > 0 {
        let text = "servers that stand alone are among those asked: they are separate services, with data of their own".to_owned();
        return told(
            Level::Error,
            text,
            "name the servers of one ensemble; see the server.N lines of those that stand alone",
        );
    }
    if alone == 1 {
        let text = "one server that stands alone: while its machine is down, nothing is served".to_owned();
        return told(Level::Note, text, "an ensemble of three goes on when one is down");
    }
    if leaders > 1 {
        let text = format!("{leaders} servers say that they lead");
        return told(
            Level::Error,
            text,
            "ask again: one of them may have led a moment ago; if not, they are of different ensembles",
        );
    }
    let voters = voters(facts);
    let leader = facts.servers.iter().find(|server| server.leads());
    if leader.is_none() && followers == 0 {
        let text = "no server serves writes".to_owned();
        return told(
            Level::Error,
            text,
            "start members until a majority of the voters run, and see that they reach each other's quorum ports",
        );
    }
    let Some(voters) = voters else {
        let text = "a leader is there; the number of voters is not known".to_owned();
        return told(
            Level::Note,
            text,
            "let doctor read /zookeeper/config, or reach the HTTP interface of the leader",
        );
    };
    let majority = voters / 2 + 1;
    let down = facts.servers.iter().filter(|server| !server.serves()).count();
    let not_asked = voters.saturating_sub(leaders + followers + down);
    // A leader hears those that were not asked; it goes on for a while to count one that has just ended.
    let heard = leader.and_then(|leader| leader.metric("synced_followers")).map(|count| count as usize + 1);
    let answering = leaders + followers;
    let working = heard.map_or(answering, |heard| heard.min(answering + not_asked)).min(voters);
    let text = format!("{working} of {voters} voters work, {majority} are needed");
    let mut found = match working.saturating_sub(majority) {
        _ if working == voters => vec![Finding::ok("quorum", "", text)],
        _ if heard.is_none() && not_asked > 0 => {
            let text = format!("{working} of {voters} voters work; the others were not asked");
            told(Level::Note, text, "name all members")
        }
        0 => told(Level::Warning, text + ": one more failure ends the service", "bring the others back now"),
        spare => told(Level::Warning, format!("{text}: {spare} more may fail"), "bring the others back"),
    };
    if voters.is_multiple_of(2) {
        let text = format!(
            "{voters} voters stand no more failures than {}, and have one more that can fail",
            voters - 1
        );
        found.extend(told(Level::Note, text, "make one of them an observer, or add a voter"));
    }
    found
}

/// Number of members with a vote.
fn voters(facts: &DoctorFacts) -> Option<usize> {
    let named = facts.members.iter().filter(|member| member.role == MemberRole::Participant).count();
    let counted = || {
        let sizes = facts.servers.iter().filter_map(|server| server.metric("quorum_size"));
        sizes.reduce(f64::max).map(|size| size as usize)
    };
    if named > 0 { Some(named) } else { counted().filter(|size| *size > 0) }
}

/// Members that are behind the others.
pub(super) fn lag(facts: &DoctorFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(leader) = facts.servers.iter().find(|server| server.leads()) {
        for (member, _) in leader.labelled("paddock_member_is_heard").filter(|(_, is_heard)| *is_heard == 0.0)
        {
            let text = format!("the leader does not hear member {member}");
            let advice = "see that it runs, and that its quorum port is reached from the leader";
            found.push(Finding::new(Level::Warning, "lag", &format!("member {member}"), text, advice));
        }
        for (member, _) in leader.labelled("paddock_member_gets_snapshot").filter(|(_, gets)| *gets > 0.0) {
            let text = "lacks so much that it is sent a snapshot".to_owned();
            let advice = "wait; if it goes on, the disk or the network of that member is too slow";
            found.push(Finding::new(Level::Warning, "lag", &format!("member {member}"), text, advice));
        }
    }
    let Some((newest, waited_ms)) = facts.newest else { return found };
    let behind = of_servers(facts, "lag", "every server has what the others had", |server| {
        let zxid = server.zxid.filter(|_| server.serves())?;
        if zxid >= newest {
            return Some(Finding::ok("lag", &server.address, format!("zxid 0x{zxid:x}")));
        }
        let text = format!("has applied 0x{zxid:x}, while another had 0x{newest:x} {waited_ms} ms earlier");
        let advice = "see its disk (sync), its load and its way to the leader; clients there read old data";
        Some(Finding::new(Level::Warning, "lag", &server.address, text, advice))
    });
    found.extend(behind.into_iter().filter(|finding| finding.level > Level::Ok || facts.servers.len() > 1));
    found
}

/// Servers of different versions.
pub(super) fn versions(facts: &DoctorFacts) -> Vec<Finding> {
    let mut by_version: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for server in &facts.servers {
        if let Some(version) = &server.version {
            by_version.entry(version).or_default().push(&server.address);
        }
    }
    match by_version.len() {
        0 => Vec::new(),
        1 => {
            let version = by_version.keys().next().expect("there is one");
            vec![Finding::ok("versions", "", format!("every server is {version}"))]
        }
        _ => {
            let listed: Vec<String> = by_version
                .iter()
                .map(|(version, servers)| format!("{version} at {}", servers.join(", ")))
                .collect();
            let advice = "finish the upgrade: members of two versions are meant for as long as it takes";
            vec![Finding::new(Level::Warning, "versions", "", listed.join("; "), advice)]
        }
    }
}

/// Settings that differ between members.
pub(super) fn settings(facts: &DoctorFacts) -> Vec<Finding> {
    let with_settings: Vec<&ServerFacts> =
        facts.servers.iter().filter(|server| !server.settings.is_empty()).collect();
    if with_settings.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for name in COMMON_SETTINGS {
        let values: BTreeSet<&str> =
            with_settings.iter().filter_map(|server| server.settings.get(name).map(String::as_str)).collect();
        if values.len() > 1 {
            let values = values.into_iter().collect::<Vec<_>>().join(" and ");
            let advice = "give all members the same: clients meet another limit when they move";
            found.push(Finding::new(Level::Note, "settings", "", format!("{name} is {values}"), advice));
        }
    }
    if found.is_empty() {
        found.push(Finding::ok(
            "settings",
            "",
            format!("limits of sessions are the same ({} servers)", with_settings.len()),
        ));
    }
    found
}

/// States that have differed.
pub(super) fn state(facts: &DoctorFacts) -> Vec<Finding> {
    of_servers(facts, "state", "no state has differed from another member's", |server| {
        let count = server.metric("digest_mismatches_count")?;
        if count == 0.0 {
            return Some(Finding::ok(
                "state",
                &server.address,
                "its state has not differed from another member's",
            ));
        }
        let text = format!("its state has differed from another member's {count:.0} times");
        let advice = "keep a copy of its data directory and report this; a new member in its place gets the state of the others";
        Some(Finding::new(Level::Error, "state", &server.address, text, advice))
    })
}

/// Facts that could not be had.
pub(super) fn unknown(facts: &DoctorFacts) -> Vec<Finding> {
    let unanswered = facts.servers.iter().filter(|server| server.unreachable.is_none());
    let mut found: Vec<Finding> = unanswered
        .filter_map(|server| {
            let (url, reason) = (&server.http.0, server.http.1.as_ref()?);
            let lacking = if server.metrics.is_empty() { "all but its mode" } else { "clock, disk and descriptors" };
            let text = format!("{lacking} not known: {url}: {reason}");
            let advice = "say --http-port or --http, or allow the words mntr, conf and cons; without them it is not checked";
            Some(Finding::new(Level::Note, "unknown", &server.address, text, advice))
        })
        .collect();
    let no_disk =
        |server: &&ServerFacts| server.http.1.is_none() && server.metric("paddock_disk_size_bytes").is_none();
    if let Some(server) = facts.servers.iter().filter(|server| server.serves()).find(no_disk) {
        let text = "disk and certificates are not told by a server of another kind".to_owned();
        let advice = "run `paddock doctor --local --data-dir DIR` on its machine";
        found.push(Finding::new(Level::Note, "unknown", &server.address, text, advice));
    }
    found
}

#[cfg(test)]
mod tests {
    use paddock_tree::parse_members;

    use super::*;
    use crate::doctor::checks::common::testing::{facts, lines, server};

    fn three(modes: [Option<&str>; 3]) -> DoctorFacts {
        let servers = modes.map(|mode| match mode {
            Some(mode) => server(mode, &[]),
            None => {
                ServerFacts { unreachable: Some("connection refused".to_owned()), ..ServerFacts::default() }
            }
        });
        let members =
            "server.1=a:1:2:participant;3\nserver.2=b:1:2:participant;3\nserver.3=c:1:2:participant;3\n";
        let members = parse_members(members).expect("members");
        DoctorFacts { members, ..facts(servers.into()) }
    }

    #[test]
    fn a_whole_ensemble_is_ok() {
        let whole = three([Some("follower"), Some("leader"), Some("follower")]);
        assert_eq!(lines(&reach(&whole)), ["ok: every server answers and serves (3 servers)"]);
        assert_eq!(lines(&quorum(&whole)), ["ok: 3 of 3 voters work, 2 are needed"]);
    }

    #[test]
    fn a_member_that_is_down_is_told_and_so_is_the_next_failure() {
        let one_down = three([Some("follower"), Some("leader"), None]);
        assert_eq!(lines(&reach(&one_down)), ["error c:2181: no answer: connection refused"]);
        let mut not_noticed = one_down.servers.clone();
        not_noticed[1].metrics.insert("synced_followers".to_owned(), 2.0);
        let not_noticed =
            DoctorFacts { servers: not_noticed, members: one_down.members.clone(), ..DoctorFacts::default() };
        assert_eq!(quorum(&not_noticed)[0].level, Level::Warning);
        assert_eq!(
            lines(&quorum(&one_down)),
            ["warning: 2 of 3 voters work, 2 are needed: one more failure ends the service"]
        );
        let none = three([None, None, None]);
        assert_eq!(lines(&quorum(&none)), ["error: no server serves writes"]);
    }

    #[test]
    fn the_leader_tells_of_voters_that_were_not_asked() {
        let leader = server("leader", &[("synced_followers", 1.0), ("quorum_size", 3.0)]);
        let found = quorum(&facts(vec![leader]));
        assert_eq!(
            lines(&found),
            ["warning: 2 of 3 voters work, 2 are needed: one more failure ends the service"]
        );
        let follower = server("follower", &[("quorum_size", 3.0)]);
        let found = quorum(&facts(vec![follower]));
        assert_eq!(lines(&found), ["note: 1 of 3 voters work; the others were not asked"]);
    }

    #[test]
    fn separate_services_are_no_ensemble() {
        let alone = || server("standalone", &[]);
        assert_eq!(quorum(&facts(vec![alone()]))[0].level, Level::Note);
        assert_eq!(quorum(&facts(vec![alone(), alone()]))[0].level, Level::Error);
        let two_leaders = quorum(&facts(vec![server("leader", &[]), server("leader", &[])]));
        assert_eq!(lines(&two_leaders), ["error: 2 servers say that they lead"]);
        let four = server("leader", &[("synced_followers", 3.0), ("quorum_size", 4.0)]);
        let found = quorum(&facts(vec![four]));
        assert_eq!(found.iter().map(|finding| finding.level).collect::<Vec<_>>(), [Level::Ok, Level::Note]);
    }

    #[test]
    fn a_server_that_is_not_ready_says_why() {
        let mut waiting = server("follower", &[]);
        waiting.not_ready = Some("learning".to_owned());
        let looking = ServerFacts { mode: None, not_ready: None, ..server("", &[]) };
        let new = server("follower", &[("uptime", 5000.0)]);
        let found = reach(&facts(vec![waiting, looking, server("read-only", &[]), new]));
        let levels: Vec<_> = found.iter().map(|finding| (finding.subject.as_str(), finding.level)).collect();
        let expected = [
            ("a:2181", Level::Error),
            ("b:2181", Level::Error),
            ("c:2181", Level::Error),
            ("d:2181", Level::Note),
        ];
        assert_eq!(levels, expected);
    }

    #[test]
    fn a_member_behind_the_others_lags() {
        let leader = server(
            "leader",
            &[("paddock_member_is_heard{3}", 0.0), ("paddock_member_gets_snapshot{2}", 1.0)],
        );
        let mut late = facts(vec![leader, server("follower", &[])]);
        late.newest = Some((7, 2000));
        assert_eq!(late.servers[1].zxid, Some(7));
        let found = lag(&late);
        assert_eq!(
            lines(&found),
            [
                "warning member 3: the leader does not hear member 3",
                "warning member 2: lacks so much that it is sent a snapshot",
                "ok: every server has what the others had (2 servers)",
            ]
        );
        late.newest = Some((8, 2000));
        late.servers[0].zxid = Some(9);
        let found = lag(&late);
        assert_eq!(
            lines(&found)[2],
            "warning b:2181: has applied 0x7, while another had 0x8 2000 ms earlier"
        );
    }

    #[test]
    fn members_that_differ_are_told() {
        let mut old = server("follower", &[]);
        old.version = Some("3.8.4".to_owned());
        old.settings = [("tickTime".to_owned(), "2000".to_owned())].into();
        let mut new = server("leader", &[("digest_mismatches_count", 1.0)]);
        new.settings = [("tickTime".to_owned(), "3000".to_owned())].into();
        let mixed = facts(vec![old, new.clone()]);
        assert_eq!(lines(&versions(&mixed)), ["warning: 3.8.4 at a:2181; 3.9.5 at b:2181"]);
        assert_eq!(lines(&settings(&mixed)), ["note: tickTime is 2000 and 3000"]);
        assert_eq!(state(&mixed)[0].level, Level::Error);
        let same = facts(vec![new.clone(), new]);
        assert_eq!((versions(&same)[0].level, settings(&same)[0].level), (Level::Ok, Level::Ok));
    }

    #[test]
    fn facts_that_lack_are_named() {
        let mut closed = server("leader", &[]);
        closed.http = ("http://a:8080".to_owned(), Some("connection refused".to_owned()));
        let mut whole = server("follower", &[("paddock_disk_size_bytes", 1.0)]);
        whole.http = ("http://b:8080".to_owned(), None);
        let found = unknown(&facts(vec![closed, whole]));
        assert_eq!(
            lines(&found),
            ["note a:2181: all but its mode not known: http://a:8080: connection refused"]
        );
    }
}
