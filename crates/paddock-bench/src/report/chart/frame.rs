//! The parts of every chart: the drawing's size, axes, grid and their texts.

use maud::{Markup, html};

use super::super::units::one_line;
use super::scale::Scale;

pub(super) const HEIGHT: f64 = 300.0;
/// Height of a drawing in which the texts below the axis are slanted.
pub(super) const HEIGHT_SLANTED: f64 = 332.0;
const WIDTH: f64 = 640.0;
pub(super) const LEFT: f64 = 86.0;
pub(super) const RIGHT: f64 = 614.0;
pub(super) const TOP: f64 = 14.0;
pub(super) const BOTTOM: f64 = 248.0;

const MIDDLE: f64 = (LEFT + RIGHT) / 2.0;
const CENTRE: f64 = (TOP + BOTTOM) / 2.0;

/// A coordinate: a tenth of a pixel is fine enough.
pub(super) fn px(value: f64) -> String {
    format!("{value:.1}")
}

pub(super) fn x(scale: &Scale, value: f64) -> f64 {
    LEFT + scale.place(value) * (RIGHT - LEFT)
}

pub(super) fn y(scale: &Scale, value: f64) -> f64 {
    BOTTOM - scale.place(value) * (BOTTOM - TOP)
}

/// The drawing as a whole, around what the chart draws into it.
pub(super) fn svg(title: &str, height: f64, content: Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(one_line(title)) { (content) }
    }
}

/// Grid lines and values of the vertical axis, and what it counts.
pub(super) fn vertical(scale: &Scale, label: &str) -> Markup {
    html! {
        @for tick in &scale.ticks {
            @let y = y(scale, tick.value);
            line class="grid" x1=(LEFT) x2=(RIGHT) y1=(px(y)) y2=(px(y)) {}
            text class="tick end" x=(LEFT - 8.0) y=(px(y + 4.0)) { (tick.text) }
        }
        text class="label" transform={ "translate(14 " (CENTRE) ") rotate(-90)" } { (one_line(label)) }
    }
}

/// Marks and values of the horizontal axis.
pub(super) fn horizontal(scale: &Scale) -> Markup {
    html! {
        (base_line())
        @for tick in &scale.ticks {
            @let x = px(x(scale, tick.value));
            line class="axis" x1=(x) x2=(x) y1=(BOTTOM) y2=(BOTTOM + 5.0) {}
            text class="tick" x=(x) y=(BOTTOM + 20.0) { (tick.text) }
        }
    }
}

pub(super) fn base_line() -> Markup {
    html! { line class="axis" x1=(LEFT) x2=(RIGHT) y1=(BOTTOM) y2=(BOTTOM) {} }
}

/// Label of the horizontal axis.
pub(super) fn horizontal_label(label: &str, height: f64) -> Markup {
    html! { text class="label" x=(MIDDLE) y=(height - 8.0) { (one_line(label)) } }
}

/// Says why the drawing is bare.
pub(super) fn nothing(text: &str) -> Markup {
    html! { text class="nothing" x=(MIDDLE) y=(CENTRE) { (text) } }
}
