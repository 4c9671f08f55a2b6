//! Forks that are gone on with by a command: what it is told, what counts of what it says, and how it ends.

#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dendrer_object::{Value, json};

use crate::support::{Place, Ran, ran};

const FORK: [&str; 4] = ["fork", "logistics-run-47@21", "--as", "live"];

/// A place with the demo, and a script of a command in it.
fn place(script: &str) -> Place {
    let place = Place::with_demo();
    std::fs::write(place.path().join("agent.sh"), script).unwrap();
    place
}

// A shell in between would hold the output open that the script closes.
fn go_on(place: &Place, more: &[&str]) -> Ran {
    place.run(&[&FORK[..], &["--exec", "exec sh agent.sh"], more].concat())
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Ids are new each time.
fn masked(text: &str) -> String {
    regex::Regex::new("sha256:[0-9a-f]{64}").unwrap().replace_all(text, "sha256:...").into_owned()
}

fn count(place: &Place, run: &str) -> u64 {
    let (code, log) = place.json(&["log", run, "-n", "0"]);
    assert_eq!(code, 0, "{log}");
    log.get("total").unwrap().as_u64().unwrap()
}

fn sound(place: &Place) {
    let verified = place.ok(&["verify", "live", "--replay"]);
    assert!(verified.contains("INTACT") && !verified.contains("FAIL"), "{verified}");
}

/// The page has an agent and what it does.
#[test]
fn the_page_is_what_happens() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no python3");
        return;
    }
    let page = include_str!("../../../../docs/forks.md");
    let block = |begins: &str| {
        let rest = page.split(begins).nth(1).unwrap_or_else(|| panic!("{begins}"));
        rest.split("\n```\n").next().unwrap().trim_start_matches('\n').to_owned()
    };
    let place = Place::with_demo();
    std::fs::write(place.path().join("agent.py"), block("```python agent.py")).unwrap();
    let shown = block("--as live --exec \"python3 agent.py\"");
    let command = page.lines().find(|line| line.contains("--exec \"python3 agent.py\"")).unwrap();
    let script = command.strip_prefix("$ dendrer").unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("\"$D\"{script}")])
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("D", env!("CARGO_BIN_EXE_dendrer"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = ran(output);
    assert_eq!((ran.code, masked(&ran.stdout).trim_end()), (0, shown.as_str()), "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        "2 transitions, 1 refused, 0 anomalies\nhelp: dendrer diff logistics-run-47 live --from tick 21\n"
    );
    assert_eq!(
        place.ok(&["log", "live", "--from", "tick", "22"]),
        r#" tick  agent   type             summary
   22  kernel  run.fork         from logistics-run-47@21
   23  router  plan.update      "verify sources first"
   24  router  observation.add  "policy.decision is written by the runtime, not by an agent"
3 of 24 transitions, 2 agents, 0 anomalies
859 of 859 records signed, verified here to 0
"#
    );
    sound(&place);
}

#[test]
fn a_command_is_told_where_it_is_and_what_is_on_disk() {
    let place = place(
        r#"read -r fork; printf '%s\n' "$fork" > fork.json
echo "$DENDRER_RUN $DENDRER_TICK" > where
"$D" --store nowhere runs > lost 2>&1
echo '{"type":"plan.update","delta":[{"set":"/risk_score","value":0.5}]}'
read -r told; printf '%s\n' "$told" > told.json
cd / && "$D" state "$DENDRER_RUN" --path risk_score > "$HOME/state"
echo '{"type":"nonsense"}'
read -r told; printf '%s\n' "$told" > "$HOME/refused.json"
echo "a word on stderr" >&2
exec 1>&-; cat > "$HOME/rest"
"#,
    );
    let mut command = place.command(&[&FORK[..], &["--exec", "exec sh agent.sh", "--json"]].concat());
    let ran = ran(command.env("D", env!("CARGO_BIN_EXE_dendrer")).stdin(Stdio::null()).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "a word on stderr\n"), "{}", ran.stdout);
    let answer = crate::support::parse(&ran.stdout);
    let file = |name: &str| json::parse_tagged(read(&place, name).trim_end().as_bytes()).unwrap();
    // What it is given is the fork, as the document says it.
    let mut fork = answer.as_object().unwrap().clone();
    let exec = fork.get("exec").unwrap().clone();
    fork.remove("exec");
    assert_eq!(file("fork.json"), Value::Object(fork));
    assert_eq!(read(&place, "where"), "live 22\n");
    assert!(
        read(&place, "lost").contains("E0103"),
        "a store that is named is the one: {}",
        read(&place, "lost")
    );
    assert_eq!(read(&place, "state"), "0.5\n", "what it is told of can be read");
    assert_eq!(read(&place, "rest"), "", "then there is no more");
    let items = exec.get("items").unwrap().as_array().unwrap();
    assert_eq!((items.get(0), items.get(1)), (Some(&file("told.json")), Some(&file("refused.json"))));
    let said = |name: &str| exec.get(name).unwrap().to_string();
    assert_eq!(
        ["ran", "code", "signal", "committed", "refused", "tip"].map(said),
        ["true", "0", "null", "1", "1", "23"]
    );
    assert_eq!(items.get(1).unwrap().get("reason").unwrap().get("code").unwrap().as_str(), Some("E0402"));
    sound(&place);
}

#[test]
fn what_a_command_ends_with_is_told_and_what_it_did_stays() {
    let says = r#"echo '{"type":"plan.update"}'; read -r fork; read -r told; "#;
    for (end, how, code) in [
        ("exit 3", "with code 3", Some(3)),
        ("kill -9 $$", "by signal 9", None),
        (
            "sh -c 'kill -15 $$'; exit $?",
            "with code 143, which a shell says where signal 15 ended what it ran",
            Some(143),
        ),
        ("no-such-program-of-anybody 2> missing", "with code 127", Some(127)),
    ] {
        let place = place("");
        let command = format!("{says}{end}");
        let ran = place.run(&[&FORK[..], &["--exec", &command]].concat());
        assert_eq!(ran.code, 8, "{end}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("error[E0808]: the command ended {how}\n")), "{}", ran.stderr);
        assert!(ran.stderr.contains("note: 1 transition before it is committed\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("note: live was made and stays\n"), "{}", ran.stderr);
        assert_eq!(count(&place, "live"), 23, "{end}");
        sound(&place);
        let (exit, error) = place.json(&["fork", "live@23", "--exec", &command]);
        assert_eq!((exit, error.get("code").unwrap().as_str()), (8, Some("E0808")), "{code:?}");
        assert_eq!(error.get("changed"), Some(&Value::from(true)));
        assert_eq!(error.get("where").unwrap().get("run").unwrap().as_str(), Some("live+2"));
        assert_eq!(error.get("items").unwrap().as_array().unwrap().len(), 1);
    }
    let place = place("");
    assert!(place.ok(&["explain", "E0808"]).contains("fork"));
}

/// Far more is said, and told, than fits into a pipe.
#[test]
fn a_command_that_never_listens_is_not_waited_for() {
    for script in [
        r#"yes '{"type":"plan.update"}' | head -n 20000"#,
        r#"exec 0<&-; yes '{"type":"plan.update"}' | head -n 20000"#,
        // It listens when it has said all.
        r#"yes '{"type":"plan.update"}' | head -n 20000; exec 1>&-; wc -l > told"#,
    ] {
        let place = place(script);
        let ran = go_on(&place, &["-q"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{script}");
        assert_eq!(count(&place, "live"), 20_022, "{script}");
        assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("tick ")).count(), 20_000);
        if script.contains("told") {
            assert_eq!(read(&place, "told").trim(), "20001");
        }
    }
}

#[test]
fn a_command_that_has_said_all_is_waited_for() {
    let place = place(r#"echo '{"type":"plan.update"}'; exec 1>&-; sleep 0.4; touch done; exit 0"#);
    let ran = go_on(&place, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(place.path().join("done").exists());
    let silent = self::place("exec 1>&-; cat > all; exit 5");
    assert_eq!(go_on(&silent, &[]).code, 8);
    assert_eq!(
        read(&silent, "all").lines().count(),
        1,
        "it is told what the fork is, and that there is no more"
    );
}

#[test]
fn a_line_that_is_no_intent_ends_it() {
    let place = place(
        r#"echo '{"type":"plan.update"}'; echo '{"type":'; echo '{"type":"plan.update"}'; cat > heard"#,
    );
    let ran = go_on(&place, &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[E0201]") && ran.stderr.contains("line     2"), "{}", ran.stderr);
    assert!(ran.stderr.contains("  | text     {\"type\":\n"), "nobody else has the line: {}", ran.stderr);
    assert!(ran.stderr.contains("note: nothing more is taken from the command"), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: live was made and stays"), "{}", ran.stderr);
    assert_eq!(count(&place, "live"), 23);
    let heard = read(&place, "heard");
    let heard: Vec<Value> = heard.lines().map(|line| json::parse_tagged(line.as_bytes()).unwrap()).collect();
    let [fork, committed, failed] = &heard[..] else { panic!("{heard:?}") };
    assert!(fork.to_string().contains("logistics-run-47"), "{fork}");
    assert_eq!(committed.get("line"), Some(&Value::from(1u64)));
    assert_eq!(
        failed.to_string(),
        r#"{"id":null,"line":2,"reason":{"byte":8,"code":"E0201","message":"not JSON: expected a value","path":"/type"},"tick":null,"type":null,"what":"failed"}"#
    );
    sound(&place);
}

#[test]
fn a_line_without_a_base_is_judged_again_where_somebody_else_moved_the_run_on() {
    let place = place(
        r#"read -r fork; echo '{"type":"plan.update"}' | "$D" commit --run live -q > other
echo '{"type":"plan.update"}'; read -r heard; printf '%s\n' "$heard" > heard"#,
    );
    let mut command = place.command(&[&FORK[..], &["--exec", "exec sh agent.sh"]].concat());
    let ran = ran(command.env("D", env!("CARGO_BIN_EXE_dendrer")).stdin(Stdio::null()).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(read(&place, "heard").contains(r#""tick":24,"type":"plan.update","what":"committed""#));
    assert_eq!(count(&place, "live"), 24);
    sound(&place);
}

#[test]
fn the_rest_is_carried_on_before_a_command_goes_on() {
    let place = place(r#"read -r fork; printf '%s\n' "$fork" > fork.json; echo '{"type":"plan.update"}'"#);
    let ran = go_on(&place, &["--replay-rest", "--jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| json::parse_tagged(line.as_bytes()).unwrap()).collect();
    let [fork, told, summary] = &lines[..] else { panic!("{}", ran.stdout) };
    assert_eq!(*fork, json::parse_tagged(read(&place, "fork.json").trim_end().as_bytes()).unwrap());
    let tip = fork.get("tip").unwrap().as_u64().unwrap();
    assert!(tip > 22, "{fork}");
    assert_eq!(told.get("tick").unwrap().as_u64(), Some(tip + 1));
    assert_eq!(
        summary.get("summary").unwrap().get("exec").unwrap().get("tip").unwrap().as_u64(),
        Some(tip + 1)
    );
}

#[test]
fn nothing_is_run_where_nothing_is_written() {
    let place = place("touch ran");
    let ran = go_on(&place, &["-n"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "nothing was written (dry run)\n"));
    assert!(ran.stdout.ends_with("would run  exec sh agent.sh\n"), "{}", ran.stdout);
    let (_, answer) = place.json(&[&FORK[..], &["--exec", "exec sh agent.sh", "-n"]].concat());
    assert_eq!(answer.get("exec").unwrap().get("ran"), Some(&Value::from(false)));
    assert!(!place.path().join("ran").exists());
    assert_eq!(place.run(&["log", "live"]).code, 3);
    let ran = place.run(&[&FORK[..], &["--exec", " "]].concat());
    assert_eq!((ran.code, place.run(&["log", "live"]).code), (2, 3), "{}", ran.stderr);
    // Where the fork itself is refused, nothing is run either.
    let ran = place.run(&["fork", "logistics-run-47@99", "--exec", "exec sh agent.sh"]);
    assert_eq!((ran.code, place.path().join("ran").exists()), (3, false));
}

#[test]
fn a_fork_by_itself_is_a_branch_point_and_says_how_to_go_on() {
    let place = place("cat agent.jsonl");
    std::fs::write(place.path().join("agent.jsonl"), "{\"type\":\"plan.update\"}\n").unwrap();
    let ran = place.run(&FORK);
    assert_eq!(
        ran.stderr,
        "note: this is the branch point alone; nothing goes on by itself\n\
         help: dendrer fork --run live --from tick 22 --exec 'python agent.py'\n\
         help: dendrer commit --run live\n\
         help: dendrer diff logistics-run-47 live --from tick 21\n"
    );
    // Each is a command that works, once there is an agent.
    for line in ran.stderr.lines().filter_map(|line| line.strip_prefix("help: dendrer ")) {
        let script = format!("\"$D\" {}", line.replace("python agent.py", "sh agent.sh"));
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(place.path())
            .env("HOME", place.path())
            .env("D", env!("CARGO_BIN_EXE_dendrer"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(count(&place, "live+2"), 24);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_both_and_what_was_acknowledged_is_there() {
    use std::os::unix::process::CommandExt;
    let place = place(
        r#"echo $$ > pid; read -r fork; echo '{"type":"plan.update"}'; read -r told; touch acknowledged
while :; do sleep 0.1; done"#,
    );
    let mut command = place.command(&[&FORK[..], &["--exec", "exec sh agent.sh"]].concat());
    // A terminal sends an interrupt to the group that is in front; here that is dendrer and what it runs.
    let mut child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !place.path().join("acknowledged").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is acknowledged");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = |signal: &str, whom: &str| {
        Command::new("sh").args(["-c", &format!("kill -{signal} {whom}")]).stderr(Stdio::null()).status()
    };
    assert!(kill("INT", &format!("-{}", child.id())).unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
    let pid = read(&place, "pid");
    while kill("0", pid.trim()).unwrap().success() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the command goes, too");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(count(&place, "live"), 23);
    sound(&place);
    assert_eq!(place.run_with(&["commit", "--run", "live"], b"{\"type\":\"plan.update\"}\n").code, 0);
}
