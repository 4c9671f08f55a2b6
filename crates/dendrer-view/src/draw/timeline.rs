//! The picture of a timeline: all ticks with their worst sign, a strip of verdicts for each predicate, a lane for each agent.
//!
//! A mark is a bin. It has the shape of a transition, or the height of a count. An unknown verdict is
//! hatched and never drawn as ok.

use dendrer::ask::timeline::{TimelineBin, TimelineLane, TimelineReply, TimelineVerdicts};

use super::svg::{Drawn, Frame, LEFT, LINE, NAME_COLUMNS, RIGHT, Scale, WIDTH, block, hatch, tenths};
use crate::layout::cut;
use crate::timeline::mark_words;
use crate::{count, quote, thousands};

/// How many marks are listed below the picture; the others are counted.
const LISTED: usize = 8;
/// The radius of a shape, in tenths of a unit.
const R: u64 = 36;
/// How many numbers the axis has at most.
const NUMBERS: u64 = 9;

/// The shape of a mark, with its word. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Gap,
    Refused,
    Denied,
    Failed,
    Odd,
    Closed,
    Unknown,
    Merge,
    Fork,
    Saw,
    Plan,
    Call,
    Decision,
    Other,
}

const SIGNS: [Sign; 14] = [
    Sign::Gap,
    Sign::Refused,
    Sign::Denied,
    Sign::Failed,
    Sign::Odd,
    Sign::Closed,
    Sign::Unknown,
    Sign::Merge,
    Sign::Fork,
    Sign::Saw,
    Sign::Plan,
    Sign::Call,
    Sign::Decision,
    Sign::Other,
];

impl Sign {
    /// The signs of a bin, the worst first.
    fn all(bin: &TimelineBin) -> impl Iterator<Item = Sign> {
        let counts = [
            bin.gaps,
            bin.refusals,
            bin.denied,
            bin.failed,
            bin.anomalies,
            bin.closed,
            bin.unknown,
            bin.merges,
            bin.forks,
        ];
        SIGNS.into_iter().zip(counts).filter(|(_, count)| *count > 0).map(|(sign, _)| sign)
    }

    /// The sign of the one transition of a bin. A refusal is of none: all ticks have it.
    fn of_tick(bin: &TimelineBin) -> Sign {
        let worst = Sign::all(bin).find(|sign| *sign < Sign::Closed && *sign != Sign::Refused);
        worst.unwrap_or_else(|| match bin.types.keys().next().map(|name| &**name) {
            Some("observation.add") => Sign::Saw,
            Some("plan.update") => Sign::Plan,
            Some("action.request" | "action.result") => Sign::Call,
            Some("policy.decision") => Sign::Decision,
            _ => Sign::Other,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Sign::Gap => "gap",
            Sign::Refused => "refused",
            Sign::Denied => "denied",
            Sign::Failed => "failed",
            Sign::Odd => "anomaly",
            Sign::Closed => "erased or withheld",
            Sign::Unknown => "unknown places",
            Sign::Merge => "merge",
            Sign::Fork => "fork",
            Sign::Saw => "saw",
            Sign::Plan => "plan",
            Sign::Call => "call, answer",
            Sign::Decision => "allow",
            Sign::Other => "other",
        }
    }

    fn class(self) -> &'static str {
        if self < Sign::Closed { "odd" } else { "mark" }
    }

    /// The path of the shape around a point, in tenths of a unit.
    fn shape(self, (x, y): (u64, u64)) -> String {
        let at = |dx: i64, dy: i64| {
            format!("{} {}", tenths(x.saturating_add_signed(dx)), tenths(y.saturating_add_signed(dy)))
        };
        let strokes = |list: &[[i64; 4]]| {
            list.iter().map(|[a, b, c, d]| format!("M{}L{}", at(*a, *b), at(*c, *d))).collect::<String>()
        };
        let ring = |r: u64| {
            let (r, d) = (tenths(r), tenths(2 * r));
            format!("M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0", tenths(x - R), tenths(y))
        };
        let frame = || block((x - R, y - R), 2 * R, 2 * R);
        match self {
            Sign::Gap => format!("{}{}", frame(), hatch((x - R, y - R), 2 * R, 2 * R)),
            Sign::Refused => format!("{}{}", ring(R), strokes(&[[-25, -25, 25, 25]])),
            Sign::Denied => {
                strokes(&[[-14, -36, -14, 36], [14, -36, 14, 36], [-36, -14, 36, -14], [-36, 14, 36, 14]])
            }
            Sign::Failed => strokes(&[[-32, -32, 32, 32], [-32, 32, 32, -32]]),
            Sign::Odd => strokes(&[[0, -40, 0, 12], [0, 26, 0, 38]]),
            Sign::Closed => frame(),
            Sign::Unknown => strokes(&[
                [-20, -36, 20, -36],
                [20, -36, 20, -4],
                [20, -4, 0, -4],
                [0, -4, 0, 14],
                [0, 28, 0, 40],
            ]),
            Sign::Merge => strokes(&[[-36, -30, 0, 0], [-36, 30, 0, 0], [0, 0, 36, 0]]),
            Sign::Fork => strokes(&[[-36, 0, 0, 0], [0, 0, 36, -30], [0, 0, 36, 30]]),
            Sign::Saw => ring(R),
            Sign::Plan => strokes(&[[-24, -32, 26, 0], [26, 0, -24, 32]]),
            Sign::Call => strokes(&[[-36, 0, 36, 0], [0, -36, 0, 36]]),
            Sign::Decision => strokes(&[[-34, -14, 34, -14], [-34, 14, 34, 14]]),
            Sign::Other => strokes(&[[0, -26, 0, 26]]),
        }
    }
}

/// A picture while it is drawn.
struct Picture<'r> {
    reply: &'r TimelineReply,
    scale: Scale,
    drawn: Drawn,
    /// The signs that are in the picture.
    used: Vec<Sign>,
}

/// Draws a timeline.
pub fn picture(reply: &TimelineReply, frame: Frame) -> String {
    let scale = Scale::new(reply.items.len() as u64);
    let mut picture = Picture { reply, scale, drawn: Drawn::default(), used: Vec::new() };
    let title = title(reply);
    picture.drawn.line("head", &title);
    picture.drawn.line("dim", &mark_line(reply.width));
    picture.all_ticks();
    reply.verdicts.iter().enumerate().for_each(|(at, one)| picture.verdicts(at, one));
    reply.lanes.iter().enumerate().for_each(|(at, lane)| picture.lane(at, lane));
    picture.axis();
    picture.legend();
    // A page lists the marks with links.
    if frame == Frame::File {
        picture.marks();
    }
    picture.drawn.framed(&title, &about(reply), frame)
}

fn title(reply: &TimelineReply) -> String {
    format!("{}   ticks {}..{}", reply.trace.name(), thousands(reply.from), thousands(reply.to))
}

fn mark_line(width: u64) -> String {
    match width {
        1 => "1 mark = 1 tick".to_owned(),
        width => format!("1 mark = {} ticks", thousands(width)),
    }
}

/// Describes the picture in words.
fn about(reply: &TimelineReply) -> String {
    let sum = |read: fn(&TimelineBin) -> u64| reply.items.iter().map(read).sum::<u64>();
    let counts = [
        (sum(|bin| bin.gaps), Sign::Gap),
        (sum(|bin| bin.refusals), Sign::Refused),
        (sum(|bin| bin.denied), Sign::Denied),
        (sum(|bin| bin.failed), Sign::Failed),
        (sum(|bin| bin.anomalies), Sign::Odd),
        (sum(|bin| bin.closed), Sign::Closed),
        (sum(|bin| bin.unknown), Sign::Unknown),
    ];
    let mut parts = vec![
        count(sum(|bin| bin.transitions), "transition", "transitions"),
        count(reply.lanes.len() as u64, "lane", "lanes"),
        mark_line(reply.width),
    ];
    parts.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, sign)| format!("{}: {}", sign.word(), thousands(*count))),
    );
    parts.extend(
        reply.verdicts.iter().map(|one| format!("{}: {}", quote::escape(&one.predicate), verdict_words(one))),
    );
    format!("{}.", parts.join("; "))
}

/// Returns the words for the strip of a predicate.
fn verdict_words(verdicts: &TimelineVerdicts) -> String {
    let is_unknown = verdicts.items.iter().flatten().any(|word| *word == "uncertain");
    match verdicts.onset {
        Some(tick) => format!("first violated at tick {} ({})", thousands(tick), verdicts.certainty()),
        None if is_unknown => "unknown at some ticks, violated at none that is known".to_owned(),
        None => "never violated".to_owned(),
    }
}

impl Picture<'_> {
    /// Writes a name in front of a row.
    fn name(&mut self, name: &str, y: u64) {
        self.drawn.words("", (12, y), &quote::escape(name), NAME_COLUMNS);
    }

    /// Adds the shapes of one row, all of a kind in one path.
    fn shapes(&mut self, shapes: &[(Sign, u64)], y: u64) {
        for sign in SIGNS {
            let of_sign = shapes.iter().filter(|(found, _)| *found == sign);
            let path: String =
                of_sign.map(|(_, column)| sign.shape((self.scale.middle(*column), y))).collect();
            self.drawn.path(sign.class(), &path, Some(sign.word()));
            if !path.is_empty() && !self.used.contains(&sign) {
                self.used.push(sign);
            }
        }
    }

    /// Draws how many transitions each bin has, with its worst sign above.
    fn all_ticks(&mut self) {
        let (items, top) = (&self.reply.items, self.drawn.height * 10);
        let most = items.iter().map(|bin| bin.transitions).max().unwrap_or(0);
        let bars = items
            .iter()
            .enumerate()
            .map(|(at, bin)| bar(self.scale, at as u64, (bin.transitions, most), (top + 320, 140)));
        let bars: String = bars.collect();
        let signs = items.iter().enumerate();
        let signs: Vec<(Sign, u64)> =
            signs.filter_map(|(at, bin)| Some((Sign::all(bin).next()?, at as u64))).collect();
        self.drawn.path("bar", &bars, Some("transitions"));
        self.shapes(&signs, top + 90);
        self.name("all ticks", top / 10 + 28);
        self.drawn.space(40);
    }

    /// Draws the strip of a predicate.
    fn verdicts(&mut self, at: usize, verdicts: &TimelineVerdicts) {
        let words = verdict_words(verdicts);
        let name = cut(&quote::escape(&verdicts.predicate), 72);
        let class = if verdicts.onset.is_some() { "bad" } else { "" };
        self.drawn.line(class, &format!("{}  {name}: {words}", at + 1));
        let top = self.drawn.height * 10;
        let (mut ok, mut violated, mut unknown) = (String::new(), String::new(), String::new());
        for (left, wide, word) in self.stretches(&verdicts.items) {
            match word {
                "ok" => ok.push_str(&block((left, top + 90), wide, 30)),
                "violation" => violated.push_str(&block((left, top), wide, 120)),
                _ => {
                    unknown.push_str(&block((left, top), wide, 120));
                    unknown.push_str(&hatch((left, top), wide, 120));
                }
            }
        }
        self.drawn.path("ok", &ok, Some("ok"));
        self.drawn.path("violated", &violated, Some("violated"));
        self.drawn.path("unknown", &unknown, Some("unknown"));
        self.name(&format!("verdict {}", at + 1), self.drawn.height + 11);
        self.drawn.space(18);
    }

    /// Returns the stretches of equal verdicts: left edge, width and word. A bin with several has a part for each, in order.
    fn stretches(&self, items: &[Vec<&'static str>]) -> Vec<(u64, u64, &'static str)> {
        let mut found: Vec<(u64, u64, &'static str)> = Vec::new();
        for (at, words) in items.iter().enumerate() {
            let (left, right) = (self.scale.left(at as u64), self.scale.left(at as u64 + 1));
            let parts = words.len() as u64;
            for (part, word) in words.iter().enumerate() {
                let edge = |part: u64| left + (right - left) * part / parts;
                let (from, to) = (edge(part as u64), edge(part as u64 + 1));
                match found.last_mut() {
                    Some((begin, wide, last)) if last == word && *begin + *wide == from => {
                        *wide = to - *begin
                    }
                    _ => found.push((from, to - from, word)),
                }
            }
        }
        found
    }

    /// Draws the lane of an agent.
    fn lane(&mut self, at: usize, lane: &TimelineLane) {
        let name = match (&lane.agent, lane.agents) {
            (Some(agent), _) => agent.to_string(),
            (None, 1) => "(no agent)".to_owned(),
            (None, agents) => format!("{agents} more"),
        };
        let middle = self.drawn.height * 10 + 90;
        let line = format!("M{LEFT} {}H{RIGHT}", tenths(middle));
        self.name(&name, self.drawn.height + 13);
        let here = |bin: &TimelineBin| bin.lanes.get(at).copied().unwrap_or(0);
        if self.reply.width == 1 {
            self.drawn.path("rule", &line, None);
            let bins = self.reply.items.iter().enumerate().filter(|(_, bin)| here(bin) > 0);
            let bins: Vec<(usize, &TimelineBin)> = bins.collect();
            let signs: Vec<(Sign, u64)> =
                bins.iter().map(|(at, bin)| (Sign::of_tick(bin), *at as u64)).collect();
            self.shapes(&signs, middle);
            let wrote = bins.iter().filter(|(_, bin)| bin.changes > 0);
            let wrote: String = wrote.map(|(at, _)| self.wrote(*at as u64, middle + 55)).collect();
            self.drawn.path("full", &wrote, Some("wrote the state"));
        } else {
            let most = self.reply.items.iter().map(here).max().unwrap_or(0);
            let bars = self.reply.items.iter().enumerate();
            let bars: String = bars
                .map(|(at, bin)| bar(self.scale, at as u64, (here(bin), most), (middle + 70, 140)))
                .collect();
            self.drawn.path("bar", &bars, None);
        }
        self.drawn.space(LINE);
    }

    /// The stroke under a transition that wrote the state.
    fn wrote(&self, column: u64, y: u64) -> String {
        block((self.scale.middle(column) - R, y), 2 * R, 15)
    }

    /// Draws the numbers of ticks.
    fn axis(&mut self) {
        let TimelineReply { from, to, width, .. } = *self.reply;
        let step = step((to - from + 1).div_ceil(NUMBERS));
        let y = self.drawn.height + 4;
        let mut path = format!("M{LEFT} {y}H{RIGHT}");
        let mut tick = from.div_ceil(step).saturating_mul(step);
        while tick <= to {
            let x = self.scale.middle(tick / width - from / width);
            path.push_str(&format!("M{} {y}v4", tenths(x)));
            let text = thousands(tick);
            let wide = text.len() as u64 * 15 / 2;
            let left = (x / 10).saturating_sub(wide / 2).min((WIDTH - 2).saturating_sub(wide));
            self.drawn.words("dim", (left, y + 16), &text, 26);
            let Some(next) = tick.checked_add(step) else { break };
            tick = next;
        }
        self.drawn.path("rule", &path, None);
        self.name("tick", y + 16);
        self.drawn.space(28);
    }

    /// Names the signs that were drawn.
    fn legend(&mut self) {
        self.used.sort_unstable();
        let (mut x, mut y) = (16, self.drawn.height + 12);
        let mut named: Vec<(Option<Sign>, &str)> =
            self.used.iter().map(|sign| (Some(*sign), sign.word())).collect();
        named.extend((self.reply.width == 1).then_some((None, "wrote the state")));
        for (sign, word) in named {
            let wide = 14 + word.len() as u64 * 8 + 14;
            if x + wide > RIGHT {
                (x, y) = (16, y + LINE);
            }
            match sign {
                Some(sign) => self.drawn.path(sign.class(), &sign.shape((x * 10, y * 10 - 40)), None),
                None => self.drawn.path("full", &block((x * 10 - R, y * 10 - 15), 2 * R, 15), None),
            }
            self.drawn.words("dim", (x + 10, y), word, 26);
            x += wide;
        }
        self.drawn.height = y + 8;
    }

    /// Lists the worst marks, and counts the others.
    fn marks(&mut self) {
        for mark in self.reply.marks.iter().take(LISTED) {
            let words =
                format!("tick {}  {}  {}", thousands(mark.tick), mark.kind.as_str(), mark_words(mark));
            self.drawn.line("", words.trim_end());
        }
        let listed = self.reply.marks.len().saturating_sub(LISTED) as u64;
        let rest = listed + self.reply.left_out.values().sum::<u64>();
        if rest > 0 {
            self.drawn.line("dim", &format!("{} not listed", count(rest, "more mark", "more marks")));
        }
    }
}

/// The bar of a count over a base line; at least one unit high for one transition.
fn bar(scale: Scale, column: u64, (count, most): (u64, u64), (base, high): (u64, u64)) -> String {
    if count == 0 {
        return String::new();
    }
    let high = (high * count / most.max(1)).max(10);
    let wide = scale.wide();
    // A bar touches its neighbours only if it is too narrow for a gap.
    let gap = if wide >= 30 { 10 } else { 0 };
    block((scale.left(column), base - high), (wide - gap).max(8), high)
}

/// The least of 1, 2, 5, 10, 20, .. that is not under a number.
fn step(least: u64) -> u64 {
    let mut step: u64 = 1;
    loop {
        for times in [1, 2, 5] {
            if step.saturating_mul(times) >= least {
                return step.saturating_mul(times);
            }
        }
        step = step.saturating_mul(10);
    }
}
