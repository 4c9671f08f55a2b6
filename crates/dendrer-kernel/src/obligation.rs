//! Obligations: something must have held by a transition, by a tick, or within some ticks of a moment. They find what
//! was left undone, which no rule about a single state does.
//!
//! An obligation is a predicate of a run and not of a state, so [`ObligationCourse`] is walked over its ticks from 0. It is
//! *missed* at the tick at which it was due, or could no longer be met.
//!
//! Rule: a missed obligation stays missed, and one that may have been missed is never taken for ok, so the verdicts of a
//! course only rise from ok to uncertain to violation.

use std::fmt;

use dendrer_object::{Pointer, TypeName};

use crate::expr::{Env, Expr, Truth};
use crate::predicate::{Verdict, truth};

/// The terms of an obligation, besides the expression that must hold.
#[derive(Debug, Clone)]
pub struct Obligation {
    /// When it is due.
    pub due: Due,
    /// From when on it can no longer be met, whatever comes.
    pub lost: Option<Expr>,
    reads: Vec<Pointer>,
}

/// When an obligation is due.
#[derive(Debug, Clone)]
pub enum Due {
    /// At the first transition of this type. It begins with the run.
    OfType(TypeName),
    /// At this tick. It begins with the run.
    Tick(u64),
    /// So many ticks after each time that something begins it; 0 is that very tick.
    Within(u64, Trigger),
}

/// The condition that begins an obligation.
#[derive(Debug, Clone)]
pub enum Trigger {
    /// A transition of this type.
    OfType(TypeName),
    /// A condition on the state that was not true before.
    Becomes(Expr),
}

impl Obligation {
    /// Builds the obligation that `holds` must be true by `due`.
    pub fn new(holds: &Expr, due: Due, lost: Option<Expr>) -> Obligation {
        let mut owed = Obligation { due, lost, reads: Vec::new() };
        let places = std::iter::once(holds).chain(owed.exprs()).flat_map(|expr| expr.read_set().to_vec());
        owed.reads = Pointer::outermost(places.collect());
        owed
    }

    /// The conditions besides the one that must hold.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let begins = match &self.due {
            Due::Within(_, Trigger::Becomes(expr)) => Some(expr),
            _ => None,
        };
        begins.into_iter().chain(&self.lost)
    }

    /// The places of the state that it can look at, sorted, none below another.
    pub fn read_set(&self) -> &[Pointer] {
        &self.reads
    }

    /// Judges its conditions over a state.
    pub fn look(&self, holds: &Expr, env: &Env<'_>) -> ObligationLook {
        let begins = match &self.due {
            Due::Within(_, Trigger::Becomes(expr)) => truth(expr, env),
            _ => Truth::False,
        };
        let lost = self.lost.as_ref().map_or(Truth::False, |expr| truth(expr, env));
        ObligationLook { holds: truth(holds, env), begins, lost }
    }
}

impl fmt::Display for Obligation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = |n: &u64| if *n == 1 { "1 tick".to_owned() } else { format!("{n} ticks") };
        match &self.due {
            Due::OfType(name) => write!(f, "by {name}")?,
            Due::Tick(tick) => write!(f, "by tick {tick}")?,
            Due::Within(0, Trigger::OfType(name)) => write!(f, "at each {name}")?,
            Due::Within(0, Trigger::Becomes(expr)) => write!(f, "whenever it comes to {}", expr.text())?,
            Due::Within(n, Trigger::OfType(name)) => write!(f, "within {} of {name}", ticks(n))?,
            Due::Within(n, Trigger::Becomes(expr)) => write!(f, "within {} of {}", ticks(n), expr.text())?,
        }
        match &self.lost {
            Some(lost) => write!(f, ", lost with {}", lost.text()),
            None => Ok(()),
        }
    }
}

/// The truth of the conditions of an obligation in one state.
#[derive(Debug, Clone)]
pub struct ObligationLook {
    /// Whether it is met there.
    pub holds: Truth,
    /// Whether the condition that begins it is true there.
    pub begins: Truth,
    /// Whether it can no longer be met.
    pub lost: Truth,
}

/// State of an obligation at a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing has begun it yet, so nothing is owed.
    Waiting,
    /// It is owed and not due yet: at this tick, or `None` where a transition decides when.
    Open(Option<u64>),
    /// It was met at this tick, the last time it was owed.
    Met(u64),
    /// It was missed at this tick.
    Missed(u64),
    /// Whether it was missed cannot be said from this tick on, and why.
    Unknown(u64, String),
}

impl Standing {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Standing::Waiting => "waiting",
            Standing::Open(_) => "open",
            Standing::Met(_) => "met",
            Standing::Missed(_) => "missed",
            Standing::Unknown(..) => "unknown",
        }
    }

    /// The tick at which it was met, missed, or not known any more.
    pub fn tick(&self) -> Option<u64> {
        match self {
            Standing::Met(tick) | Standing::Missed(tick) | Standing::Unknown(tick, _) => Some(*tick),
            Standing::Waiting | Standing::Open(_) => None,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Waiting => f.write_str("waiting: nothing has begun it"),
            Standing::Open(Some(due)) => write!(f, "open: due at tick {due}"),
            Standing::Open(None) => f.write_str("open: not due yet"),
            Standing::Met(tick) => write!(f, "met at tick {tick}"),
            Standing::Missed(tick) => write!(f, "missed at tick {tick}"),
            Standing::Unknown(tick, why) => write!(f, "unknown from tick {tick} on: {why}"),
        }
    }
}

/// The due tick of an obligation that has none.
const SOME_DAY: u64 = u64::MAX;

/// How many reasons are kept at most of one obligation that may have been missed.
const REASONS_MAX: usize = 16;

/// An obligation on its way through a run, tick by tick from 0.
///
/// A condition that cannot be judged leaves several runs possible. `sure` is due in all of them, `maybe` in some;
/// both are the earliest, since an obligation that begins later is due later.
#[derive(Debug, Clone, Default)]
pub struct ObligationCourse {
    begun: bool,
    /// The truth at the tick before of the condition that begins the obligation.
    begins: Option<Truth>,
    sure: Option<u64>,
    maybe: Option<u64>,
    /// Why a condition could not be judged since `maybe` began: the first and last tick of each reason.
    why: Vec<(u64, u64, String)>,
    met: Option<u64>,
    missed: Option<u64>,
    doubt: Option<(u64, String)>,
}

impl ObligationCourse {
    /// Takes the next tick: the type of its transition, and what the conditions say of the state after it.
    pub fn pass(
        &mut self,
        owed: &Obligation,
        tick: u64,
        type_name: Option<&TypeName>,
        look: &ObligationLook,
    ) {
        if self.missed.is_some() {
            return;
        }
        self.begin(owed, tick, type_name, &look.begins);
        match &look.holds {
            Truth::True => {
                self.met = self.maybe.map(|_| tick).or(self.met);
                (self.sure, self.maybe) = (None, None);
                self.why.clear();
            }
            Truth::False => {}
            unknown => {
                self.sure = None;
                self.note(tick, unknown);
            }
        }
        let is_due = |due: Option<u64>| match &owed.due {
            Due::OfType(name) => due.is_some() && type_name == Some(name),
            Due::Tick(_) | Due::Within(..) => due == Some(tick),
        };
        if self.sure.is_some() && (is_due(self.sure) || look.lost == Truth::True) {
            self.missed = Some(tick);
            return;
        }
        if self.maybe.is_some() && look.lost != Truth::False {
            self.note(tick, &look.lost);
            self.doubt_at(tick);
        }
        if is_due(self.maybe) {
            self.doubt_at(tick);
            // The other open obligations only matter now if they are missed for sure.
            self.maybe = self.sure;
            self.why.clear();
        }
    }

    fn begin(&mut self, owed: &Obligation, tick: u64, type_name: Option<&TypeName>, begins: &Truth) {
        let due = match &owed.due {
            Due::OfType(_) => SOME_DAY,
            Due::Tick(due) => *due,
            Due::Within(ticks, _) => tick.saturating_add(*ticks),
        };
        let begun = match &owed.due {
            Due::OfType(_) | Due::Tick(_) => known(!self.begun),
            Due::Within(_, Trigger::OfType(name)) => known(type_name == Some(name)),
            Due::Within(_, Trigger::Becomes(_)) => {
                let before = self.begins.replace(begins.clone()).unwrap_or(Truth::False);
                match (before, begins) {
                    (Truth::True, _) | (_, Truth::False) => Truth::False,
                    (Truth::False, begins) => begins.clone(),
                    (before, _) => before,
                }
            }
        };
        self.begun = true;
        match begun {
            Truth::False => {}
            Truth::True => {
                self.sure.get_or_insert(due);
                self.maybe.get_or_insert(due);
            }
            unknown => {
                self.maybe.get_or_insert(due);
                self.note(tick, &unknown);
            }
        }
    }

    /// Notes why something that is open in some possible run is not known at a tick.
    fn note(&mut self, tick: u64, unknown: &Truth) {
        let Some(words) = unknown_words(unknown).filter(|_| self.maybe.is_some()) else { return };
        let goes_on = |(_, to, why): &(u64, u64, String)| *to + 1 >= tick && *why == words;
        match self.why.iter().rposition(goes_on) {
            Some(at) => self.why[at].1 = tick,
            None if self.why.len() < REASONS_MAX => self.why.push((tick, tick, words)),
            None => {}
        }
    }

    fn doubt_at(&mut self, tick: u64) {
        if self.doubt.is_none() {
            let stretch = |(from, to, why): &(u64, u64, String)| match from == to {
                true => format!("{why} (tick {from})"),
                false => format!("{why} (ticks {from}..{to})"),
            };
            let why = match &self.why[..] {
                [] => "whether it was owed is not known".to_owned(),
                [(.., why)] => why.clone(),
                several => several.iter().map(stretch).collect::<Vec<_>>().join("; "),
            };
            self.doubt = Some((tick, why));
        }
    }

    /// Judges the obligation on the run so far.
    pub fn verdict(&self) -> Verdict {
        match (&self.missed, &self.doubt) {
            (Some(_), _) => Verdict::Violation,
            (None, Some((_, why))) => Verdict::Uncertain(why.clone()),
            (None, None) => Verdict::Ok,
        }
    }

    /// Returns the state of the obligation at the newest tick.
    pub fn standing(&self) -> Standing {
        match (self.missed, &self.doubt, self.maybe, self.met) {
            (Some(tick), ..) => Standing::Missed(tick),
            (_, Some((tick, why)), ..) => Standing::Unknown(*tick, why.clone()),
            (.., Some(due), _) => Standing::Open(Some(due).filter(|due| *due != SOME_DAY)),
            (.., None, Some(tick)) => Standing::Met(tick),
            (.., None, None) => Standing::Waiting,
        }
    }
}

fn known(truth: bool) -> Truth {
    if truth { Truth::True } else { Truth::False }
}

/// Says why something is neither true nor false.
pub(crate) fn unknown_words(truth: &Truth) -> Option<String> {
    match truth {
        Truth::True | Truth::False => None,
        Truth::Uncertain(why) => Some(why.to_string()),
        Truth::Exhausted => Some(format!("it takes more than {} steps", crate::expr::STEPS_MAX)),
    }
}

#[cfg(test)]
mod tests;
