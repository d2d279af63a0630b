//! A `[[network]]` of a suite's file.

use std::time::Duration;

use paddock_relay::LinkQuality;
use serde::Deserialize;
use toml::Spanned;

use super::duration::duration;
use crate::suite::Network;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkEntry {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    leader: QualityEntry,
    #[serde(default)]
    followers: Vec<QualityEntry>,
    #[serde(default)]
    clients: QualityEntry,
    #[serde(default)]
    clients_elsewhere: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QualityEntry {
    #[serde(default, deserialize_with = "duration")]
    delay: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    jitter: Option<Duration>,
    #[serde(default)]
    lost_one_in: u64,
}

impl QualityEntry {
    fn quality(self) -> LinkQuality {
        LinkQuality {
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            lost_one_in: self.lost_one_in,
        }
    }
}

impl NetworkEntry {
    pub(super) fn network(&self) -> Network {
        Network {
            name: self.name.get_ref().clone(),
            leader: self.leader.quality(),
            followers: self.followers.iter().map(|quality| quality.quality()).collect(),
            clients: self.clients.quality(),
            clients_elsewhere: self.clients_elsewhere,
        }
    }
}
