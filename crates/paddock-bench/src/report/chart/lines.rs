//! Lines over time or over percentiles.

use std::fmt::Write;

use maud::{Markup, html};

use super::super::units::{Unit, one_line};
use super::frame::{self, px};
use super::scale::Scale;
use super::{ChartLine, LineChart, XAxis};

/// Up to this many points on the longest line each point is marked by a dot.
const DOTS_MAX: usize = 30;

pub(super) fn draw(chart: &LineChart) -> Markup {
    let lines = &chart.lines;
    let axes = Axes::of(chart);
    let dotted = lines.iter().all(|line| known(line).count() <= DOTS_MAX);
    frame::svg(
        &chart.title,
        frame::HEIGHT,
        html! {
            (frame::vertical(&axes.y, &chart.label))
            (frame::horizontal(&axes.x))
            (frame::horizontal_label(axes.label, frame::HEIGHT))
            @if lines.iter().all(|line| known(line).next().is_none()) { (frame::nothing("nothing was measured")) }
            @for line in lines { (curve(line, &axes, dotted)) }
            (places(lines, &axes, chart.unit))
            @for (at, what) in &chart.marks { (mark(*at, what, &axes)) }
        },
    )
}

struct Axes {
    kind: XAxis,
    label: &'static str,
    x: Scale,
    y: Scale,
}

impl Axes {
    fn of(chart: &LineChart) -> Axes {
        let points = || chart.lines.iter().flat_map(known);
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let (label, x) = match chart.x {
            XAxis::Time { length_s } => {
                let last = largest(&mut points().map(|point| point.0));
                ("time since the start", Scale::time(last.max(length_s)))
            }
            XAxis::Percentiles => ("percentile of the requests", Scale::percentiles()),
        };
        let mut values = points().map(|point| point.1);
        let y = if chart.logarithmic {
            Scale::logarithmic(values, chart.unit)
        } else {
            Scale::linear(largest(&mut values), chart.unit)
        };
        Axes { kind: chart.x, label, x, y }
    }

    fn place(&self, point: (f64, f64)) -> (f64, f64) {
        (frame::x(&self.x, point.0), frame::y(&self.y, point.1))
    }

    /// Text of the place where the pointer is.
    fn text(&self, x: f64) -> String {
        match self.kind {
            XAxis::Time { .. } => Unit::Seconds.text(x),
            XAxis::Percentiles if x >= 100.0 => "max".to_owned(),
            XAxis::Percentiles => format!("{x} %"),
        }
    }
}

/// The points that have a place.
fn known(line: &ChartLine) -> impl Iterator<Item = (f64, f64)> {
    line.points.iter().copied().filter(is_known)
}

fn is_known(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

fn curve(line: &ChartLine, axes: &Axes, dotted: bool) -> Markup {
    let class = line.color.class();
    html! {
        @for piece in line.points.split(|point| !is_known(point)).filter(|piece| !piece.is_empty()) {
            @let places: Vec<(f64, f64)> = piece.iter().map(|point| axes.place(*point)).collect();
            @let (first, last) = (places[0], places[places.len() - 1]);
            @if line.filled && places.len() > 1 {
                path class={ "area " (class) } d={
                    (path(&places)) "L" (px(last.0)) " " (frame::BOTTOM) "L" (px(first.0)) " " (frame::BOTTOM) "Z"
                } {}
            }
            @if places.len() > 1 { path class={ "line " (class) } d=(path(&places)) {} }
            @if places.len() == 1 || dotted {
                @for (x, y) in &places { circle class={ "dot " (class) } cx=(px(*x)) cy=(px(*y)) r="3" {} }
            }
        }
    }
}

fn path(places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (number, (x, y)) in places.iter().enumerate() {
        let step = if number == 0 { 'M' } else { 'L' };
        write!(path, "{step}{x:.1} {y:.1}").expect("a string takes all text");
    }
    path
}

/// A triangle on the axis.
fn mark(at: f64, what: &str, axes: &Axes) -> Markup {
    let (x, y) = (frame::x(&axes.x, at), frame::BOTTOM);
    html! {
        path class="mark" d={ "M" (px(x)) " " (y - 9.0) "L" (px(x - 5.0)) " " (y) "L" (px(x + 5.0)) " " (y) "Z" } {
            title { (one_line(what)) }
        }
    }
}

/// Invisible columns, one around each point: the pointer in one of them shows the values of all lines there.
fn places(lines: &[ChartLine], axes: &Axes, unit: Unit) -> Markup {
    let Some(leading) = lines.iter().max_by_key(|line| known(line).count()) else { return Markup::default() };
    let at: Vec<f64> = known(leading).map(|point| point.0).collect();
    let xs: Vec<f64> = at.iter().map(|value| frame::x(&axes.x, *value)).collect();
    html! {
        @for (number, here) in xs.iter().copied().enumerate() {
            @let from = number.checked_sub(1).map_or(frame::LEFT, |before| f64::midpoint(xs[before], here));
            @let to = xs.get(number + 1).map_or(frame::RIGHT, |after| f64::midpoint(here, *after));
            g class="place" {
                title { (axes.text(at[number])) (values(lines, here, (from, to), axes, unit)) }
                rect x=(px(from)) y=(frame::TOP) width=(px(to - from)) height=(frame::BOTTOM - frame::TOP) {}
                line x1=(px(here)) x2=(px(here)) y1=(frame::TOP) y2=(frame::BOTTOM) {}
            }
        }
    }
}

/// Values of all lines within a column, the nearest of each, for lines need not have the same points.
fn values(lines: &[ChartLine], here: f64, column: (f64, f64), axes: &Axes, unit: Unit) -> String {
    let mut text = String::new();
    for line in lines {
        let distance = |point: &(f64, f64)| (frame::x(&axes.x, point.0) - here).abs();
        let within = |point: &(f64, f64)| (column.0..=column.1).contains(&frame::x(&axes.x, point.0));
        let nearest = known(line).filter(within).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(point) = nearest {
            write!(text, "\n{}: {}", one_line(&line.name), unit.text(point.1))
                .expect("a string takes all text");
        }
    }
    text
}
