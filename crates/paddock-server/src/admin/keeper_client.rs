//! Commands of ClickHouse's keeper-client, as its Keeper takes them over HTTP: what they print of znodes, and changes of one.
//!
//! Commands that walk or move whole trees are not here: they are for a client.

use hyper::StatusCode;
use paddock_http::{Request, Response};
use paddock_proto::jute::Reader;
use paddock_proto::{Acl, OpCode, Read, Stat};

use super::page::{ask, create_request, permission_names, read, written_request};
use super::parts::Admin;
use super::requester::{Identities, refused};

/// A command with its arguments, in ClickHouse's words.
struct KeeperCommand {
    name: &'static str,
    /// Numbers of arguments that it takes, the least and the most. A path that is missing is the directory.
    arguments: (usize, usize),
    changes: bool,
}

const fn tells(name: &'static str, least: usize) -> KeeperCommand {
    KeeperCommand { name, arguments: (least, 1), changes: false }
}

const fn changes(name: &'static str, least: usize, most: usize) -> KeeperCommand {
    KeeperCommand { name, arguments: (least, most), changes: true }
}

const COMMANDS: [KeeperCommand; 11] = [
    tells("ls", 0),
    tells("get", 1),
    tells("exists", 1),
    tells("get_stat", 0),
    tells("get_acl", 0),
    tells("get_direct_children_number", 0),
    tells("get_all_children_number", 0),
    changes("create", 2, 2),
    changes("touch", 1, 1),
    changes("set", 2, 3),
    changes("rm", 1, 2),
];

/// One example of each command.
#[cfg(test)]
pub(super) fn examples() -> impl Iterator<Item = String> {
    COMMANDS.iter().map(|KeeperCommand { name, arguments: (least, _), .. }| match least {
        0 => (*name).to_owned(),
        1 => format!("{name} /a"),
        _ => format!("{name} /a other"),
    })
}

/// A command that was understood.
pub(super) struct Order {
    command: &'static KeeperCommand,
    arguments: Vec<String>,
    /// The absolute path that it is about.
    path: String,
}

impl Order {
    /// Reads a command whose relative paths begin at `directory`. The refusal says what is wrong.
    pub(super) fn parse(text: &str, directory: &str) -> Result<Order, String> {
        let mut arguments = words(text).ok_or("a quotation mark is missing")?;
        let name = if arguments.is_empty() { String::new() } else { arguments.remove(0) };
        let command = COMMANDS.iter().find(|command| command.name == name).ok_or_else(|| {
            let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
            format!("there is no command {name:?}: it takes four-letter words, and {}", names.join(", "))
        })?;
        let (least, most) = command.arguments;
        if !(least..=most).contains(&arguments.len()) {
            return Err(format!("{name} takes {least} to {most} arguments, not {}", arguments.len()));
        }
        let path = absolute(directory, arguments.first().map_or("", String::as_str));
        Ok(Order { command, arguments, path })
    }

    pub(super) fn is_change(&self) -> bool {
        self.command.changes
    }

    /// Carries it out. Returns what keeper-client would print.
    pub(super) fn run(&self, admin: &Admin, request: &Request) -> Result<String, Response> {
        let path = &*self.path;
        if self.is_change() {
            return self.change(admin, request).map(|()| String::new());
        }
        let ids = Identities::of(admin, request)?;
        let read = |asked: &Read<'_>| read(&admin.shared, &ids, asked);
        Ok(match self.command.name {
            "ls" => {
                let names = read(&Read::GetChildren { path, watch: false })?;
                let mut names = Reader::new(&names).strings().expect("the member has encoded the list");
                names.sort_unstable();
                format!("{}\n", names.join(" "))
            }
            "get" => {
                let data = read(&Read::GetData { path, watch: false })?;
                let data = Reader::new(&data).buffer().expect("the member has encoded the data");
                format!("{}\n", String::from_utf8_lossy(data.unwrap_or_default()))
            }
            "exists" => match read(&Read::Exists { path, watch: false }) {
                Ok(_) => "1\n".into(),
                Err(missing) if missing.status() == StatusCode::NOT_FOUND => "0\n".into(),
                Err(refused) => return Err(refused),
            },
            "get_acl" => {
                let acl = read(&Read::GetAcl { path })?;
                let entries = Reader::new(&acl).list(Acl::decode).expect("the member has encoded the ACL");
                entries.iter().map(acl_line).collect()
            }
            "get_all_children_number" => {
                let number = read(&Read::GetAllChildrenNumber { path })?;
                format!("{}\n", Reader::new(&number).i32().expect("the member has encoded the number"))
            }
            name => {
                let stat = read(&Read::Exists { path, watch: false })?;
                let stat = Stat::decode(&mut Reader::new(&stat)).expect("the member has encoded the Stat");
                if name == "get_stat" { stat_lines(&stat) } else { format!("{}\n", stat.num_children) }
            }
        })
    }

    fn change(&self, admin: &Admin, request: &Request) -> Result<(), Response> {
        let path = &*self.path;
        let data = self.arguments.get(1).map_or(&[][..], String::as_bytes);
        let version = |place: usize| match self.arguments.get(place) {
            None => Ok(-1),
            Some(text) => text.parse().map_err(|_| {
                refused(StatusCode::BAD_REQUEST, format!("A version is a number, not {text:?}."))
            }),
        };
        let reply = match self.command.name {
            "set" => {
                let version = version(2)?;
                ask(admin, request, OpCode::SetData, |out| written_request(path, Some(data), version, out))
            }
            "rm" => {
                let version = version(1)?;
                ask(admin, request, OpCode::Delete, |out| written_request(path, None, version, out))
            }
            _ => ask(admin, request, OpCode::Create, |out| create_request(path, data, 0, out)),
        };
        match reply {
            Err(there) if self.command.name == "touch" && there.status() == StatusCode::CONFLICT => Ok(()),
            other => other.map(drop),
        }
    }
}

/// The words of a command. One in quotation marks may have blanks; a backslash takes the next character as it is.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start().chars().peekable();
    while let Some(first) = rest.peek().copied() {
        let quote = matches!(first, '\'' | '"').then(|| rest.next()).flatten();
        let mut word = String::new();
        loop {
            match rest.next() {
                None if quote.is_some() => return None,
                None => break,
                found if found == quote => break,
                Some(blank) if quote.is_none() && blank.is_whitespace() => break,
                Some('\\') => word.push(rest.next()?),
                Some(other) => word.push(other),
            }
        }
        words.push(word);
        while rest.next_if(|next| next.is_whitespace()).is_some() {}
    }
    Some(words)
}

/// A path from the root on. `.` and `..` are resolved, as in a file system.
fn absolute(directory: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

fn acl_line(entry: &Acl) -> String {
    let perms = permission_names(entry.perms);
    let perms = match perms.len() {
        0 => "NONE".to_owned(),
        5 => "ALL".to_owned(),
        _ => perms.join("|").to_uppercase(),
    };
    format!("[{}] {} {perms}\n", entry.id.scheme, entry.id.id)
}

fn stat_lines(stat: &Stat) -> String {
    let fields: [(&str, i64); 11] = [
        ("cZxid", stat.czxid.0),
        ("mZxid", stat.mzxid.0),
        ("pZxid", stat.pzxid.0),
        ("ctime", stat.ctime_ms),
        ("mtime", stat.mtime_ms),
        ("version", stat.version.into()),
        ("cversion", stat.cversion.into()),
        ("aversion", stat.aversion.into()),
        ("ephemeralOwner", stat.ephemeral_owner.0),
        ("dataLength", stat.data_length.into()),
        ("numChildren", stat.num_children.into()),
    ];
    fields.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_by_blanks_and_quoted() {
        for (text, expected) in [
            ("ls", Some(vec!["ls"])),
            ("  ls   '/a b' ", Some(vec!["ls", "/a b"])),
            ("set /a \"it's\" 3", Some(vec!["set", "/a", "it's", "3"])),
            (r"create /a 'it\'s'", Some(vec!["create", "/a", "it's"])),
            ("create /a ''", Some(vec!["create", "/a", ""])),
            ("ls '/a", None),
            ("", Some(vec![])),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_path_begins_at_the_directory() {
        for (directory, path, expected) in [
            ("/", "", "/"),
            ("/", ".", "/"),
            ("/a", "b", "/a/b"),
            ("/a", "", "/a"),
            ("/a/b", "../c", "/a/c"),
            ("/a", "/c/", "/c"),
            ("a", "../..", "/"),
        ] {
            assert_eq!(absolute(directory, path), expected, "{directory} {path}");
        }
    }
}
