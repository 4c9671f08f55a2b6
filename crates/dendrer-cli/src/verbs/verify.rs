//! `dendrer verify`

use dendrer::store::embedded::{Embedded, Options as OpenOptions, VerifyOptions};
use dendrer::verify::{self, Options, Report, Verdict};
use dendrer_object::note::VerifierKey;
use dendrer_object::{Digest, Value};
use dendrer_view::verify::{MEANING, UNWITNESSED, log_lines, run_lines, word};
use dendrer_view::{document, quote};

use crate::address::Rev;
use crate::args::{Global, Verify};
use crate::failure::{Failure, Result};
use crate::keys;
use crate::open;
use crate::out::{Format, Out, Style};

/// One thing that was verified, and what came out.
struct Answer {
    name: String,
    report: Report,
    is_bundle: bool,
}

pub(crate) fn run(global: &Global, args: &Verify, out: &mut Out) -> Result {
    let options = Options {
        replay: args.replay,
        tip: args.tip.as_deref().map(parse_tip).transpose()?,
        key: args.verifier.as_deref().map(parse_key).transpose()?,
        ..Options::default()
    };
    let mut answers = Vec::new();
    let mut runs = Vec::new();
    for target in &args.targets {
        let rev = Rev::parse(target)?;
        match &rev.bundle {
            Some(path) => {
                let opened = open::open_bundle(path)?;
                let report = verify::bundle(&opened, &options)?;
                answers.push(Answer { name: path.clone(), report, is_bundle: true });
            }
            None => runs.push(rev),
        }
    }
    if !runs.is_empty() || args.targets.is_empty() {
        answers.push(verify_store(global, &runs, options)?);
    }
    let mut code = 0;
    for answer in &answers {
        let exit = exit_code(answer, args.require_witness);
        // 4 is worse than 7, 7 than 6, 6 than 0: the order of the verdicts, not of the numbers.
        let rank = |code: u8| [0, 6, 7, 4].iter().position(|known| *known == code).unwrap_or(4);
        if rank(exit) > rank(code) {
            code = exit;
        }
    }
    match out.format() {
        Format::Text => {
            for answer in &answers {
                print(answer, args, out)?;
            }
        }
        Format::Json if answers.len() == 1 => out.document(&to_json(&answers[0]))?,
        Format::Json => {
            let items = Value::array(answers.iter().map(to_json));
            out.document(&document("verify-all", [("items", items)]))?;
        }
        Format::Jsonl => {
            for answer in &answers {
                out.item(&to_json(answer))?;
            }
            out.summary("verify-all", [])?;
        }
    }
    Ok(code)
}

fn parse_tip(text: &str) -> Result<Digest> {
    let with_tag = if text.starts_with("sha256:") { text.to_owned() } else { format!("sha256:{text}") };
    with_tag.parse().map_err(|_| {
        Failure::new("E0304", format!("\"{text}\" is not a whole tip, so no run can have it"))
            .note("a tip is sha256: and 64 hex digits; `dendrer runs --json` prints them whole")
    })
}

fn parse_key(text: &str) -> Result<VerifierKey> {
    text.parse().map_err(|error: dendrer_object::note::NoteError| {
        Failure::new("E0308", format!("not a verifier key: {error}"))
    })
}

fn verify_store(global: &Global, revs: &[Rev], options: Options) -> Result<Answer> {
    let path = open::find(global)?;
    let store = Embedded::open(&path, OpenOptions::read())?;
    let mut names = Vec::new();
    for rev in revs {
        names.push(rev.run_in(&store, &[])?);
    }
    let pinned = keys::pinned(dendrer::store::Store::info(&store).id);
    let options = Options { runs: (!revs.is_empty()).then_some(names), pinned, ..options };
    let mut report = verify::store(&store, &options)?;
    // What records cannot show: frames, commit frames, files beside the log.
    let structure = store.verify(&VerifyOptions::default())?;
    for damage in structure.findings {
        let known = report
            .findings
            .iter()
            .any(|finding| finding.position.is_some() && finding.position == damage.place.position);
        if known {
            continue;
        }
        report.verdict = Verdict::Tampered;
        report.findings.push(verify::Finding {
            code: damage.code(),
            run: damage.place.run.clone(),
            tick: damage.place.tick,
            position: damage.place.position,
            message: damage.to_string(),
            stored: Some(damage.expected),
            computed: Some(damage.found),
        });
    }
    Ok(Answer { name: path.display().to_string(), report, is_bundle: false })
}

fn exit_code(answer: &Answer, require_witness: bool) -> u8 {
    let (_, code) = word(answer.report.verdict);
    if code == 0 && require_witness && answer.report.verdict != Verdict::Verified { 6 } else { code }
}

fn to_json(answer: &Answer) -> Value {
    let mut document = dendrer_view::verify::to_json(&answer.report).as_object().cloned().unwrap_or_default();
    document.set("name", Value::from(answer.name.as_str()));
    Value::Object(document)
}

fn print(answer: &Answer, args: &Verify, out: &mut Out) -> Result<()> {
    let report = &answer.report;
    let many = report.runs.len() > 1;
    for run in &report.runs {
        if many {
            let name = out.paint(Style::Strong, run.run.as_str());
            out.line(name)?;
        }
        for line in run_lines(report, run) {
            let style = if line.contains("  FAIL  ") { Some(Style::Bad) } else { None };
            let line = style.map_or(line.clone(), |style| out.paint(style, &line));
            out.line(line)?;
        }
    }
    for line in log_lines(report) {
        out.line(line)?;
    }
    for finding in &report.findings {
        let place = match (&finding.run, finding.tick) {
            (Some(run), Some(tick)) => format!("{run}@{tick}: "),
            (Some(run), None) => format!("{run}: "),
            _ => String::new(),
        };
        let line = format!("error[{}]: {place}{}", finding.code, quote::escape(&finding.message));
        let line = out.paint(Style::Bad, &line);
        out.line(line)?;
        if let (Some(stored), Some(computed)) = (&finding.stored, &finding.computed) {
            out.line(format!(
                "  | stored    {}        computed  {}",
                quote::escape(stored),
                quote::escape(computed)
            ))?;
        }
        let line_of = report.runs.iter().find(|run| Some(&run.run) == finding.run.as_ref());
        let good = line_of.and_then(|run| run.line.last_good);
        if let (Some(tick), Some(good), Some(line)) = (finding.tick, good, line_of) {
            let rest = if tick < line.line.tick {
                format!(
                    "    ticks {}..{} rest on tick {tick} and are not trustworthy",
                    tick + 1,
                    line.line.tick
                )
            } else {
                String::new()
            };
            out.line(format!("  | last good tick: {good}{rest}"))?;
        }
        out.line(format!("      see: dendrer explain {}", finding.code))?;
    }
    if report.findings_left_out > 0 {
        out.line(format!("({} more findings)", report.findings_left_out))?;
    }
    for item in &report.not_checked {
        out.line(format!("not checked: {}", quote::escape(item)))?;
    }
    if !args.replay && report.verdict <= Verdict::Intact {
        out.line("not checked: replay (--replay)")?;
    }
    let (word, code) = word(report.verdict);
    let style = if code == 0 { Style::Good } else { Style::Bad };
    let word = out.paint(style, word);
    let meaning = if code == 0 { format!("   ({MEANING})") } else { String::new() };
    out.line(format!("{word}   {}{meaning}", quote::escape(&answer.name)))?;
    if code == 0 {
        match report.witnesses.as_slice() {
            [] => out.line(UNWITNESSED)?,
            witnesses => out.line(format!("witnessed by {}", quote::escape(&witnesses.join(", "))))?,
        }
    }
    if answer.is_bundle
        && code == 4
        && let Some(good) = report.runs.iter().find_map(|run| run.line.last_good)
    {
        out.say(format!(
            "help: read what is still sound:   dendrer log {} --to tick {good}",
            quote::escape(&answer.name)
        ));
    }
    Ok(())
}
