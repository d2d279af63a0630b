//! Tests of a member that starts, and of one that takes other settings while it runs.

mod starting;

use super::*;
use crate::config::{AdminSettings, AdminTls, ClientAuth, ClientTls};
use paddock_tls::testing::{Authority, client_port_settings, for_loopback};

/// Settings that clients' ports can use and the one for administrators cannot.
#[test]
fn keys_that_only_one_port_can_use_are_taken_by_neither() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("clients");
    let key = authority.issue(&for_loopback());
    let tls = client_port_settings(dir.path(), &key, &authority.pem());
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let admin_tls = AdminTls { protocol: PortProtocol::Either, needs_certificate: true };
    let server = Server::start(Config {
        listen: any_port,
        admin_listen: Some(any_port),
        admin: AdminSettings { tls: admin_tls, ..AdminSettings::default() },
        tls: Some(ClientTls { at_listen: PortProtocol::Either, ..tls }),
        ..Config::new(dir.path().join("data"))
    })
    .unwrap();

    let before = server.settings();
    let of_clients = || server.shared.opened.client_port.as_ref().unwrap().settings();
    let mut wanted = before.clone();
    let tls = wanted.tls.as_mut().unwrap();
    (tls.client_auth, tls.trust_store) = (ClientAuth::None, None);
    let refused = server.reload(&wanted).unwrap_err();
    assert!(matches!(refused, ServerError::AdminTls(_)), "{refused:?}");
    assert_eq!(of_clients().client_auth, ClientAuth::Need, "nothing has changed");
    assert_eq!(server.settings(), before);

    wanted.tls.as_mut().unwrap().trust_store = before.tls.as_ref().unwrap().trust_store.clone();
    server.reload(&wanted).unwrap();
    assert_eq!(of_clients().client_auth, ClientAuth::None);
    server.shutdown().unwrap();
}
