//! A network of the test's own whose members call each other by names: a name may come late, and its address may change.
//!
//! Each member lives in a network namespace with one interface at a bridge in a namespace more, the hub, where the test's thread goes. Its
//! processes find names in a hosts file of the member's own, which stands over that of the machine for them alone.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::network::{enter, new_name, run, words};

/// Makes the first argument the hosts file, and the second the one of name servers, and becomes the rest.
const WITH_OWN_HOSTS: &str = r#"mount --bind "$1" /etc/hosts || exit
[ ! -e /etc/resolv.conf ] || mount --bind "$2" /etc/resolv.conf || exit
shift 2; exec "$@""#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

#[derive(Debug)]
pub struct NamedNetwork {
    name: String,
    family: Family,
    members: usize,
    /// Each member's hosts file, and an empty file that names no name server.
    files: TempDir,
    addresses: Vec<IpAddr>,
    /// Addresses of members whose names are known, by their numbers.
    known: BTreeMap<usize, IpAddr>,
    /// Members that look up an unused address for the name of member 1.
    misled: Vec<usize>,
    /// True if the hub has no way to the addresses at which no member is.
    refuses: bool,
}

impl NamedNetwork {
    /// A network of members 1 to `members`, all names known; none, and why, where namespaces are not allowed, or the
    /// kernel does not have the family.
    pub fn new(members: usize, family: Family) -> Result<NamedNetwork, String> {
        if family == Family::V6 && !Path::new("/proc/net/if_inet6").exists() {
            return Err("this kernel has no IPv6".to_owned());
        }
        let addresses = (1..=members).map(|id| address(family, id as u8)).collect();
        let files = tempfile::tempdir().expect("make a directory");
        let known = BTreeMap::new();
        let (name, misled) = (new_name(), Vec::new());
        let mut network =
            NamedNetwork { name, family, members, files, addresses, known, misled, refuses: false };
        run("ip", &["netns", "add", &network.hub()])?;
        // From here on whatever fails is a fault of this code, and not of the machine.
        network.make().unwrap_or_else(|error| panic!("make a network: {error}"));
        fs::write(network.no_servers(), "").expect("write a file without name servers");
        (1..=members).for_each(|id| network.know(id));
        Ok(network)
    }

    fn make(&self) -> Result<(), String> {
        let hub = |command: &str| ip(&self.hub(), command);
        hub("link set lo up")?;
        hub("link add members type bridge")?;
        hub("link set members up")?;
        hub(&self.take_address(address(self.family, 254), "members"))?;
        for id in 1..=self.members {
            let member = self.namespace(id);
            run("ip", &["netns", "add", &member])?;
            ip(&member, "link set lo up")?;
            hub(&format!("link add member-{id} type veth peer name members netns {member}"))?;
            hub(&format!("link set member-{id} master members up"))?;
            ip(&member, "link set members up")?;
            ip(&member, &self.take_address(self.address(id), "members"))?;
        }
        Ok(())
    }

    fn take_address(&self, address: IpAddr, device: &str) -> String {
        match self.family {
            Family::V4 => format!("address add {address}/24 dev {device}"),
            // An address that is still looked for elsewhere cannot be listened at.
            Family::V6 => format!("address add {address}/64 dev {device} nodad"),
        }
    }

    /// Moves this thread into the hub, from where it reaches the members.
    pub fn enter(&self) {
        enter(&self.hub());
    }

    pub fn address(&self, id: usize) -> IpAddr {
        self.addresses[id - 1]
    }

    /// The addresses between which the member moves.
    pub fn addresses_of(&self, id: usize) -> [IpAddr; 2] {
        [address(self.family, id as u8), address(self.family, id as u8 + 100)]
    }

    /// Gives the member its other address, to which its name does not lead yet.
    pub fn move_member(&mut self, id: usize) {
        let [first, second] = self.addresses_of(id);
        let moved = if self.address(id) == first { second } else { first };
        if self.refuses {
            // Before the member is gone from there: a call without an answer is waited for.
            self.refuse_at(self.address(id));
        }
        let commands = ["address flush dev members scope global", &self.take_address(moved, "members")];
        for command in commands {
            ip(&self.namespace(id), command).unwrap_or_else(|error| panic!("move member {id}: {error}"));
        }
        if self.refuses {
            ip(&self.hub(), &format!("route delete unreachable {moved}"))
                .unwrap_or_else(|error| panic!("reach {moved}: {error}"));
        }
        self.addresses[id - 1] = moved;
    }

    /// From now on calls from the hub to an address at which no member is fail at once, as by a router's word.
    pub fn refuse_at_other_addresses(&mut self) {
        self.refuses = true;
        for id in 1..=self.members {
            let [_, second] = self.addresses_of(id);
            self.refuse_at(second);
        }
    }

    fn refuse_at(&self, address: IpAddr) {
        let refused = ip(&self.hub(), &format!("route replace unreachable {address}"));
        refused.unwrap_or_else(|error| panic!("refuse at {address}: {error}"));
    }

    /// From now on all find the member's name, with its present address.
    pub fn know(&mut self, id: usize) {
        self.known.insert(id, self.address(id));
        self.write_hosts();
    }

    /// From now on the member's name is unknown.
    pub fn forget(&mut self, id: usize) {
        self.known.remove(&id);
        self.write_hosts();
    }

    /// From now on these members look for member 1 where it is not.
    pub fn mislead(&mut self, members: &[usize]) {
        self.misled = members.to_vec();
        self.write_hosts();
    }

    /// The files stay the same ones, which stand over the machine's.
    fn write_hosts(&self) {
        for reader in 1..=self.members {
            let found = |id: usize, known: IpAddr| match id {
                1 if self.misled.contains(&reader) => address(self.family, 200),
                _ => known,
            };
            let name =
                |(id, known): (&usize, &IpAddr)| format!("{} {}\n", found(*id, *known), host_name(*id));
            let names: String = self.known.iter().map(name).collect();
            let text = format!("127.0.0.1 localhost\n::1 localhost\n{names}");
            fs::write(self.hosts(reader), text).expect("write a hosts file");
        }
    }

    /// A program in the member's namespace, which finds names in the member's file. It becomes that program: one process.
    pub fn command(&self, id: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(id), "sh", "-c", WITH_OWN_HOSTS, "member"]);
        command.args([self.hosts(id), self.no_servers()]).arg(program);
        command
    }

    /// Namespace from which members are reached, for [`enter`].
    pub fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }

    fn namespace(&self, id: usize) -> String {
        format!("{}-{id}", self.name)
    }

    fn hosts(&self, id: usize) -> PathBuf {
        self.files.path().join(format!("hosts-{id}"))
    }

    fn no_servers(&self) -> PathBuf {
        self.files.path().join("resolv.conf")
    }
}

impl Drop for NamedNetwork {
    fn drop(&mut self) {
        let namespaces = (1..=self.members).map(|id| self.namespace(id)).chain([self.hub()]);
        for namespace in namespaces {
            // Not all of them are there if making them failed.
            let _ = run("ip", &["netns", "delete", &namespace]);
        }
    }
}

/// Name by which the others call a member.
pub fn host_name(id: usize) -> String {
    format!("zoo{id}")
}

fn address(family: Family, host: u8) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(10, 79, 0, host).into(),
        Family::V6 => Ipv6Addr::new(0xfd00, 0x79, 0, 0, 0, 0, 0, u16::from(host)).into(),
    }
}

fn ip(namespace: &str, command: &str) -> Result<String, String> {
    run("ip", &words(&format!("-n {namespace} {command}")))
}
