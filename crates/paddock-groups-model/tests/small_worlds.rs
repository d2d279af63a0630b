//! Runs the small worlds, and compares what came of them with the page.

use std::collections::BTreeSet;
use std::fs;

use paddock_groups_model::{ModelWorld, Size, row, worlds};

/// States after which a world is no small one any more.
const MAX_STATES: usize = 3_000_000;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/groups-model.md");
    fs::read_to_string(path).expect("the page of the models is there")
}

/// Runs a world; returns the complaints.
fn check(world: &ModelWorld, page: &str) -> Vec<String> {
    let verdict = world.run(MAX_STATES);
    let row = row(world, &verdict);
    let mut complaints = Vec::new();
    if verdict.is_cut_off || !verdict.is(world.expected) {
        complaints.push(format!("not as expected: {row}\n{:#?}", verdict.broken));
    }
    if !page.contains(&row) {
        complaints.push(format!("docs/groups-model.md has no row {row}"));
    }
    complaints
}

#[test]
fn small_worlds_end_as_expected_and_the_page_says_so() {
    let page = page();
    let small: Vec<ModelWorld> =
        worlds::all().into_iter().filter(|world| world.size == Size::Small).collect();
    let complaints: Vec<String> = small.iter().flat_map(|world| check(world, &page)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_world_has_one_name_and_stands_on_the_page() {
    let page = page();
    let mut names = BTreeSet::new();
    for world in worlds::all() {
        assert!(names.insert(world.name.clone()), "two worlds are called {}", world.name);
        assert!(
            page.contains(&format!("| `{}` | {} |", world.name, world.about)),
            "{} is not on the page",
            world.name
        );
    }
}
