//! Charts as inline SVG: plain data in, markup out.
//!
//! The markup names classes, and the page's style sheet gives them colours, so that one chart serves light and dark
//! mode; values appear when the pointer rests on them, without any script. Charting libraries paint fixed colours into
//! each element and know no such texts, which is why the few shapes are drawn here.

mod bars;
mod frame;
mod lines;
mod scale;

use maud::{Markup, html};

use super::units::{Unit, one_line};

#[derive(Clone, Debug)]
pub(crate) enum Chart {
    Lines(LineChart),
    Bars(BarChart),
}

#[derive(Clone, Debug)]
pub(crate) struct LineChart {
    pub title: String,
    /// A hint to the reader; may be empty.
    pub note: String,
    pub x: XAxis,
    /// Label of the vertical axis.
    pub label: String,
    pub unit: Unit,
    pub logarithmic: bool,
    pub lines: Vec<ChartLine>,
    /// Places where something went wrong, and what.
    pub marks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum XAxis {
    /// Seconds since the run began, and how long it was.
    Time { length_s: f64 },
    /// Percentiles, each nine as wide as the one before; 100 stands for the maximum.
    Percentiles,
}

#[derive(Clone, Debug)]
pub(crate) struct ChartLine {
    pub name: String,
    pub color: Color,
    /// The area below it is shaded.
    pub filled: bool,
    /// Places and values. A value that is no number interrupts the line.
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    /// The n-th of the palette, which begins again after its end.
    Series(usize),
    Error,
}

/// Bars beside each other, in groups.
#[derive(Clone, Debug)]
pub(crate) struct BarChart {
    pub title: String,
    /// A hint to the reader; may be empty.
    pub note: String,
    /// Label of the vertical axis.
    pub label: String,
    pub unit: Unit,
    /// Label of the horizontal axis, which has the groups.
    pub groups_label: String,
    pub groups: Vec<String>,
    /// A name, and a value for each group unless there is none.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

/// As many colours as the style sheet has.
const COLORS: usize = 8;

impl Color {
    fn class(self) -> String {
        match self {
            Color::Series(number) if number < COLORS => format!("c{number}"),
            Color::Series(number) => format!("c{} dashed", number % COLORS),
            Color::Error => "error".to_owned(),
        }
    }
}

impl Chart {
    /// A figure with title, legend and drawing. The place of a name in `names` is the colour of bars that have it.
    pub(super) fn figure(&self, names: &[String]) -> Markup {
        match self {
            Chart::Lines(chart) => {
                let legend = chart.lines.iter().map(|line| (line.name.as_str(), line.color)).collect();
                figure(&chart.title, &chart.note, legend, lines::draw(chart))
            }
            Chart::Bars(chart) => {
                let legend =
                    chart.series.iter().map(|(name, _)| (name.as_str(), color_of(name, names))).collect();
                figure(&chart.title, &chart.note, legend, bars::draw(chart, names))
            }
        }
    }
}

fn color_of(name: &str, names: &[String]) -> Color {
    Color::Series(names.iter().position(|known| known == name).unwrap_or(0))
}

fn figure(title: &str, note: &str, legend: Vec<(&str, Color)>, drawing: Markup) -> Markup {
    html! {
        figure class="card" {
            figcaption {
                h3 { (one_line(title)) }
                @if !note.is_empty() { p class="note" { (one_line(note)) } }
                @if legend.len() > 1 {
                    ul class="legend" {
                        @for (name, color) in legend {
                            li title=(one_line(name)) { i class={ "swatch " (color.class()) } {} (one_line(name)) }
                        }
                    }
                }
            }
            div class="drawing" { (drawing) }
        }
    }
}
