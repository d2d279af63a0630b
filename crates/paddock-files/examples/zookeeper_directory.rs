//! Writes a data directory of ZooKeeper with a number of znodes, to measure how long an import takes:
//!
//! ```sh
//! cargo run --release -p paddock-files --example zookeeper_directory -- 10000000 /tmp/zookeeper
//! cargo run --release -- import zookeeper --data-dir /tmp/zookeeper --to /tmp/paddock
//! ```

use std::error::Error;
use std::path::Path;
use std::{env, process};

use paddock_files::export;
use paddock_proto::{Acl, Zxid};
use paddock_tree::{Draft, Facts, Tree, ZnodeKind};

/// Children of each parent.
const CHILDREN: u64 = 1000;
/// Bytes of each znode's data.
const DATA: [u8; 100] = [b'x'; 100];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let written = match &arguments[..] {
        [znodes, dir] => znodes.parse().map_err(Into::into).and_then(|znodes| write(znodes, Path::new(dir))),
        _ => Err("expected the number of znodes and a directory that is not there yet".into()),
    };
    if let Err(error) = written {
        eprintln!("error: {error}");
        process::exit(1);
    }
}

fn write(znodes: u64, dir: &Path) -> Result<(), Box<dyn Error>> {
    let exported = export(&tree(znodes)?, dir)?;
    println!("{} znodes in {}", znodes, exported.snapshot.display());
    Ok(())
}

fn tree(znodes: u64) -> Result<Tree, Box<dyn Error>> {
    let mut draft = Draft::new();
    let mut zxid = 0;
    let mut place = |path: &str| {
        zxid += 1;
        let facts = Facts {
            data: Some(&DATA),
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: zxid,
            mtime_ms: zxid,
            version: 0,
            cversion: 0,
            aversion: 0,
            kind: ZnodeKind::Persistent,
        };
        draft
            .place_with(path, &facts, vec![Acl::open()])
            .map(drop)
            .map_err(|error| format!("{path}: {error:?}"))
    };
    for number in 0..znodes {
        let (parent, child) = (number / CHILDREN, number % CHILDREN);
        let parent = format!("/parent-{parent}");
        // A parent counts as the first of its children.
        if child == 0 {
            place(&parent)?
        } else {
            place(&format!("{parent}/child-{child:09}"))?
        };
    }
    Ok(draft.finish(Zxid(i64::try_from(znodes)? + 1), 1).0)
}
