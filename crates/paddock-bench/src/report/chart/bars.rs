//! Bars in groups, with their values on top of them where there is room.

use maud::{Markup, html};

use super::super::units::{NOTHING, elide, one_line};
use super::frame::{self, px};
use super::scale::Scale;
use super::{BarChart, color_of};

/// Share of a group's width that its bars take.
const FILLED: f64 = 0.76;
const BAR_WIDTH_MAX: f64 = 64.0;
/// A character of the texts, about.
const CHARACTER: f64 = 6.6;
const NAME_LENGTH_MAX: usize = 18;

pub(super) fn draw(chart: &BarChart, names: &[String]) -> Markup {
    let values = chart.series.iter().flat_map(|(_, values)| values.iter().flatten());
    let max = values.copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scale = Scale::linear(max, chart.unit);
    let layout = Layout::of(chart);
    let height = if layout.slanted { frame::HEIGHT_SLANTED } else { frame::HEIGHT };
    frame::svg(
        &chart.title,
        height,
        html! {
            (frame::vertical(&scale, &chart.label))
            @for (group, name) in chart.groups.iter().enumerate() {
                (group_name(name, &layout, group))
                @for (number, (series, values)) in chart.series.iter().enumerate() {
                    @let value = values.get(group).copied().flatten().filter(|value| value.is_finite());
                    @let text = value.map_or_else(|| NOTHING.to_owned(), |value| chart.unit.text(value));
                    g class="bar" {
                        title { (one_line(series)) ", " (one_line(name)) ": " (text) }
                        (bar(value, &text, layout.bar(group, number), &scale, &color_of(series, names).class()))
                    }
                }
            }
            (frame::base_line())
            (frame::horizontal_label(&chart.groups_label, height))
            @if chart.groups.is_empty() || chart.series.is_empty() { (frame::nothing("nothing was measured")) }
        },
    )
}

struct Layout {
    group_width: f64,
    bar_width: f64,
    bars: usize,
    /// Too many names for one line.
    slanted: bool,
}

impl Layout {
    fn of(chart: &BarChart) -> Layout {
        let group_width = (frame::RIGHT - frame::LEFT) / chart.groups.len().max(1) as f64;
        let bars = chart.series.len().max(1);
        let longest = chart.groups.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let slanted = longest.min(NAME_LENGTH_MAX) as f64 * CHARACTER > group_width;
        Layout {
            group_width,
            bar_width: (group_width * FILLED / bars as f64).min(BAR_WIDTH_MAX),
            bars,
            slanted,
        }
    }

    fn middle(&self, group: usize) -> f64 {
        frame::LEFT + (group as f64 + 0.5) * self.group_width
    }

    /// Left edge and width.
    fn bar(&self, group: usize, number: usize) -> (f64, f64) {
        let from_middle = number as f64 - self.bars as f64 / 2.0;
        (self.middle(group) + from_middle * self.bar_width, self.bar_width)
    }
}

fn bar(value: Option<f64>, text: &str, (left, width): (f64, f64), scale: &Scale, class: &str) -> Markup {
    let top = value.map_or(frame::BOTTOM, |value| frame::y(scale, value));
    let gap = width * 0.06;
    html! {
        rect class="room" x=(px(left)) y=(frame::TOP) width=(px(width)) height=(frame::BOTTOM - frame::TOP) {}
        @if value.is_some() {
            // Even a bar of height zero is there, as a line on the axis.
            rect class={ "fill " (class) } x=(px(left + gap)) y=(px(top.min(frame::BOTTOM - 1.0)))
                width=(px(width - 2.0 * gap)) height=(px((frame::BOTTOM - top).max(1.0))) rx="2" {}
        }
        @if text.chars().count() as f64 * CHARACTER <= width + 8.0 {
            text class="value" x=(px(left + width / 2.0)) y=(px(top - 5.0)) { (text) }
        }
    }
}

fn group_name(name: &str, layout: &Layout, group: usize) -> Markup {
    let (x, y) = (layout.middle(group), frame::BOTTOM + 18.0);
    let text = elide(&one_line(name), NAME_LENGTH_MAX);
    html! {
        @if layout.slanted {
            text class="tick end" transform={ "translate(" (px(x + 4.0)) " " (y - 4.0) ") rotate(-24)" } {
                title { (one_line(name)) } (text)
            }
        } @else {
            text class="tick" x=(px(x)) y=(y) { title { (one_line(name)) } (text) }
        }
    }
}
