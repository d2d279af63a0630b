//! The table of commands: every one with its names, its usage and what it is for.
//!
//! Names and flags are those of `zkCli.sh` 3.9 and `clickhouse-keeper-client`, where they have the command.

/// A command. `help` prints nothing that is not here, and the parser knows no flag that is not here.
#[derive(Debug)]
pub struct Command {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// Arguments, as `help` shows them.
    pub usage: &'static str,
    /// Flags without their dash; those with a colon at their end have a value.
    pub flags: &'static [&'static str],
    /// Least and greatest number of arguments that are no flags.
    pub positional: (usize, usize),
    /// True if it changes the tree or the ensemble: refused with `--readonly`.
    pub writes: bool,
    pub sentence: &'static str,
    pub example: &'static str,
    pub(crate) verb: Verb,
}

impl Command {
    /// True if paths are among its arguments, so that they can be completed.
    pub(crate) fn has_paths(&self) -> bool {
        ["path", "source"].iter().any(|word| self.usage.contains(word))
    }
}

/// Functions behind the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Ls,
    Get,
    Create,
    Set,
    Delete,
    DeleteAll,
    RemoveLimited,
    DeleteStaleBackups,
    Stat,
    Exists,
    Touch,
    Cp,
    CpAll,
    Mv,
    MvAll,
    Tree,
    Find,
    Du,
    FindBigFamily,
    FindSuperNodes,
    DirectChildren,
    WalkedChildren,
    AllChildren,
    Ephemerals,
    GetAcl,
    SetAcl,
    AddAuth,
    WhoAmI,
    AddWatch,
    RemoveWatches,
    PrintWatches,
    Watch,
    Sync,
    Reconfig,
    Config,
    SetQuota,
    ListQuota,
    DelQuota,
    Multi,
    Check,
    Commit,
    Abort,
    FourLetterWord,
    Cd,
    Pwd,
    Connect,
    Close,
    Version,
    History,
    Redo,
    Help,
    Quit,
}

/// Words that a server answers without a session, and that need no `flwc`. `stat` is a command.
pub(crate) const FOUR_LETTER_WORDS: &[&str] = &[
    "clrs", "conf", "cons", "crst", "csnp", "dirs", "dump", "envi", "ftfl", "gtmk", "hash", "isro", "jmst",
    "lgif", "lgrq", "mntr", "pfev", "rclc", "rcvr", "reqs", "rqld", "ruok", "srst", "srvr", "stmk", "wchc",
    "wchp", "wchs", "ydld", "jmfp", "jmep", "jmdp", "apiv",
];

/// All commands, in the order in which `help` lists them.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "ls",
        aliases: &["list"],
        usage: "[-R] [-s] [-w] [-p] [path]",
        flags: &["R", "s", "w", "p"],
        positional: (0, 1),
        writes: false,
        sentence: "Lists the names of a znode's children; -R: all paths below it; -s: its Stat too; -w: watches the children; -p: explains names of ClickHouse's parts.",
        example: "ls -R /a",
        verb: Verb::Ls,
    },
    Command {
        name: "get",
        aliases: &[],
        usage: "[-s] [-w] [-b] [-x] [-p] path",
        flags: &["s", "w", "b", "x", "p"],
        positional: (1, 1),
        writes: false,
        sentence: "Prints a znode's data; -s: its Stat too; -w: watches it; -b: in base64; -x: in hexadecimal; -p: JSON with indents, as always at a terminal.",
        example: "get -s /a",
        verb: Verb::Get,
    },
    Command {
        name: "create",
        aliases: &[],
        usage: "[-e] [-s] [-c] [-t ttl] path [data] [mode] [acl]",
        flags: &["e", "s", "c", "t:"],
        positional: (1, 5),
        writes: true,
        sentence: "Makes a znode and prints its path; -e: ephemeral; -s: sequential; -c: a container; -t: with a TTL in ms. A mode says the same in words: PERSISTENT or EPHEMERAL, and SEQUENTIAL behind it.",
        example: "create -e -s /lock- mine",
        verb: Verb::Create,
    },
    Command {
        name: "set",
        aliases: &[],
        usage: "[-v version] [-s] [-b] path data [version]",
        flags: &["v:", "s", "b"],
        positional: (2, 3),
        writes: true,
        sentence: "Changes a znode's data, if it still has this version; -s: prints the Stat; -b: the data are given in base64.",
        example: "set -v 3 /a \"new data\"",
        verb: Verb::Set,
    },
    Command {
        name: "delete",
        aliases: &["rm"],
        usage: "[-v version] path [version]",
        flags: &["v:"],
        positional: (1, 2),
        writes: true,
        sentence: "Removes a znode that has no children, if it still has this version.",
        example: "delete /a",
        verb: Verb::Delete,
    },
    Command {
        name: "deleteall",
        aliases: &[],
        usage: "[-f] [-b batch] path [limit]",
        flags: &["f", "b:"],
        positional: (1, 2),
        writes: true,
        sentence: "Removes a znode and all below it, unless it is more than limit znodes; at a terminal it asks first, unless -f confirms.",
        example: "deleteall /a",
        verb: Verb::DeleteAll,
    },
    Command {
        name: "rmr",
        aliases: &[],
        usage: "[-f] path [limit]",
        flags: &["f"],
        positional: (1, 2),
        writes: true,
        sentence: "Removes a znode and all below it as deleteall does, but never more znodes than limit, which is 100 unless it is said.",
        example: "rmr /a 5000",
        verb: Verb::RemoveLimited,
    },
    Command {
        name: "delete_stale_backups",
        aliases: &[],
        usage: "[-f]",
        flags: &["f"],
        positional: (0, 0),
        writes: true,
        sentence: "Removes what backups of ClickHouse that run no more have left below /clickhouse/backups; at a terminal it asks first, unless -f confirms.",
        example: "delete_stale_backups",
        verb: Verb::DeleteStaleBackups,
    },
    Command {
        name: "stat",
        aliases: &["get_stat"],
        usage: "[-w] [path]",
        flags: &["w"],
        positional: (0, 1),
        writes: false,
        sentence: "Prints a znode's Stat; -w: watches it.",
        example: "stat /a",
        verb: Verb::Stat,
    },
    Command {
        name: "exists",
        aliases: &[],
        usage: "[-w] path",
        flags: &["w"],
        positional: (1, 1),
        writes: false,
        sentence: "Prints 1 if there is such a znode, else 0; -w: watches it.",
        example: "exists /a",
        verb: Verb::Exists,
    },
    Command {
        name: "touch",
        aliases: &[],
        usage: "path",
        flags: &[],
        positional: (1, 1),
        writes: true,
        sentence: "Makes an empty znode if there is none, and leaves one that is there as it is.",
        example: "touch /a",
        verb: Verb::Touch,
    },
    Command {
        name: "cp",
        aliases: &[],
        usage: "source target",
        flags: &[],
        positional: (2, 2),
        writes: true,
        sentence: "Copies a znode's data to a new one.",
        example: "cp /a /b",
        verb: Verb::Cp,
    },
    Command {
        name: "cpr",
        aliases: &[],
        usage: "source target",
        flags: &[],
        positional: (2, 2),
        writes: true,
        sentence: "Copies a znode and all below it.",
        example: "cpr /a /b",
        verb: Verb::CpAll,
    },
    Command {
        name: "mv",
        aliases: &[],
        usage: "source target",
        flags: &[],
        positional: (2, 2),
        writes: true,
        sentence: "Moves a znode without children, in one transaction.",
        example: "mv /a /b",
        verb: Verb::Mv,
    },
    Command {
        name: "mvr",
        aliases: &[],
        usage: "source target",
        flags: &[],
        positional: (2, 2),
        writes: true,
        sentence: "Moves a znode and all below it, in one transaction.",
        example: "mvr /a /b",
        verb: Verb::MvAll,
    },
    Command {
        name: "tree",
        aliases: &[],
        usage: "[-L depth] [path]",
        flags: &["L:"],
        positional: (0, 1),
        writes: false,
        sentence: "Draws a znode and all below it.",
        example: "tree -L 2 /",
        verb: Verb::Tree,
    },
    Command {
        name: "find",
        aliases: &[],
        usage: "[path] pattern",
        flags: &[],
        positional: (1, 2),
        writes: false,
        sentence: "Prints the paths whose last name fits the pattern (* and ?).",
        example: "find /app 'lock-*'",
        verb: Verb::Find,
    },
    Command {
        name: "du",
        aliases: &[],
        usage: "[path]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Prints bytes of data and number of znodes of each child with all below it, the heaviest first.",
        example: "du /",
        verb: Verb::Du,
    },
    Command {
        name: "find_big_family",
        aliases: &[],
        usage: "[path] [n]",
        flags: &[],
        positional: (0, 2),
        writes: false,
        sentence: "Prints the n (10) znodes with the most znodes below them.",
        example: "find_big_family / 5",
        verb: Verb::FindBigFamily,
    },
    Command {
        name: "find_super_nodes",
        aliases: &[],
        usage: "threshold [path]",
        flags: &[],
        positional: (1, 2),
        writes: false,
        sentence: "Prints the znodes with at least this many children.",
        example: "find_super_nodes 1000 /",
        verb: Verb::FindSuperNodes,
    },
    Command {
        name: "get_direct_children_number",
        aliases: &[],
        usage: "[path]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Prints the number of a znode's children.",
        example: "get_direct_children_number /",
        verb: Verb::DirectChildren,
    },
    Command {
        name: "get_all_children_number",
        aliases: &[],
        usage: "[path]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Prints the number of znodes below one, counted by a walk that works on every server.",
        example: "get_all_children_number /",
        verb: Verb::WalkedChildren,
    },
    Command {
        name: "getAllChildrenNumber",
        aliases: &[],
        usage: "path",
        flags: &[],
        positional: (1, 1),
        writes: false,
        sentence: "Prints the number of znodes below one, as the server counts them.",
        example: "getAllChildrenNumber /",
        verb: Verb::AllChildren,
    },
    Command {
        name: "getEphemerals",
        aliases: &[],
        usage: "[path]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Prints the ephemerals of this session, below a path.",
        example: "getEphemerals /",
        verb: Verb::Ephemerals,
    },
    Command {
        name: "getAcl",
        aliases: &["get_acl"],
        usage: "[-s] path",
        flags: &["s"],
        positional: (1, 1),
        writes: false,
        sentence: "Prints a znode's ACL in the form that setAcl takes; -s: its Stat too.",
        example: "getAcl /a",
        verb: Verb::GetAcl,
    },
    Command {
        name: "setAcl",
        aliases: &[],
        usage: "[-s] [-v version] [-R] path acl",
        flags: &["s", "v:", "R"],
        positional: (2, 2),
        writes: true,
        sentence: "Changes a znode's ACL; -R: of all below it too.",
        example: "setAcl -R /a world:anyone:r,digest:ann:HASH=:cdrwa",
        verb: Verb::SetAcl,
    },
    Command {
        name: "addauth",
        aliases: &[],
        usage: "scheme auth",
        flags: &[],
        positional: (1, 2),
        writes: false,
        sentence: "Shows an identity to the server, now and after every reconnect.",
        example: "addauth digest ann:secret",
        verb: Verb::AddAuth,
    },
    Command {
        name: "whoami",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Prints the identities that the server knows the session by.",
        example: "whoami",
        verb: Verb::WhoAmI,
    },
    Command {
        name: "addWatch",
        aliases: &[],
        usage: "[-m mode] path",
        flags: &["m:"],
        positional: (1, 1),
        writes: false,
        sentence: "Watches until it is removed; mode: PERSISTENT, or PERSISTENT_RECURSIVE (default) for all below too.",
        example: "addWatch -m PERSISTENT /a",
        verb: Verb::AddWatch,
    },
    Command {
        name: "removewatches",
        aliases: &[],
        usage: "[-c] [-d] [-a] [-l] path",
        flags: &["c", "d", "a", "l"],
        positional: (1, 1),
        writes: false,
        sentence: "Removes watches: -c of children, -d of data, -a or nothing: any; -l: does not wait for a server that is away, which hears of it later.",
        example: "removewatches /a",
        verb: Verb::RemoveWatches,
    },
    Command {
        name: "printwatches",
        aliases: &[],
        usage: "[on or off]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Turns the printing of watch events on or off.",
        example: "printwatches off",
        verb: Verb::PrintWatches,
    },
    Command {
        name: "watch",
        aliases: &[],
        usage: "[-n count] path",
        flags: &["n:"],
        positional: (1, 1),
        writes: false,
        sentence: "Prints the events of a znode and all below it, until it is interrupted or count have come.",
        example: "watch /a",
        verb: Verb::Watch,
    },
    Command {
        name: "sync",
        aliases: &[],
        usage: "[path]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Waits until the server has all that was written before.",
        example: "sync /",
        verb: Verb::Sync,
    },
    Command {
        name: "reconfig",
        aliases: &[],
        usage: "[-s] [-v version] [-file path] [-members m,…] [-add m,…] [-remove id,…] / add:remove:set text [version]",
        flags: &["s", "v:", "file:", "members:", "add:", "remove:"],
        positional: (0, 3),
        writes: true,
        sentence: "Changes the members of the ensemble and prints the new configuration.",
        example: "reconfig -add server.4=host:2888:3888;2181",
        verb: Verb::Reconfig,
    },
    Command {
        name: "config",
        aliases: &[],
        usage: "[-c] [-w] [-s]",
        flags: &["c", "w", "s"],
        positional: (0, 0),
        writes: false,
        sentence: "Prints the configuration of the ensemble; -c: version and clients' addresses only.",
        example: "config -c",
        verb: Verb::Config,
    },
    Command {
        name: "setquota",
        aliases: &[],
        usage: "-n or -b or -N or -B value path",
        flags: &["n:", "b:", "N:", "B:"],
        positional: (1, 1),
        writes: true,
        sentence: "Limits a subtree: -n znodes, -b bytes (both warn), -N and -B (both refuse).",
        example: "setquota -N 1000 /a",
        verb: Verb::SetQuota,
    },
    Command {
        name: "listquota",
        aliases: &[],
        usage: "path",
        flags: &[],
        positional: (1, 1),
        writes: false,
        sentence: "Prints the quota of a subtree, and what it uses.",
        example: "listquota /a",
        verb: Verb::ListQuota,
    },
    Command {
        name: "delquota",
        aliases: &[],
        usage: "[-n] [-b] [-N] [-B] path",
        flags: &["n", "b", "N", "B"],
        positional: (1, 1),
        writes: true,
        sentence: "Removes a quota, or one of its limits.",
        example: "delquota /a",
        verb: Verb::DelQuota,
    },
    Command {
        name: "multi",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Begins a transaction: create, set, delete and check are kept until commit, and abort forgets them.",
        example: "multi",
        verb: Verb::Multi,
    },
    Command {
        name: "check",
        aliases: &[],
        usage: "path version",
        flags: &[],
        positional: (2, 2),
        writes: false,
        sentence: "In a transaction: fails it unless the znode has this version (-1: any).",
        example: "check /a 3",
        verb: Verb::Check,
    },
    Command {
        name: "commit",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: true,
        sentence: "Carries the transaction out, all of it or nothing.",
        example: "commit",
        verb: Verb::Commit,
    },
    Command {
        name: "abort",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Forgets the transaction.",
        example: "abort",
        verb: Verb::Abort,
    },
    Command {
        name: "flwc",
        aliases: &[],
        usage: "word",
        flags: &[],
        positional: (1, 1),
        writes: false,
        sentence: "Sends a four-letter word to the first server that answers; known words need no flwc.",
        example: "flwc mntr",
        verb: Verb::FourLetterWord,
    },
    Command {
        name: "cd",
        aliases: &[],
        usage: "[path]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Goes to a znode: relative paths begin there.",
        example: "cd /app",
        verb: Verb::Cd,
    },
    Command {
        name: "pwd",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Prints the path of the znode where the shell stands.",
        example: "pwd",
        verb: Verb::Pwd,
    },
    Command {
        name: "connect",
        aliases: &[],
        usage: "[hosts]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Opens a new session, on these servers or the same ones.",
        example: "connect zk1:2181,zk2:2181",
        verb: Verb::Connect,
    },
    Command {
        name: "close",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Ends the session.",
        example: "close",
        verb: Verb::Close,
    },
    Command {
        name: "version",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Prints the shell's version.",
        example: "version",
        verb: Verb::Version,
    },
    Command {
        name: "history",
        aliases: &[],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Prints the lines of this session with their numbers.",
        example: "history",
        verb: Verb::History,
    },
    Command {
        name: "redo",
        aliases: &[],
        usage: "number",
        flags: &[],
        positional: (1, 1),
        writes: false,
        sentence: "Carries out a line of the history again.",
        example: "redo 3",
        verb: Verb::Redo,
    },
    Command {
        name: "help",
        aliases: &["?"],
        usage: "[command]",
        flags: &[],
        positional: (0, 1),
        writes: false,
        sentence: "Tells what a command does, or lists all.",
        example: "help create",
        verb: Verb::Help,
    },
    Command {
        name: "quit",
        aliases: &["exit"],
        usage: "",
        flags: &[],
        positional: (0, 0),
        writes: false,
        sentence: "Ends the shell.",
        example: "quit",
        verb: Verb::Quit,
    },
];

/// The command of a name or an alias. Capitals do not matter, as long as they tell no two commands apart.
pub fn find(name: &str) -> Option<&'static Command> {
    let exact = COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name));
    exact.or_else(|| COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name)))
}

/// The name that is most like one that does not exist, to be proposed.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let shares = |command: &&Command| {
        let shared = command.name.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        shared >= 2
    };
    COMMANDS.iter().find(shares).map(|command| command.name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::arguments::Arguments;
    use crate::words::split;

    #[test]
    fn a_name_means_one_command() {
        let mut names = HashSet::new();
        for command in COMMANDS {
            for name in [command.name].iter().chain(command.aliases) {
                assert!(names.insert(*name), "{name} stands twice");
                assert!(!FOUR_LETTER_WORDS.contains(name), "{name} is a four-letter word too");
                assert_eq!(find(name).unwrap().name, command.name);
            }
        }
        assert_eq!(find("getacl").unwrap().name, "getAcl");
        assert!(find("nothing").is_none());
    }

    #[test]
    fn every_example_is_one() {
        for command in COMMANDS {
            let words = split(command.example).unwrap();
            assert_eq!(find(&words[0].text).unwrap().name, command.name, "{}", command.example);
            Arguments::parse(command, &words[1..]).unwrap();
        }
    }

    #[test]
    fn a_usage_shows_every_flag() {
        for command in COMMANDS {
            for flag in command.flags {
                let shown = format!("-{}", flag.trim_end_matches(':'));
                assert!(command.usage.contains(&shown), "{}: {shown}", command.name);
            }
        }
    }

    /// The lists of the two programs whose names are kept.
    #[test]
    fn commands_of_the_known_shells_are_there() {
        let zookeeper = "addauth addWatch close config connect create delete deleteall delquota get getAcl \
                         getAllChildrenNumber getEphemerals history listquota ls printwatches quit reconfig redo removewatches \
                         set setAcl setquota stat sync version whoami";
        let keeper = "ls cd set create touch get exists get_stat find_super_nodes delete_stale_backups find_big_family rm rmr reconfig sync help flwc \
                      get_direct_children_number get_all_children_number cp cpr mv mvr get_acl exit quit";
        for name in zookeeper.split_whitespace().chain(keeper.split_whitespace()) {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
