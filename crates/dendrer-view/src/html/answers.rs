//! The sections of a page, in their order: each asks its question of the bundle.

use std::sync::Arc;

use dendrer::address::Address;
use dendrer::ask::bisect::gather::BisectFound;
use dendrer::ask::bisect::question::{BisectQuestion, BisectReply, BisectReplyKind};
use dendrer::ask::diff::question::{DiffQuestion, DiffReply};
use dendrer::ask::log::question::{LogQuestion, OpenedLog};
use dendrer::ask::named::STANDARD;
use dendrer::ask::timeline::TimelineReply;
use dendrer::ask::timeline::question::TimelineQuestion;
use dendrer::bundle::Opened;
use dendrer::care::verify::question::{VerifyOutcome, verify_bundle};
use dendrer::problem::Problem;
use dendrer::source::{Asked as _, Desk as _, QuestionPlace, StoreDesk};
use dendrer::trust::Trust;
use dendrer::verify::VerifyTerms;
use dendrer_object::{Code, RunName};

use super::terms::{FILE, HtmlTerms};
use super::ticks::{Ticks, shown_ranges};
use super::words::Html;
use crate::answer::{Answer as _, ItemAnswer as _, Line, Page, Style};
use crate::bisect::BisectReplyShown;
use crate::diff::{DiffAnswer, DiffForm, DiffFound};
use crate::draw::Frame;
use crate::draw::svg::markup;
use crate::head::caveats;
use crate::timeline::mark_words;
use crate::verify::VerifyAnswer;
use crate::{count, draw, quote, thousands};

/// The predicate whose verdicts every timeline of a page has.
const COMPLIANT: &str = "kernel.policy_compliant";

/// A page while its questions are asked.
pub(super) struct Answers<'a> {
    pub(super) place: &'a QuestionPlace,
    pub(super) trust: &'a Arc<dyn Trust>,
    pub(super) terms: &'a HtmlTerms,
    pub(super) html: Html,
    /// How many pictures there are so far.
    pub(super) figures: usize,
}

/// The verdict on a bundle, and the key that signed it.
pub(super) struct Signed {
    /// The lines of the verification; empty if the file has no bundle.
    verdict: Vec<Line>,
    /// The key that the log names.
    key: String,
    /// How many records the log has.
    size: u64,
}

impl Signed {
    /// Verifies a bundle, if the file has it.
    pub(super) fn of(opened: &Opened, trust: &dyn Trust, has_bundle: bool) -> Result<Signed, Problem> {
        let mut verdict = Vec::new();
        if has_bundle {
            let log = verify_bundle(&Address::parse(FILE)?, opened, &VerifyTerms::default(), None, trust)?;
            let outcomes = [VerifyOutcome::Verified(Box::new(log))];
            verdict = VerifyAnswer { outcomes: &outcomes, is_list: false }.lines(&Page::WIDE);
        }
        Ok(Signed { verdict, key: opened.bundle.key.clone(), size: opened.bundle.size })
    }
}

/// A run of a page, and the ticks of it that are shown.
struct ShownRun {
    log: OpenedLog,
    /// The address of the run in the bundle.
    address: String,
    from: u64,
    to: u64,
    /// The place in the page, from 0.
    number: usize,
}

impl Answers<'_> {
    fn desk(&self) -> StoreDesk<'_> {
        StoreDesk::new(self.place, self.trust)
    }

    /// Writes all sections.
    pub(super) fn page(&mut self, title: &str, signed: &Signed) -> Result<(), Problem> {
        let runs: Vec<RunName> = self.terms.runs.clone();
        let runs = runs.iter().enumerate().map(|(number, run)| self.run(run, number));
        let runs: Vec<ShownRun> = runs.collect::<Result<_, _>>()?;
        self.html.raw("<header>\n");
        self.html.element("h1", "", &quote::escape(title));
        if !self.terms.has_bundle {
            for run in &runs {
                let tip = format!("tip of {}: {}", run.log.trace.name(), run.log.trace.summary().head.id);
                self.html.element("p", "alarm", &format!("{tip}; nothing here can be checked"));
            }
        }
        self.html.raw(TOOLS);
        self.html.raw("</header>\n<main>\n");
        self.verdict(signed);
        for run in &runs {
            if runs.len() > 1 {
                self.html.element("h2", "run", run.log.trace.name().as_str());
            }
            self.answers(run)?;
            let timeline = self.timeline(run)?;
            self.ticks(run, &timeline)?;
            self.diff(run)?;
        }
        self.checking(&runs);
        self.html.raw("</main>\n");
        Ok(())
    }

    /// Opens a run and finds its ticks.
    fn run(&self, run: &RunName, number: usize) -> Result<ShownRun, Problem> {
        let address = format!("{FILE}#{run}");
        let question = LogQuestion { run: Some(address.clone()), ..LogQuestion::default() };
        let log = question.ask(&mut self.desk())?;
        let trace = &log.trace;
        let (mut from, mut to) = (1.min(trace.tip()), trace.tip());
        if let Some((first, last)) = &self.terms.range {
            (from, to) = (first.tick(trace)?.max(from), last.tick(trace)?);
        }
        if from > to {
            let message = format!("--range begins at tick {from} of {run} and ends before it, at {to}");
            return Err(Problem::new(Code::E0106, message).note("nothing was written"));
        }
        Ok(ShownRun { log, address, from, to, number })
    }

    fn begin(&mut self, title: &str) {
        self.html.raw("<details open><summary><h2>");
        self.html.raw(&markup(title));
        self.html.raw("</h2></summary>\n");
    }

    fn end(&mut self) {
        self.html.raw("</details>\n");
    }

    /// Writes the verdict, and the key that signed.
    fn verdict(&mut self, signed: &Signed) {
        self.begin("Verdict");
        match signed.verdict.is_empty() {
            false => self.html.lines(&signed.verdict),
            true => {
                self.html.element("p", "alarm", "The bundle was left out, so nothing here can be checked.");
            }
        }
        let (key, records) = (quote::escape(&signed.key), count(signed.size, "record", "records"));
        self.html.element("p", "", &format!("Signed by {key}, for a log of {records}."));
        self.end();
    }

    /// Writes the standard questions and those that were asked.
    fn answers(&mut self, run: &ShownRun) -> Result<(), Problem> {
        self.begin("What went wrong first");
        let of = |question: BisectQuestion| BisectQuestion { run: run.address.clone(), ..question };
        let standard = of(BisectQuestion { all_of: Some(STANDARD.to_owned()), ..BisectQuestion::default() });
        let reply = self.bisect(&standard, false)?;
        let HtmlTerms { holds, predicate, .. } = self.terms;
        let first = reply.as_ref().and_then(first_violated);
        if let Some(first) = first.filter(|_| holds.is_empty() && predicate.is_empty()) {
            self.bisect(&of(first), true)?;
        }
        for text in holds {
            self.bisect(
                &of(BisectQuestion { holds: vec![text.clone()], ..BisectQuestion::default() }),
                true,
            )?;
        }
        for name in predicate {
            self.bisect(
                &of(BisectQuestion { predicate: Some(name.clone()), ..BisectQuestion::default() }),
                true,
            )?;
        }
        self.end();
        Ok(())
    }

    /// Asks for an onset, and writes the answer; with its picture if `is_drawn`.
    fn bisect(&mut self, question: &BisectQuestion, is_drawn: bool) -> Result<Option<BisectReply>, Problem> {
        let mut desk = self.desk();
        let asked = question.ask(&mut desk);
        let head = desk.head();
        let Some(reply) = self.known(asked)? else { return Ok(None) };
        let shown = BisectReplyShown { reply: &reply, question, recorded: &[], is_paper: false };
        let mut lines = shown.lines(&Page::WIDE);
        lines.extend(reply.problem.as_ref().map(|problem| {
            Line::styled(Style::Bad, format!("error[{}]: {}", problem.code, quote::escape(&problem.message)))
        }));
        // The first answer has the caveats of all of them.
        lines.extend(if is_drawn { Vec::new() } else { caveats(None, &head) });
        self.html.lines(&lines);
        if is_drawn {
            self.figure("probes", &draw::bisect::picture(&reply, Frame::Part));
        }
        Ok(Some(reply))
    }

    /// Returns a reply, or writes that it is not known: a value that it reads was erased or withheld.
    fn known<T>(&mut self, asked: Result<T, Problem>) -> Result<Option<T>, Problem> {
        match asked {
            Err(problem) if problem.code == Code::E0311 => {
                let words = format!("UNKNOWN  {}", quote::escape(&problem.message));
                self.html.lines(&[Line::styled(Style::Warn, words)]);
                Ok(None)
            }
            asked => asked.map(Some),
        }
    }

    /// Writes a picture, which a narrow page scrolls.
    fn figure(&mut self, name: &str, picture: &str) {
        self.figures += 1;
        let number = self.figures;
        self.html.raw(&format!(
            "<div class=\"figure\" role=\"region\" tabindex=\"0\" aria-label=\"picture {number} {name}\">\n"
        ));
        self.html.raw(picture);
        self.html.raw("</div>\n");
    }

    /// Writes the timeline, and its marks as a list.
    fn timeline(&mut self, run: &ShownRun) -> Result<TimelineReply, Problem> {
        self.begin("Timeline");
        let mut predicate = vec![COMPLIANT.to_owned()];
        predicate.extend(self.terms.predicate.iter().filter(|name| *name != COMPLIANT).cloned());
        let question = TimelineQuestion {
            run: run.address.clone(),
            from: Some(dendrer::address::Position::Tick(run.from)),
            to: Some(dendrer::address::Position::Tick(run.to)),
            bins: None,
            predicate,
            holds: self.terms.holds.clone(),
        };
        let asked = question.ask(&mut self.desk());
        let reply = match self.known(asked)? {
            Some(reply) => reply,
            None => {
                let counts = TimelineQuestion { predicate: Vec::new(), holds: Vec::new(), ..question };
                counts.ask(&mut self.desk())?
            }
        };
        self.figure("timeline", &draw::timeline::picture(&reply, Frame::Part));
        if !reply.marks.is_empty() {
            let prefix = prefix(run.number);
            self.html.raw("<ol class=\"ticks\">\n");
            for mark in &reply.marks {
                let (tick, words) = (thousands(mark.tick), markup(mark_words(mark).trim_end()));
                let kind = mark.kind.as_str();
                self.html.raw(&format!(
                    "<li><b><a href=\"#{prefix}t{}\">{tick}</a></b> {kind} {words}</li>\n",
                    mark.tick
                ));
            }
            self.html.raw("</ol>\n");
        }
        if !reply.left_out.is_empty() {
            let rest: Vec<String> = reply.left_out.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
            self.html.element("p", "", &format!("Not listed: {}.", rest.join(", ")));
        }
        self.end();
        Ok(reply)
    }

    /// Writes the transcript, and the changes of each tick in it.
    fn ticks(&mut self, run: &ShownRun, timeline: &TimelineReply) -> Result<(), Problem> {
        let ranges = shown_ranges((run.from, run.to), timeline.marks.iter().map(|mark| mark.tick));
        let ticks = Ticks::of(&run.log, (run.from, run.to), &ranges, run.number)?;
        for (title, list, note) in [
            ("Transcript", &ticks.said, None),
            ("State changes", &ticks.wrote, (ticks.idle > 0).then_some(ticks.idle)),
        ] {
            self.begin(title);
            self.html.raw("<ol class=\"ticks found\">\n");
            self.html.raw(list.text());
            self.html.raw("</ol>\n");
            if let Some(idle) = note {
                let words = count(idle, "tick that is shown", "ticks that are shown");
                self.html.element("p", "dim", &format!("{words} changed nothing."));
            }
            self.end();
        }
        Ok(())
    }

    /// Writes the comparison with the other run.
    fn diff(&mut self, run: &ShownRun) -> Result<(), Problem> {
        let Some(with) = &self.terms.with else { return Ok(()) };
        let question = DiffQuestion {
            run_a: run.address.clone(),
            run_b: format!("{FILE}#{with}"),
            ..DiffQuestion::default()
        };
        let asked = question.ask(&mut self.desk());
        let Some(DiffReply::Runs(compared)) = self.known(asked)? else { return Ok(()) };
        let mut answer = DiffAnswer::new(DiffForm::of(&question, compared.terms.align));
        let mut lines = Vec::new();
        let report = compared.each(&mut |pair| {
            lines.extend(answer.item_lines(pair, &Page::WIDE));
            Ok(())
        })?;
        answer.ends(DiffFound::of(&compared, report));
        lines.extend(answer.kept_lines(&Page::WIDE));
        lines.extend(answer.last_lines(&Page::WIDE));
        self.begin(&format!("Compared with {with}"));
        self.html.lines(&lines);
        self.end();
        Ok(())
    }

    /// Writes the commands that check the file, and names what they do not check.
    fn checking(&mut self, runs: &[ShownRun]) {
        self.begin("How to check it");
        if self.terms.has_bundle {
            self.html.element(
                "p",
                "",
                "The records are in this file. With the program dendrer, verify checks them; import takes them into a store, where \
                 they can be forked.",
            );
            let mut lines = vec![Line::from(format!("dendrer verify {FILE}"))];
            lines.extend(runs.iter().map(|run| Line::from(format!("dendrer log '{}'", run.address))));
            lines.push(Line::from(format!("dendrer import {FILE}")));
            self.html.lines(&lines);
            self.html.element(
                "p",
                "",
                "The page around the records is not checked: verify says nothing about its words. Ask the records themselves.",
            );
        } else {
            self.html.element("p", "", "Ask the sender for the bundle, and compare its tip with this one:");
        }
        for run in runs {
            let tip = format!(
                "{}  tick {}  {}",
                run.log.trace.name(),
                run.log.trace.tip(),
                run.log.trace.summary().head.id
            );
            self.html.lines(&[Line::from(tip)]);
        }
        self.end();
    }
}

/// The beginning of the ids of a run.
fn prefix(number: usize) -> String {
    if number == 0 { String::new() } else { format!("r{}", number + 1) }
}

/// Returns the question that is violated first, to show where that came from; `None` if none is violated.
fn first_violated(reply: &BisectReply) -> Option<BisectQuestion> {
    let BisectReplyKind::Several(_, all) = &reply.answer else { return None };
    let violated = all.iter().filter_map(|found| Some((found.report.onset()?, found)));
    let (_, first) = violated.min_by_key(|(tick, _)| *tick)?;
    question_of(first)
}

/// Returns the question that asks for a predicate by its name or its text.
fn question_of(found: &BisectFound) -> Option<BisectQuestion> {
    let predicate = found.question.predicate()?;
    if predicate.name() != "expression" {
        return Some(BisectQuestion {
            predicate: Some(predicate.name().to_owned()),
            ..BisectQuestion::default()
        });
    }
    let text = predicate.words().strip_prefix("must hold ")?.to_owned();
    Some(BisectQuestion { holds: vec![text], ..BisectQuestion::default() })
}

/// Controls of the script; hidden without it.
const TOOLS: &str = "<form id=\"tools\" role=\"search\" hidden>\n\
<label>Find <input id=\"find\" type=\"search\" autocomplete=\"off\"></label>\n\
<label>Tick <input id=\"tick\" type=\"range\" min=\"0\" value=\"0\"></label>\n\
<output id=\"at\" for=\"tick\"></output>\n\
<button type=\"button\" id=\"fold\">Fold all</button>\n\
</form>\n";
