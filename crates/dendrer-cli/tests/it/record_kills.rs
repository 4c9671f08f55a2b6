//! `record` while something is killed: each record that `-o` was told of is in the store, and the run can be read.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dendrer_object::{Value, json};

use crate::record::has_python;
use crate::support::Place;

/// An API whose answers come at once, and a program that asks it until it is stopped.
const API: &str = r#"
import http.server, json
class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = {"role": "assistant", "content": "answer %d" % len(body["messages"])}
        text = json.dumps({"choices": [{"message": said}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
open("api.url.new", "w").write(f"http://127.0.0.1:{server.server_port}/v1")
import os; os.rename("api.url.new", "api.url")
server.serve_forever()
"#;

const AGENT: &str = r#"
import json, os, urllib.request
open("agent.pid.new", "w").write(str(os.getpid())); os.rename("agent.pid.new", "agent.pid")
messages = []
for turn in range(100000):
    messages.append({"role": "user", "content": "question %d" % turn})
    body = json.dumps({"messages": messages}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    messages.append(json.load(urllib.request.urlopen(request))["choices"][0]["message"])
"#;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Killed {
    Program,
    Dendrer,
    Both,
}

struct Api(Child);

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn api(place: &Place) -> Api {
    let desk = place.path().join("desk");
    std::fs::write(desk.join("api.py"), API).unwrap();
    std::fs::write(desk.join("agent.py"), AGENT).unwrap();
    let api = Command::new("python3").arg("api.py").current_dir(&desk).spawn().unwrap();
    wait_for(&desk.join("api.url"));
    Api(api)
}

fn wait_for(path: &std::path::Path) -> String {
    for _ in 0..1000 {
        match std::fs::read_to_string(path) {
            Ok(text) => return text,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    panic!("{} did not come", path.display());
}

fn kill(process: &str) {
    let _ = Command::new("kill").args(["-KILL", process]).stderr(Stdio::null()).status();
}

#[test]
fn each_record_that_was_told_is_there_whatever_is_killed() {
    if !has_python() {
        return;
    }
    let place = Place::with_store();
    std::fs::create_dir_all(place.path().join("desk")).unwrap();
    let desk = place.path().join("desk");
    let api = api(&place);
    let url = wait_for(&desk.join("api.url"));
    let points = if std::env::var_os("DENDRER_DEEP").is_some() { 100 } else { 9 };
    let mut told = 0;
    for point in 0..points {
        let killed = [Killed::Program, Killed::Dendrer, Killed::Both][point % 3];
        let _ = std::fs::remove_file(desk.join("agent.pid"));
        let run = format!("k-{point}");
        let acks = desk.join(format!("{run}.acks"));
        let args =
            ["record", "--as", &run, "--jsonl", "-o", acks.to_str().unwrap(), "--", "python3", "agent.py"];
        let mut command = place.command(&args);
        command.current_dir(&desk).env("OPENAI_BASE_URL", &url).stdout(Stdio::null()).stderr(Stdio::null());
        let mut dendrer = command.spawn().unwrap();
        let program = wait_for(&desk.join("agent.pid"));
        std::thread::sleep(Duration::from_millis(37 * (point as u64 % 13) + 20));
        if killed != Killed::Dendrer {
            kill(&program);
        }
        if killed != Killed::Program {
            kill(&dendrer.id().to_string());
        }
        let _ = dendrer.wait();
        kill(&program);
        let acks = std::fs::read_to_string(acks).unwrap_or_default();
        // The last line may be cut.
        let whole = acks.rfind('\n').map_or("", |end| &acks[..end]);
        let ids: Vec<Value> = whole
            .lines()
            .map(|line| json::parse_door(line.as_bytes()).unwrap())
            .filter(|item| item.get("tick").and_then(Value::as_u64).is_some())
            .filter_map(|item| item.get("id").cloned())
            .collect();
        told += ids.len();
        if ids.is_empty() {
            continue;
        }
        let (_, log) = place.json(&["log", &run, "--limit", "100000"]);
        let items = log.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let there: BTreeSet<String> = items.iter().map(|item| item.get("id").unwrap().to_string()).collect();
        let lost = ids.iter().filter(|id| !there.contains(&id.to_string())).count();
        assert_eq!(lost, 0, "{run} {killed:?}: of {} records that were told", ids.len());
        let verify = place.run(&["verify", &run, "--replay"]);
        assert!(matches!(verify.code, 0 | 6), "{run} {killed:?}: {} {}", verify.code, verify.stdout);
    }
    assert!(told > points, "the kills came before any record: {told}");
    drop(api);
}
