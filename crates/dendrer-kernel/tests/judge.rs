//! The judge of version 2 of the kernel's rules (design, 14.1): each call of a line, what cannot be judged, repairs, results that
//! are never refused, decisions that bind, and numbers that are finer than their field. Each record is made again by replay.

use dendrer_kernel::pack::{Bound, Origin, Pack};
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::replay::{replay_refusal, replay_start, replay_step};
use dendrer_kernel::step::{Inputs, Outcome, RunState, Seeds, Stage, Start, begin, step_with};
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Code, Intent, StoreId, Timestamp, Value, json};

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret(u128::from(n + 1).to_be_bytes()) }
}

/// A run under a pack, which replays each record that it makes.
struct Desk {
    head: RunState,
    again: RunState,
    reducer: Box<dyn Reducer + Send + Sync>,
    made: u64,
}

impl Desk {
    fn new(pack: &str, stage: Stage) -> Desk {
        let pack = value(pack);
        let read = Pack::read(&pack).unwrap_or_else(|faults| panic!("{faults:?}"));
        let reducer = read.reducer();
        let state = read.init(&Origin::default()).unwrap();
        let policy = pack.get("policy").and_then(Value::as_array);
        let start = Start {
            stage: Some(stage),
            reducer: reducer.name().into(),
            state,
            policy: policy.into_iter().flat_map(|rules| rules.iter().cloned()).collect(),
            pack: Some(Bound { value: pack.clone(), text: "".into() }),
            ..Start::new("r".parse().unwrap())
        };
        let (first, head) = begin(StoreId([5; 16]), &start, inputs(0)).unwrap();
        let again = replay_start(&first, &*reducer).unwrap();
        Desk { head, again, reducer, made: 0 }
    }

    /// Proposes a line, and replays what became of it.
    fn line(&mut self, line: &str) -> Outcome {
        self.made += 1;
        let intent = Intent::from_value(&value(line), Some("a")).unwrap();
        let outcome = step_with(&mut self.head, &intent, inputs(self.made), &*self.reducer).unwrap();
        for record in outcome.records() {
            match record.header().kind {
                Kind::Refusal => replay_refusal(&self.again, record, &*self.reducer).unwrap(),
                _ => replay_step(&mut self.again, record, &*self.reducer, true).unwrap(),
            }
        }
        assert_eq!(self.again.id(), self.head.id());
        outcome
    }

    fn taken(&mut self, line: &str) -> Record {
        let outcome = self.line(line);
        outcome.committed().cloned().unwrap_or_else(|| panic!("{line}: {outcome:?}"))
    }

    fn code(&mut self, line: &str) -> Code {
        match self.line(line) {
            Outcome::Refused(refused) => refused.reason.code(),
            taken => panic!("{line}: {taken:?}"),
        }
    }

    fn kinds(record: &Record) -> Vec<String> {
        let anomalies = record.body().value("/anomalies");
        let anomalies = anomalies.as_ref().and_then(Value::as_array).into_iter().flat_map(|all| all.iter());
        anomalies.map(|note| note.get("kind").unwrap().as_str().unwrap().to_owned()).collect()
    }

    fn would(record: &Record) -> Vec<String> {
        let listed = record.body().value("/would_refuse");
        let listed = listed.as_ref().and_then(Value::as_array).into_iter().flat_map(|all| all.iter());
        listed.map(|one| one.get("code").unwrap().as_str().unwrap().to_owned()).collect()
    }
}

const WIPE: &str = r#"{"name":"shop","version":"v1","state":{"asked":{"init":"0"},"seen":{"init":"[]"}},
    "tools":{"look":{"effect":"read"},"wipe":{"effect":"effectful"}},
    "rules":[{"when_type":"action.request","steps":[{"append":"seen","value":"t.action.tool"}]},
             {"when_type":"action.request","steps":[{"add":"asked","value":"size(t.calls)"}]}],
    "policy":[{"id":"no_wipe","holds":"t.action.tool != 'wipe'","enforce":true},
              {"id":"one_look","holds":"state.seen.filter(s, s == 'look').size() + (t.action.tool == 'look' ? 1 : 0) <= 3","enforce":true},
              {"id":"few","holds":"size(t.calls) <= 3","enforce":true}]}"#;

#[test]
fn each_call_of_a_line_is_judged() {
    for stage in [Stage::Contracts, Stage::Full] {
        let mut desk = Desk::new(WIPE, stage);
        for (action, code) in [
            (r#"{"tool":"wipe"}"#, Code::E0429),
            (r#"{"calls":[{"tool":"look"},{"tool":"wipe"}]}"#, Code::E0429),
            (r#"{"tool":"look","calls":[{"tool":"look"},{"tool":"wipe"}]}"#, Code::E0429),
            (r#"{"tool":"wipe","calls":[{"tool":"look"}]}"#, Code::E0429),
            (r#"{"calls":[{"tool":"look","calls":[{"tool":"wipe"}]}]}"#, Code::E0429),
            (r#"{"tool":"look","calls":[{"tool":"look"}]}"#, Code::E0437),
            (r#"{"calls":[{"tool":"look"},{"tool":"look"},{"tool":"look"},{"tool":"look"}]}"#, Code::E0429),
        ] {
            let line = format!(r#"{{"type":"action.request","action":{action}}}"#);
            assert_eq!(desk.code(&line), code, "stage {stage}: {action}");
        }
        desk.taken(r#"{"type":"action.request","action":{"calls":[{"tool":"look"},{"tool":"look"}]}}"#);
        assert_eq!(desk.head.state().to_string(), r#"{"asked":2,"seen":["look","look"]}"#);
        // The second call is judged over the state behind the first one: each alone would be the third.
        let two = r#"{"type":"action.request","action":{"calls":[{"tool":"look"},{"tool":"look"}]}}"#;
        assert_eq!(desk.code(two), Code::E0429);
    }
    // An empty list, and a call that names no tool, are calls of which nothing is known.
    let mut desk = Desk::new(WIPE, Stage::Contracts);
    for calls in ["[]", r#"[{"params":{}}]"#] {
        let line = format!(r#"{{"type":"action.request","action":{{"calls":{calls}}}}}"#);
        assert!([Code::E0428, Code::E0404].contains(&desk.code(&line)), "{calls}");
    }
}

#[test]
fn below_stage_2_what_would_refuse_is_kept() {
    for stage in [Stage::Observe, Stage::Replay] {
        let mut desk = Desk::new(WIPE, stage);
        let line = r#"{"type":"action.request","action":{"calls":[{"tool":"look"},{"tool":"wipe"}]}}"#;
        assert_eq!(Desk::would(&desk.taken(line)), ["E0429"]);
        assert_eq!(
            Desk::would(&desk.taken(r#"{"type":"action.request","action":{"tool":"look"}}"#)),
            [""; 0]
        );
    }
}

const CAP: &str = r#"{"name":"shop","version":"v1","state":{"paid":{"init":"0"},"limit":{}},
    "tools":{"pay":{"effect":"effectful"},"refund":{"effect":"effectful"},"look":{"effect":"read"}},
    "types":{"settle":"brings it in order"},
    "rules":[{"when_type":"action.request","when":"false","steps":[{"remove":"limit"}]},
             {"when_type":"action.result","when":"t.action.tool == 'pay'","steps":[{"add":"paid","value":"t.result.output.amount"}]},
             {"when_type":"action.result","when":"t.action.tool == 'refund'","steps":[{"add":"paid","value":"0 - t.result.output.amount"}]},
             {"when_type":"settle","steps":[{"set":"paid","value":"t.intent.to"}]},
             {"when_type":"plan.update","steps":[{"set":"limit","value":"t.intent.limit"}]}],
    "policy":[{"id":"known","holds":"t.action.tool != 'pay' || t.action.params.amount < state.limit","enforce":true},
              {"id":"told","holds":"t.action.params.amount < 50"}],
    "violations":[{"id":"over","condition":"state.paid > 100","enforce":true,"repairs":["refund"],"bisect_predicate":"monotone_lift"}]}"#;

fn result(tool: &str, amount: u64) -> String {
    format!(
        r#"{{"type":"action.result","author":"runtime","action":{{"tool":"{tool}"}},"result":{{"output":{{"amount":{amount}}},"status":"ok"}}}}"#
    )
}

/// Design, 14.1: what asks for enforcement fails closed.
#[test]
fn an_enforced_rule_that_cannot_be_judged_refuses_from_stage_2_on() {
    let pay = r#"{"type":"action.request","action":{"tool":"pay","params":{"amount":5}}}"#;
    let mut desk = Desk::new(CAP, Stage::Contracts);
    assert_eq!(desk.code(pay), Code::E0428);
    desk.taken(r#"{"type":"plan.update","intent":{"limit":10}}"#);
    desk.taken(pay);
    // Another type and a missing member are as little judged as a missing place.
    assert_eq!(
        desk.code(r#"{"type":"action.request","action":{"tool":"pay","params":{"amount":"5"}}}"#),
        Code::E0428
    );
    assert_eq!(desk.code(r#"{"type":"action.request","action":{"tool":"pay"}}"#), Code::E0428);
    // A rule that only tells refuses at stage 3 alone.
    let look = r#"{"type":"action.request","action":{"tool":"look"}}"#;
    assert_eq!(Desk::kinds(&desk.taken(look)), ["cannot_be_judged"]);
    assert_eq!(Desk::new(CAP, Stage::Full).code(look), Code::E0428);
    let mut below = Desk::new(CAP, Stage::Replay);
    assert_eq!(Desk::would(&below.taken(pay)), ["E0428"]);
}

/// Design, 14.1: while an enforced predicate is violated, its read set is for repairs.
#[test]
fn while_a_rule_is_broken_only_repairs_write_what_it_reads() {
    let mut desk = Desk::new(CAP, Stage::Contracts);
    desk.taken(r#"{"type":"plan.update","intent":{"limit":1000}}"#);
    desk.taken(&result("pay", 150));
    assert_eq!(desk.head.state().get("paid"), Some(&Value::from(150u64)));
    let pay = r#"{"type":"action.request","action":{"tool":"pay","params":{"amount":5}}}"#;
    assert_eq!(desk.code(pay), Code::E0429);
    assert_eq!(desk.code(r#"{"type":"settle","intent":{"to":120}}"#), Code::E0429);
    desk.taken(r#"{"type":"action.request","action":{"tool":"look","params":{"amount":1}}}"#);
    desk.taken(r#"{"type":"action.request","action":{"tool":"refund","params":{"amount":1}}}"#);
    desk.taken(r#"{"type":"settle","intent":{"to":80}}"#);
    desk.taken(pay);
}

/// Design, 14.1: what a tool did is never refused for what a rule or its delta cannot do.
#[test]
fn a_result_is_never_refused_for_a_rule() {
    for stage in [Stage::Observe, Stage::Replay, Stage::Contracts, Stage::Full] {
        let mut desk = Desk::new(CAP, stage);
        let odd = r#"{"type":"action.result","author":"runtime","action":{"tool":"pay"},"result":{"output":null,"status":"ok"}}"#;
        let record = desk.taken(odd);
        assert!(Desk::kinds(&record).contains(&"reducer_error".to_owned()), "{:?}", Desk::kinds(&record));
        assert!(desk.head.state().get("kernel_unknown").unwrap().get("/paid").is_some());
        let strange = r#"{"type":"action.result","author":"runtime","action":{"tool":"nuke"},"result":{"output":1,"status":"ok"}}"#;
        desk.taken(strange);
    }
    let with_writers = r#"{"name":"shop","version":"v1","reducer":"delta/1","state":{"paid":{"init":"0","writers":["plan.update"]}}}"#;
    for stage in [Stage::Contracts, Stage::Full] {
        let mut desk = Desk::new(with_writers, stage);
        for delta in [r#"[{"set":"/paid","value":9}]"#, r#"[{"add":"/none/there","value":9}]"#] {
            let line = format!(
                r#"{{"type":"action.result","author":"runtime","action":{{"tool":"pay"}},"result":{{"output":1}},"delta":{delta}}}"#
            );
            desk.taken(&line);
            assert_eq!(desk.head.state().get("paid"), Some(&Value::from(0u64)));
        }
    }
}

const DENY: &str = r#"{"type":"policy.decision","author":"runtime","policy":{"decision":"deny"}}"#;

/// Design, 14.1: a decision on record binds.
#[test]
fn a_denied_call_is_refused_until_it_is_allowed() {
    let pack = r#"{"name":"p","version":"v1","tools":{"pay":{"effect":"effectful"},"look":{"effect":"read"}},"reducer":"delta/1"}"#;
    let pay =
        |n: u64| format!(r#"{{"type":"action.request","action":{{"tool":"pay","params":{{"n":{n}}}}}}}"#);
    let mut desk = Desk::new(pack, Stage::Contracts);
    let asked = desk.taken(&pay(1));
    let denied = desk.taken(DENY);
    assert_eq!(Desk::kinds(&denied), [""; 0]);
    assert_eq!(desk.code(&pay(1)), Code::E0435);
    let both =
        r#"{"type":"action.request","action":{"calls":[{"tool":"look"},{"tool":"pay","params":{"n":1}}]}}"#;
    assert_eq!(desk.code(both), Code::E0435);
    desk.taken(&pay(2));
    let done =
        r#"{"type":"action.result","author":"runtime","action":{"tool":"pay"},"result":{"output":"paid"}}"#;
    // The call that is not denied is answered first.
    assert_eq!(Desk::kinds(&desk.taken(done)), [""; 0]);
    let acted = desk.taken(done);
    assert_eq!(Desk::kinds(&acted), ["acted_after_deny"]);
    let note = acted.body().value("/anomalies").unwrap().as_array().unwrap().get(0).cloned().unwrap();
    assert_eq!(note.get("tick"), Some(&Value::from(2u64)));
    // An `allow` of a lower rank lifts nothing, one of a higher rank that names the request does.
    let allow = |author: &str| {
        let link = format!(r#"[{{"rel":"caused_by","hash":"{}"}}]"#, asked.id());
        format!(
            r#"{{"type":"policy.decision","author":"{author}","policy":{{"decision":"allow"}},"links":{link}}}"#
        )
    };
    let deny_by_user = allow("user").replace("allow", "deny");
    desk.taken(&deny_by_user);
    desk.taken(&allow("runtime"));
    assert_eq!(desk.code(&pay(1)), Code::E0435);
    desk.taken(&allow("user"));
    desk.taken(&pay(1));
    // A denial that may be about several requests says so; below stage 2 a denied call is noted.
    let mut desk = Desk::new(pack, Stage::Replay);
    assert_eq!(Desk::kinds(&desk.taken(DENY)), [""; 0]);
    let first = desk.taken(&pay(1));
    desk.taken(&pay(3));
    assert_eq!(Desk::kinds(&desk.taken(DENY)), ["decision_without_request"]);
    let link = format!(r#"[{{"rel":"caused_by","hash":"{}"}}]"#, first.id());
    let named = DENY.replace("\"policy\":", &format!(r#""links":{link},"policy":"#));
    desk.taken(&named);
    let again = desk.taken(&pay(1));
    assert_eq!(
        (Desk::kinds(&again), Desk::would(&again)),
        (vec!["denied_before".to_owned()], vec!["E0435".to_owned()])
    );
}

/// Design, 14.1: rounding is told, and a sum of what is finer than its field is not called known.
#[test]
fn a_finer_number_is_refused_or_makes_its_place_unknown() {
    let fold = r#"{"name":"shop","version":"v1","state":{"spent":{"init":"0","decimals":2},"last":{"init":"0","decimals":2}},
        "rules":[{"when_type":"action.request","steps":[{"add":"spent","value":"t.action.params.n"}]},
                 {"when_type":"plan.update","steps":[{"set":"last","value":"t.intent.n"}]}]}"#;
    let pay =
        |n: &str| format!(r#"{{"type":"action.request","action":{{"tool":"pay","params":{{"n":{n}}}}}}}"#);
    let mut desk = Desk::new(fold, Stage::Contracts);
    assert_eq!(desk.code(&pay("0.004")), Code::E0436);
    // The noise of doubles is not finer.
    desk.taken(&pay("0.30000000000000004"));
    let rounded = desk.taken(r#"{"type":"plan.update","intent":{"n":1.006}}"#);
    assert_eq!(
        rounded.body().value("/rounded").unwrap().to_string(),
        r#"[{"from":1.006,"path":"/last","to":1.01}]"#
    );
    assert_eq!(Desk::kinds(&rounded), [""; 0]);
    let mut desk = Desk::new(fold, Stage::Replay);
    let noted = desk.taken(&pay("0.004"));
    assert_eq!(Desk::kinds(&noted), ["finer_than_declared"]);
    assert!(desk.head.state().get("kernel_unknown").unwrap().get("/spent").is_some());
    let delta =
        r#"{"name":"shop","version":"v1","reducer":"delta/1","state":{"spent":{"init":"0","decimals":2}}}"#;
    let add = r#"{"type":"plan.update","delta":[{"add":"/spent","value":0.004}]}"#;
    assert_eq!(Desk::new(delta, Stage::Contracts).code(add), Code::E0436);
    let mut desk = Desk::new(delta, Stage::Contracts);
    let set = desk.taken(r#"{"type":"plan.update","delta":[{"set":"/spent","value":0.006}]}"#);
    assert!(set.body().value("/rounded").is_some());
}

/// Design, 14.1: a name that looks like another one is noted, and refused at stage 3.
#[test]
fn look_alikes_are_noted_and_refused_at_stage_3() {
    let pack = r#"{"name":"p","version":"v1","tools":{"drop_table":{"effect":"effectful"},"look":{"effect":"read"}},
        "state":{"n":{"init":"0"}},"rules":[{"when_type":"action.request","when":"false","steps":[{"add":"n","value":"1"}]}]}"#;
    let ask = |agent: &str, tool: &str| {
        format!(r#"{{"type":"action.request","agent":"{agent}","action":{{"tool":"{tool}"}}}}"#)
    };
    for (agent, tool, is_alike) in [
        ("dev", "dr\u{43e}p_table", true),
        ("dev", "Drop_Table", true),
        ("dev", "drop_table\u{200b}", true),
        ("d\u{435}v", "look", true),
        ("dev", "drop_table", false),
        ("dev", "drop_tables", false),
        ("поиск", "look", false),
    ] {
        let kinds = Desk::kinds(&Desk::new(pack, Stage::Contracts).taken(&ask(agent, tool)));
        assert_eq!(kinds.contains(&"look_alike".to_owned()), is_alike, "{agent} {tool}: {kinds:?}");
        if is_alike && tool == "look" {
            assert_eq!(Desk::new(pack, Stage::Full).code(&ask(agent, tool)), Code::E0438);
        }
    }
}

/// Design, 14.1: time that may be asked is the time of the record, whatever the agent says.
#[test]
fn a_rule_asks_for_the_time_of_the_record() {
    let pack = r#"{"name":"ops","version":"v1","clock":"kernel","state":{"until":{"init":"'1970-01-01T00:00:00.003Z'"},"last":{"init":"''"}},
        "rules":[{"when_type":"plan.update","steps":[{"set":"last","value":"t.at"}]}],
        "policy":[{"id":"fresh","holds":"t.action.tool != 'deploy' || t.at < timestamp(state.until)","enforce":true}]}"#;
    let deploy =
        r#"{"type":"action.request","intent":{"at":"1970-01-01T00:00:00Z"},"action":{"tool":"deploy"}}"#;
    let mut desk = Desk::new(pack, Stage::Contracts);
    desk.taken(r#"{"type":"plan.update"}"#);
    assert_eq!(desk.head.state().get("last"), Some(&Value::from("1970-01-01T00:00:00.001Z")));
    desk.taken(deploy);
    assert_eq!(desk.code(deploy), Code::E0429);
    // A clock that went back is no time.
    desk.made = 0;
    assert_eq!(desk.code(deploy), Code::E0428);
    let without = pack.replace(r#""clock":"kernel","#, "");
    assert!(Pack::read(&value(&without)).is_err());
}

/// Design, 14.1: a decision binds what is shown like the call, and an `allow` that names nothing lifts nothing.
#[test]
fn a_denial_is_not_passed_by_another_line() {
    let pack = r#"{"name":"p","version":"v1","tools":{"pay":{"effect":"effectful"},"look":{"effect":"read"}},"reducer":"delta/1"}"#;
    let pay = |kind: &str| format!(r#"{{"type":"{kind}","action":{{"tool":"pay","params":{{"n":1}}}}}}"#);
    let mut desk = Desk::new(pack, Stage::Contracts);
    desk.taken(&pay("action.request"));
    desk.taken(DENY);
    assert_eq!(desk.code(&pay("plan.update")), Code::E0435);
    desk.taken(&DENY.replace("deny", "allow"));
    assert_eq!(desk.code(&pay("action.request")), Code::E0435);
    // An escalation that is open binds like a denial.
    let mut desk = Desk::new(pack, Stage::Contracts);
    desk.taken(&pay("action.request"));
    desk.taken(&DENY.replace("deny", "escalate"));
    assert_eq!(desk.code(&pay("action.request")), Code::E0435);
    let done = r#"{"type":"action.result","author":"runtime","action":{"tool":"pay"},"result":{"output":1}}"#;
    assert_eq!(Desk::kinds(&desk.taken(done)), ["acted_after_deny"]);
}

/// A call that cannot be told apart from another one is refused, and a result of another call is noted.
#[test]
fn calls_have_a_tool_each_and_results_are_of_their_request() {
    let pack = r#"{"name":"p","version":"v1","tools":{"pay":{"effect":"effectful"},"ls":{"effect":"read"}},"reducer":"delta/1"}"#;
    let mut desk = Desk::new(pack, Stage::Contracts);
    for (action, code) in [
        (r#"{"calls":[{"tool":["pay"]}]}"#, Code::E0426),
        (r#"{"calls":[{"tool":"ls","calls":[{"tool":"pay"}]}]}"#, Code::E0437),
        (r#"{"calls":["pay"]}"#, Code::E0426),
    ] {
        let line = format!(r#"{{"type":"action.request","action":{action}}}"#);
        match Intent::from_value(&value(&line), Some("a")) {
            Ok(_) => assert_eq!(desk.code(&line), code, "{action}"),
            Err(error) => assert_eq!(error.code, Code::E0209, "{action}"),
        }
    }
    desk.taken(r#"{"type":"action.request","action":{"tool":"pay","params":{"n":1}}}"#);
    let other = r#"{"type":"action.result","author":"runtime","action":{"tool":"pay","params":{"n":5000}},"result":{"output":1}}"#;
    assert_eq!(Desk::kinds(&desk.taken(other)), ["result_of_another_call"]);
    let undeclared = r#"{"type":"action.result","author":"runtime","action":{"tool":"wipe"},"effect":"read","result":{"output":1}}"#;
    assert!(Desk::kinds(&desk.taken(undeclared)).contains(&"result_without_request".to_owned()));
}
