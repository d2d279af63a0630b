//! Identities that a connection has shown, and their limits: all of them travel with each of its writes, and lie in the log.

use paddock_proto::{Id, IdList};
use paddock_state::Client;

use crate::Limits;

/// More identities than a connection may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} identities of {bytes} bytes")]
pub(crate) struct TooManyIdentities {
    count: usize,
    /// Their size on the wire.
    bytes: usize,
}

/// The client with the identities that it has proved beside those before, each once. `None` if it had shown all of them.
pub(crate) fn with_proven(
    client: &Client,
    proven: &[Id],
    limits: &Limits,
) -> Result<Option<Client>, TooManyIdentities> {
    let is_shown = |id: &Id| client.ids().iter().any(|(scheme, shown)| scheme == id.scheme && shown == id.id);
    if proven.iter().all(is_shown) {
        return Ok(None);
    }
    let mut ids: Vec<Id> = client.ids().iter().map(|(scheme, id)| Id::new(scheme, id)).collect();
    for id in proven {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    let identified = Client::new(client.conn, client.session, &ids).with_dialect(client.dialect);
    check(identified.ids(), limits)?;
    Ok(Some(identified))
}

/// Fails for more identities than a connection may show.
pub(crate) fn check(ids: IdList<'_>, limits: &Limits) -> Result<(), TooManyIdentities> {
    let (count, bytes) = (ids.iter().count(), ids.wire().len());
    let is_within = count <= limits.identities_max && bytes <= limits.identity_bytes_max;
    if is_within { Ok(()) } else { Err(TooManyIdentities { count, bytes }) }
}

#[cfg(test)]
mod tests {
    use paddock_proto::SessionId;
    use paddock_state::ConnId;

    use super::*;

    fn client(count: usize) -> Client {
        let ids: Vec<Id> = (0..count).map(|number| Id::new("digest", format!("u{number}:h"))).collect();
        Client::new(ConnId::new(0, 1), SessionId(7), &ids)
    }

    fn limits() -> Limits {
        Limits { identities_max: 3, identity_bytes_max: 100, ..Limits::default() }
    }

    #[test]
    fn as_many_as_the_limit_and_none_more() {
        let limits = limits();
        let full = with_proven(&client(2), &[Id::new("digest", "u2:h")], &limits).unwrap().unwrap();
        assert_eq!(full.ids().iter().count(), 3);
        let error = with_proven(&full, &[Id::new("digest", "u3:h")], &limits).unwrap_err();
        assert_eq!(error.count, 4);
    }

    #[test]
    fn an_identity_counts_once_however_often_it_is_shown() {
        let limits = limits();
        let (full, again) = (client(3), Id::new("digest", "u1:h"));
        assert!(with_proven(&full, std::slice::from_ref(&again), &limits).unwrap().is_none());
        let twice = [Id::new("digest", "new:h"), Id::new("digest", "new:h")];
        let identified = with_proven(&client(2), &twice, &limits).unwrap().unwrap();
        assert_eq!(identified.ids().iter().count(), 3);
    }

    #[test]
    fn their_bytes_have_a_limit_and_one_more_is_too_many() {
        let limits = limits();
        // The count, and two lengths with each identity.
        let room = limits.identity_bytes_max - 4 - 8 - "digest".len();
        let of = |bytes: usize| with_proven(&client(0), &[Id::new("digest", "n".repeat(bytes))], &limits);
        assert_eq!(of(room).unwrap().unwrap().ids().wire().len(), limits.identity_bytes_max);
        assert_eq!(of(room + 1).unwrap_err(), TooManyIdentities { count: 1, bytes: 101 });
    }
}
