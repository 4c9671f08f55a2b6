//! Rebase: what goes through the door of another run, what ends it, which tools are asked again, and that the record says
//! enough to check all of it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use dendrer::change::reapply::{Basis, ReapplyStopped, ReplacedAnswer};
use dendrer::fork;
use dendrer::kernel::pack::Effect;
use dendrer::kernel::replay;
use dendrer::rebase::{AnswerSource, Ask, Fate, RebaseTerms, Rebased, rebase};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::{Error, Trace, pack, verify};
use dendrer_kernel::step::{Outcome, Stage, Start};
use dendrer_object::delta::Delta;
use dendrer_object::json::parse_door;
use dendrer_object::record::{Link, Rel};
use dendrer_object::{Digest, Intent, Value};
use dendrer_testkit::{Dice, info, run_name};
use tempfile::TempDir;

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn surroundings(name: &str) -> Box<Fixed> {
    Box::new(Fixed::new(name, 1_790_000_000_000, 1_000))
}

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().expect("a directory");
        drop(Embedded::create(&dir.path().join("s"), info(1), Options::untagged()).expect("a store"));
        Place { dir }
    }

    fn open(&self) -> Shared {
        Shared::new(Box::new(
            Embedded::open(&self.dir.path().join("s"), Options::untagged()).expect("opened"),
        ))
    }

    /// Records a run. `because` in a line names ticks of the run that it is caused by.
    fn record(&self, start: &Start, lines: &[&str]) {
        self.record_under(start, None, lines);
    }

    fn record_under(&self, start: &Start, pack_text: Option<&str>, lines: &[&str]) {
        let store = self.open();
        let mut recorder = match pack_text {
            None => Recorder::begin(&store, start, surroundings(start.run.as_str())),
            Some(text) => {
                let source = pack::read(text.as_bytes()).expect("a pack");
                source.bind(start.clone()).and_then(|start| {
                    dendrer::Recorder::begin(&store, &start, surroundings(start.run.as_str()))
                })
            }
        }
        .expect("begun");
        go_on(&mut recorder, lines);
    }

    fn rebase(
        &self,
        run: &str,
        onto: &str,
        tick: u64,
        terms: &RebaseTerms,
        ask: Option<&mut Ask<'_>>,
    ) -> Result<Rebased, Error> {
        let (reader, writer) = (self.open(), self.open());
        let (source, base) = (Trace::open(&reader, &run_name(run))?, Trace::open(&reader, &run_name(onto))?);
        let (mut recorder, rebased) =
            rebase(&source, &base, tick, &writer, terms, ask, surroundings("rebase"))?;
        recorder.commit()?;
        Ok(rebased)
    }

    /// Replays a run to the end, and hands over a trace.
    fn with<T>(&self, run: &str, f: impl FnOnce(&Trace) -> T) -> T {
        let store = self.open();
        let run = run_name(run);
        let trace = Trace::open(&store, &run).expect("a run");
        assert_eq!(verify::replay(&store, &run).expect("read"), Ok(trace.tip()));
        f(&trace)
    }

    fn state(&self, run: &str) -> Value {
        self.with(run, |trace| trace.at(trace.tip()).unwrap().state)
    }
}

fn go_on(recorder: &mut Recorder, lines: &[&str]) {
    let mut ids: BTreeMap<u64, Digest> = BTreeMap::new();
    for line in lines {
        let mut value = v(line).as_object().unwrap().clone();
        let because = value.remove("because");
        let mut intent = Intent::from_value(&Value::Object(value), Some("a"))
            .unwrap_or_else(|error| panic!("{error}: {line}"));
        for tick in because.iter().filter_map(Value::as_array).flat_map(|list| list.iter()) {
            intent.links.push(Link { rel: Rel::CausedBy, hash: ids[&tick.as_u64().unwrap()] });
        }
        match recorder.propose(&intent).expect("judged") {
            Outcome::Committed(record) | Outcome::Violated { record, .. } => {
                ids.insert(recorder.head().tick(), record.id());
            }
            Outcome::Refused(refused) => panic!("{line}: {}", refused.reason),
        }
    }
    recorder.commit().expect("committed");
}

fn fates(rebased: &Rebased) -> Vec<(u64, &Fate)> {
    rebased.steps.iter().map(|step| (step.tick, &step.fate)).collect()
}

fn carried(tick: u64, basis: Basis) -> Fate {
    Fate::Carried { tick, basis, answer: None }
}

/// Looks, with nothing but the records, whether each transition of a rebased run is one of the source proposed again: the
/// same but for where its links lead, and in the same order. Returns how many there are.
fn check_again(place: &Place, run: &str) -> usize {
    place.with(run, |trace| {
        let (_, base) = &trace.lineage()[trace.lineage().len() - 2];
        let marker = trace.record(base + 1).unwrap();
        let about = marker.body().value("/fork").unwrap().get("rebased").unwrap().clone();
        let source = run_name(about.get("run").unwrap().as_str().unwrap());
        let source = Trace::open(trace.store(), &source).unwrap();
        let last = about.get("to_tick").unwrap().as_u64().unwrap();
        assert_eq!(about.get("tip"), Some(&Value::from(source.record(last).unwrap().id())));
        let mut before = about.get("from_tick").unwrap().as_u64().unwrap() - 1;
        let takes_delta = dendrer::run::pack::reducer_of(trace).unwrap().takes_delta();
        let mut renamed = BTreeMap::new();
        for tick in base + 2..=trace.tip() {
            let record = trace.record(tick).unwrap();
            let from: Vec<_> =
                record.header().links.iter().filter(|link| link.rel == Rel::PickedFrom).collect();
            let [from] = from[..] else { panic!("tick {tick} says where it is from") };
            let there = (before + 1..=last).find(|tick| source.record(*tick).unwrap().id() == from.hash);
            before = there.expect("it is of the range, behind the one before");
            renamed.insert(from.hash, record.id());
            let mut theirs = replay::intent(&source.record(before).unwrap(), takes_delta).unwrap().unwrap();
            let mut ours = replay::intent(&record, takes_delta).unwrap().unwrap();
            ours.links.retain(|link| link.rel != Rel::PickedFrom);
            theirs.links.retain(|link| link.rel != Rel::PickedFrom);
            for link in &mut theirs.links {
                link.hash = renamed.get(&link.hash).copied().unwrap_or(link.hash);
            }
            theirs.links.sort();
            ours.links.sort();
            // What an answer counts as, and that it was got by asking again, is said where the source did not say it.
            let is_asked = ours.member("fork_type") != theirs.member("fork_type");
            let added = |name: &str| matches!(name, "effect" | "fork_type" | "origin");
            ours.members.retain(|(name, _)| !added(name) && (!is_asked || &**name != "result"));
            theirs.members.retain(|(name, _)| !added(name) && (!is_asked || &**name != "result"));
            if is_asked {
                ours.delta = None;
                theirs.delta = None;
            }
            assert_eq!(ours, theirs, "tick {tick}");
        }
        renamed.len()
    })
}

const RISK: &str = r#"{"id":"low","holds":"state.risk <= state.limit"}"#;

fn risky(run: &str, state: &str) -> Start {
    let mut start = Start::new(run_name(run));
    start.state = v(state);
    start.policy = vec![v(RISK)];
    start
}

#[test]
fn intents_go_through_the_door_of_another_run_in_order() {
    let place = Place::new();
    place.record(
        &risky("a", r#"{"risk":1,"limit":5,"seen":["a"]}"#),
        &[r#"{"type":"memory.write","delta":[{"append":"/seen","value":"base"}]}"#],
    );
    place.record(
        &risky("b", r#"{"risk":1,"limit":5,"seen":[]}"#),
        &[
            r#"{"type":"observation.add","delta":[{"set":"/risk","value":2}]}"#,
            r#"{"type":"plan.update","because":[1],"delta":[{"append":"/seen","value":"b"}]}"#,
            r#"{"type":"policy.decision","author":"runtime","because":[2],"policy":{"decision":"allow"}}"#,
            r#"{"type":"memory.write","delta":[{"append":"/seen","value":"later"}]}"#,
        ],
    );
    let before = (place.open().tree().size, place.state("a"), place.state("b"));
    let rebased = place.rebase("b", "a", 1, &RebaseTerms::new(run_name("n")), None).unwrap();
    assert_eq!((rebased.from, rebased.to, rebased.carried(), rebased.unseen()), (1, 4, 4, 0));
    assert_eq!(
        fates(&rebased),
        [
            (1, &carried(3, Basis::Fact)),
            (2, &carried(4, Basis::Holds)),
            (3, &carried(5, Basis::Holds)),
            (4, &carried(6, Basis::Unsaid)),
        ]
    );
    assert_eq!(place.state("n").to_string(), r#"{"limit":5,"risk":2,"seen":["a","base","b","later"]}"#);
    assert_eq!(check_again(&place, "n"), 4);
    // A run, a marker and four transitions were added; neither of the two changed.
    assert_eq!(
        (place.open().tree().size, place.state("a"), place.state("b")),
        (before.0 + 6, before.1, before.2)
    );
    // What was carried over goes on to another base in the same way, and says where it was last.
    let rebased = place.rebase("n", "a", 0, &RebaseTerms::new(run_name("m")), None).unwrap();
    assert_eq!((rebased.steps[0].fate.clone(), rebased.carried()), (Fate::Left, 4));
    assert_eq!(check_again(&place, "m"), 4);
    let mut terms = RebaseTerms::new(run_name("strict"));
    terms.stop_on_context = true;
    let rebased = place.rebase("b", "a", 1, &terms, None).unwrap();
    assert_eq!(rebased.stopped(), Some((4, &ReapplyStopped::Unsaid)));
}

#[test]
fn what_the_new_base_does_not_justify_ends_it() {
    let place = Place::new();
    place.record(
        &risky("a", r#"{"risk":1,"limit":5}"#),
        &[r#"{"type":"memory.write","delta":[{"set":"/x","value":1}]}"#],
    );
    place.record(&risky("other", r#"{"risk":1,"limit":9}"#), &[]);
    let mut lax = risky("lax", r#"{"risk":1,"limit":5}"#);
    lax.policy = vec![v(r#"{"id":"low","holds":"state.risk < 100"}"#)];
    place.record(&lax, &[]);
    place.record(
        &risky("b", r#"{"risk":1,"limit":5}"#),
        &[
            r#"{"type":"memory.write","delta":[{"set":"/y","value":1}]}"#,
            r#"{"type":"policy.decision","author":"runtime","policy":{"decision":"allow"}}"#,
            r#"{"type":"memory.write","delta":[{"set":"/list","value":[]}]}"#,
        ],
    );
    let stop = |run: &str, onto: &str, name: &str| {
        let rebased = place.rebase(run, onto, 0, &RebaseTerms::new(run_name(name)), None).unwrap();
        check_again(&place, name);
        rebased.stopped().map(|(tick, why)| (tick, why.clone()))
    };
    let limit =
        ReapplyStopped::DecidedOn("/limit".parse().unwrap(), Some(Value::from(5.0)), Some(Value::from(9.0)));
    assert_eq!(stop("b", "other", "n1"), Some((2, limit)));
    assert_eq!(stop("b", "lax", "n2"), Some((2, ReapplyStopped::RulesDiffer)));
    assert_eq!(stop("b", "a", "n3"), None);
    // A change that does not fit leaves nothing behind, where recording would only have noted it.
    place.record(
        &risky("c", r#"{"risk":1,"limit":5,"list":[]}"#),
        &[
            r#"{"type":"memory.write","delta":[{"set":"/y","value":1}]}"#,
            r#"{"type":"memory.write","delta":[{"remove":"/list"}]}"#,
        ],
    );
    let why = stop("c", "a", "n4").unwrap();
    assert!(matches!(&why, (2, ReapplyStopped::DoesNotApply(what)) if what.contains("list")), "{why:?}");
    assert_eq!(place.with("n4", |trace| trace.tip()), 2, "the marker and one transition");
    // A decision that names what is not in the history of the new run; facts may.
    let (reader, writer) = (place.open(), place.open());
    let parent = Trace::open(&reader, &run_name("b")).unwrap();
    let terms = fork::ForkTerms::new(run_name("f"));
    let (mut recorder, _) = fork::fork(&parent, &writer, 3, &terms, surroundings("f")).unwrap();
    let shared = parent.record(1).unwrap().id();
    for type_name in ["observation.add", "plan.update"] {
        let mut intent = Intent::new(type_name.parse().unwrap(), "a");
        intent.links.push(Link { rel: Rel::CausedBy, hash: shared });
        recorder.propose(&intent).unwrap();
    }
    recorder.commit().unwrap();
    drop(recorder);
    drop(writer);
    assert_eq!(stop("f", "a", "n5"), Some((6, ReapplyStopped::Absent("b@1".to_owned()))));
    let rebased = place.rebase("f", "b", 2, &RebaseTerms::new(run_name("n6")), None).unwrap();
    assert_eq!((rebased.stopped(), rebased.carried()), (None, 2), "there it is");
    // Of the parent's history, only what stands before the base counts.
    let rebased = place.rebase("f", "b", 0, &RebaseTerms::new(run_name("n7")), None).unwrap();
    assert_eq!(rebased.stopped(), Some((6, &ReapplyStopped::Absent("b@1".to_owned()))));
}

const TOOLS: &str = r#"
name: acme.tools
version: v1
state:
  price: {init: 0}
  sent: {init: 0}
  note: {init: "''"}
tools:
  quote: {effect: read}
  store: {effect: idempotent_write}
  send: {effect: effectful}
rules:
  - {when_type: action.result, when: "t.action.tool == 'quote'", steps: [{set: price, value: t.result.output}]}
  - {when_type: action.result, when: "t.action.tool == 'send'", steps: [{add: sent, value: "1"}]}
  - {when_type: memory.write, steps: [{set: note, value: t.intent.says}]}
"#;

fn call(tool: &str, tick: u64) -> [String; 2] {
    // The class of a declared tool is the pack's; of another one a line may say anything.
    let class = if matches!(tool, "store" | "send") { "" } else { r#""effect":"read","# };
    [
        format!(r#"{{"type":"action.request",{class}"action":{{"tool":"{tool}","params":{{"n":{tick}}}}}}}"#),
        format!(
            r#"{{"type":"action.result","author":"runtime","because":[{tick}],"action":{{"tool":"{tool}","params":{{"n":{tick}}}}},"result":{{"status":"ok","output":{tick}}}}}"#
        ),
    ]
}

/// Every kind of tool, and one that the pack does not declare, though the record calls it harmless.
fn caller(place: &Place) {
    let mut lines = Vec::new();
    for (at, tool) in ["quote", "store", "send", "wire_money"].into_iter().enumerate() {
        lines.extend(call(tool, 2 * at as u64 + 1));
    }
    lines.push(r#"{"type":"plan.update","because":[2]}"#.to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (run, lines) in [("a", &[][..]), ("b", &lines)] {
        place.record_under(&Start::new(run_name(run)), Some(TOOLS), lines);
    }
}

#[test]
fn a_tool_that_acts_is_never_asked_again() {
    let place = Place::new();
    caller(&place);
    // Without anybody who could be asked, the record answers for all of them.
    let rebased = place.rebase("b", "a", 0, &RebaseTerms::new(run_name("n")), None).unwrap();
    assert_eq!((rebased.stopped(), rebased.carried()), (None, 9));
    let classes: Vec<String> =
        rebased.steps.iter().filter_map(|step| step.class).map(|class| class.to_string()).collect();
    assert_eq!(
        classes,
        [
            "read",
            "read",
            "idempotent_write",
            "idempotent_write",
            "effectful",
            "effectful",
            "effectful (undeclared)",
            "effectful (undeclared)",
        ]
    );
    let answers = |rebased: &Rebased| -> Vec<Option<AnswerSource>> {
        let answer = |step: &dendrer::rebase::RebaseStep| match &step.fate {
            Fate::Carried { answer, .. } if step.type_name.as_str() == "action.result" => Some(*answer),
            _ => None,
        };
        rebased.steps.iter().filter_map(answer).collect()
    };
    assert_eq!(answers(&rebased), [Some(AnswerSource::Record); 4]);
    assert_eq!(place.state("n").to_string(), place.state("b").to_string());
    assert_eq!(check_again(&place, "n"), 9);

    // Who may be asked is asked; the others are not, whatever the record calls them.
    let mut asked = Vec::new();
    let mut ask = |call: &dendrer::rebase::Call<'_>| {
        asked.push((call.tick, call.tool.to_owned(), call.effect));
        Ok(ReplacedAnswer { output: call.params.get("n").unwrap().clone(), delta: None })
    };
    let rebased = place.rebase("b", "a", 0, &RebaseTerms::new(run_name("same")), Some(&mut ask)).unwrap();
    assert_eq!(
        asked,
        [(2, "quote".to_owned(), Effect::Read), (4, "store".to_owned(), Effect::IdempotentWrite)]
    );
    let same = Some(AnswerSource::AskedSame);
    assert_eq!(answers(&rebased), [same, same, Some(AnswerSource::Record), Some(AnswerSource::Record)]);
    assert_eq!(check_again(&place, "same"), 9);
    place.with("same", |trace| {
        let said = |tick: u64| trace.record(tick).unwrap().content();
        assert_eq!(said(3).get("fork_type"), Some(&Value::from("observation")));
        assert_eq!(said(3).get("effect"), Some(&Value::from("read")));
        assert_eq!(said(7).get("fork_type"), None);
        assert_eq!(
            said(9).get("effect"),
            Some(&Value::from("effectful")),
            "it counts as what nobody declares"
        );
        let marker = said(1).get("fork").unwrap().get("rebased").unwrap().clone();
        assert_eq!(marker.get("answers"), Some(&Value::from("asked_again")));
    });

    // Another answer is on record as it came, and ends what rests on the old one.
    let mut ask =
        |_: &dendrer::rebase::Call<'_>| Ok(ReplacedAnswer { output: Value::from(99.0), delta: None });
    let rebased = place.rebase("b", "a", 0, &RebaseTerms::new(run_name("other")), Some(&mut ask)).unwrap();
    assert_eq!(rebased.stopped(), Some((9, &ReapplyStopped::OtherAnswer(2))));
    assert_eq!(answers(&rebased)[0], Some(AnswerSource::AskedOther));
    assert_eq!(place.state("other").get("price"), Some(&Value::from(99.0)));
    assert_eq!(check_again(&place, "other"), 8);

    // A tool that does not answer ends it, and so does one that acts, where that is asked for.
    let mut ask = |_: &dendrer::rebase::Call<'_>| Err("no route to host".to_owned());
    let rebased = place.rebase("b", "a", 0, &RebaseTerms::new(run_name("dead")), Some(&mut ask)).unwrap();
    assert_eq!(rebased.stopped(), Some((2, &ReapplyStopped::NotAnswered("no route to host".to_owned()))));
    let mut terms = RebaseTerms::new(run_name("careful"));
    terms.stop_on_effectful = true;
    let rebased = place.rebase("b", "a", 0, &terms, None).unwrap();
    assert_eq!((rebased.stopped(), rebased.unseen()), (Some((6, &ReapplyStopped::Effectful)), 3));
}

#[test]
fn an_answer_without_an_output_is_not_made_up() {
    let place = Place::new();
    caller(&place);
    place.record_under(
        &Start::new(run_name("mute")),
        Some(TOOLS),
        &[
            r#"{"type":"action.request","action":{"tool":"send","params":{}}}"#,
            r#"{"type":"action.result","author":"runtime","action":{"tool":"send","params":{}},"result":{"status":"ok"}}"#,
        ],
    );
    let rebased = place.rebase("mute", "a", 0, &RebaseTerms::new(run_name("n")), None).unwrap();
    assert_eq!(rebased.stopped(), Some((2, &ReapplyStopped::NoOutput)));
    // Where agents bring the change of state, another answer says nothing of what it changes.
    let mut start = Start::new(run_name("d"));
    let tools =
        "name: d\nversion: v1\nreducer: delta/1\ntools: {quote: {effect: read}}\nstate: {price: {init: 0}}\n";
    let [request, result] = call("quote", 1);
    place.record_under(&start, Some(tools), &[&request, &result]);
    start.run = run_name("e");
    place.record_under(&start, Some(tools), &[]);
    let mut ask =
        |_: &dendrer::rebase::Call<'_>| Ok(ReplacedAnswer { output: Value::from(7.0), delta: None });
    let rebased = place.rebase("d", "e", 0, &RebaseTerms::new(run_name("n2")), Some(&mut ask)).unwrap();
    assert_eq!(rebased.stopped(), Some((2, &ReapplyStopped::NoChange)));
    let delta = Delta::from_value(&v(r#"[{"set":"/price","value":7}]"#)).unwrap();
    let mut ask = |_: &dendrer::rebase::Call<'_>| {
        Ok(ReplacedAnswer { output: Value::from(7.0), delta: Some(delta.clone()) })
    };
    let rebased = place.rebase("d", "e", 0, &RebaseTerms::new(run_name("n3")), Some(&mut ask)).unwrap();
    assert_eq!((rebased.stopped(), place.state("n3").get("price")), (None, Some(&Value::from(7.0))));
}

const TRADE: &str = r#"
name: acme.trade
version: VERSION
state:
  cash: {init: s0.cash}
  limit: {init: s0.limit}
types: {trade: buys}
rules:
  - {when_type: trade, steps: [{add: cash, value: "-t.action.params.amount"}]}
  - {when_type: observation.add, steps: [{set: limit, value: t.intent.limit}]}
contracts:
  trade:
    required_state: {cash: {type: number}, limit: {type: number}}
    hash_seeds: [limit]
violations:
  - {id: broke, condition: state.cash < 0, bisect_predicate: monotone_lift}
"#;

#[test]
fn a_contract_is_asked_as_for_an_import() {
    let place = Place::new();
    let begin = |run: &str, version: &str, state: &str, stage: Stage, lines: &[&str]| {
        let start = Start { state: v(state), stage: Some(stage), ..Start::new(run_name(run)) };
        place.record_under(&start, Some(&TRADE.replace("VERSION", version)), lines);
    };
    let trade = r#"{"type":"trade","action":{"params":{"amount":40}}}"#;
    let full = Stage::Contracts;
    begin("b", "v1", r#"{"cash":100,"limit":9}"#, full, &[trade, trade]);
    begin("rich", "v1", r#"{"cash":900,"limit":9}"#, full, &[]);
    begin("poor", "v1", r#"{"cash":50,"limit":9}"#, full, &[]);
    begin("strict", "v1", r#"{"cash":900,"limit":3}"#, full, &[]);
    begin("newer", "v2", r#"{"cash":900,"limit":9}"#, full, &[]);
    begin("loose", "v1", r#"{"cash":900,"limit":9}"#, Stage::Replay, &[]);
    let onto = |base: &str| {
        let name = format!("b-on-{base}");
        let rebased = place.rebase("b", base, 0, &RebaseTerms::new(run_name(&name)), None).unwrap();
        let what = match rebased.stopped() {
            None => "all of it".to_owned(),
            Some((tick, ReapplyStopped::Context(why, fields))) => {
                format!("{tick} {} {}", why.code(), fields.len())
            }
            Some((tick, why)) => format!("{tick} {why:?}"),
        };
        (what, place.state(&name).get("cash").and_then(Value::as_f64))
    };
    // Cash must be there, and the limit must be the same: that is what the contract says of another state.
    assert_eq!(onto("rich"), ("all of it".to_owned(), Some(820.0)));
    assert_eq!(onto("poor"), (r#"2 Violates(["broke"])"#.to_owned(), Some(10.0)));
    assert_eq!(onto("strict"), ("1 E0412 1".to_owned(), Some(900.0)));
    assert_eq!(onto("newer"), ("1 E0414 0".to_owned(), Some(900.0)));
    // The rebased run has the higher stage of the two, so the contract is asked.
    assert_eq!(onto("loose"), ("all of it".to_owned(), Some(820.0)));
    assert_eq!(check_again(&place, "b-on-rich"), 2);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let place = Place::new();
    caller(&place);
    place.record(&risky("plain", r#"{"risk":1,"limit":5}"#), &[]);
    let size = place.open().tree().size;
    let code = |run: &str, onto: &str, tick: u64, name: &str| {
        let error = place.rebase(run, onto, tick, &RebaseTerms::new(run_name(name)), None).unwrap_err();
        error.code()
    };
    assert_eq!(code("plain", "plain", 0, "n"), "E0119", "it has no intents");
    assert_eq!(code("b", "plain", 0, "n"), "E0118", "another engine");
    assert_eq!(code("b", "a", 1, "n"), "E0102");
    assert_eq!(code("b", "a", 0, "a"), "E0111");
    assert_eq!(place.open().tree().size, size);
}

/// What a rebase of plain deltas comes to, said in the slowest way: the state, and the first tick that is not carried over.
fn oracle(theirs: &Value, base: &Value, intents: &[Intent]) -> (Value, Option<u64>) {
    let (mut there, mut here) = (theirs.clone(), base.clone());
    for (tick, intent) in (1..).zip(intents) {
        let decides = intent.type_name.as_str() == "policy.decision";
        let differs = ["risk", "limit"].iter().any(|name| there.get(name) != here.get(name));
        let delta = intent.delta.clone().unwrap_or_default();
        match delta.apply(&here) {
            Ok(after) if !(decides && differs) => here = after,
            _ => return (here, Some(tick)),
        }
        there = delta.apply(&there).unwrap_or(there);
    }
    (here, None)
}

#[test]
fn random_runs_come_out_as_the_slow_definition_says() {
    let mut dice = Dice(157);
    let place = Place::new();
    let (mut stopped, mut whole) = (0, 0);
    for case in 0..60 {
        let number = |dice: &mut Dice| dice.below(3);
        let state = |dice: &mut Dice| {
            let list = if dice.below(3) == 0 { "" } else { r#","list":[]"# };
            v(&format!(r#"{{"risk":{},"limit":9{list}}}"#, number(dice)))
        };
        let (base, own) = (state(&mut dice), state(&mut dice));
        let mut lines = Vec::new();
        for tick in 1..=dice.below(8) + 1 {
            let because = match dice.below(2) {
                0 if tick > 1 => format!(r#","because":[{}]"#, 1 + dice.below(tick - 1)),
                _ => String::new(),
            };
            lines.push(match dice.below(4) {
                0 => format!(r#"{{"type":"observation.add"{because},"delta":[{{"set":"/risk","value":{}}}]}}"#, number(&mut dice)),
                1 => format!(r#"{{"type":"policy.decision","author":"runtime"{because},"policy":{{"decision":"allow"}}}}"#),
                2 => format!(r#"{{"type":"plan.update"{because},"delta":[{{"add":"/limit","value":0}},{{"set":"/k{tick}","value":1}}]}}"#),
                _ => format!(r#"{{"type":"memory.write"{because},"delta":[{{"remove":"/list"}}]}}"#),
            });
        }
        let start = |name: &str, state: &Value| {
            let mut start = risky(&format!("{name}{case}"), "{}");
            // Changes that do not fit are on record at stage 0.
            start.stage = Some(Stage::Observe);
            start.state = state.clone();
            start
        };
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        place.record(&start("a", &base), &[]);
        place.record(&start("b", &own), &lines);
        let intents: Vec<Intent> = place.with(&format!("b{case}"), |trace| {
            let intent = |tick| replay::intent(&trace.record(tick).unwrap(), true).unwrap().unwrap();
            (1..=trace.tip()).map(intent).collect()
        });
        let (state, stop) = oracle(&own, &base, &intents);
        let name = format!("n{case}");
        let rebased = place
            .rebase(&format!("b{case}"), &format!("a{case}"), 0, &RebaseTerms::new(run_name(&name)), None)
            .unwrap();
        assert_eq!(rebased.stopped().map(|(tick, _)| tick), stop, "case {case}: {lines:?}");
        assert_eq!(place.state(&name), state, "case {case}");
        assert_eq!(check_again(&place, &name), rebased.carried(), "case {case}");
        *if stop.is_some() { &mut stopped } else { &mut whole } += 1;
    }
    assert!(stopped > 10 && whole > 10, "both happen: {stopped} and {whole}");
}
