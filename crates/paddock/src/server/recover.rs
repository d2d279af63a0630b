//! `paddock server --recover`: one survivor goes on alone after a quorum was lost for good.
//!
//! Recovery is the one way to lose what was acknowledged, so it is not done by accident: no other member may
//! answer, and the operator says so twice.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use paddock_proto::MemberNumber;
use paddock_server::{Config, EnsembleMember};

/// Time after which another member's answer is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoverRefusal {
    #[error("--recover: the configuration names no ensemble, so no quorum can be lost; start without it")]
    Alone,
    #[error("--recover: {} holds no data of a member; name the directory of the survivor", .0.display())]
    NoData(std::path::PathBuf),
    #[error(
        "--recover: member {id} answers at {address}, so the quorum may not be lost; start this member without --recover, or \
         stop that one first"
    )]
    Answers { id: MemberNumber, address: String },
    #[error(
        "--recover makes member {member} an ensemble of its own with the data in {}. What members {others:?} had \
         acknowledged and this one never got is lost for good, and they can join again only with empty directories. If \
         several members survive, recover the one with the highest zxid. If that is what you want, add --yes",
        data_dir.display()
    )]
    Unconfirmed { member: MemberNumber, others: Vec<MemberNumber>, data_dir: std::path::PathBuf },
}

/// Refuses unless this member may begin an ensemble of its own.
pub(super) fn check(config: &Config, is_confirmed: bool) -> Result<(), RecoverRefusal> {
    let ensemble = config.ensemble.as_ref().ok_or(RecoverRefusal::Alone)?;
    if !config.data_dir.join("identity").exists() {
        return Err(RecoverRefusal::NoData(config.data_dir.clone()));
    }
    let others = || ensemble.members.iter().filter(|member| member.id != config.member);
    for other in others() {
        if let Some(address) = answers(other) {
            return Err(RecoverRefusal::Answers { id: other.id, address });
        }
    }
    if !is_confirmed {
        let others = others().map(|member| member.id).collect();
        let (member, data_dir) = (config.member, config.data_dir.clone());
        return Err(RecoverRefusal::Unconfirmed { member, others, data_dir });
    }
    Ok(())
}

/// The address where the member takes connections of its peers, if it does.
fn answers(member: &EnsembleMember) -> Option<String> {
    let addresses = (member.host.as_str(), member.quorum_port).to_socket_addrs().ok()?;
    addresses
        .into_iter()
        .find(|address| TcpStream::connect_timeout(address, PATIENCE).is_ok())
        .map(|address| address.to_string())
}
