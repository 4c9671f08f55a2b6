use dendrer::change::reapply::ReapplyStopped;
use dendrer::fork::question::ForkReply;
use dendrer::fork::{Carried, ForkTerms};
use dendrer::lines::{LineNotes, Reply};
use dendrer_testkit::run_name;
use dendrer_view::answer::{ItemAnswer, Page, plain};
use dendrer_view::fork::{ExecStatus, ForkAnswer, ForkExec};

use super::{check, last_text, path, repo, risky, trace, value};

/// Asks for a fork at tick 2, and looks at its answer before the command and after it.
fn forked(
    terms: &ForkTerms,
    carried: Option<&Carried>,
    exec: Option<ForkExec<'_>>,
    see: impl FnOnce(&mut ForkAnswer<'_>, &[Reply]),
) {
    let store = risky();
    let parent = trace(&store, "risky");
    let (mut recorder, forked) = repo(&store).fork(&parent, 2, terms).unwrap();
    let tip = recorder.head().tick();
    let marker = recorder.discard().pop().unwrap();
    let reply = ForkReply {
        parent: parent.name().clone(),
        parent_tip: parent.tip(),
        terms: terms.clone(),
        forked,
        carried: carried.cloned(),
        extensions: Vec::new(),
        tip,
        dry_run: false,
        as_text: Vec::new(),
        unknown: Vec::new(),
    };
    let mut answer = ForkAnswer { exec, ..ForkAnswer::of(&reply) };
    see(
        &mut answer,
        &[Reply::Committed { line: 1, record: marker, noted: Vec::new(), notes: LineNotes::default() }],
    );
}

#[test]
fn a_fork_names_its_branch_point_and_its_changes() {
    let mut terms = ForkTerms::new(run_name("risky+2"));
    terms.reason = Some("lower the risk".into());
    terms.guidance.insert("tool_policy", "ask first".into());
    terms.set.push((path("/risk"), value("0.1")));
    forked(&terms, None, None, |answer, _| {
        check(
            &last_text(answer, &Page::WIDE),
            r#"
        replayed   ticks 1..2 OK, state 819b063820a3 equals the record
        forked     risky+2 from risky@2   its tick 3 is run.fork
        reason     "lower the risk"
        guidance   tool-policy "ask first"   recorded for the agent, enforced by nobody
        set        risk  0.6 -> 0.1
        (stderr) note: this is the branch point alone; nothing goes on by itself
        (stderr) help: dendrer fork --run risky+2 --from tick 3 --exec python agent.py
        (stderr) help: dendrer commit --run risky+2
        (stderr) help: dendrer diff risky risky+2 --from tick 2"#,
        );
        let document = answer.whole(Vec::new());
        let changed = r#"[{"after":0.1,"before":0.6,"enforced_by":null,"name":"/risk","was_absent":false,"what":"state"}]"#;
        assert_eq!(document.get("changed").unwrap().to_string(), changed);
        assert_eq!(document.get("exec").unwrap().to_string(), "null");
    });
}

#[test]
fn intents_that_were_applied_again_end_with_the_reason() {
    let carried = Carried {
        left_out: Vec::new(),
        ticks: vec![(3, 4), (4, 5)],
        silent: (3..13).collect(),
        errors: vec![3],
        error_words: vec![(3, "rule 1, step 1: missing".to_owned())],
        unmoved: vec![4],
        stopped: Some((5, ReapplyStopped::DecidedOn(path("/risk"), Some(value("0.9")), None))),
    };
    let terms = ForkTerms::new(run_name("again"));
    forked(&terms, Some(&carried), None, |answer, _| {
        check(
            &last_text(answer, &Page::WIDE),
            r#"
        replayed   ticks 1..2 OK, state 819b063820a3 equals the record
        forked     again from risky@2   its tick 3 is run.fork
        re-applied parent ticks 3..4 as 4..5, through the door
        stopped    before parent tick 5: it was decided on risk 0.9, here it is (absent)
        WARN       a rule met an error here, and the state does not follow, at parent tick 3
        WARN       another answer changed nothing in the state at parent tick 4
                   3: rule 1, step 1: missing
        (stderr) note: 10 parent ticks say nothing of what was decided on, and may have been decided otherwise here: 3, 4, 5, 6, 7, 8, 9, 10, ...
        (stderr) note: no model and no tool was called; past this point only a live run can tell
        (stderr) help: dendrer fork --run again --from tick 3 --exec python agent.py
        (stderr) help: dendrer commit --run again
        (stderr) help: dendrer diff risky again --from tick 2"#,
        );
    });
}

#[test]
fn a_command_that_goes_on_with_a_fork_has_its_replies_and_its_status() {
    let terms = ForkTerms::new(run_name("live"));
    forked(&terms, None, Some(ForkExec::new("python agent.py", 3)), |answer, replies| {
        let mut text = plain(&answer.kept_lines(&Page::WIDE));
        assert!(answer.kept_lines(&Page::WIDE).is_empty(), "the lines of the fork are printed once");
        text += &plain(&answer.item_lines(&replies[0], &Page::WIDE));
        let exec = answer.exec.as_mut().unwrap();
        exec.status = Some(ExecStatus { code: Some(0), signal: None });
        check(
            &(text + &last_text(answer, &Page::WIDE)),
            r#"
        replayed   ticks 1..2 OK, state 819b063820a3 equals the record
        forked     live from risky@2   its tick 3 is run.fork
        running    python agent.py
        tick 3  sha256:eaa2cfd017d03ea4a8a45ef09a4dffe2fe78f93c9092dd954bf91ed49f6a8ddf  run.fork  line 1
        (stderr) 1 transition, 0 refused, 0 anomalies
        (stderr) help: dendrer diff risky live --from tick 2"#,
        );
        let exec = answer.summary().get("exec").unwrap().to_string();
        let expected = r#"{"code":0,"command":"python agent.py","committed":1,"items":1,"ran":true,"refused":0,"signal":null,"tip":3}"#;
        assert_eq!(exec, expected);
    });
}

#[test]
fn a_command_that_failed_is_described_by_code_or_signal() {
    let complaint = |code, signal| ExecStatus { code, signal }.complaint();
    assert_eq!(complaint(Some(0), None), None);
    assert_eq!(complaint(Some(3), None).unwrap(), "with code 3");
    let shell = "with code 137, which a shell says where signal 9 ended what it ran";
    assert_eq!(complaint(Some(137), None).unwrap(), shell);
    assert_eq!(complaint(None, Some(9)).unwrap(), "by signal 9");
}
