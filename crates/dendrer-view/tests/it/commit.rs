use dendrer::kernel::step::Start;
use dendrer::lines::{Authors, LineOptions, Recording, Reply, read};
use dendrer_testkit::{memory, run_name};
use dendrer_view::answer::{End, ItemAnswer, Page, plain};
use dendrer_view::commit::CommitAnswer;

use super::{check, last_text, repo};

const LINES: &str = r#"{"type":"observation.add","agent":"a","intent":{"description":"hi"}}
{"type":"tool.call","agent":"a","intent":{"description":"no such type"}}

{"type":"plan.update","agent":"a","author":"runtime","anomalies":[{"kind":"late","message":"slow"}]}
"#;

/// Hides ids: lines that come together are recorded at one time, and how many do depends on the machine.
fn without_ids(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "sha256:ID" + &part[64..])
}

fn replies(dry_run: bool) -> Vec<Reply> {
    let store = memory(7);
    let mut recorder = repo(&store).begin(&Start::new(run_name("r"))).unwrap();
    let lines = read(LINES.as_bytes()).unwrap();
    let reading = LineOptions { authors: Authors::Runtime, ..LineOptions::default() };
    let mut recording = Recording::new(&mut recorder, lines, reading, dry_run);
    let replies = recording.by_ref().flatten().collect();
    recording.end().unwrap();
    replies
}

#[test]
fn each_line_has_its_reply_and_the_counts_come_last() {
    let mut answer = CommitAnswer::new(run_name("r"), 0, false);
    let lines =
        replies(false).iter().flat_map(|reply| answer.item_lines(reply, &Page::WIDE)).collect::<Vec<_>>();
    check(
        &without_ids(&(plain(&lines) + &last_text(&mut answer, &Page::WIDE))),
        r#"
        begun  sha256:ID
        tick 1  sha256:ID  observation.add  line 1
        refused  sha256:ID  tool.call  line 2  E0402 there is no transition type tool.call; did you mean action.request? (all types: dendrer schema intent)
        tick 2  sha256:ID  plan.update  line 4   WARN [{"kind":"late","message":"slow"}]
        (stderr) 2 transitions, 1 refused, 1 anomaly"#,
    );
    assert_eq!(answer.end(), End::Refused);
}

#[test]
fn a_dry_run_acknowledges_nothing() {
    let mut answer = CommitAnswer::new(run_name("r"), 0, true);
    let lines =
        replies(true).iter().flat_map(|reply| answer.item_lines(reply, &Page::WIDE)).collect::<Vec<_>>();
    check(
        &without_ids(&(plain(&lines) + &last_text(&mut answer, &Page::WIDE))),
        r#"
        would be begun  sha256:ID
        would be tick 1  sha256:ID  observation.add  line 1
        would be refused  sha256:ID  tool.call  line 2  E0402 there is no transition type tool.call; did you mean action.request? (all types: dendrer schema intent)
        would be tick 2  sha256:ID  plan.update  line 4   WARN [{"kind":"late","message":"slow"}]
        (stderr) nothing was written (dry run): 2 transitions, 1 refused, 1 anomaly"#,
    );
    let summary = r#"{"committed":2,"dry_run":true,"refused":1,"repeated":0,"run":"r","schema":"dendrer.commit/1","stale":0}"#;
    assert_eq!(answer.summary().to_string(), summary);
}
