//! A walk over the tree of a server, with requests for the next znodes on their way.
//!
//! Memory holds the names of the children along one path, and the answers of a few znodes at each of its steps.

use paddock_bench::{Access, ShownIdentity};
use paddock_client::{Acl, Client, ClientOptions, Data, Error, ErrorCode, Pending, Stat};

use super::failure::DiffFailure;
use super::seen::Seen;

/// Znodes that are asked for before their turn.
const AHEAD: usize = 32;

pub(crate) struct ServerWalk<'a> {
    client: Client,
    servers: &'a str,
    exclude: &'a [String],
    /// Znodes to come, the next one last.
    waiting: Vec<AskedZnode>,
}

struct AskedZnode {
    path: String,
    asked: Option<Asked>,
}

/// Requests for one znode.
struct Asked {
    data: Pending<Data>,
    acl: Pending<(Vec<Acl>, Stat)>,
    children: Pending<Vec<String>>,
}

type Answers = (Data, Vec<Acl>, Vec<String>);

/// Opens a session, and shows the identities.
pub(crate) async fn connect(
    servers: &str,
    access: &Access,
    options: ClientOptions,
) -> Result<Client, DiffFailure> {
    let failed = |source| DiffFailure::Client { server: servers.to_owned(), source };
    let options = ClientOptions { tls: access.tls.clone(), sasl: access.login.clone(), ..options };
    let client = Client::connect(servers, options).await.map_err(failed)?;
    for ShownIdentity { scheme, auth } in &access.identities {
        client.add_auth(scheme, auth.as_bytes()).await.map_err(failed)?;
    }
    Ok(client)
}

impl<'a> ServerWalk<'a> {
    pub(crate) async fn begin(
        servers: &'a str,
        access: &Access,
        exclude: &'a [String],
    ) -> Result<ServerWalk<'a>, DiffFailure> {
        let client = connect(servers, access, ClientOptions::default()).await?;
        ServerWalk::over(client, servers, exclude).await
    }

    /// A walk on a session that is there already.
    pub(crate) async fn over(
        client: Client,
        servers: &'a str,
        exclude: &'a [String],
    ) -> Result<ServerWalk<'a>, DiffFailure> {
        ServerWalk::below("/", client, servers, exclude).await
    }

    /// A walk over a znode and all below it.
    pub(crate) async fn below(
        root: &str,
        client: Client,
        servers: &'a str,
        exclude: &'a [String],
    ) -> Result<ServerWalk<'a>, DiffFailure> {
        // Whatever was acknowledged elsewhere is to be seen here.
        let synced = client.sync("/").await;
        synced.map_err(|source| DiffFailure::Client { server: servers.to_owned(), source })?;
        let mut walk = ServerWalk { client, servers, exclude, waiting: Vec::new() };
        walk.push(root.to_owned());
        Ok(walk)
    }

    pub(crate) async fn close(&self) {
        // A session that cannot be closed expires.
        let _ = self.client.close().await;
    }

    fn push(&mut self, path: String) {
        if !self.exclude.iter().any(|root| paddock_proto::is_at_or_below(&path, root)) {
            self.waiting.push(AskedZnode { path, asked: None });
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Seen>, DiffFailure> {
        loop {
            self.ask_ahead();
            let Some(AskedZnode { path, asked }) = self.waiting.pop() else { return Ok(None) };
            let asked = asked.expect("the next znode was asked for");
            let Some((data, acl, mut names)) = self.answers(&path, asked).await? else { continue };
            names.sort_unstable_by(|a, b| b.cmp(a));
            let parent = if path == "/" { "" } else { &path };
            for name in names {
                self.push(format!("{parent}/{name}"));
            }
            return Ok(Some(Seen { path, data: data.bytes, acl, stat: data.stat, kind: None }));
        }
    }

    fn ask_ahead(&mut self) {
        let client = &self.client;
        for waiting in self.waiting.iter_mut().rev().take(AHEAD) {
            let path = &waiting.path;
            waiting.asked.get_or_insert_with(|| Asked {
                data: client.get_data(path),
                acl: client.get_acl(path),
                children: client.get_children(path),
            });
        }
    }

    /// The answers about a znode; none if it has gone since its parent was asked.
    async fn answers(&self, path: &str, asked: Asked) -> Result<Option<Answers>, DiffFailure> {
        let answers = async { Ok((asked.data.await?, asked.acl.await?.0, asked.children.await?)) };
        match answers.await {
            Ok(answers) => Ok(Some(answers)),
            Err(Error::Refused { code: ErrorCode::NoNode, .. }) => Ok(None),
            Err(Error::Refused { code: ErrorCode::NoAuth, .. }) => {
                Err(DiffFailure::NoAuth { server: self.servers.to_owned(), path: path.to_owned() })
            }
            Err(source) => Err(DiffFailure::Client { server: self.servers.to_owned(), source }),
        }
    }
}
