//! The packs, the lines before a proposal, and the proposals.

use dendrer_object::Value;
use dendrer_object::json::parse_door;
use dendrer_testkit::Dice;

/// A pack, with places for the engine and for the rules.
const PACK: &str = r#"{"name":"shop","version":"v1"ENGINE,
  "state":{"paid":{"init":"0","decimals":2},"left":{"init":"10"},"right":{"init":"0"},"top":{"init":"100"},
           "owner":{"init":"'ann'"WRITERS},"limit":{"init":"5"},"missing":{},"list":{"init":"[]"}},
  "tools":{"pay":{"effect":"effectful"},"refund":{"effect":"effectful"},"look":{"effect":"read"},"wipe":{"effect":"effectful"}},
  "types":{"settle":"brings it in order"},
  "contracts":{"settle":{"required_state":{"limit":{"type":"number"}},"hash_seeds":["limit"]},
               "action.request":{"required_state":{"limit":{"type":"number"}}},
               "action.result":{"required_state":{"limit":{"type":"number"}}},
               "plan.update":{"required_state":{"limit":{"type":"number"}}},
               "observation.add":{"required_state":{"limit":{"type":"number"}}},
               "memory.write":{"required_state":{"REQUIRED":{"type":"number"}}}}RULES}"#;

/// Rules about requests and states, violations, and a hard commitment.
const RULES: &str = r#",
  "policy":[{"id":"r_wipe","holds":"t.action.tool != 'wipe' || state.top > 1000","enforce":true},
            {"id":"r_many","holds":"size(t.calls) <= 2"},
            {"id":"r_dear","holds":"t.action.tool != 'pay' || t.action.params.n <= state.top","enforce":true},
            {"id":"s_sum","holds":"state.left + state.right <= 20","enforce":true},
            {"id":"s_paid","holds":"state.paid <= 200"}],
  "violations":[{"id":"v_paid","condition":"state.paid > 300","enforce":true,"repairs":["refund"],"bisect_predicate":"monotone_lift"},
                {"id":"v_right","condition":"state.right > 15","bisect_predicate":"monotone_lift"}],
  "commitments":[{"id":"H","type":"obl","hard":true,"gloss":"never 7","condition":"action.tool == 'look' && action.params.n == 7 && state.top < 1000"}]"#;

/// A rule that no line breaks.
const FREE: &str = r#",
  "violations":[{"id":"v_none","condition":"state.paid > 100000000","bisect_predicate":"monotone_lift"}]"#;

/// The rules of folding, which write what the deltas of the other pack write.
const FOLD: &str = r#",
  "rules":[{"when_type":"action.result","when":"t.action.tool == 'pay'","steps":[{"add":"paid","value":"t.result.output.n"}]},
           {"when_type":"action.result","when":"t.action.tool == 'refund'","steps":[{"add":"paid","value":"0 - t.result.output.n"}]},
           {"when_type":"action.request","steps":[{"append":"list","value":"t.action.tool"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.left)","steps":[{"set":"left","value":"t.intent.left"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.right)","steps":[{"set":"right","value":"t.intent.right"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.paid)","steps":[{"set":"paid","value":"t.intent.paid"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.top)","steps":[{"set":"top","value":"t.intent.top"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.n)","steps":[{"add":"paid","value":"t.intent.n"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.owner)","steps":[{"set":"owner","value":"t.intent.owner"}]},
           {"when_type":["plan.update","settle"],"when":"has(t.intent.limit)","steps":[{"set":"limit","value":"t.intent.limit"}]}]"#;

/// A kind of pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PackKind {
    /// Agents bring deltas.
    Delta,
    /// Rules make the change.
    Fold,
}

impl PackKind {
    /// The text of the pack. Without `ruled`, it has the same fields, tools and types and refuses nothing.
    pub(crate) fn text(self, ruled: bool) -> String {
        let (engine, fold) = match self {
            PackKind::Delta => (r#","reducer":"delta/1""#, ""),
            PackKind::Fold => ("", FOLD),
        };
        let (rules, writers, required) = match ruled {
            true => (RULES, r#","writers":["plan.update"]"#, "missing"),
            false => (FREE, "", "limit"),
        };
        let text = PACK.replace("ENGINE", engine).replace("WRITERS", writers);
        text.replace("REQUIRED", required).replace("RULES", &format!("{rules}{fold}"))
    }
}

/// The lines that every run has before a proposal: a hard commitment of the user, limits, a request that is denied, and one that
/// is open. A `free` run has other limits, and no commitment and no denial.
pub(crate) fn before(kind: PackKind, free: bool) -> Vec<Value> {
    let limits = if free {
        [("left", -100), ("paid", -10_000), ("top", 100_000)]
    } else {
        [("left", 10), ("paid", 0), ("top", 100)]
    };
    let ops = limits.map(|(name, value)| format!(r#"{{"set":"/{name}","value":{value}}}"#));
    let members = limits.map(|(name, value)| format!(r#""{name}":{value}"#));
    let change = match kind {
        PackKind::Delta => format!(r#""delta":[{}]"#, ops.join(",")),
        PackKind::Fold => format!(r#""intent":{{{}}}"#, members.join(",")),
    };
    let bound = r#","commitments":[{"id":"U","type":"obl","hard":true,"gloss":"never 13","condition":"action.tool == 'pay' && action.params.n == 13"}]"#;
    let bound = if free { "" } else { bound };
    let word = if free { "allow" } else { "deny" };
    let lines = [
        format!(r#"{{"type":"observation.add","author":"user","agent":"u"{bound}}}"#),
        format!(r#"{{"type":"plan.update","agent":"b",{change}}}"#),
        r#"{"type":"action.request","agent":"a","action":{"tool":"pay","params":{"n":77},"call_id":"k1"}}"#
            .to_owned(),
        format!(
            r#"{{"type":"policy.decision","agent":"a","author":"runtime","policy":{{"decision":"{word}"}}}}"#
        ),
        r#"{"type":"action.request","agent":"b","action":{"tool":"look","params":{"n":1},"call_id":"k2"}}"#
            .to_owned(),
        r#"{"type":"observation.add","agent":"c"}"#.to_owned(),
    ];
    lines.iter().map(|line| v(line)).collect()
}

/// Reads a value.
pub(crate) fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn one<'t>(dice: &mut Dice, of: &[&'t str]) -> &'t str {
    of[dice.below(of.len() as u64) as usize]
}

/// A number, or something in its place.
fn literal<'t>(dice: &mut Dice) -> &'t str {
    one(
        dice,
        &[
            "1",
            "7",
            "13",
            "77",
            "101",
            "5",
            "0.25",
            "0.004",
            "1e2",
            "-3",
            "16",
            "250",
            "400",
            "\"5\"",
            "null",
            "[1]",
            "{\"n\":1}",
        ],
    )
}

fn tool<'t>(dice: &mut Dice) -> &'t str {
    one(dice, &["pay", "pay", "refund", "look", "look", "wipe", "Wipe", "w\u{456}pe", "pay ", "nuke"])
}

fn agent<'t>(dice: &mut Dice) -> &'t str {
    one(dice, &["a", "a", "b", "c", "a", "d\u{435}v"])
}

fn call(dice: &mut Dice) -> String {
    let params = match dice.below(8) {
        0 => String::new(),
        1 => r#","params":{}"#.to_owned(),
        2 => r#","params":{"n":77}"#.to_owned(),
        _ => format!(r#","params":{{"n":{}}}"#, literal(dice)),
    };
    match dice.below(12) {
        0 => format!(r#"{{"call_id":"k3"{params}}}"#),
        _ => format!(r#"{{"tool":"{}"{params}}}"#, tool(dice)),
    }
}

fn request(dice: &mut Dice) -> String {
    let calls = |dice: &mut Dice| {
        let all: Vec<String> = (0..1 + dice.below(3)).map(|_| call(dice)).collect();
        all.join(",")
    };
    let action = match dice.below(10) {
        0 => r#"{"tool":"pay","params":{"n":77}}"#.to_owned(),
        1 | 2 => format!(r#"{{"calls":[{}]}}"#, calls(dice)),
        3 => format!(r#"{{"tool":"{}","calls":[{}]}}"#, tool(dice), calls(dice)),
        _ => call(dice),
    };
    format!(r#"{{"type":"action.request","agent":"{}","action":{action}}}"#, agent(dice))
}

fn ops(dice: &mut Dice, places: &[&str]) -> String {
    let op = |dice: &mut Dice| {
        let place = one(dice, places);
        match dice.below(8) {
            0 => format!(r#"{{"remove":"{place}"}}"#),
            1 => format!(r#"{{"append":"{place}","value":{}}}"#, literal(dice)),
            2 | 3 => format!(r#"{{"add":"{place}","value":{}}}"#, literal(dice)),
            _ => format!(r#"{{"set":"{place}","value":{}}}"#, literal(dice)),
        }
    };
    let all: Vec<String> = (0..1 + dice.below(2)).map(|_| op(dice)).collect();
    all.join(",")
}

const PLACES: [&str; 9] =
    ["/paid", "/paid", "/left", "/right", "/right", "/owner", "/limit", "/list", "/none/there"];

fn result(dice: &mut Dice, kind: PackKind) -> String {
    let output = match dice.below(6) {
        0 => "null".to_owned(),
        1 => literal(dice).to_owned(),
        _ => format!(r#"{{"n":{}}}"#, literal(dice)),
    };
    let output = if dice.below(8) == 0 { String::new() } else { format!(r#""output":{output},"#) };
    let call_id = one(dice, &["", r#","call_id":"k1""#, r#","call_id":"k2""#, r#","call_id":"k9""#]);
    let delta = match (kind, dice.below(2)) {
        (PackKind::Delta, 0) => format!(r#","delta":[{}]"#, ops(dice, &PLACES)),
        _ => String::new(),
    };
    let (agent, tool) = (agent(dice), tool(dice));
    format!(
        r#"{{"type":"action.result","author":"runtime","agent":"{agent}","action":{{"tool":"{tool}"{call_id}}},"result":{{{output}"status":"ok"}}{delta}}}"#
    )
}

fn change(dice: &mut Dice, kind: PackKind) -> String {
    let type_name = one(dice, &["plan.update", "plan.update", "settle", "memory.write", "observation.add"]);
    let author = one(dice, &["agent", "agent", "agent", "user"]);
    let agent = agent(dice);
    let change = match kind {
        PackKind::Delta if dice.below(12) == 0 => {
            format!(r#""delta":[{}]"#, ops(dice, &["/policy/x", "/kernel_unknown", "/counters/x"]))
        }
        PackKind::Delta if dice.below(5) == 0 => {
            let (one, two) = (1 + dice.below(16), 1 + dice.below(16));
            format!(r#""delta":[{{"set":"/left","value":{one}}},{{"set":"/right","value":{two}}}]"#)
        }
        PackKind::Delta => format!(r#""delta":[{}]"#, ops(dice, &PLACES)),
        PackKind::Fold => {
            let name = one(dice, &["left", "right", "right", "paid", "n", "n", "owner", "limit"]);
            format!(r#""intent":{{"{name}":{}}}"#, literal(dice))
        }
    };
    format!(r#"{{"type":"{type_name}","author":"{author}","agent":"{agent}",{change}}}"#)
}

fn brings(dice: &mut Dice) -> String {
    let author = one(dice, &["agent", "agent", "user"]);
    let id = one(dice, &["N1", "N2", "h", "\u{41d}", "U"]);
    let hard = one(dice, &["true", "false"]);
    let lists = match dice.below(6) {
        0 => format!(
            r#""commitments":[{{"id":"{id}","type":"obl","hard":{hard},"gloss":"g","condition":"action.tool == 'refund'"}}]"#
        ),
        1 => format!(r#""evidence":[{{"id":"{id}","content":"seen"}}]"#),
        2 => r#""edges":[{"edge":"attests","from":"E9","to":"U"}]"#.to_owned(),
        3 => format!(r#""closes":[{{"id":"{}","as":"retracted"}}]"#, one(dice, &["U", "H", "gone"])),
        4 => r#""edges":[{"edge":"conflicts-with","from":"U","to":"H"}]"#.to_owned(),
        _ => format!(
            r#""commitments":[{{"id":"{id}","type":"plan","gloss":"g","supersedes":"{}"}}]"#,
            one(dice, &["U", "H"])
        ),
    };
    format!(r#"{{"type":"plan.update","author":"{author}","agent":"{}",{lists}}}"#, agent(dice))
}

fn decision(dice: &mut Dice) -> String {
    let author = one(dice, &["runtime", "runtime", "user", "agent"]);
    let word = one(dice, &["allow", "deny", "escalate"]);
    let agent = agent(dice);
    format!(
        r#"{{"type":"policy.decision","author":"{author}","agent":"{agent}","policy":{{"decision":"{word}"}}}}"#
    )
}

fn odd(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => r#"{"type":"run.fork","agent":"a"}"#.to_owned(),
        1 => r#"{"type":"plan.update","author":"kernel","agent":"a"}"#.to_owned(),
        2 => r#"{"type":"plan.update","agent":"a","metrics":{"tokens_used":-1}}"#.to_owned(),
        3 => r#"{"type":"plan.update","agent":"a","anomalies":[{"kind":"replay_divergence"}]}"#.to_owned(),
        _ => r#"{"type":"goal.complete","agent":"a","result":{"output":{"report":1},"status":"ok"}}"#
            .to_owned(),
    }
}

/// Draws a proposal.
pub(crate) fn line(dice: &mut Dice, kind: PackKind) -> Value {
    v(&match dice.below(20) {
        0..8 => request(dice),
        8..11 => result(dice, kind),
        11..16 => change(dice, kind),
        16 | 17 => brings(dice),
        18 => decision(dice),
        _ => odd(dice),
    })
}
