//! The znodes that a workload needs, put there before the run and taken away after it.

use std::collections::VecDeque;

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode, Pending};

use crate::workload::{PreparedZnode, Workload};
use crate::{BenchError, RunPlan, ShownIdentity};

/// More than this are not on their way at once.
const IN_FLIGHT: usize = 2000;

/// Removes what an earlier run may have left and creates what this one needs.
pub(crate) fn set_up(plan: &RunPlan) -> Result<(), BenchError> {
    on_a_client(plan, async |client| {
        let kept = remove_all(&client, plan.workload.as_ref()).await?;
        let missing = plan.workload.setup().filter(|znode| !kept.contains(&znode.path));
        create_all(&client, missing).await
    })
}

/// Removes all that the run has made.
pub(crate) fn clean_up(plan: &RunPlan) -> Result<(), BenchError> {
    on_a_client(plan, async |client| remove_all(&client, plan.workload.as_ref()).await.map(drop))
}

fn on_a_client(
    plan: &RunPlan,
    work: impl AsyncFnOnce(Client) -> Result<(), Error>,
) -> Result<(), BenchError> {
    let options = ClientOptions {
        session_timeout: plan.session_timeout,
        connect_timeout: plan.connect_timeout,
        tls: plan.access.tls.clone(),
        sasl: plan.access.login.clone(),
        ..ClientOptions::default()
    };
    with_client(&plan.hosts, options, async |client| {
        for ShownIdentity { scheme, auth } in &plan.access.identities {
            client.add_auth(scheme, auth.as_bytes()).await?;
        }
        work(client).await
    })
}

/// Does some work over a session of its own, which is closed after it.
pub(crate) fn with_client<T>(
    hosts: &[String],
    options: ClientOptions,
    work: impl AsyncFnOnce(Client) -> Result<T, Error>,
) -> Result<T, BenchError> {
    let system = |source| BenchError::System { action: "start the client that prepares znodes", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let hosts = hosts.join(",");
    let done = runtime.block_on(async {
        let client = Client::connect(&hosts, options).await?;
        let value = work(client.clone()).await?;
        client.close().await?;
        Ok(value)
    });
    done.map_err(|source| BenchError::Client { hosts, source })
}

async fn create_all(client: &Client, znodes: impl Iterator<Item = PreparedZnode>) -> Result<(), Error> {
    let requests = znodes.map(|znode| client.create(&znode.path, &znode.data, CreateMode::Persistent));
    all(requests, |_| Ok(())).await
}

/// Returns roots that stay, with nothing below them: a split point whose slots lie in other groups cannot be removed.
async fn remove_all(client: &Client, workload: &dyn Workload) -> Result<Vec<String>, Error> {
    let mut kept = Vec::new();
    for root in workload.roots() {
        let znodes = below(client, root.clone()).await?;
        all(znodes[1..].iter().rev().map(|path| client.delete(path, None)), gone).await?;
        match client.delete(&root, None).await {
            Err(error) if error.code() == Some(ErrorCode::NotEmpty) => {
                if !client.get_children(&root).await?.is_empty() {
                    return Err(error);
                }
                kept.push(root);
            }
            removed => removed.or_else(gone)?,
        }
    }
    Ok(kept)
}

/// `root` and everything below it, parents first; nothing if it is not there.
async fn below(client: &Client, root: String) -> Result<Vec<String>, Error> {
    let mut found = vec![root];
    let mut listed = 0;
    while listed < found.len() {
        let end = found.len().min(listed + IN_FLIGHT);
        let lists: Vec<_> = found[listed..end].iter().map(|path| client.get_children(path)).collect();
        for (number, list) in lists.into_iter().enumerate() {
            let parent = &found[listed + number];
            let names = match list.await {
                Err(error) => gone(error).map(|()| Vec::new())?,
                Ok(names) => names,
            };
            let children: Vec<String> = names.iter().map(|name| format!("{parent}/{name}")).collect();
            found.extend(children);
        }
        listed = end;
    }
    Ok(found)
}

/// Takes a znode that is not there for a removed one: an ephemeral may have gone by itself.
fn gone(error: Error) -> Result<(), Error> {
    if error.code() == Some(ErrorCode::NoNode) { Ok(()) } else { Err(error) }
}

/// Makes requests and awaits their answers, not too many at a time.
pub(crate) async fn all<T>(
    requests: impl Iterator<Item = Pending<T>>,
    tolerate: impl Fn(Error) -> Result<(), Error>,
) -> Result<(), Error> {
    let refuse = |answer: Result<T, Error>| answer.map(drop).or_else(&tolerate);
    let mut waiting = VecDeque::new();
    for request in requests {
        waiting.push_back(request);
        if waiting.len() == IN_FLIGHT {
            refuse(waiting.pop_front().expect("it was just counted").await)?;
        }
    }
    for request in waiting {
        refuse(request.await)?;
    }
    Ok(())
}
