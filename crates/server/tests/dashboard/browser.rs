//! A real Chromium, spoken to by its own protocol over two pipes: no driver, no port.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::support::{PATIENCE, setting};

/// Nothing of the machine's own habits, and nobody is called home.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
];

/// A browser; gone with the value.
pub(crate) struct Browser {
    child: Child,
    wire: Arc<Wire>,
    _folder: TempDir,
}

struct Wire {
    to: Mutex<File>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    events: Mutex<Vec<Value>>,
}

/// A page of it.
pub(crate) struct Tab {
    wire: Arc<Wire>,
    session: String,
    origin: String,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let (inward, outward) = (folder.path().join("in"), folder.path().join("out"));
        for pipe in [&inward, &outward] {
            mkfifo(pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        }
        // The browser reads its third descriptor and writes its fourth.
        let child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<"$PIPE_IN" 4>"$PIPE_OUT""#])
            .arg(setting("STATIONMASTER_TEST_CHROMIUM"))
            .args(FLAGS)
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .arg("about:blank")
            .env("PIPE_IN", &inward)
            .env("PIPE_OUT", &outward)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let to = File::options().write(true).open(&inward).unwrap();
        let from = File::open(&outward).unwrap();
        let wire = Arc::new(Wire {
            to: Mutex::new(to),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            events: Mutex::default(),
        });
        let reader = Arc::clone(&wire);
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let Ok(message) = message else { break };
                let message: Value = serde_json::from_slice(&message).unwrap();
                match message["id"].as_u64() {
                    Some(id) => {
                        if let Some(waiting) = reader.waiting.lock().unwrap().remove(&id) {
                            let _ = waiting.send(message);
                        }
                    }
                    None => reader.events.lock().unwrap().push(message),
                }
            }
            reader.waiting.lock().unwrap().clear();
        });
        Self {
            child,
            wire,
            _folder: folder,
        }
    }

    /// A new page with cookies of its own, for the server at this origin.
    pub(crate) async fn tab(&self, origin: &str) -> Tab {
        let context = self
            .wire
            .call(None, "Target.createBrowserContext", json!({}))
            .await;
        let target = json!({ "url": "about:blank", "browserContextId": context["browserContextId"] });
        let target = self.wire.call(None, "Target.createTarget", target).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.wire.call(None, "Target.attachToTarget", attach).await;
        let tab = Tab {
            wire: Arc::clone(&self.wire),
            session: session["sessionId"].as_str().unwrap().to_owned(),
            origin: origin.to_owned(),
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            tab.call(&format!("{domain}.enable"), json!({})).await;
        }
        tab
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Wire {
    async fn call(&self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        let answer = self.ask(session, method, parameters).await;
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    /// What the browser answers, also that it cannot.
    async fn ask(&self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap().insert(id, sender);
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.lock().unwrap().write_all(&bytes).unwrap();
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        answer
            .unwrap_or_else(|_| panic!("the browser does not answer {method}"))
            .unwrap_or_else(|_| panic!("the browser ended during {method}"))
    }
}

impl Tab {
    pub(crate) async fn call(&self, method: &str, parameters: Value) -> Value {
        self.wire.call(Some(&self.session), method, parameters).await
    }

    fn events(&self, method: &str) -> Vec<Value> {
        let events = self.wire.events.lock().unwrap();
        let ours = events
            .iter()
            .filter(|event| event["sessionId"] == self.session.as_str() && event["method"] == method);
        ours.map(|event| event["params"].clone()).collect()
    }

    /// Another page in the same window, in front of this one.
    pub(crate) async fn beside(&self) -> Self {
        let this = self.call("Target.getTargetInfo", json!({})).await;
        let target = json!({ "url": "about:blank", "browserContextId": this["targetInfo"]["browserContextId"], "background": false });
        let target = self.wire.call(None, "Target.createTarget", target).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.wire.call(None, "Target.attachToTarget", attach).await;
        let tab = Self {
            wire: Arc::clone(&self.wire),
            session: session["sessionId"].as_str().unwrap().to_owned(),
            origin: self.origin.clone(),
        };
        tab.call("Page.bringToFront", json!({})).await;
        tab
    }

    /// Opens a page of the server and waits until it is whole.
    pub(crate) async fn open(&self, path: &str) {
        let mark = self.mark().await;
        let url = format!("{}{path}", self.origin);
        self.call("Page.navigate", json!({ "url": url })).await;
        self.left(mark).await;
    }

    /// Does something that leads to another page, and waits for that.
    pub(crate) async fn and_then_a_page(&self, expression: &str) {
        let mark = self.mark().await;
        let ask = json!({ "expression": expression, "returnByValue": true });
        let answer = self.wire.ask(Some(&self.session), "Runtime.evaluate", ask).await;
        // Where the next page comes at once, the one that was asked cannot answer any more.
        assert!(
            answer["result"]["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["result"]["exceptionDetails"]
        );
        self.left(mark).await;
    }

    /// Marks the page that is about to be left.
    async fn mark(&self) -> u64 {
        let mark = self.wire.next.fetch_add(1, Ordering::Relaxed);
        self.look(&format!("window.leftBehind = {mark}")).await;
        mark
    }

    /// Waits until another page than the marked one is whole.
    async fn left(&self, mark: u64) {
        let whole = format!("window.leftBehind !== {mark} && document.readyState === 'complete'");
        self.until("the next page is whole", &whole).await;
    }

    /// What a piece of JavaScript says in the page.
    pub(crate) async fn look(&self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", ask).await;
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    /// The text that a person reads in there.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let expression = format!("document.querySelector({})?.innerText ?? ''", json!(selector));
        self.look(&expression)
            .await
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) async fn main(&self) -> String {
        self.text("main").await
    }

    /// Waits until the page shows these words.
    pub(crate) async fn shows(&self, words: &str) {
        self.until(
            words,
            &format!(
                "document.querySelector('main').innerText.includes({})",
                json!(words)
            ),
        )
        .await;
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&self, what: &str, expression: &str) {
        let begun = std::time::Instant::now();
        loop {
            // While a page is left for the next one, there is nobody to ask.
            let ask = json!({ "expression": expression, "returnByValue": true });
            let answer = self.wire.ask(Some(&self.session), "Runtime.evaluate", ask).await;
            if answer["result"]["result"]["value"] == true {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}; the page says:\n{}",
                self.main().await
            );
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }

    /// Presses the link or the button with these words, and waits for the page that it leads to.
    pub(crate) async fn press(&self, words: &str) {
        let find = format!(
            "(() => {{ const all = [...document.querySelectorAll('main a, main button')].filter(e => e.innerText?.trim() === {0}); \
             if (all.length === 0) throw new Error('no button ' + {0} + ' in ' + document.querySelector('main').innerText); all[0].click(); }})()",
            json!(words)
        );
        self.and_then_a_page(&find).await;
    }

    /// Presses the button that carries out this action: the form must be its form. Every action is pressed somewhere; see `pressed`.
    pub(crate) async fn act(&self, action: &str, words: &str) {
        let form = "document.querySelector('main form[method=post]')?.getAttribute('action')";
        assert_eq!(
            self.look(form).await,
            format!("/act/{action}"),
            "{}",
            self.main().await
        );
        self.press(words).await;
    }

    /// Is there such a link or button?
    pub(crate) async fn has(&self, words: &str) -> bool {
        let find = format!(
            "[...document.querySelectorAll('main a, main button')].some(e => e.innerText?.trim() === {})",
            json!(words)
        );
        self.look(&find).await == true
    }

    /// Types into a field as a person would.
    pub(crate) async fn fill(&self, name: &str, text: &str) {
        let fill = format!(
            "(() => {{ const field = document.querySelector('[name=\"{name}\"]:not([type=hidden])'); field.focus(); field.value = {}; \
             field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()",
            json!(text)
        );
        self.look(&fill).await;
    }

    /// Presses a key.
    pub(crate) async fn key(&self, key: &str) {
        let code = if key == "Enter" { "\r" } else { key };
        for kind in ["keyDown", "keyUp"] {
            let mut press = json!({ "type": kind, "key": key });
            if kind == "keyDown" {
                press["text"] = code.into();
            }
            if key == "Enter" {
                press["windowsVirtualKeyCode"] = 13.into();
            }
            self.call("Input.dispatchKeyEvent", press).await;
        }
    }

    pub(crate) async fn address(&self) -> String {
        let address = self.look("location.pathname + location.search").await;
        address.as_str().unwrap().to_owned()
    }

    /// Types this into the box that leads anywhere, and tells where it led.
    pub(crate) async fn jumped(&self, text: &str) -> String {
        self.open("/servers").await;
        self.key("/").await;
        self.until("the box has the focus", "document.activeElement.id === 'jump'")
            .await;
        self.call("Input.insertText", json!({ "text": text })).await;
        self.key("Enter").await;
        self.until(
            &format!("{text} leads somewhere"),
            "location.pathname !== '/servers' && document.readyState === 'complete'",
        )
        .await;
        self.address().await
    }

    /// Light or dark, and how wide.
    pub(crate) async fn appear(&self, theme: &str, width: u32, height: u32) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.call("Emulation.setEmulatedMedia", media).await;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// What the console complains of, and who was asked besides this server.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let thrown = self.events("Runtime.exceptionThrown");
        let logged = self
            .events("Log.entryAdded")
            .into_iter()
            .filter(|event| event["entry"]["level"] == "error");
        let said = self.events("Runtime.consoleAPICalled");
        let asked = self.events("Network.requestWillBeSent");
        let strangers = asked.into_iter().filter(|event| {
            !event["request"]["url"]
                .as_str()
                .unwrap()
                .starts_with(&self.origin)
        });
        let all = thrown.into_iter().chain(logged).chain(said).chain(strangers);
        all.map(|event| event.to_string()).collect()
    }

    /// What axe finds that keeps people out, with where it is.
    pub(crate) async fn barriers(&self) -> Vec<String> {
        let axe = std::fs::read_to_string(setting("STATIONMASTER_TEST_AXE")).unwrap();
        self.look(&format!("{axe}; undefined")).await;
        let found = self
            .look("axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html + ' ' + n.failureSummary).join(' | ')))")
            .await;
        serde_json::from_value(found).unwrap()
    }

    /// A picture of what is seen now, PNG.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        use base64::Engine as _;
        let picture = self
            .call("Page.captureScreenshot", json!({ "format": "png" }))
            .await;
        base64::engine::general_purpose::STANDARD
            .decode(picture["data"].as_str().unwrap())
            .unwrap()
    }
}
