//! One page in one tab: how it is opened, and what is kept of it.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::Browser;

/// Window and colours that the page is looked at with.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub width: u32,
    pub dark: bool,
}

/// Account of a page until it had loaded and was painted.
#[derive(Debug)]
pub struct Visit {
    /// Width of the window, in pixels.
    pub width: u32,
    /// Messages in the console, with their levels.
    pub messages: Vec<String>,
    /// Addresses that were asked for, the page's own included.
    pub requests: Vec<String>,
    pub charts: Vec<Chart>,
    /// Pixels by which the page is wider than the window.
    pub overflow: f64,
    pub background: String,
    /// As PNG.
    pub screenshot: Vec<u8>,
}

/// One drawing.
#[derive(Debug)]
pub struct Chart {
    pub title: String,
    pub width: f64,
    pub height: f64,
    /// Lines, bars and dots that have an extent and a colour.
    pub shapes: u64,
    /// Shapes with a value to read when the pointer is on them.
    pub values: u64,
    /// The element is wider than the room that it has on the page.
    pub scrolls: bool,
    /// Says that there is nothing to draw.
    pub bare: bool,
    /// Texts that are cut off, or lie on one another.
    pub unreadable: Vec<String>,
}

/// Runs in the page: measures what was drawn.
const MEASURE: &str = include_str!("measure.js");

pub(super) fn visit(browser: &mut Browser, tab: &str, page: &Path, look: Look) -> Visit {
    for domain in ["Page", "Network", "Log", "Runtime"] {
        browser.call(Some(tab), &format!("{domain}.enable"), json!({}));
    }
    let size = json!({"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.call(Some(tab), "Emulation.setDeviceMetricsOverride", size);
    let scheme = json!({"name": "prefers-color-scheme", "value": if look.dark { "dark" } else { "light" }});
    browser.call(Some(tab), "Emulation.setEmulatedMedia", json!({"features": [scheme]}));

    let url = format!("file://{}", page.canonicalize().expect("the page exists").display());
    browser.take_events(tab);
    browser.call(Some(tab), "Page.navigate", json!({"url": url}));
    browser.wait_for(tab, "Page.loadEventFired");
    let measures = json!({"expression": MEASURE, "awaitPromise": true, "returnByValue": true});
    let measured = browser.call(Some(tab), "Runtime.evaluate", measures);
    assert!(measured["exceptionDetails"].is_null(), "measuring {url}: {measured}");
    let screenshot = screenshot(browser, tab);
    let events = browser.take_events(tab);
    let measured = &measured["result"]["value"];
    Visit {
        width: look.width,
        messages: events.iter().filter_map(message).collect(),
        requests: events.iter().filter_map(request).collect(),
        charts: measured["charts"].as_array().expect("a list").iter().map(chart).collect(),
        overflow: measured["overflow"].as_f64().expect("a number"),
        background: text(&measured["background"]),
        screenshot,
    }
}

/// The whole page, however long.
fn screenshot(browser: &mut Browser, tab: &str) -> Vec<u8> {
    let metrics = browser.call(Some(tab), "Page.getLayoutMetrics", json!({}));
    let size = &metrics["cssContentSize"];
    let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
    let what = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let picture = browser.call(Some(tab), "Page.captureScreenshot", what);
    BASE64_STANDARD.decode(text(&picture["data"])).expect("Chromium encodes pictures")
}

/// The message that an event puts into the console, if any; debug output and plain information tell of no fault.
pub(super) fn message(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Log.entryAdded" => {
            let entry = &parameters["entry"];
            Some(format!("{}: {}", text(&entry["level"]), text(&entry["text"])))
        }
        "Runtime.consoleAPICalled" => Some(format!("{}: {}", text(&parameters["type"]), parameters["args"])),
        "Runtime.exceptionThrown" => Some(format!("error: {}", parameters["exceptionDetails"])),
        _ => None,
    }
}

pub(super) fn request(event: &Value) -> Option<String> {
    (event["method"] == "Network.requestWillBeSent").then(|| text(&event["params"]["request"]["url"]))
}

fn chart(measured: &Value) -> Chart {
    Chart {
        title: text(&measured["title"]),
        width: measured["width"].as_f64().expect("a number"),
        height: measured["height"].as_f64().expect("a number"),
        shapes: measured["shapes"].as_u64().expect("a number"),
        values: measured["values"].as_u64().expect("a number"),
        scrolls: measured["scrolls"].as_bool().expect("yes or no"),
        bare: measured["bare"].as_bool().expect("yes or no"),
        unreadable: measured["unreadable"].as_array().expect("a list").iter().map(text).collect(),
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
