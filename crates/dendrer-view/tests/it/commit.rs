use dendrer::kernel::step::Start;
use dendrer::lines::{Reading, Recording, Reply, read};
use dendrer_testkit::{memory, run_name};
use dendrer_view::answer::{End, ItemAnswer, Page, plain};
use dendrer_view::commit::CommitAnswer;

use super::{check, last_text, repo};

const LINES: &str = r#"{"type":"observation.add","agent":"a","intent":{"description":"hi"}}
{"type":"tool.call","agent":"a","intent":{"description":"no such type"}}

{"type":"plan.update","agent":"a","anomalies":[{"kind":"late","message":"slow"}]}
"#;

fn replies(dry_run: bool) -> Vec<Reply> {
    let store = memory(7);
    let mut recorder = repo(&store).begin(&Start::new(run_name("r"))).unwrap();
    let lines = read(LINES.as_bytes()).unwrap();
    let mut recording = Recording::new(&mut recorder, lines, Reading::default(), dry_run);
    let replies = recording.by_ref().flatten().collect();
    recording.end().unwrap();
    replies
}

#[test]
fn each_line_has_its_reply_and_the_counts_come_last() {
    let mut answer = CommitAnswer::new(run_name("r"), false);
    let lines =
        replies(false).iter().flat_map(|reply| answer.item_lines(reply, &Page::WIDE)).collect::<Vec<_>>();
    check(
        &(plain(&lines) + &last_text(&mut answer, &Page::WIDE)),
        r#"
        begun  sha256:1092178d5ae07a805478d166a267dbf2404e05f9c42bb49114ef9103d7062296
        tick 1  sha256:37f0bd7bd229ac8ab11cbf03bfae2b9e6ad5f7994f75abcee9a84cea31ccea22  observation.add  line 1
        refused  sha256:e853029628b4021298d011377d6f6d02ab96b0ec3d1bb8817d6361bfe73d03e0  tool.call  line 2  E0402 there is no transition type tool.call; did you mean action.request? (all types: dendrer schema intent)
        tick 2  sha256:3be1bc22326856be2101cd2e1250d3742b68e0bacc6cdb149f91e111696b926c  plan.update  line 4   WARN [{"kind":"late","message":"slow"}]
        (stderr) 2 transitions, 1 refused, 1 anomaly"#,
    );
    assert_eq!(answer.end(), End::Refused);
}

#[test]
fn a_dry_run_acknowledges_nothing() {
    let mut answer = CommitAnswer::new(run_name("r"), true);
    let lines =
        replies(true).iter().flat_map(|reply| answer.item_lines(reply, &Page::WIDE)).collect::<Vec<_>>();
    check(
        &(plain(&lines) + &last_text(&mut answer, &Page::WIDE)),
        r#"
        would be begun  sha256:1092178d5ae07a805478d166a267dbf2404e05f9c42bb49114ef9103d7062296
        would be tick 1  sha256:37f0bd7bd229ac8ab11cbf03bfae2b9e6ad5f7994f75abcee9a84cea31ccea22  observation.add  line 1
        would be refused  sha256:318df6c6adc94efb8ca8221466d610336ada6d27effd2a6661c9bdabefea4a5b  tool.call  line 2  E0402 there is no transition type tool.call; did you mean action.request? (all types: dendrer schema intent)
        would be tick 2  sha256:b81155471fb806f2459feddb6bbaaa94c5149f627c1fef65f4ec7ad34ea5597e  plan.update  line 4   WARN [{"kind":"late","message":"slow"}]
        (stderr) nothing was written (dry run): 2 transitions, 1 refused, 1 anomaly"#,
    );
    let summary = r#"{"committed":2,"dry_run":true,"refused":1,"run":"r","schema":"dendrer.commit/1"}"#;
    assert_eq!(answer.summary().to_string(), summary);
}
