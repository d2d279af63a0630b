//! The pages of bench reports in a real browser: charts drawn, nothing to complain of, nothing asked for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use paddock_tests::browser::{Browser, Look, Visit};
use paddock_tests::server::{Server, ServerKind};
use tempfile::TempDir;

const LOOKS: [(&str, Look); 4] = [
    ("light", Look { width: 1280, dark: false }),
    ("dark", Look { width: 1280, dark: true }),
    // Two charts stand beside each other, and have the least room.
    ("narrow", Look { width: 1040, dark: false }),
    ("phone", Look { width: 390, dark: false }),
];

/// From this width on every chart is seen as a whole, in pixels.
const WIDE: u32 = 600;

/// The one page on which charts may be bare.
const EMPTY: &str = "empty";

#[test]
fn pages_are_drawn_and_ask_for_nothing() {
    measure();
    let pages = pages();
    assert!(!pages.is_empty(), "no pages to open");
    let mut browser = Browser::start();
    let mut problems = Vec::new();
    for page in &pages {
        let name = page.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        let mut backgrounds = Vec::new();
        for (look, how) in LOOKS {
            let visit = browser.open(page, how);
            keep(&visit, &format!("report-{name}-{look}.png"));
            problems.extend(
                find_problems(&visit, page).iter().map(|problem| format!("{name}, {look}: {problem}")),
            );
            problems.extend(find_bare(&visit, &name).map(|problem| format!("{name}, {look}: {problem}")));
            backgrounds.push(visit.background);
        }
        assert_ne!(backgrounds[0], backgrounds[1], "{name} looks the same in the dark");
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Each of these pages does what no report may do; a check that lets one pass would be worth nothing.
#[test]
fn broken_pages_are_found_out() {
    const DRAWING: &str = r#"<svg viewBox="0 0 9 9" width="90"><path class="line" d="M0 0L9 9"/></svg>"#;
    let drawing = |more: &str| format!("{DRAWING}{more}");
    let directory = TempDir::new().expect("a directory for pages");
    let mut browser = Browser::start();
    let mut check = |content: &str, expected: Option<&str>| {
        let page = directory.path().join("page.html");
        fs::write(&page, format!("<!DOCTYPE html><title>t</title>{content}")).expect("write the page");
        let problems = find_problems(&browser.open(&page, LOOKS[0].1), &page);
        match expected {
            None => assert!(problems.is_empty(), "{content}: {problems:?}"),
            Some(words) => {
                assert!(problems.iter().any(|problem| problem.contains(words)), "{content}: {problems:?}");
            }
        }
    };
    check(&drawing(""), None);
    check(&drawing("<script>console.log('so far, so good')</script>"), None);
    check(&drawing("<script>console.error('bad')</script>"), Some("console error"));
    check(&drawing("<script>console.warn('odd')</script>"), Some("console warning"));
    check(&drawing("<script>null.x</script>"), Some("console error"));
    check(
        &drawing("<img src='http://elsewhere.invalid/a.png'>"),
        Some("asks for http://elsewhere.invalid/a.png"),
    );
    check(
        &drawing("<script src='https://elsewhere.invalid/a.js'></script>"),
        Some("asks for https://elsewhere"),
    );
    check(
        &drawing("<style>@import 'http://elsewhere.invalid/a.css'</style>"),
        Some("asks for http://elsewhere"),
    );
    check(
        &drawing("<script>fetch('http://elsewhere.invalid/b')</script>"),
        Some("asks for http://elsewhere"),
    );
    check(&drawing("<img src='neighbour.png'>"), Some("asks for file://"));
    check(&drawing("<p style='width: 3000px'>wide</p>"), Some("wider than the window"));
    check(&format!("<div style='width: 60px; overflow-x: auto'>{DRAWING}</div>"), Some("has to be scrolled"));
    check("<p>no chart</p>", Some("no chart"));
    check("<svg><path d='M0 0L9 9'/></svg>", Some("nothing is drawn"));
    check("<svg><path class='line' d=''/></svg>", Some("nothing is drawn"));
    check(&format!("<div style='display: none'>{DRAWING}</div>"), Some("no room"));
    check("<svg><circle class='dot' r='9'/><text x='290' y='9'>cut</text></svg>", Some("cut off: cut"));
    check(
        "<svg><circle class='dot' r='9'/><text y='9'>a</text><text y='9'>b</text></svg>",
        Some("overlap: a and b"),
    );
}

/// The page of a run as the command writes it, beside those of made-up figures.
fn measure() {
    let server = Server::start(ServerKind::Paddock);
    let paddock = env::var_os("PADDOCK_BIN").expect("PADDOCK_BIN is not set: run `cargo xtask test browser`");
    let ran = Command::new(paddock)
        .args(["bench", "run", "mixed", "--time", "3s", "--quiet"])
        .args(["--hosts", &server.address().to_string(), "--pid", &server.pid().to_string()])
        .arg("--report")
        .arg(directory().join("measured.html"))
        .status();
    assert!(ran.is_ok_and(|status| status.success()), "bench run did not succeed");
}

fn directory() -> PathBuf {
    env::var_os("REPORT_PAGES").expect("REPORT_PAGES names the directory of the pages").into()
}

fn pages() -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory()).expect("list the pages").map(|entry| entry.expect("list the pages").path());
    let mut pages: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "html")).collect();
    pages.sort();
    pages
}

fn keep(visit: &Visit, name: &str) {
    let directory = env::var_os("SCREENSHOTS").expect("SCREENSHOTS names a directory");
    let file = Path::new(&directory).join(name);
    fs::write(&file, &visit.screenshot).expect("write the screenshot");
    println!("screenshot: {}", file.display());
}

fn find_problems(visit: &Visit, page: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let bad =
        |message: &&String| ["error", "warning", "assert"].iter().any(|level| message.starts_with(level));
    problems.extend(visit.messages.iter().filter(bad).map(|message| format!("console {message}")));
    let own = format!("file://{}", page.canonicalize().expect("the page exists").display());
    // What stands in the page itself is no request.
    let foreign = |url: &&String| **url != own && !url.starts_with("data:");
    problems.extend(visit.requests.iter().filter(foreign).map(|url| format!("asks for {url}")));
    if !visit.requests.contains(&own) {
        problems.push("requests are not seen: not even that for the page".to_owned());
    }
    if visit.overflow > 0.0 {
        problems.push(format!("{} pixels wider than the window", visit.overflow));
    }
    if visit.charts.is_empty() {
        problems.push("no chart".to_owned());
    }
    for chart in &visit.charts {
        let title = &chart.title;
        if chart.width < 50.0 || chart.height < 50.0 {
            problems.push(format!("{title}: no room, {} × {} pixels", chart.width, chart.height));
        }
        if chart.scrolls && visit.width >= WIDE {
            problems.push(format!("{title}: has to be scrolled"));
        }
        if chart.shapes == 0 && !chart.bare {
            problems.push(format!("{title}: nothing is drawn"));
        }
        problems.extend(chart.unreadable.iter().map(|text| format!("{title}: {text}")));
    }
    problems
}

/// Charts of a run that did something have something to draw and to read.
fn find_bare(visit: &Visit, name: &str) -> impl Iterator<Item = String> {
    let charts = visit.charts.iter().filter(move |_| name != EMPTY);
    charts.filter(|chart| chart.bare || chart.values == 0).map(|chart| format!("{}: bare", chart.title))
}
