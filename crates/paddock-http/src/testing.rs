//! For tests: requests to a table of routes, without a socket.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use paddock_proto::Id;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection::{Caller, Site, serve};
use super::places::Places;
use super::{Context, Route, Surface};

/// Routes with the side that answers, for requesters at the port for administrators.
pub struct TestSite<C: 'static>(Arc<Site<C>>);

impl<C> fmt::Debug for TestSite<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSite").finish_non_exhaustive()
    }
}

impl<C: Context> TestSite<C> {
    /// A site of these routes.
    pub fn new(routes: &'static [Route<C>], context: C) -> TestSite<C> {
        TestSite(Arc::new(Site { routes, context }))
    }

    /// The side that answers.
    pub fn context(&self) -> &C {
        &self.0.context
    }

    /// Status and text of the whole answer to a request that ends its connection, by a client whose certificate proves these identities.
    pub async fn ask(&self, peer: SocketAddr, certified: &[Id], request: &str) -> (u16, String) {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let certified = certified.to_vec();
        let caller = Caller { peer, surface: Surface::Admin, is_refused: false, certified };
        let place = Places::new(1).take(peer.ip()).await;
        let activity = place.activity();
        let asking = async {
            near.write_all(request.as_bytes()).await.expect("the site reads");
            let mut answer = Vec::new();
            near.read_to_end(&mut answer).await.expect("the site answers");
            answer
        };
        let (answer, served) = tokio::join!(asking, serve(far, caller, &self.0, &activity));
        served.unwrap_or_else(|error| panic!("{request}: {error}"));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{request}: {answer:?}")), answer)
    }
}
