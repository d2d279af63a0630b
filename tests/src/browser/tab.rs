//! A tab that stays open: a page that is used, and not only looked at.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::visit::{message, request, text};
use super::{Browser, Look};

/// Time in milliseconds that a page has to become what a test waits for.
const PATIENCE_MS: u32 = 20_000;

#[derive(Debug)]
pub struct Tab<'a> {
    browser: &'a mut Browser,
    id: String,
    target: Value,
    /// Everything that the console and the network have told so far.
    events: Vec<Value>,
}

impl Tab<'_> {
    pub(super) fn new(browser: &mut Browser) -> Tab<'_> {
        let target =
            browser.call(None, "Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached =
            browser.call(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let id = text(&attached["sessionId"]);
        for domain in ["Page", "Network", "Log", "Runtime"] {
            browser.call(Some(&id), &format!("{domain}.enable"), json!({}));
        }
        Tab { browser, id, target, events: Vec::new() }
    }

    /// From now on the page has this window and these colours, at once: nothing moves.
    pub fn look(&mut self, look: Look, height: u32) {
        let size = json!({"width": look.width, "height": height, "deviceScaleFactor": 1, "mobile": look.width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme =
            json!({"name": "prefers-color-scheme", "value": if look.dark { "dark" } else { "light" }});
        let motion = json!({"name": "prefers-reduced-motion", "value": "reduce"});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme, motion]}));
    }

    pub fn go(&mut self, url: &str) {
        // That of the page before is not waited for.
        let is_load =
            |event: &Value| event["method"] == "Page.loadEventFired" && event["sessionId"] == *self.id;
        self.browser.events.retain(|event| !is_load(event));
        self.call("Page.navigate", json!({"url": url}));
        self.browser.wait_for(&self.id, "Page.loadEventFired");
    }

    /// Value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn wait_until(&mut self, condition: &str) {
        let wait = format!(
            "new Promise(done => {{ const end = Date.now() + {PATIENCE_MS}; const look = () => ({condition}) ? done(true) \
             : Date.now() > end ? done(false) : setTimeout(look, 25); look(); }})"
        );
        if self.value(&wait) != true {
            let shown = self.value("document.body.innerText");
            panic!("{condition} has not come true; the page shows:\n{}", text(&shown));
        }
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub fn wait_for_text(&mut self, shown: &str) {
        let shown = Value::from(shown);
        self.wait_until(&format!("document.body.innerText.includes({shown})"));
    }

    /// The window as PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        BASE64_STANDARD.decode(text(&picture["data"])).expect("Chromium encodes pictures")
    }

    /// Errors and warnings in the console so far, and requests to elsewhere than `origin`.
    pub fn complaints(&mut self, origin: &str) -> Vec<String> {
        self.events.extend(self.browser.take_events(&self.id));
        let is_bad =
            |said: &String| ["error", "warning", "assert"].iter().any(|level| said.starts_with(level));
        let said = self.events.iter().filter_map(message).filter(is_bad);
        let own =
            |url: &String| url.starts_with(origin) || url.starts_with("data:") || url.starts_with("blob:");
        let foreign = self.events.iter().filter_map(request).filter(|url| !own(url));
        said.chain(foreign.map(|url| format!("asks for {url}"))).collect()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.browser.call(Some(&self.id), method, parameters)
    }
}

impl Drop for Tab<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let target = self.target.clone();
            self.browser.call(None, "Target.closeTarget", json!({"targetId": target}));
        }
    }
}
