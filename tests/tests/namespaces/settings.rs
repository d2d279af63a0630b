//! SettingsText of one member, as each kind of source says them.

use std::fs;
use std::path::Path;
use std::process::Command;

use paddock_tests::named_network::{Family, host_name};

/// SettingsText come from one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    ZooCfg,
    Toml,
    Xml,
    /// The variables of ZooKeeper's container image.
    Environment,
}

/// SettingsText of a member of an ensemble whose members are called by their names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingsText {
    pub(crate) id: usize,
    pub(crate) family: Family,
    /// Number of members in the list.
    pub(crate) members: usize,
    /// The member listens at every address, and does not say its own name where that can be left out.
    pub(crate) is_wildcard: bool,
}

impl SettingsText {
    /// Puts the settings in the member's directory, or on its command line.
    pub(crate) fn give(&self, source: Source, directory: &Path, command: &mut Command) {
        let (file, text) = match source {
            Source::ZooCfg => ("zoo.cfg", self.zoo_cfg()),
            Source::Toml => ("paddock.toml", self.toml()),
            Source::Xml => ("keeper_config.xml", self.xml()),
            Source::Environment => return self.set_variables(command),
        };
        fs::write(directory.join(file), text).expect("write the settings");
        command.args(["--config", file]);
    }

    fn unspecified(&self) -> &'static str {
        match self.family {
            Family::V4 => "0.0.0.0",
            Family::V6 => "[::]",
        }
    }

    /// Name of a member in this one's list.
    fn host(&self, id: usize) -> String {
        let is_own = id == self.id;
        if is_own && self.is_wildcard { self.unspecified().to_owned() } else { host_name(id) }
    }

    /// As the container images write them, with 0.0.0.0 for one's own.
    fn servers(&self) -> Vec<String> {
        (1..=self.members).map(|id| format!("server.{id}={}:2888:3888;2181", self.host(id))).collect()
    }

    fn zoo_cfg(&self) -> String {
        let servers = self.servers().join("\n").replace(";2181", "");
        // A name that is not there yet is waited for as long as it takes.
        let text = format!("dataDir=data\nclientPort=2181\nelectionPortBindRetry=0\n{servers}\n");
        if self.is_wildcard { text } else { format!("{text}clientPortAddress={}\n", host_name(self.id)) }
    }

    fn set_variables(&self, command: &mut Command) {
        command.env("ZOO_MY_ID", self.id.to_string()).env("ZOO_DATA_DIR", "data");
        command.env("ZOO_SERVERS", self.servers().join(" ")).env("ZOO_CFG_EXTRA", "electionPortBindRetry=0");
    }

    fn toml(&self) -> String {
        let SettingsText { id, is_wildcard, .. } = self;
        let listen = if *is_wildcard { self.unspecified().to_owned() } else { host_name(*id) };
        let mut text = format!(
            "data_dir = 'data'\nlisten = '{listen}:2181'\nmember = {id}\nbind_tries = 0\n[ensemble]\n\
             listen_on_all_addresses = {is_wildcard}\n"
        );
        for id in 1..=self.members {
            let host = host_name(id);
            text += &format!("[[ensemble.member]]\nid = {id}\nhost = '{host}'\nquorum_port = 2888\n");
        }
        text
    }

    /// Members listen to each other at every address, whatever the settings say.
    fn xml(&self) -> String {
        let server = |id: usize| {
            format!("<server><id>{id}</id><hostname>{}</hostname><port>9234</port></server>", host_name(id))
        };
        let servers: String = (1..=self.members).map(server).collect();
        format!(
            "<clickhouse><listen_host>{}</listen_host><keeper_server><tcp_port>2181</tcp_port>\
             <server_id>{}</server_id><storage_path>data</storage_path>\
             <four_letter_word_white_list>*</four_letter_word_white_list>\
             <raft_configuration>{servers}</raft_configuration></keeper_server></clickhouse>\n",
            self.unspecified().trim_matches(['[', ']']),
            self.id
        )
    }
}
