//! A member whose own name or address is not there yet.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossbeam_channel::{Receiver, unbounded};
use paddock_os::LookUp;
use paddock_os::binding::{BindError, ListenAt};

use super::node::{CLUSTER, PATIENCE, TIMING};
use crate::{LinkEvent, LinkOptions, Links};

fn start(look_up: LookUp, bind_tries: u32) -> Result<(Links, Receiver<LinkEvent>), BindError> {
    let (sender, events) = unbounded();
    let options = LinkOptions {
        own: 1,
        listen: ListenAt::Name("zoo1:2888".to_owned()),
        look_up,
        bind_tries,
        cluster: CLUSTER,
        process: 1,
        peers: Vec::new(),
        seed: 1,
        timing: TIMING,
        tls: None,
    };
    let links = Links::start(options, move |event| drop(sender.send(event)))?;
    Ok((links, events))
}

fn fails(counted: &Arc<AtomicU32>) -> LookUp {
    let counted = counted.clone();
    LookUp::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(io::ErrorKind::NotFound.into())
    })
}

#[test]
fn a_name_that_can_be_looked_up_later_is_listened_at_then() {
    let is_known = Arc::new(AtomicBool::new(false));
    let known = is_known.clone();
    let look_up = LookUp::new(move |_| match known.load(Ordering::Relaxed) {
        true => Ok(vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()]),
        false => Err(io::ErrorKind::NotFound.into()),
    });
    let (_links, events) = start(look_up, 0).unwrap();
    is_known.store(true, Ordering::Relaxed);
    let event = events.recv_timeout(PATIENCE).unwrap();
    let LinkEvent::Listening(addresses) = event else { panic!("{event:?}") };
    // A machine without IPv6 has one of them.
    let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
    assert_eq!(addresses.len(), 1 + usize::from(has_ipv6), "{addresses:?}");
    for address in addresses {
        std::net::TcpStream::connect(address).unwrap();
    }
}

#[test]
fn a_name_that_is_never_known_ends_the_tries() {
    let tried = Arc::new(AtomicU32::new(0));
    let (_links, events) = start(fails(&tried), 2).unwrap();
    let event = events.recv_timeout(PATIENCE).unwrap();
    let LinkEvent::NotListening(error) = event else { panic!("{event:?}") };
    assert_eq!(error.to_string(), "look up zoo1:2888, at which to listen");
    assert_eq!(tried.load(Ordering::Relaxed), 2);
}

#[test]
fn with_one_try_the_links_do_not_start() {
    let error = start(fails(&Arc::default()), 1).unwrap_err();
    assert_eq!(error.to_string(), "look up zoo1:2888, at which to listen");
}
