//! The picture of a bisect: one row a probe, with the ticks that it left out hatched.

use dendrer::ask::bisect::gather::BisectFound;
use dendrer::ask::bisect::question::{BisectReply, BisectReplyKind};
use dendrer::bisect::{BisectOutcome, Probe};
use dendrer::kernel::predicate::Verdict;

use super::svg::{Drawn, Frame, LEFT, LINE, NAME_COLUMNS, RIGHT, block, hatch, tenths};
use crate::bisect::of_texts;
use crate::layout::cut;
use crate::verdict::words;
use crate::{count, quote, thousands};

/// The height of a row, in tenths of a unit.
const HIGH: u64 = 120;
/// The least width of an interval that is drawn, in tenths of a unit.
const WIDE_MIN: u64 = 20;

/// Draws each question of a bisect.
pub fn picture(reply: &BisectReply, frame: Frame) -> String {
    let all: Vec<&BisectFound> = match &reply.answer {
        BisectReplyKind::One(answer) => vec![&answer.found],
        BisectReplyKind::Several(_, found) => found.iter().collect(),
        BisectReplyKind::Regression(answer) => vec![&answer.found],
    };
    let mut drawn = Drawn::default();
    for found in &all {
        one(&mut drawn, found);
        drawn.space(6);
    }
    let title = format!("bisect of {}", reply.trace.name());
    let about: Vec<String> =
        all.iter().map(|found| format!("{}: {}", question(found), outcome(found))).collect();
    drawn.framed(&title, &format!("{}.", about.join("; ")), frame)
}

fn question(found: &BisectFound) -> String {
    let is_text = found.question.predicate().is_some_and(|predicate| predicate.name() == "expression");
    quote::escape(&if is_text { found.question.words() } else { found.question.name() })
}

/// Returns the words for the onset.
fn outcome(found: &BisectFound) -> String {
    let report = &found.report;
    match &report.outcome {
        BisectOutcome::Onset(tick) => {
            let certainty = of_texts(found.from_text).as_str();
            format!("ONSET ({certainty}) tick {}", thousands(*tick))
        }
        BisectOutcome::Initial => format!("violated from the first tick, {}, on", thousands(report.low.0)),
        BisectOutcome::Never => "never violated".to_owned(),
        BisectOutcome::Recovers(_) => "recovers, so no tick is searched for".to_owned(),
        BisectOutcome::Uncertain(tick, _) => {
            format!("UNKNOWN: tick {} cannot be judged", thousands(*tick))
        }
    }
}

/// Ticks on the width of the picture.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: u64,
    high: u64,
}

impl Axis {
    /// The left edge of a tick, in tenths of a unit; one past the last tick is the right edge.
    fn left(self, tick: u64) -> u64 {
        let all = u128::from(self.high - self.low) + 1;
        let at = u128::from(tick.clamp(self.low, self.high.saturating_add(1)) - self.low);
        LEFT * 10 + u64::try_from(u128::from(RIGHT - LEFT) * 10 * at / all).unwrap_or(0)
    }

    /// The left edge and the width of a range of ticks.
    fn range(self, (from, to): (u64, u64)) -> (u64, u64) {
        let left = self.left(from);
        (left, (self.left(to.saturating_add(1)) - left).max(WIDE_MIN))
    }
}

/// Draws one question: what was asked, the verdicts at the ends, the probes, and what was found.
fn one(drawn: &mut Drawn, found: &BisectFound) {
    let report = &found.report;
    let axis = Axis { low: report.low.0, high: report.high.0 };
    drawn.line("head", &cut(&question(found), 110));
    row(drawn, "ends", |drawn, y| {
        let (left, right) = (axis.left(axis.low), axis.left(axis.high.saturating_add(1)));
        drawn.path("rule", &format!("M{} {}H{}", tenths(left), tenths(y * 10 + 60), tenths(right)), None);
        for ((tick, verdict), is_last) in [(&report.low, false), (&report.high, true)] {
            let words = format!("tick {} {}", thousands(*tick), words(verdict).1);
            let x = if is_last { RIGHT.saturating_sub(words.len() as u64 * 8) } else { LEFT };
            let class = if *verdict == Verdict::Violation { "bad" } else { "" };
            drawn.words(class, (x, y + 24), &words, 40);
        }
    });
    drawn.space(LINE);
    let mut before = (report.low.0, report.high.0);
    for (at, probe) in report.probes.iter().enumerate() {
        row(drawn, &format!("probe {}/{}", at + 1, report.probes_max), |drawn, y| {
            probed(drawn, axis, before, probe, y);
        });
        drawn.space(LINE);
        before = probe.left;
    }
    let class = if matches!(report.outcome, BisectOutcome::Never) { "" } else { "bad" };
    if let Some(tick) = report.onset() {
        row(drawn, "onset", |drawn, y| {
            let (left, wide) = axis.range((tick, tick));
            drawn.path("violated", &block((left, y * 10), wide, HIGH), Some("the onset"));
        });
    }
    let probes = count(report.probes.len() as u64, "probe", "probes");
    drawn.line(class, &format!("{}   ({probes})", outcome(found)));
}

/// Adds a row with a name in front of it.
fn row(drawn: &mut Drawn, name: &str, draw: impl FnOnce(&mut Drawn, u64)) {
    let y = drawn.height + 4;
    drawn.words("dim", (12, y + 11), name, NAME_COLUMNS);
    draw(drawn, y);
    drawn.space(LINE);
}

/// Draws the interval before a probe, hatched where the probe left it out, and the verdict below it.
fn probed(drawn: &mut Drawn, axis: Axis, before: (u64, u64), probe: &Probe, y: u64) {
    let (left, wide) = axis.range(before);
    let mut out = String::new();
    let parts = [(before.0, probe.left.0.saturating_sub(1)), (probe.left.1.saturating_add(1), before.1)];
    for part in parts.into_iter().filter(|(from, to)| from <= to && (*from, *to) != before) {
        let (left, wide) = axis.range(part);
        out.push_str(&hatch((left, y * 10), wide, HIGH));
    }
    drawn.path("rule", &block((left, y * 10), wide, HIGH), Some("the ticks before the probe"));
    drawn.path("unknown", &out, Some("left out by the probe"));
    let middle = axis.range((probe.tick, probe.tick));
    let middle = middle.0 + middle.1 / 2;
    drawn.path("mark", &format!("M{} {}v16", tenths(middle), y - 2), Some("the probe"));
    let left = match probe.left {
        (from, to) if from == to => format!("left {}", thousands(from)),
        (from, to) => format!("left {}..{}", thousands(from), thousands(to)),
    };
    let said = format!("tick {} {}   {left}", thousands(probe.tick), words(&probe.verdict).1);
    let class = if probe.verdict == Verdict::Violation { "bad" } else { "" };
    let most = RIGHT.saturating_sub(said.len() as u64 * 8);
    drawn.words(class, ((middle / 10).clamp(LEFT, most.max(LEFT)), y + 25), &said, 60);
}
