//! A network of the test's own, in which members can be cut off from each other while clients reach them all.
//!
//! Each member lives in a network namespace with two interfaces: `peers`, where it meets the others, and `clients`. The
//! other ends are ports of two bridges in a namespace more, the hub, where the test's thread goes. Nothing outside these
//! namespaces is touched, and all of it is gone with them.
//!
//! Hardware addresses are not asked for but written down. A direction is cut by a wrong address: frames leave
//! that no interface takes, the sender is told nothing, and the other direction goes on.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::ensemble::MemberPlace;

const PREFIX: &str = "paddock-test";
const CLIENT_PORT: u16 = 2181;

/// A slow and lossy link, if the kernel can delay and lose what is sent.
const NETEM: &str = "netem delay 20ms 10ms loss 5%";
/// Otherwise one that is narrow, and drops what does not fit into a short queue.
const NARROW: &str = "tbf rate 1mbit burst 2kb latency 2ms";

#[derive(Debug)]
pub struct Network {
    hub: String,
    members: Vec<String>,
}

impl Network {
    /// A network of `members` members; none, and why, where namespaces are not allowed.
    pub fn new(members: usize) -> Result<Network, String> {
        let name = new_name();
        let network = Network {
            hub: format!("{name}-hub"),
            members: (1..=members).map(|id| format!("{name}-{id}")).collect(),
        };
        run("ip", &["netns", "add", &network.hub])?;
        // From here on whatever fails is a fault of this code, and not of the machine.
        network.make().unwrap_or_else(|error| panic!("make a network: {error}"));
        Ok(network)
    }

    fn make(&self) -> Result<(), String> {
        let hub = |command: &str| self.ip(&self.hub, command);
        hub("link set lo up")?;
        for bridge in ["peers", "clients"] {
            hub(&format!("link add {bridge} type bridge"))?;
            hub(&format!("link set {bridge} up"))?;
        }
        hub("address add 10.78.0.254/24 dev clients")?;
        for (id, member) in (1..).zip(&self.members) {
            run("ip", &["netns", "add", member])?;
            self.ip(member, "link set lo up")?;
            for (bridge, net) in [("peers", 77), ("clients", 78)] {
                hub(&format!("link add {bridge}-{id} type veth peer name {bridge} netns {member}"))?;
                hub(&format!("link set {bridge}-{id} master {bridge} up"))?;
                self.ip(member, &format!("address add 10.{net}.0.{id}/24 dev {bridge}"))?;
            }
            self.ip(member, &format!("link set peers address {}", hardware_address(id)))?;
            self.ip(member, "link set peers up")?;
            self.ip(member, "link set clients up")?;
        }
        self.heal();
        Ok(())
    }

    /// Addresses of the members, for `Ensemble::start_at`.
    pub fn places(&self) -> Vec<MemberPlace> {
        let place = |(id, member): (u8, &String)| MemberPlace {
            clients: SocketAddr::from((Ipv4Addr::new(10, 78, 0, id), CLIENT_PORT)),
            peers: format!("10.77.0.{id}:2888:3888"),
            namespace: Some(member.clone()),
            disk_bytes: None,
            admin: None,
        };
        (1..).zip(&self.members).map(place).collect()
    }

    /// Moves this thread into the hub: what it connects to is in this network, and so are its children.
    pub fn enter(&self) {
        enter(&self.hub);
    }

    /// From now on what a member sends to another is lost. Members by their places from 0.
    pub fn cut(&self, from: usize, to: usize) {
        self.send_frames(from, to, "02:00:00:00:ff:ff");
    }

    /// Nothing that others send reaches the member.
    pub fn deafen(&self, member: usize) {
        self.others(member).for_each(|other| self.cut(other, member));
    }

    /// Nothing that the member sends reaches others.
    pub fn mute(&self, member: usize) {
        self.others(member).for_each(|other| self.cut(member, other));
    }

    /// Nothing reaches the one from the other, nor the other way.
    pub fn separate(&self, one: usize, other: usize) {
        self.cut(one, other);
        self.cut(other, one);
    }

    pub fn isolate(&self, member: usize) {
        self.deafen(member);
        self.mute(member);
    }

    /// Everybody reaches everybody again.
    pub fn heal(&self) {
        for from in 0..self.members.len() {
            self.others(from).for_each(|to| self.send_frames(from, to, &hardware_address(to + 1)));
        }
    }

    /// Makes what the member sends to its peers slow, and loses some of it. Returns how.
    pub fn impair(&self, member: usize) -> &'static str {
        let place = format!("-n {} qdisc replace dev peers root", self.members[member]);
        // A kernel without netem says that it does not know it.
        let done =
            [NETEM, NARROW].into_iter().find(|how| run("tc", &words(&format!("{place} {how}"))).is_ok());
        done.expect("a kernel that has namespaces for networks has one of the two")
    }

    /// Number of frames to its peers that a member with a bad link has lost.
    pub fn lost_frames(&self, member: usize) -> u64 {
        let told = run("tc", &words(&format!("-s -n {} qdisc show dev peers", self.members[member])));
        let told = told.unwrap_or_else(|error| panic!("ask for a link's counters: {error}"));
        let dropped = told.split_once("(dropped ").and_then(|(_, rest)| rest.split(',').next());
        dropped.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no counter in {told:?}"))
    }

    fn others(&self, member: usize) -> impl Iterator<Item = usize> {
        (0..self.members.len()).filter(move |other| *other != member)
    }

    fn send_frames(&self, from: usize, to: usize, address: &str) {
        let entry = format!("neigh replace 10.77.0.{} lladdr {address} dev peers nud permanent", to + 1);
        self.ip(&self.members[from], &entry).unwrap_or_else(|error| panic!("change a neighbour: {error}"));
    }

    fn ip(&self, namespace: &str, command: &str) -> Result<String, String> {
        run("ip", &words(&format!("-n {namespace} {command}")))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in self.members.iter().chain([&self.hub]) {
            // Not all of them are there if making them failed.
            let _ = run("ip", &["netns", "delete", namespace]);
        }
    }
}

/// A beginning for names of namespaces that no other process has.
pub(crate) fn new_name() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    remove_what_others_left();
    format!("{PREFIX}-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Moves this thread into a namespace.
pub fn enter(namespace: &str) {
    let file = File::open(Path::new("/run/netns").join(namespace)).expect("open the namespace");
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("enter the namespace");
}

fn hardware_address(id: usize) -> String {
    format!("02:00:00:00:00:{id:02x}")
}

/// Removes the namespaces of tests that were killed before they could.
fn remove_what_others_left() {
    let Ok(namespaces) = fs::read_dir("/run/netns") else { return };
    for namespace in namespaces.flatten() {
        let name = namespace.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let owner = rest.split('-').nth(1).unwrap_or_default();
        if !Path::new("/proc").join(owner).exists() {
            let _ = run("ip", &["netns", "delete", &name]);
        }
    }
}

pub(crate) fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// Output of the program, or its complaint.
pub(crate) fn run(program: &str, words: &[&str]) -> Result<String, String> {
    let told = |what: &dyn std::fmt::Display| format!("`{program} {}`: {what}", words.join(" "));
    // Ctrl-C is for the test, which needs these programs to remove what it has made.
    let output = Command::new(program).args(words).process_group(0).output();
    let output = output.map_err(|error: io::Error| told(&error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(told(&String::from_utf8_lossy(&output.stderr).trim()))
    }
}
