//! One self-contained HTML page: text, tables, charts, and the figures as JSON.
//!
//! The page asks for nothing beyond itself; its own policy forbids it, so that even a mistake here could not make a
//! reader's browser call anyone. A `Page` is plain data: a run fills one (`run.rs`, `tables.rs`), and so can a comparison of runs.

mod run;
mod tables;
mod thin;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::Chart;
use super::units::one_line;

pub use run::page;

const STYLE: &str = include_str!("page/style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub title: String,
    /// Short statements below the title: where, how long, with what.
    pub subtitle: Vec<String>,
    /// Reason for which the figures are not what was asked for, if so.
    pub warning: Option<String>,
    pub facts: Vec<Fact>,
    pub charts: Vec<Chart>,
    pub tables: Vec<PageTable>,
    /// All figures, for programs: one JSON value.
    pub json: String,
    /// Name and version of the tool.
    pub tool: String,
}

/// A headline figure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fact {
    pub name: String,
    pub value: String,
    /// Small print; may be empty.
    pub note: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PageTable {
    pub title: String,
    /// A hint to the reader; may be empty.
    pub note: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub align: Align,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Figures.
    Right,
}

impl Column {
    pub(crate) fn text(name: &str) -> Column {
        Column { name: name.to_owned(), align: Align::Left }
    }

    pub(crate) fn figure(name: &str) -> Column {
        Column { name: name.to_owned(), align: Align::Right }
    }
}

impl Page {
    pub(crate) fn html(&self) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    // An empty icon keeps browsers from asking a server for one.
                    link rel="icon" href="data:,";
                    title { (one_line(&self.title)) }
                    style { (PreEscaped(STYLE)) }
                }
                body { main { (self.content()) } }
            }
        }
        .into_string()
    }

    fn content(&self) -> Markup {
        let names = self.bar_names();
        html! {
            header {
                h1 { (one_line(&self.title)) }
                ul class="subtitle" { @for part in &self.subtitle { li { (one_line(part)) } } }
            }
            @if let Some(warning) = &self.warning { p class="warning" role="alert" { (one_line(warning)) } }
            @if !self.facts.is_empty() { dl class="facts" { @for fact in &self.facts { (fact.markup()) } } }
            @if !self.charts.is_empty() {
                section class="charts" { @for chart in &self.charts { (chart.figure(&names)) } }
            }
            @for table in &self.tables { (table.markup()) }
            footer {
                (one_line(&self.tool)) ". All figures are in this file as JSON, in the element "
                code { "script#figures" } "."
            }
            script type="application/json" id="figures" { (PreEscaped(for_script(&self.json))) }
        }
    }

    /// All series of all bar charts, so that each has one colour throughout the page.
    fn bar_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for chart in &self.charts {
            let Chart::Bars(chart) = chart else { continue };
            for (name, _) in &chart.series {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

impl Fact {
    fn markup(&self) -> Markup {
        html! {
            div class="card" {
                dt { (one_line(&self.name)) }
                dd class="value" { (one_line(&self.value)) }
                @if !self.note.is_empty() { dd class="note" { (one_line(&self.note)) } }
            }
        }
    }
}

impl PageTable {
    fn markup(&self) -> Markup {
        html! {
            section class="card table" {
                h3 { (one_line(&self.title)) }
                @if !self.note.is_empty() { p class="note" { (one_line(&self.note)) } }
                div class="scroll" tabindex="0" {
                    table {
                        thead { tr { @for column in &self.columns {
                            th scope="col" class=[column.class()] { (one_line(&column.name)) }
                        } } }
                        tbody { @for row in &self.rows {
                            tr { @for (cell, column) in row.iter().zip(&self.columns) {
                                td class=[column.class()] { (one_line(cell)) }
                            } }
                        } }
                    }
                }
            }
        }
    }
}

impl Column {
    fn class(&self) -> Option<&'static str> {
        (self.align == Align::Right).then_some("figure")
    }
}

/// No text within the JSON can end the element around it.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::super::chart::BarChart;
    use super::super::samples;
    use super::super::units::Unit;
    use super::*;

    /// No markup but the page's own, nothing from elsewhere, no place that is not a number.
    fn check(page: &str) {
        // This address is in the hostile samples, and may stand there as text.
        let page = page.replace("http://elsewhere.invalid/", "");
        let words =
            ["<script>", "<img", "<b>", "http:", "https:", "url(", "@import", "NaN", "inf\"", "\0", "\u{1b}"];
        for word in words {
            assert!(!page.contains(word), "{word} in {page}");
        }
        assert_eq!(page.matches("</script>").count(), 1);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn every_run_makes_a_page() {
        for (_, report) in samples::all() {
            check(&page(&report));
        }
    }

    #[test]
    fn the_json_can_be_read_back() {
        let report = samples::hostile();
        let page = page(&report);
        let (_, rest) = page.split_once("id=\"figures\">").expect("the element is there");
        let (json, _) = rest.split_once("</script>").expect("the element ends");
        let read: super::super::RunReport = serde_json::from_str(json).expect("it is a report");
        assert_eq!(read, report);
    }

    #[test]
    fn hours_become_few_points() {
        let page = page(&samples::long());
        assert!(page.len() < 1_500_000, "{} bytes", page.len());
        assert!(page.contains("each point is 60 s"));
    }

    #[test]
    fn a_comparison_shows_what_is_there() {
        let values = vec![Some(1.0), None, Some(f64::NAN)];
        let series = vec![("A </title><script>".to_owned(), values), ("B".to_owned(), Vec::new())];
        let text = || "<b>\u{1b}".to_owned();
        let groups = vec![text(), "2".to_owned(), "3".to_owned()];
        let (title, note, label, groups_label) = (text(), text(), text(), text());
        let bars = BarChart { title, note, label, unit: Unit::Bytes, groups_label, groups, series };
        let bare = BarChart { groups: Vec::new(), series: Vec::new(), ..bars.clone() };
        let charts = vec![Chart::Bars(bars), Chart::Bars(bare)];
        let html = Page { title: text(), charts, json: "{}".to_owned(), ..Page::default() }.html();
        check(&html);
        assert_eq!(html.matches("class=\"fill ").count(), 1);
    }
}
