//! A browser that is driven by the DevTools protocol, through pipes. There the size of a page is a setting: the window of a desktop's browser is
//! never as narrow as a phone.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;
use testkit::{PATIENCE, eventually};

/// The browser reads commands from descriptor 3 and writes answers to 4: the shell's input and output.
const THROUGH_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
/// Longest wait for a message: with a part of a core a desktop's browser takes long to start.
const LONGEST: Duration = PATIENCE.saturating_mul(4);

/// A browser with a page.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    /// Messages that nobody has waited for yet.
    heard: Vec<Value>,
    sent: u64,
    /// Of the page, once there is one.
    session: Option<String>,
    /// What the browser says.
    log: PathBuf,
}

impl Browser {
    /// Starts it, with a profile of its own in this folder.
    pub fn start(program: &Path, folder: &Path) -> Browser {
        let log = folder.join("browser.log");
        let mut child = Command::new("sh")
            .args(["-c", THROUGH_PIPES, "sh"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("there is room"))
            .spawn()
            .expect("there is a shell");
        let commands = child.stdin.take().expect("it is a pipe");
        let answers = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("a message is JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser { child, commands, messages, heard: Vec::new(), sent: 0, session: None, log };
        let page = browser.does("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = browser.does("Target.attachToTarget", &json!({ "targetId": page["targetId"], "flatten": true }));
        browser.session = Some(attached["sessionId"].as_str().expect("a session has a name").to_string());
        browser.does("Page.enable", &json!({}));
        browser.does("Page.setLifecycleEventsEnabled", &json!({ "enabled": true }));
        browser
    }

    /// Gives the page this size, in CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.does("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Opens a file, and waits until it has loaded.
    pub fn open(&mut self, file: &Path) {
        self.heard.clear();
        let opened = self.does("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        assert!(opened["errorText"].is_null(), "{}: {opened}", file.display());
        self.wait("load", |message| {
            let event = &message["params"];
            message["method"] == "Page.lifecycleEvent"
                && event["name"] == "load"
                && event["loaderId"] == opened["loaderId"]
        });
    }

    /// What an expression is in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let found = self.does("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }));
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].clone()
    }

    /// A picture of the page, without scrollbars: PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        self.does("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
        let picture = self.does("Page.captureScreenshot", &json!({ "format": "png" }));
        self.does("Emulation.setScrollbarsHidden", &json!({ "hidden": false }));
        from_base64(picture["data"].as_str().expect("a picture is text"))
    }

    /// Has the browser do something: its answer.
    fn does(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.send(method, parameters);
        let answer = self.wait(method, |message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method} {parameters}: {answer}");
        answer["result"].clone()
    }

    fn send(&mut self, method: &str, parameters: &Value) -> u64 {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        // if it has ended, the wait for its answer says so, with what it said
        let _ = self.commands.write_all(format!("{command}\0").as_bytes());
        self.sent
    }

    fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(&is_it) {
                return self.heard.swap_remove(at);
            }
            let message = self.messages.recv_timeout(LONGEST);
            self.heard.push(message.unwrap_or_else(|error| {
                panic!("{what}: {error}: {}", fs::read_to_string(&self.log).unwrap_or_default())
            }));
        }
    }
}

impl Drop for Browser {
    /// Ends it by itself if it does so, since it ends its own processes then.
    fn drop(&mut self) {
        self.session = None;
        self.send("Browser.close", &json!({}));
        if !eventually(|| self.child.try_wait().is_ok_and(|ended| ended.is_some())) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// The bytes that a text stands for (RFC 4648, section 4).
fn from_base64(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for character in text.bytes().take_while(|character| *character != b'=') {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("{character} is not of base64"),
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}
