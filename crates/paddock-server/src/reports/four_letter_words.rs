//! The four-letter words: four bytes in place of a greeting, answered with text in the format of the server that has the word:
//! ZooKeeper's, or ClickHouse Keeper's where ZooKeeper has none.

mod dump;
mod keeper;
mod server;

pub(crate) use server::last_operation;

use paddock_front::WordAnswer;
use paddock_replica::Role;

use super::status::{self, Sees, SettingValue};
use crate::operator::Operator;
use crate::shared::Shared;

/// Place where a word is answered, and its function.
enum Speed {
    /// At once, by the worker of the connection.
    Quick(fn(&Shared) -> String),
    /// By the thread for words: it lists something, looks at the disk or gives an order.
    Slow(fn(&Operator) -> String),
    /// By the same thread: a list with paths of znodes.
    Paths(fn(&Operator, Sees<'_>) -> String),
}

use Speed::{Paths, Quick, Slow};

/// Clients with read-only sessions ask this, until they find a member with a quorum.
const IS_READ_ONLY: &str = "isro";

/// The words that are answered. Any other four bytes are the length of a frame.
const WORDS: [(&str, Speed); 30] = [
    ("ruok", Quick(|_| "imok".into())),
    (IS_READ_ONLY, Quick(is_read_only)),
    ("gtmk", Quick(server::trace_mask)),
    ("srvr", Slow(server::server)),
    ("stat", Slow(server::server_and_clients)),
    ("srst", Slow(server::reset)),
    ("mntr", Slow(server::monitor)),
    ("cons", Slow(server::connections)),
    ("crst", Slow(server::reset_connections)),
    ("conf", Slow(configuration)),
    ("envi", Slow(|_| environment())),
    ("dirs", Slow(directories)),
    ("hash", Slow(dump::hash)),
    ("dump", Paths(dump::dump)),
    ("wchs", Slow(dump::watch_summary)),
    ("wchc", Paths(dump::watches_by_session)),
    ("wchp", Paths(dump::watches_by_path)),
    // With a mask behind it.
    ("stmk", Quick(server::trace_mask)),
    ("apiv", Quick(|_| keeper::api_version())),
    ("csnp", Slow(keeper::snapshot)),
    ("lgif", Slow(keeper::log_info)),
    ("rqld", Slow(keeper::request_lead)),
    ("ydld", Slow(keeper::yield_lead)),
    ("rclc", Quick(|_| keeper::OK.into())),
    ("clrs", Quick(|_| keeper::OK.into())),
    ("ftfl", Quick(|_| keeper::feature_flags())),
    ("pfev", Slow(keeper::profile_events)),
    ("lgrq", Quick(|_| keeper::NO_REQUEST_LOG.into())),
    ("rcvr", Quick(|_| keeper::NO_RECOVERY.into())),
    // With an order in JSON behind it, which is not looked at.
    ("rcfg", Quick(|_| keeper::NO_RECONFIGURATION.into())),
];

/// All words.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(name, _)| *name)
}

/// Sets the trace mask, which stands behind the word.
const SET_TRACE_MASK: &[u8; 4] = b"stmk";

/// The answer to the first bytes of a connection, if they are a word.
pub(crate) fn answer(word: [u8; 4], behind: &[u8], shared: &Shared) -> Option<WordAnswer> {
    let (name, speed) = find(word)?;
    // A read-only session would go on for ever at a member that does not answer: such sessions are always given, so this always is.
    if name != IS_READ_ONLY && !shared.settings().words.allows(name) {
        return Some(WordAnswer::Text(format!(
            "{name} is not executed because it is not in the whitelist.\n"
        )));
    }
    if word == *SET_TRACE_MASK
        && let Some(mask) = behind.first_chunk()
    {
        server::set_trace_mask(shared, i64::from_be_bytes(*mask));
    }
    Some(match speed {
        Quick(answer) => WordAnswer::Text(answer(shared)),
        Slow(_) | Paths(_) => WordAnswer::Later,
    })
}

/// The answer to a word that takes long. A word proves no identity, so whom the list of words lets ask is told all paths.
pub(crate) fn answer_slowly(word: [u8; 4], operator: &Operator) -> String {
    find(word).map_or_else(String::new, |(_, speed)| tell(speed, operator, &|_| true))
}

/// The answer to a word that comes over HTTP, whether or not the list of words allows it, with those paths that the requester sees;
/// `None` if there is no such word.
pub(crate) fn answer_over_http(word: &str, operator: &Operator, sees: Sees<'_>) -> Option<String> {
    let (_, speed) = find(word.as_bytes().try_into().ok()?)?;
    Some(tell(speed, operator, sees))
}

fn tell(speed: &Speed, operator: &Operator, sees: Sees<'_>) -> String {
    match speed {
        Quick(answer) => answer(&operator.shared),
        Slow(answer) => answer(operator),
        Paths(answer) => answer(operator, sees),
    }
}

fn find(word: [u8; 4]) -> Option<(&'static str, &'static Speed)> {
    WORDS.iter().find(|(name, _)| name.as_bytes() == word).map(|(name, speed)| (*name, speed))
}

/// As ZooKeeper's `IsroCommand`: a client takes `rw` for a quorum.
fn is_read_only(shared: &Shared) -> String {
    match shared.engine.role() {
        Role::ReadOnly => "ro",
        Role::Looking => "null",
        Role::Alone | Role::Leader | Role::Follower | Role::Observer => "rw",
    }
    .into()
}

/// ZooKeeper's answer where there is no quorum.
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

fn configuration(operator: &Operator) -> String {
    let line = |setting: status::Setting| match setting.value {
        SettingValue::Number(number) => format!("{}={number}\n", setting.word_name),
        SettingValue::Text(text) => format!("{}={text}\n", setting.word_name),
    };
    let settings: String = status::configuration(&operator.shared).into_iter().map(line).collect();
    let membership = status::membership(&operator.shared).unwrap_or_default();
    // The last line has no end, as in ZooKeeper.
    let membership: Vec<String> = membership
        .into_iter()
        .map(|(name, value)| match value.strip_prefix('\n') {
            Some(lines) => format!("{name}: \n{lines}"),
            None => format!("{name}={value}"),
        })
        .collect();
    settings + &membership.join("\n")
}

fn directories(operator: &Operator) -> String {
    let (data, log) = (status::data_bytes(&operator.shared), status::log_bytes(&operator.shared));
    format!("datadir_size: {data}\nlogdir_size: {log}\n")
}

fn environment() -> String {
    let lines: String =
        status::environment().iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    format!("Environment:\n{lines}")
}
