//! `record`, `replay` and `mcp-shim` with servers of MCP: a scripted server and scripted clients.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::record::{has_python, place};
use crate::support::Place;
use crate::tutorial::shell;

/// A server: it says in a file that it was started.
const DEPOT: &str = r#"
import json, sys
open("started", "a").write("x")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "depot", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        what = params["arguments"]["what"]
        result = {"content": [{"type": "text", "text": "12 " + what}], "isError": what == "ships"}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A client: the words after its options are what it counts.
const CLIENT: &str = r#"
import json, subprocess, sys
command, words = sys.argv[1].split(), sys.argv[2:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def ask(id, method, params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())
ask(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}})
server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
ask(1, "tools/list", {})
for at, word in enumerate(words):
    answer = ask(at + 2, "tools/call", {"name": "count", "arguments": {"what": word}, "_meta": {"progressToken": at}})
    print(answer["result"]["content"][0]["text"] if "result" in answer else "error " + answer["error"]["message"])
server.stdin.close()
print("ended", server.wait())
"#;

/// A place with the server as a program `depot`, and the client.
fn desk() -> Place {
    let place = place();
    let desk = place.path().join("desk");
    std::fs::create_dir(desk.join("bin")).unwrap();
    std::fs::write(desk.join("depot.py"), DEPOT).unwrap();
    std::fs::write(desk.join("client.py"), CLIENT).unwrap();
    program(&desk, "depot", "exec python3 depot.py");
    place
}

fn program(desk: &Path, name: &str, line: &str) {
    let file = desk.join("bin").join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Runs a line with the programs of the desk in `PATH`, and returns its exit code and all that it prints.
fn run(place: &Place, line: &str) -> (i32, String) {
    let mut last = 0;
    let text = shell(place, &format!("PATH=$PWD/bin:$PATH; {line}"), &mut last);
    (last, text)
}

fn is_there(place: &Place, name: &str) -> bool {
    place.path().join("desk").join(name).exists()
}

#[test]
fn a_server_in_path_is_recorded_and_served_again() {
    if !has_python() {
        return;
    }
    let place = desk();
    let (code, text) =
        run(&place, "dendrer record --mcp depot --as r -- python3 client.py depot trains ships");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("12 trains\n12 ships\nended 0\n"), "{text}");
    assert!(text.contains("recorded r: 8 ticks, 0 agents, 4 calls, 1 failed, 0 gaps"), "{text}");
    assert!(!text.contains("W0468"), "{text}");
    let (_, log) = run(&place, "dendrer log r");
    let rows: Vec<String> =
        log.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        r#"1 mcp:depot observation.add "initialize""#,
        r#"3 mcp:depot observation.add "tools/list""#,
        r#"4 mcp:depot action.request count {"what":"trains"}"#,
        r#"5 mcp:depot action.result ok count "12 trains""#,
        r#"7 mcp:depot action.result FAIL error count "12 ships""#,
    ] {
        assert!(rows.iter().any(|found| found == row), "{row} in {rows:#?}");
    }
    let (_, shown) = run(&place, "dendrer show r@0 --json");
    assert!(shown.contains(r#""mcp":["depot"]"#), "the names are in the metadata: {shown}");
    let (code, text) = run(&place, "dendrer verify --all --replay");
    assert_eq!(code, 0, "{text}");

    std::fs::remove_file(place.path().join("desk/started")).unwrap();
    let (code, text) = run(&place, "dendrer replay r -- python3 client.py depot trains ships");
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("12 trains\n12 ships\nended 0\n") && text.contains("OK           4 calls served"),
        "{text}"
    );
    let (code, text) = run(&place, "dendrer replay r -- python3 client.py depot trains cars planes");
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("12 trains\nerror dendrer: this request is not on record"), "{text}");
    assert!(text.contains("error dendrer: this client departed"), "{text}");
    let line = r#"DIVERGED     call 4 of mcp:depot: /params/arguments/what  recorded "ships"  now "cars""#;
    assert!(text.contains(line), "{text}");
    let (code, text) = run(&place, "dendrer replay r -- python3 client.py depot trains");
    assert!(code == 7 && text.contains("DIVERGED     call 4 of mcp:depot: it was not made"), "{text}");
    let (code, text) = run(&place, "dendrer replay r -- python3 client.py depot trains ships ships");
    assert!(code == 7 && text.contains("DIVERGED     a call more of mcp:depot"), "{text}");
    program(&place.path().join("desk"), "other", "touch started");
    let (code, text) = run(&place, "dendrer replay r -- python3 client.py 'depot more' trains");
    assert!(code == 7 && text.contains("DIVERGED     a call more of mcp:depot"), "{text}");
    assert!(!is_there(&place, "started"), "no server was started in a replay");
}

#[test]
fn a_client_that_passes_few_variables_on_is_recorded() {
    if !has_python() {
        return;
    }
    let place = desk();
    program(&place.path().join("desk"), "few", "exec env -i PATH=\"$PATH\" HOME=\"$HOME\" depot");
    let (code, text) = run(&place, "dendrer record --mcp depot --as r -- python3 client.py few trains");
    assert!(code == 0 && text.contains("3 calls"), "{text}");
    // By the name alone: `PATH` has another beginning.
    let line = "dendrer record --mcp '' --as named -- sh -c 'PATH=/usr/bin:$PATH exec python3 client.py \"dendrer mcp-shim --name shop -- depot\" trains'";
    let (code, text) = run(&place, line);
    assert!(code == 0 && text.contains("3 calls"), "{text}");
    assert!(run(&place, "dendrer log named").1.contains("mcp:shop"));
}

#[test]
fn without_a_recorder_all_is_passed_on_and_said_once() {
    if !has_python() {
        return;
    }
    let place = desk();
    let shim = "python3 client.py 'dendrer mcp-shim -- depot' trains";
    let said = |text: &str| text.matches("dendrer mcp-shim: no recorder").count();
    let (code, text) = run(&place, shim);
    assert!(code == 0 && text.contains("12 trains\nended 0\n") && said(&text) == 1, "{text}");
    // Directories that are not those of this user alone, or no recording.
    for make in ["mkdir d; chmod 755 d", "rm -rf d; mkdir -m 700 d", "rm -rf d; ln -s . d", "rm -rf d"] {
        let (code, text) = run(&place, &format!("{make}; DENDRER_RECORD=$PWD/d {shim}"));
        assert!(code == 0 && text.contains("12 trains\nended 0\n") && said(&text) == 1, "{make}: {text}");
    }
    // The recorder ended, and left its directory in `PATH`.
    let line = "dendrer record --mcp depot --as r -- sh -c 'cp -rp $DENDRER_RECORD kept'; PATH=$PWD/kept:$PATH; DENDRER_RECORD=$PWD/kept python3 client.py depot trains";
    let (code, text) = run(&place, line);
    assert!(code == 0 && text.contains("12 trains\nended 0\n"), "{text}");
    assert!(
        !run(&place, "ls -d ${TMPDIR:-/tmp}/dendrer-* 2>/dev/null")
            .1
            .contains(&place.path().display().to_string())
    );
}

#[test]
fn a_recording_inside_another_one_has_what_is_its_own() {
    if !has_python() {
        return;
    }
    let place = desk();
    let line = "dendrer init; dendrer record --mcp depot --as outer -- sh -c 'python3 client.py depot one; dendrer record --store in --mcp depot --as inner -- python3 client.py depot two'";
    let (code, text) = run(&place, &format!("dendrer init in; {line}"));
    assert!(code == 0 && text.contains("12 one\n") && text.contains("12 two\n"), "{text}");
    let outer = run(&place, "dendrer log outer").1;
    assert!(outer.contains("one") && !outer.contains("two"), "{outer}");
    let inner = run(&place, "dendrer log inner --store in").1;
    assert!(inner.contains("two") && !inner.contains("one"), "{inner}");
    // Two at once.
    let two = |name: &str| {
        format!("dendrer record --store {name} --mcp depot --as r -- python3 client.py depot of-{name}")
    };
    let (code, text) =
        run(&place, &format!("dendrer init a; dendrer init b; {} & {}; wait", two("a"), two("b")));
    assert_eq!(code, 0, "{text}");
    for (name, other) in [("a", "b"), ("b", "a")] {
        let log = run(&place, &format!("dendrer log r --store {name}")).1;
        assert!(log.contains(&format!("of-{name}")) && !log.contains(&format!("of-{other}")), "{log}");
    }
}

#[test]
fn a_server_that_a_server_starts_is_a_part_of_it() {
    if !has_python() {
        return;
    }
    let place = desk();
    program(&place.path().join("desk"), "runner", "exec \"$@\"");
    let line = "dendrer record --mcp depot,runner --as r -- python3 client.py 'runner depot' trains";
    let (code, text) = run(&place, line);
    assert!(code == 0 && text.contains("12 trains\nended 0\n") && text.contains(" 3 calls"), "{text}");
}

#[test]
fn a_connection_without_the_token_leaves_nothing() {
    if !has_python() {
        return;
    }
    let place = desk();
    let fake = r#"
import json, os, socket, struct
def say(token, lines):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["DENDRER_RECORD"] + "/socket")
    hello = json.dumps({"token": token, "command": ["fake"], "id": "f", "inside": []}).encode()
    for kind, text in [(0, hello), (1, lines), (2, lines)]:
        s.sendall(bytes([kind]) + struct.pack(">I", len(text)) + text)
    s.close()
line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forged","arguments":{}}}\n'
for token in ["", "0" * 64]:
    try:
        say(token, line)
    except BrokenPipeError:
        pass
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["DENDRER_RECORD"] + "/socket")
try:
    s.sendall(b"GET / HTTP/1.1\r\n\r\n")
except BrokenPipeError:
    pass
print(oct(os.stat(os.environ["DENDRER_RECORD"]).st_mode & 0o777), os.environ["DENDRER_RECORD"] in os.environ["PATH"].split(":"))
"#;
    std::fs::write(place.path().join("desk/fake.py"), fake).unwrap();
    let (code, text) = run(&place, "dendrer record --as r -- python3 fake.py");
    assert!(code == 0 && text.contains("0o700 True"), "{text}");
    assert!(text.contains("recorded r: 1 tick, 0 agents, 0 calls, 0 failed, 0 gaps"), "{text}");
    let (_, shown) = run(&place, "dendrer show r@1 --json");
    assert!(shown.contains(r#""refused":3"#), "{shown}");
    assert!(!run(&place, "dendrer export r --format jsonl").1.contains("forged"));
}

/// What a client sees of a command: what it prints, in hexadecimal, and how it ends.
const BYTES: &str = r#"
import subprocess, sys
sent = b'{"jsonrpc":"2.0","id":1,"method":"x"}\n' + bytes(range(256)) * 40 + b"\n" + b"z" * (300000) + b"\nno end"
server = subprocess.Popen(sys.argv[1].split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
came, _ = server.communicate(sent)
print(len(came), came == sent, server.returncode)
"#;

#[test]
fn every_byte_and_the_end_are_those_of_the_server() {
    if !has_python() {
        return;
    }
    let place = desk();
    let desk = place.path().join("desk");
    std::fs::write(desk.join("bytes.py"), BYTES).unwrap();
    program(&desk, "same", "cat; exit 7");
    program(&desk, "killed", "cat; kill -KILL $$");
    program(&desk, "term", "cat; kill -TERM $$");
    for (name, end) in [("same", "7"), ("killed", "-9"), ("term", "-15")] {
        let alone = run(&place, &format!("python3 bytes.py {name}")).1;
        assert!(alone.trim_end().ends_with(&format!(" True {end}")), "{alone}");
        let line = format!("dendrer record --mcp same,killed,term --as {name} -- python3 bytes.py {name}");
        let (code, text) = run(&place, &line);
        assert!(code == 0 && text.contains(&alone), "{name}: {text}");
        assert!(!text.contains(" 0 gaps"), "what is no message is a gap: {text}");
        let all = run(&place, &format!("dendrer export {name} --format jsonl")).1;
        let ended = if end == "7" { r#""exit":7"# } else { &format!(r#""signal":{}"#, &end[1..]) };
        assert!(all.contains(ended) && all.contains("line_cut") && all.contains("not_utf8"), "{all}");
    }
    let (code, text) = run(&place, "dendrer mcp-shim -- no-such-server < /dev/null");
    assert!(code == 127 && text.contains("no-such-server was not started"), "{text}");
}

#[test]
fn a_line_over_the_limit_passes_and_is_a_gap() {
    if !has_python() {
        return;
    }
    let place = desk();
    let desk = place.path().join("desk");
    let bytes = BYTES.replace("(300000)", "(70 << 20)");
    std::fs::write(desk.join("bytes.py"), bytes).unwrap();
    program(&desk, "same", "exec cat");
    let (code, text) = run(&place, "dendrer record --mcp same --as r -- python3 bytes.py same");
    assert!(code == 0 && text.contains(" True 0"), "{text}");
    // What the recorder does not take in time is a gap as well.
    let all = run(&place, "dendrer export r --format jsonl").1;
    assert!(all.contains("too_large") || all.contains("line_cut"), "{text} {all}");
}

#[test]
fn a_program_that_speaks_no_mcp_is_only_passed_on() {
    if !has_python() {
        return;
    }
    let place = desk();
    program(
        &place.path().join("desk"),
        "tool",
        "if [ -t 0 ]; then echo terminal; else cat; fi; echo \"$@\"; exit 4",
    );
    let line = "printf 'plain\\nwords' | dendrer record --mcp tool --as r -- tool 'a  b' --at tick 3";
    let (code, text) = run(&place, line);
    assert!(code == 4 && text.contains("plain\nwordsa  b --at tick 3\n"), "{text}");
    assert!(text.contains("recorded r: 1 tick, 0 agents, 0 calls, 0 failed, 0 gaps"), "{text}");
    // A terminal as input: the shim replaces itself.
    let pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let line = format!("dendrer record --mcp tool --as t -- python3 -c '{pty}' tool x < /dev/null");
    let (code, text) = run(&place, &line);
    assert!(code == 4 && text.contains("terminal\r\nx\r\n"), "{text}");
    // Not served in a replay, since it was not recorded: it runs again.
    let (_, text) = run(&place, "echo plain | dendrer mcp-shim -- tool");
    assert!(text.contains("plain\n"), "{text}");
}

#[test]
fn a_signal_to_a_shim_is_the_servers() {
    if !has_python() {
        return;
    }
    let place = desk();
    let client = r#"
import signal, subprocess, sys
server = subprocess.Popen(["trap"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"x"}\n')
server.stdin.flush()
print(server.stdout.readline())
server.send_signal(signal.SIGTERM)
print(server.stdout.readline(), server.wait())
"#;
    let desk = place.path().join("desk");
    std::fs::write(desk.join("stop.py"), client).unwrap();
    program(
        &desk,
        "trap",
        "trap 'echo caught; exit 5' TERM; read line; echo ready; while :; do sleep 0.1; done",
    );
    let (code, text) = run(&place, "dendrer record --mcp trap --as r -- python3 stop.py");
    assert!(code == 0 && text.contains("b'ready\\n'\nb'caught\\n' 5\n"), "{text}");
    let all = run(&place, "dendrer export r --format jsonl").1;
    assert!(all.contains("mcp_call_failed") && all.contains(r#""exit":5"#), "{all}");
}

#[test]
fn keys_of_a_server_are_in_no_file() {
    if !has_python() {
        return;
    }
    let place = desk();
    let server = "depot --api-key canary-of-a-flag TOKEN=canary-of-a-variable https://u:canary-of-a-user@h/?k=canary-of-a-query";
    let line = format!(
        "DEPOT_KEY=canary-of-the-environment dendrer record --mcp depot --as r -- sh -c 'exec python3 client.py \"$(cat line)\" sk-ant-api03-aaaabbbbccccddddeeeeffff00001111'"
    );
    std::fs::write(place.path().join("desk/line"), server).unwrap();
    let (code, text) = run(&place, &line);
    assert!(code == 0 && text.contains("3 calls"), "{text}");
    let mut files = vec![place.path().join("desk/.dendrer")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        for canary in ["canary-of", "aaaabbbbccccddddeeeeffff00001111"] {
            let found = bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
            assert!(!found, "{canary} is in {}", path.display());
        }
    }
    let all = run(&place, "dendrer export r --format jsonl").1;
    assert!(all.contains("(left out)") && !all.contains("canary"), "{all}");
    // The same command is served again, with its keys.
    let again = line.replace("record --mcp depot --as r", "replay r");
    let (code, text) = run(&place, &again);
    assert!(code == 0 && text.contains("OK           3 calls served"), "{text}");
}

#[test]
fn a_server_that_dies_is_a_failure_and_dies_again() {
    if !has_python() {
        return;
    }
    let place = desk();
    let server = DEPOT.replace(
        "        what = ",
        "        print('{\"half', end='', flush=True); sys.exit(3)\n        what = ",
    );
    std::fs::write(place.path().join("desk/depot.py"), server).unwrap();
    let client = CLIENT.replace("return json.loads(server.stdout.readline())", "line = server.stdout.readline()\n    return json.loads(line) if line.endswith(b'\\n') else {'error': {'message': 'gone'}}");
    std::fs::write(place.path().join("desk/client.py"), client).unwrap();
    let (code, text) = run(&place, "dendrer record --mcp depot --as r -- python3 client.py depot trains");
    assert!(
        code == 0 && text.contains("error gone\nended 3\n") && text.contains("1 failed, 1 gap,"),
        "{text}"
    );
    let all = run(&place, "dendrer export r --format jsonl").1;
    assert!(
        all.contains("line_cut") && all.contains("mcp_call_failed") && all.contains(r#""exit":3"#),
        "{all}"
    );
    std::fs::remove_file(place.path().join("desk/started")).unwrap();
    let (code, text) = run(&place, "dendrer replay r -- python3 client.py depot trains");
    assert!(code == 0 && text.contains("error gone\nended 3\n"), "{text}");
    assert!(!is_there(&place, "started"));
}

#[test]
fn names_of_shims_are_names_of_programs() {
    let place = desk();
    for name in ["../x", "socket", "a/b", "."] {
        let (code, text) = run(&place, &format!("dendrer record --mcp {name} --as r -- touch ran"));
        assert!(
            code == 2 && text.contains("--mcp takes names of programs") && !is_there(&place, "ran"),
            "{text}"
        );
    }
    assert!(Command::new("true").status().is_ok());
}

/// An API that asks for the calls that the request names.
const ASKED_FOR: &str = r#"
import http.server, json, threading
class H(http.server.BaseHTTPRequestHandler):
    protocol_version="HTTP/1.1"
    def do_POST(self):
        b=json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        m={"role":"assistant","content":"ok"}
        if "do" in b: m={"role":"assistant","content":None,"tool_calls":[{"id":i,"type":"function","function":{"name":n,"arguments":json.dumps(a)}} for i,n,a in b["do"]["tools"]]}
        t=json.dumps({"choices":[{"message":m}]}).encode()
        self.send_response(200); self.send_header("Content-Length",str(len(t))); self.send_header("Content-Type","application/json"); self.end_headers(); self.wfile.write(t)
    def log_message(self,*_): pass
s=http.server.ThreadingHTTPServer(("127.0.0.1",0),H); print("http://127.0.0.1:%d/v1"%s.server_port,flush=True); threading.Timer(120,s.shutdown).start(); s.serve_forever()
"#;

/// A program that takes each answer to the server at once.
const AT_ONCE: &str = r#"
import os,sys,json,urllib.request,subprocess
def ask(ms,tools=None):
    b=json.dumps({"model":"m","messages":ms,**({"do":{"tools":tools}} if tools else {})}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"]+"/chat/completions",b)))["choices"][0]["message"]
p=subprocess.Popen(["depot"],stdin=subprocess.PIPE,stdout=subprocess.PIPE); m=[{"role":"user","content":"go"}]
for k in range(4):
    a=ask(m,[["c%d"%k,"count",{"what":"w%d"%k}]])
    p.stdin.write(json.dumps({"jsonrpc":"2.0","id":k,"method":"tools/call","params":{"name":"count","arguments":{"what":"w%d"%k}}}).encode()+b"\n"); p.stdin.flush()
    r=json.loads(p.stdout.readline()); m+=[a,{"role":"tool","tool_call_id":"c%d"%k,"content":r["result"]["content"][0]["text"]}]
p.stdin.close(); p.wait()
"#;

#[test]
fn a_call_over_mcp_comes_after_the_answer_that_asked_for_it() {
    if !has_python() {
        return;
    }
    let place = place();
    let desk = place.path().join("desk");
    let depot = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    m=json.loads(line)
    print(json.dumps({"jsonrpc":"2.0","id":m["id"],"result":{"content":[{"type":"text","text":"12 "+m["params"]["arguments"]["what"]}]}}),flush=True)
"#;
    for (name, text) in [("stub.py", ASKED_FOR), ("at_once.py", AT_ONCE), ("depot", depot)] {
        std::fs::write(desk.join(name), text).unwrap();
    }
    let mut last = 0;
    shell(&place, "chmod +x depot; python3 stub.py > stub.url &", &mut last);
    shell(&place, "while ! [ -s stub.url ]; do sleep 0.1; done", &mut last);
    for run in 0..5 {
        let line = format!(
            "PATH=$PWD:$PATH OPENAI_BASE_URL=$(cat stub.url) dendrer record --mcp depot --as o{run} -- python3 at_once.py; dendrer log o{run}"
        );
        let text = shell(&place, &line, &mut last);
        assert!(text.contains("10 ticks, 1 agent, 8 calls"), "{text}");
        assert_eq!(text.matches("action.request").count(), 4, "{text}");
        assert!(!text.contains("mcp:depot"), "each call is the model's: {text}");
    }
}
