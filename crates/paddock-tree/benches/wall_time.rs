//! Time that the tree takes for a read, a write and a multi of five operations, without anything around it.
//!
//! `cargo bench --package paddock-tree --bench wall_time`, on a quiet machine. What `cargo xtask instructions` counts does not depend on the machine.

#[path = "shared/znodes.rs"]
mod znodes;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use paddock_proto::{OpCode, Read};
use paddock_tree::{Asker, Tree};
use znodes::{apply_all, command, multi};

/// Parents of a thousand znodes each: more than caches hold.
const PARENTS: usize = 300;
/// Parents whose znodes caches hold.
const FEW_PARENTS: usize = 10;

fn reads(criterion: &mut Criterion) {
    for parents in [FEW_PARENTS, PARENTS] {
        let tree = znodes::tree(parents);
        let paths: Vec<String> = znodes::paths(parents, parents * znodes::CHILDREN).collect();
        let mut paths = paths.iter().cycle();
        let mut out = Vec::with_capacity(1 << 10);
        criterion.bench_function(&format!("get_data of {} znodes", parents * znodes::CHILDREN), |bencher| {
            bencher.iter(|| {
                out.clear();
                let path = black_box(paths.next().expect("it begins again"));
                let read = Read::GetData { path, watch: false };
                tree.read(&read, &Asker::NOBODY, &mut out).expect("the znode is there");
            });
        });
    }
}

fn writes(criterion: &mut Criterion) {
    let mut bench = |name: &str, command_to: &dyn Fn(String, u64) -> Vec<u8>| {
        criterion.bench_function(name, |bencher| bencher.iter_custom(|count| time(count, command_to)));
    };
    bench("create", &|path, number| command(OpCode::Create, &format!("{path}-{number}")));
    bench("set_data", &|path, _| command(OpCode::SetData, &path));
    bench("multi_of_five", &|path, number| {
        let new = [1, 2].map(|of| format!("{path}-{number}-{of}"));
        multi(&[
            (OpCode::Check, &path),
            (OpCode::Create, &new[0]),
            (OpCode::Create, &new[1]),
            (OpCode::SetData, &path),
            (OpCode::Delete, &new[0]),
        ])
    });
}

/// Applies this number of commands, each to another znode than the one before, to a tree that is made beforehand.
fn time(count: u64, command_to: &dyn Fn(String, u64) -> Vec<u8>) -> Duration {
    let mut tree: Tree = znodes::tree(PARENTS);
    let paths = znodes::paths(PARENTS, count as usize);
    let commands: Vec<Vec<u8>> = paths.zip(0..).map(|(path, number)| command_to(path, number)).collect();
    let begun = Instant::now();
    apply_all(&mut tree, &commands);
    begun.elapsed()
}

criterion_group! {
    name = state_machine;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = reads, writes
}
criterion_main!(state_machine);
