//! The question of `bisect` as data, and every decision that its answer depends on.
//!
//! [`BisectQuestion::ask`] resolves names and ranges, refuses what would be a wrong tick, and compares with the expected onset,
//! so the program, the library and every binding give one answer.

use dendrer_kernel::predicate::{Polarity, Predicate, Window};
use dendrer_object::question;
use dendrer_object::text::{list, nearest};
use dendrer_object::{Code, RunName, TypeName, Value};

use crate::address::{Address, Position};
use crate::ask::bisect::gather::{BisectAnswer, BisectDetails, BisectFound, HardFound, RegressionAnswer};
use crate::ask::bisect::{self, BisectOutcome, BisectReport, BisectSubject, Range, bisect_each};
use crate::ask::diff::place::ignored_place;
use crate::ask::diff::{DiffAlign, DiffTerms};
use crate::ask::named::{self, NamedPredicate};
use crate::ask::reasons::reasons_list;
use crate::ask::regression::Metric;
use crate::casebook::diagnosis::DiagnosisClass;
use crate::casebook::{Bisected, Place};
use crate::error::Error;
use crate::problem::Problem;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, QuestionRun, in_order};

question! {
    /// Asks for the first tick at which something is violated
    pub struct BisectQuestion: "bisect-question" {
        /// The run, as an address
        pub run: String,
        /// A registered predicate, or an expression that names the violation
        pub predicate: Option<String>,
        /// Expressions that must be true; each of several has an answer of its own
        pub holds: Vec<String>,
        /// A kind of anomaly
        pub anomaly: Option<String>,
        /// The type whose first deny or escalate after an allow is asked for
        pub policy_flip: Option<String>,
        /// The run from which the first transition that differs is asked for, as an address
        pub divergence: Option<String>,
        /// The places that a divergence leaves out
        pub ignore: Vec<String>,
        /// The way in which a divergence lines transitions up
        pub align: Option<DiffAlign>,
        /// The score whose first fall is asked for
        pub regression: Option<String>,
        /// A pack, or a list of predicates as JSON; every predicate of it is asked. `standard` is a word: the predicates and violations of
        /// the pack in force, the policy, anomalies, failed calls and denied ones
        pub all_of: Option<String>,
        /// Whether the first violation is asked for even if the predicate recovers from it
        pub lift: bool,
        /// The state of a transition that an expression looks at
        pub window: Option<Window>,
        /// The first tick
        pub from: Option<Position>,
        /// The last tick
        pub to: Option<Position>,
        /// Whether the onset is not followed forward
        pub no_chain: bool,
        /// The number of transitions of the causal chain; 20 if not given
        pub chain_limit: Option<u64>,
        /// Whether every tick is judged as well, and compared
        pub scan: bool,
        /// The tick that the onset must be
        pub expect_onset: Option<u64>,
        /// Whether the smallest set of earlier transitions is searched that the onset depends on
        pub contributors: bool,
        /// The class that a person decided on
        pub diagnosis: Option<DiagnosisClass>,
        /// Whether the answer is written into the casebook
        pub record: bool,
    }
}

/// The number of transitions of the causal chain if none is given.
const CHAIN_LIMIT: u64 = 20;

/// The question that is offered if a run has no score.
const INVARIANT: &str = "kernel.anomaly_free";

/// The answer to a bisect.
#[derive(Debug, Clone)]
pub struct BisectReply {
    /// The run.
    pub trace: Trace,
    /// The answer.
    pub answer: BisectReplyKind,
    /// The problem with which the answer ends: it is not what was expected, or cannot be relied on.
    pub problem: Option<Problem>,
}

/// The kinds of answers to a bisect.
#[derive(Debug, Clone)]
pub enum BisectReplyKind {
    /// The answer to one question.
    One(Box<BisectAnswer>),
    /// The answers to several.
    Several(RunName, Vec<BisectFound>),
    /// The fall of a score.
    Regression(Box<RegressionAnswer>),
}

impl BisectReply {
    /// Returns the finding that the casebook keeps, of the document of the answer; `None` if no single onset can be relied on.
    ///
    /// # Errors
    ///
    /// An error if the records at the ends of the answer cannot be read.
    pub fn finding(&self, document: &Value) -> Result<Option<Bisected>, Error> {
        let BisectReplyKind::One(answer) = &self.answer else { return Ok(None) };
        if answer.is_refused() {
            return Ok(None);
        }
        let report = &answer.found.report;
        let mut members = document.as_object().cloned().unwrap_or_default();
        let chain = members.remove("chain").filter(|chain| *chain != Value::Null);
        Ok(Some(Bisected {
            run: Place::of(&self.trace, Some(report.high.0))?,
            onset: report.onset().map(|tick| Place::of(&self.trace, Some(tick))).transpose()?,
            answer: Value::Object(members),
            chain,
        }))
    }
}

impl Asked for BisectQuestion {
    type Reply = BisectReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<BisectReply, Problem> {
        self.check()?;
        let address = Address::parse(&self.run)?;
        let source = desk.judged(&address)?;
        if self.record && address.bundle.is_some() {
            return Err(Problem::new(Code::E0601, "a bundle has no casebook to write into")
                .note("--record writes into the store that the run is recorded in"));
        }
        let asked = desk.run_in(source, &address, "bisect")?;
        let (trace, address) = (asked.trace.clone(), &asked.address);
        desk.asks(&trace);
        let from = self.from.as_ref().map_or(Ok(0), |pos| pos.tick(&trace))?;
        let to = self.to.as_ref().or(address.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
        in_order(from, to)?;
        let range = Range { scan: self.scan, ..Range::new(from, to) };
        if let Some(predicates) = self.several(&trace, desk)? {
            let found = self.each(&trace, predicates, &range)?;
            let answer = BisectReplyKind::Several(trace.name().clone(), found);
            return Ok(BisectReply { trace, answer, problem: None });
        }
        if let Some(metric) = &self.regression {
            return self.regression(trace, metric, &range);
        }
        let (subject, named) = match &self.divergence {
            Some(other) => (self.divergence(&asked, (from, to), other, desk)?, None),
            None => self.subject(&trace)?,
        };
        let since = named.as_ref().and_then(|named| named.since);
        let (report, since) = self.search(&trace, &subject, range, since, desk)?;
        let details = BisectDetails {
            contributors: self.contributors,
            chain_limit: if self.no_chain { 0 } else { self.chain_limit.unwrap_or(CHAIN_LIMIT) as usize },
            may_fork: address.bundle.is_none(),
        };
        let mut answer = BisectAnswer::of(&trace, subject, report, details)?;
        answer.since = since;
        if let Some(named) = named {
            (answer.registered, answer.other_in_pack) = (named.registered, named.other_in_pack);
        }
        answer.decided = match (self.diagnosis, &answer.offer) {
            (Some(_), None) => return Err(nothing_to_diagnose()),
            (Some(class), Some(_)) => Some(class),
            (None, offer) => desk.decide(offer.as_ref())?,
        };
        let refused = self.refusal(&trace, &answer);
        let problem = refused.or_else(|| self.unexpected(&answer.found.report));
        Ok(BisectReply { trace, answer: BisectReplyKind::One(Box::new(answer)), problem })
    }
}

impl BisectQuestion {
    /// Whether several predicates are asked at once.
    pub fn asks_several(&self) -> bool {
        self.all_of.is_some() || self.holds.len() > 1
    }

    /// Returns the flag that names what is asked, and its text.
    pub fn named_text(&self) -> (&'static str, &str) {
        self.forms().into_iter().find_map(|(flag, text)| Some((flag, text?))).unwrap_or(("--predicate", ""))
    }

    fn forms(&self) -> [(&'static str, Option<&str>); 7] {
        [
            ("--holds", self.holds.first().map(String::as_str)),
            ("--predicate", self.predicate.as_deref()),
            ("--anomaly", self.anomaly.as_deref()),
            ("--policy-flip", self.policy_flip.as_deref()),
            ("--divergence", self.divergence.as_deref()),
            ("--regression", self.regression.as_deref()),
            ("--all-of", self.all_of.as_deref()),
        ]
    }

    /// Refuses members that do not go together.
    fn check(&self) -> Result<(), Problem> {
        let refuse = |what: String| Err(Problem::new(Code::E0106, what));
        let given: Vec<&str> =
            self.forms().into_iter().filter_map(|(flag, text)| text.is_some().then_some(flag)).collect();
        match given[..] {
            [_] => {}
            [first, second, ..] => return refuse(format!("{first} and {second} are two questions; ask one")),
            [] => {
                let forms = self.forms().map(|(flag, _)| flag).join(", ");
                return refuse(format!("nothing is asked: give one of {forms}"));
            }
        }
        let several = self.holds.len() > 1;
        let diagnosis = self.diagnosis.is_some();
        let alone =
            [("--contributors", self.contributors), ("--diagnosis", diagnosis), ("--record", self.record)];
        if let Some((flag, _)) = alone.into_iter().find(|(_, given)| *given && several) {
            return refuse(format!("{flag} is for one --holds, and there are several"));
        }
        if several && self.expect_onset.is_some() {
            return refuse("--expect-onset is for one --holds, and there are several".to_owned());
        }
        let needs_divergence = [("--ignore", !self.ignore.is_empty()), ("--align", self.align.is_some())];
        let is_divergence = self.divergence.is_some();
        if let Some((flag, _)) = needs_divergence.into_iter().find(|(_, given)| *given && !is_divergence) {
            return refuse(format!("{flag} is for --divergence"));
        }
        let form = given[0];
        let conflicts: [(&str, bool, &[&str]); 7] = [
            ("--lift", self.lift, &["--regression"]),
            ("--scan", self.scan, &["--regression"]),
            ("--contributors", self.contributors, &["--regression", "--all-of", "--divergence"]),
            ("--diagnosis", diagnosis, &["--regression", "--all-of", "--divergence"]),
            ("--record", self.record, &["--regression", "--all-of"]),
            ("--expect-onset", self.expect_onset.is_some(), &["--all-of"]),
            (
                "--window",
                self.window.is_some(),
                &["--anomaly", "--policy-flip", "--divergence", "--regression", "--all-of"],
            ),
        ];
        match conflicts.into_iter().find(|(_, given, forms)| *given && forms.contains(&form)) {
            Some((flag, ..)) => refuse(format!("{flag} is not for {form}")),
            None => Ok(()),
        }
    }

    /// Bisects over a range. Without a first tick it begins where an extension brought the predicate in, or with the first tick that
    /// has every place that it reads: of the ticks before, nothing can be said.
    fn search(
        &self,
        trace: &Trace,
        subject: &BisectSubject,
        range: Range,
        since: Option<u64>,
        desk: &mut dyn Desk,
    ) -> Result<(BisectReport, Option<u64>), Problem> {
        if self.from.is_some() {
            return Ok((bisect::bisect(trace, subject, &range)?, None));
        }
        let to = range.to;
        match since {
            Some(since) if since > to => {
                let text = self.named_text().1;
                let what = format!(
                    "{text} is part of the contract from tick {since} on, and the range ends at tick {to}"
                );
                Err(Problem::new(Code::E0106, what).note("--from 0 asks of the ticks before, too"))
            }
            Some(since) => {
                desk.note(format!(
                    "note: it is part of the contract from tick {since} on; --from 0 asks of the ticks before"
                ));
                let range = Range { scan: range.scan, ..Range::since(since, to) };
                Ok((bisect::bisect(trace, subject, &range)?, Some(since)))
            }
            None => {
                let report = bisect::bisect(trace, subject, &range)?;
                let Some((since, again)) = bisect::once_there(trace, subject, &report, &range)? else {
                    return Ok((report, None));
                };
                Ok((again, Some(since)))
            }
        }
    }

    /// Bisects by several predicates. A predicate that an extension added is asked from its tick on, and is left out before it.
    fn each(
        &self,
        trace: &Trace,
        predicates: Vec<NamedPredicate>,
        range: &Range,
    ) -> Result<Vec<BisectFound>, Problem> {
        let since_of = |one: &NamedPredicate| one.since.filter(|_| self.from.is_none());
        let asked: Vec<NamedPredicate> = predicates
            .into_iter()
            .filter(|one| since_of(one).is_none_or(|since| since <= range.to))
            .collect();
        let subject = |one: &NamedPredicate| BisectSubject::Predicate(self.lifted(one.predicate.clone()));
        let whole = asked.iter().filter(|one| since_of(one).is_none()).map(subject);
        let mut reports = bisect_each(trace, &whole.collect::<Vec<_>>(), range)?.into_iter();
        let found = asked.iter().map(|one| {
            let subject = subject(one);
            let report = match since_of(one) {
                Some(since) => {
                    let range = Range { scan: range.scan, ..Range::since(since, range.to) };
                    bisect::bisect(trace, &subject, &range)?
                }
                None => reports.next().expect("a report for each that is asked of the whole range"),
            };
            Ok(BisectFound::of(trace, subject, report)?)
        });
        found.collect()
    }

    fn lifted(&self, predicate: Predicate) -> Predicate {
        if self.lift { predicate.lifted() } else { predicate }
    }

    /// Returns the predicates if several are asked at once.
    fn several(&self, trace: &Trace, desk: &dyn Desk) -> Result<Option<Vec<NamedPredicate>>, Problem> {
        if self.all_of.as_deref() == Some(named::STANDARD) {
            return Ok(Some(named::standard(trace)?));
        }
        if let Some(text) = &self.all_of {
            let listed = named::of_text(trace, text, &desk.name_of("all_of"))?;
            return Ok(Some(listed.into_iter().map(NamedPredicate::plain).collect()));
        }
        if !self.asks_several() {
            return Ok(None);
        }
        let made = self.holds.iter().map(|text| {
            let at = |error| Problem::from(error).at("expression", text.as_str());
            let made = NamedPredicate::plain(named::expression(trace, Polarity::Holds, text).map_err(at)?);
            Ok(made.at_window(self.window)?)
        });
        made.collect::<Result<_, Problem>>().map(Some)
    }

    /// Resolves the name or the expression that is asked.
    fn subject(&self, trace: &Trace) -> Result<(BisectSubject, Option<NamedPredicate>), Problem> {
        let (flag, text) = self.named_text();
        let named = match flag {
            "--policy-flip" => {
                let about: TypeName = text.parse().map_err(|_| {
                    Problem::new(Code::E0210, format!("\"{text}\" is not a transition type"))
                        .note("types are lower-case words joined by dots, like action.request")
                })?;
                return Ok((BisectSubject::PolicyFlip(about), None));
            }
            "--anomaly" => named::anomaly(trace, text)?,
            "--holds" => NamedPredicate::plain(named::expression(trace, Polarity::Holds, text)?),
            _ => named::resolve(trace, text)?,
        };
        let named = named.at_window(self.window)?;
        Ok((BisectSubject::Predicate(self.lifted(named.predicate.clone())), Some(named)))
    }

    /// Finds the first transition in which the run differs from another, which may be in another place.
    fn divergence(
        &self,
        run: &QuestionRun,
        (from, to): (u64, u64),
        other: &str,
        desk: &mut dyn Desk,
    ) -> Result<BisectSubject, Problem> {
        let QuestionRun { address, trace: other, .. } = run.beside(&Address::parse(other)?, desk)?;
        if address.pos.is_some() {
            return Err(Problem::new(Code::E0106, "--divergence takes a run, and this is a place in one")
                .note("RUN@TICK ends the run that is asked about, and --to as well"));
        }
        let trace = &run.trace;
        let asked = DiffTerms {
            ends: (to, other.tip()),
            from: self.from.is_some().then_some(from),
            align: self.align.unwrap_or_default(),
            ignore: self.ignore.iter().map(|text| ignored_place(text)).collect::<Result<_, _>>()?,
            ..DiffTerms::new(trace, &other)
        };
        Ok(bisect::divergence(trace, &other, asked)?)
    }

    /// Asks for the first fall of a score, and for the hard predicates with it (dendrer paper, appendix D).
    fn regression(&self, trace: Trace, name: &str, range: &Range) -> Result<BisectReply, Problem> {
        let without =
            |problem: Problem| problem.help(&["dendrer", "bisect", &self.run, "--predicate", INVARIANT]);
        let Some(pack) = crate::run::pack::of_run(&trace)? else {
            let message = format!("{} carries no pack, so nothing of it is scored", trace.name());
            return Err(without(Problem::new(Code::E0515, message)));
        };
        let Some(metric) = Metric::find(&pack, name) else {
            let names = Metric::names(&pack);
            let problem =
                Problem::new(Code::E0515, format!("the pack {} declares no score {name}", pack.name));
            let problem = match (nearest(name, names.iter().map(String::as_str)), names.is_empty()) {
                (Some(near), _) => problem.note(format!("did you mean {near}?")),
                (None, true) => problem.note("it declares none at all"),
                (None, false) => problem.note(format!("there are {}", names.join(", "))),
            };
            return Err(without(problem));
        };
        let answer = RegressionAnswer::of(&trace, &pack, &metric, range)?;
        let HardFound { predicate: hard, report, .. } = answer.decisive();
        let unknown = answer.unknown().filter(|_| self.expect_onset.is_none());
        let unknown = unknown.map(|(name, tick, why, unjudged)| {
            let what = format!("{name} cannot be judged at tick {tick} of {}", trace.name());
            let help = ["dendrer", "bisect", &self.run, "--predicate", hard.name()];
            Problem::new(Code::E0509, what).at("why", reasons_list(why, unjudged)).help(&help)
        });
        let problem = self.unexpected(report).or(unknown);
        Ok(BisectReply { trace, answer: BisectReplyKind::Regression(Box::new(answer)), problem })
    }

    /// Returns why the onset cannot be relied on.
    fn refusal(&self, trace: &Trace, answer: &BisectAnswer) -> Option<Problem> {
        let BisectFound { question, report, .. } = &answer.found;
        match &report.outcome {
            BisectOutcome::Recovers(turns) => {
                let turns: Vec<String> =
                    turns.iter().map(|(tick, verdict)| format!("tick {tick} {verdict}")).collect();
                let problem =
                    Problem::new(Code::E0504, "refusing to bisect with a predicate that can recover")
                        .at("turns", list(&turns, 8).unwrap_or_default())
                        .note("a wrong tick would look exactly like a right one");
                let (flag @ ("--holds" | "--predicate"), text) = self.named_text() else {
                    return Some(problem);
                };
                let mut test = vec!["dendrer", "predicate", "test", text, &self.run];
                test.extend((flag == "--holds").then_some("--holds"));
                Some(problem.help(&["dendrer", "bisect", &self.run, flag, text, "--lift"]).help(&test))
            }
            BisectOutcome::Uncertain(tick, why) => {
                let what = format!("the predicate cannot be judged at tick {tick} of {}", trace.name());
                let problem = Problem::new(Code::E0509, what)
                    .at("why", reasons_list(why, &report.unjudged))
                    .note("uncertain is never taken for ok");
                let problem = match report.first_certain {
                    Some(certain) => problem.note(format!(
                        "the onset is between tick {tick} and tick {certain}, the first that is known to be violated"
                    )),
                    None => problem.note(format!("the onset is not known from tick {tick} on")),
                };
                Some(match question.predicate() {
                    Some(predicate) => named::with_hint(problem, trace, predicate, why),
                    None => problem,
                })
            }
            _ => None,
        }
    }

    /// Reports an onset that is not the expected one.
    fn unexpected(&self, report: &BisectReport) -> Option<Problem> {
        let found = report.onset();
        let expected = self.expect_onset.filter(|expected| found != Some(*expected))?;
        let found = found.map_or_else(|| "no onset".to_owned(), |tick| format!("tick {tick}"));
        Some(Problem::new(Code::E0510, format!("expected the onset at tick {expected}, found {found}")))
    }
}

/// The problem of a diagnosis without an onset.
pub fn nothing_to_diagnose() -> Problem {
    Problem::new(Code::E0106, "there is no onset, so there is nothing to diagnose")
        .note("leave --diagnosis out to see the answer")
}
