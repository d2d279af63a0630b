//! Writes pages from made-up figures into a directory, to look at them: `cargo run --example page -- DIRECTORY`.

#[path = "page/made_up.rs"]
mod made_up;

use std::path::Path;
use std::{env, fs, io};

use paddock_bench::report::page::page;
use paddock_bench::report::table;

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else {
        return Err(io::Error::other("name the directory for the pages"));
    };
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    for (name, report) in made_up::runs() {
        fs::write(directory.join(format!("{name}.html")), page(&report))?;
        println!("{}", table(&report));
    }
    fs::write(directory.join("comparison.html"), made_up::comparison().html())
}
