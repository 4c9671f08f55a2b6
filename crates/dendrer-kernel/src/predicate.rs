//! Predicates: pure functions of a committed state that say ok, violation or uncertain (dendrer paper 3.3).
//!
//! Polarity is explicit. `condition` names the violation, `holds` names what must be true, and every output says
//! which.
//!
//! Rule: [`Verdict::Uncertain`] is never taken for ok.

use std::fmt;
use std::slice;
use std::sync::{Arc, LazyLock};

use dendrer_object::{Digest, Pointer, TypeName, Value};

use crate::counters;
use crate::expr::{Budget, Env, EvalError, Expr, ExprError, Scope, Truth};
use crate::obligation::{Obligation, ObligationLook, unknown_words};
use crate::progress::{Evaluation, Scored};
use crate::sealed::Met;
pub use crate::stopped::Stopped;
use crate::unknown;

/// Which truth value of the expression is the violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polarity {
    /// The expression names the violation.
    Condition,
    /// The expression names what must be true.
    Holds,
}

dendrer_object::words! {
    /// State of a transition that a predicate looks at (dendrer paper 3.3.2).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Window {
        /// The state before the transition.
        Before = "before",
        /// The state after it.
        #[default]
        After = "after",
    }
}

/// How it is known that a predicate, once violated, stays so (dendrer paper 3.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Monotone {
    /// Its reads can only grow.
    ByConstruction,
    /// The question is only the first violation, whatever comes after it (dendrer paper 3.3.3, the monotone lift).
    Lifted,
    /// Nothing is known: look at the run.
    Unknown,
}

/// The verdict of a predicate on a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Ok,
    /// The rule is broken.
    Violation,
    /// It cannot be said: a field is missing, a type does not fit, or the budget ran out.
    Uncertain(String),
}

/// A predicate that is a program, bound by its digest, and a function of the state alone by construction. The kernel
/// knows no engine: the caller brings it.
pub trait Program: fmt::Debug + Send + Sync {
    /// The digest of its bytes.
    fn digest(&self) -> Digest;

    /// Its bytes, as a registration keeps them.
    fn bytes(&self) -> &[u8];

    /// Judges a state.
    fn judge(&self, state: &Value) -> Result<Verdict, Stopped>;
}

/// The question that is asked of a state.
#[derive(Debug, Clone)]
pub enum Asking {
    /// An expression.
    Expr(Expr),
    /// A program. It may look at all of the state, and says itself what a violation is.
    Program(Arc<dyn Program>),
}

impl From<Expr> for Asking {
    fn from(expr: Expr) -> Asking {
        Asking::Expr(expr)
    }
}

/// The whole state.
static WHOLE: LazyLock<Pointer> = LazyLock::new(Pointer::root);

/// A named predicate.
#[derive(Debug, Clone)]
pub struct Predicate {
    name: String,
    version: String,
    polarity: Polarity,
    window: Window,
    monotone: Monotone,
    asked: Asking,
    /// The pack whose names its text may use.
    pack: Option<Digest>,
    /// The name by which that pack declares it, which alone says what it is, whatever it is called later.
    declared: Option<Arc<str>>,
    /// The transition types at which it is looked for; at any, if none is named.
    scope: Arc<[TypeName]>,
    /// When the expression must have held, where that is not at every tick.
    owed: Option<Arc<Obligation>>,
    /// How good a state is, where the expression is the violation of a progress contract.
    scored: Option<Arc<Scored>>,
    /// Whether the door refuses what would newly violate it, from stage 2 on.
    is_enforced: bool,
    repairs: Arc<[Arc<str>]>,
    /// Whether it is `kernel.policy_compliant`, which is asked of each rule in force over a run.
    is_policy: bool,
}

/// The predicates that are always there.
pub const BUILT_IN: &[&str] = &["kernel.anomaly_free", POLICY_COMPLIANT];

/// The predicate that is violated from the first tick on that breaks a rule in force or acts after a deny.
const POLICY_COMPLIANT: &str = "kernel.policy_compliant";

impl Predicate {
    /// A predicate that is violated when `text` is true.
    pub fn condition(name: &str, text: &str) -> Result<Predicate, ExprError> {
        Predicate::new(name, text, Polarity::Condition)
    }

    /// A predicate that is violated when `text` is false.
    pub fn holds(name: &str, text: &str) -> Result<Predicate, ExprError> {
        Predicate::new(name, text, Polarity::Holds)
    }

    /// As [`Predicate::holds`], by the rules of a version of the kernel.
    pub(crate) fn holds_by(name: &str, text: &str, version: u64) -> Result<Predicate, ExprError> {
        let expr = Expr::parse_condition(text, &Scope::new().by_rules(version))?;
        Ok(Predicate::asking(name, Polarity::Holds, Asking::Expr(expr)))
    }

    fn new(name: &str, text: &str, polarity: Polarity) -> Result<Predicate, ExprError> {
        let expr = Expr::parse_condition(text, &Scope::new())?;
        Ok(Predicate::asking(name, polarity, Asking::Expr(expr)))
    }

    fn asking(name: &str, polarity: Polarity, asked: Asking) -> Predicate {
        Predicate {
            name: name.to_owned(),
            version: "v1".to_owned(),
            polarity,
            window: Window::After,
            monotone: Monotone::Unknown,
            asked,
            pack: None,
            declared: None,
            scope: Arc::default(),
            owed: None,
            scored: None,
            is_enforced: false,
            repairs: Arc::default(),
            is_policy: false,
        }
    }

    /// A predicate that is a program.
    pub fn program(name: &str, program: Arc<dyn Program>) -> Predicate {
        Predicate::asking(name, Polarity::Condition, Asking::Program(program))
    }

    /// A predicate that a pack declares. Its digest is that of the pack and its name, since its text may use what
    /// the pack defines.
    pub(crate) fn registered(
        name: &str,
        version: &str,
        polarity: Polarity,
        window: Window,
        asked: impl Into<Asking>,
        pack: Digest,
    ) -> Predicate {
        Predicate {
            name: name.to_owned(),
            version: version.to_owned(),
            polarity,
            window,
            monotone: Monotone::Unknown,
            asked: asked.into(),
            pack: Some(pack),
            declared: Some(name.into()),
            scope: Arc::default(),
            owed: None,
            scored: None,
            is_enforced: false,
            repairs: Arc::default(),
            is_policy: false,
        }
    }

    /// Makes of a predicate that names the violation a progress contract (dendrer paper 4.6).
    pub(crate) fn scored(self, scored: Scored) -> Predicate {
        assert!(self.polarity == Polarity::Condition, "a progress contract names its violation");
        Predicate { scored: Some(Arc::new(scored)), ..self }
    }

    /// Returns the score of a progress contract; `None` for any other predicate.
    pub fn progress(&self) -> Option<&Scored> {
        self.scored.as_deref()
    }

    /// Evaluates a state as a progress contract does. A state without a score of its own has 1 if it is ok.
    pub fn evaluate(&self, state: &Value, counters: Option<&Value>) -> Evaluation {
        let env = Env { counters, ..Env::of(state) };
        match (&self.scored, self.expr()) {
            (Some(scored), Some(violation)) => scored.evaluate(violation, &env),
            _ => match self.verdict(state, counters) {
                Verdict::Ok => Evaluation::Ok(1.0),
                Verdict::Violation => Evaluation::Violation(Value::Null),
                Verdict::Uncertain(why) => Evaluation::Uncertain(None, why),
            },
        }
    }

    /// Makes of a predicate that names what must hold one that need not hold before it is due. Once missed, it stays so.
    pub(crate) fn owed(self, owed: Obligation) -> Predicate {
        assert!(self.polarity == Polarity::Holds, "an obligation names what must hold");
        Predicate { owed: Some(Arc::new(owed)), monotone: Monotone::ByConstruction, ..self }
    }

    /// Looks for it at transitions of these types alone: at any other it is ok, so it may recover.
    #[must_use]
    pub(crate) fn scoped(self, scope: Vec<TypeName>) -> Predicate {
        Predicate { scope: scope.into(), ..self }
    }

    /// The transition types at which it is looked for; at any, if none is named (dendrer paper, appendix G).
    pub fn scope(&self) -> &[TypeName] {
        &self.scope
    }

    /// Whether it is looked for at a transition of this type, or in the state with which a run begins.
    pub fn is_for(&self, type_name: Option<&TypeName>) -> bool {
        self.scope.is_empty() || type_name.is_some_and(|name| self.scope.contains(name))
    }

    /// When it is due, if it is an obligation. Such a predicate is judged over a run ([`crate::obligation::Course`]).
    pub fn obligation(&self) -> Option<&Obligation> {
        self.owed.as_deref()
    }

    /// Judges the conditions of an obligation over a state; `None` for any other predicate.
    pub fn look(&self, state: &Value, counters: Option<&Value>) -> Option<ObligationLook> {
        let env = Env { counters, ..Env::of(state) };
        Some(self.owed.as_ref()?.look(self.expr()?, &env))
    }

    /// The places of the state that it can look at, sorted, none below another. A program can look at all of it, which is
    /// the root.
    pub fn read_set(&self) -> &[Pointer] {
        match (&self.asked, &self.owed, &self.scored) {
            (_, Some(owed), _) => owed.read_set(),
            (_, None, Some(scored)) => scored.read_set(),
            (Asking::Expr(expr), None, None) => expr.read_set(),
            (Asking::Program(_), None, None) => slice::from_ref(&*WHOLE),
        }
    }

    /// Tells whether it can look at `state.counters`, which no write of the state shows. A program is not given them.
    pub fn reads_counters(&self) -> bool {
        self.exprs().any(Expr::reads_counters)
    }

    /// Every expression that it is made of.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let owed = self.owed.iter().flat_map(|owed| owed.exprs());
        let scored = self.scored.iter().flat_map(|scored| scored.exprs());
        self.expr().into_iter().chain(owed).chain(scored)
    }

    /// An expression that uses what a pack defines. Its digest is that of the pack and its text.
    pub(crate) fn under(pack: Digest, polarity: Polarity, expr: Expr) -> Predicate {
        let registered = Predicate::registered("expression", "v1", polarity, Window::After, expr, pack);
        Predicate { declared: None, ..registered }
    }

    /// The pack that declares it, or whose names its text uses; `None` for a built-in one and for a plain expression.
    pub fn pack(&self) -> Option<Digest> {
        self.pack
    }

    /// Gives it a name and a version.
    #[must_use]
    pub fn named(self, name: &str, version: &str) -> Predicate {
        Predicate { name: name.to_owned(), version: version.to_owned(), ..self }
    }

    /// Lets it look at the other side of a transition.
    #[must_use]
    pub fn at_window(self, window: Window) -> Predicate {
        Predicate { window, ..self }
    }

    /// Marks it as monotone by construction, if its text shows that it cannot recover ([`Predicate::cannot_recover`]). Nothing
    /// else is believed: a search by probes of a predicate that recovers would name a wrong onset.
    #[must_use]
    pub fn monotone_by_text(self) -> Predicate {
        let is_shown = self.monotone == Monotone::Unknown && self.scope.is_empty() && self.cannot_recover();
        Predicate { monotone: if is_shown { Monotone::ByConstruction } else { self.monotone }, ..self }
    }

    /// Tells whether the text alone shows that the predicate, once violated, stays so: it asks whether something
    /// passed a bound that only the kernel moves, and only upwards.
    pub fn cannot_recover(&self) -> bool {
        match (self.expr(), self.polarity) {
            (Some(expr), Polarity::Condition) => expr.only_rises(),
            (Some(expr), Polarity::Holds) => expr.only_falls(),
            (None, _) => false,
        }
    }

    /// Has the door refuse what would newly violate it, from stage 2 on (design, section 4).
    #[must_use]
    pub(crate) fn enforced(self, is_enforced: bool) -> Predicate {
        Predicate { is_enforced, ..self }
    }

    /// Names the types and tools that may write while it is violated (design, 14.1).
    #[must_use]
    pub(crate) fn repaired_by(self, repairs: Vec<Arc<str>>) -> Predicate {
        Predicate { repairs: repairs.into(), ..self }
    }

    /// The types and tools that may write while it is violated.
    pub(crate) fn repairs(&self) -> &[Arc<str>] {
        &self.repairs
    }

    /// Whether the door refuses what would newly violate it, from stage 2 on.
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Returns what keeps a state from being judged, as it is put on record ([`crate::sealed`]).
    pub(crate) fn met(&self, state: &Value, counters: Option<&Value>) -> Met {
        let env = Env { counters, ..Env::of(state) };
        match self.expr().map(|expr| truth(expr, &env)) {
            Some(Truth::Uncertain(why)) => EvalError::Uncertain(why).into(),
            Some(Truth::Exhausted) => EvalError::Exhausted.into(),
            _ => Met::from("its value cannot be computed".to_owned()),
        }
    }

    /// Asks for the first violation, whatever comes after it. The verdict on a single state stays the same.
    #[must_use]
    pub fn lifted(self) -> Predicate {
        match self.monotone {
            Monotone::ByConstruction => self,
            _ => Predicate { monotone: Monotone::Lifted, ..self },
        }
    }

    /// Returns one of [`BUILT_IN`].
    pub fn built_in(name: &str) -> Option<Predicate> {
        let text = match name {
            // A note of an anomaly in a transition is counted; counters alone are derived.
            "kernel.anomaly_free" => {
                "has(state.kernel_anomalies) && size(state.kernel_anomalies) > 0 || size(state.counters.anomalies) > 0"
            }
            POLICY_COMPLIANT => {
                "has(state.policy) && (has(state.policy.violated) || has(state.policy.violations))"
            }
            _ => return None,
        };
        let predicate = Predicate::condition(name, text).expect("a built-in predicate checks");
        // The kernel appends to the one, sets the other once, and counts upwards; it is the only writer.
        let is_policy = name == POLICY_COMPLIANT;
        Some(Predicate { monotone: Monotone::ByConstruction, is_policy, ..predicate })
    }

    /// Whether it is `kernel.policy_compliant`: it is judged over a run, by the policy rules and violations in force at each
    /// tick. For one state the value is the one that the door put on record there, which below stage 2 is not complete.
    pub fn is_policy(&self) -> bool {
        self.is_policy
    }

    /// Returns what the door put on record of the policy, as a predicate of one state.
    #[must_use]
    pub fn on_record(self) -> Predicate {
        Predicate { is_policy: false, ..self }
    }

    /// Violated from the first anomaly of a kind on, in a `kernel.anomaly` or noted in a transition.
    /// `kernel.anomaly` means every anomaly that the kernel recorded.
    pub fn anomaly(kind: &str) -> Predicate {
        if kind == "kernel.anomaly" {
            return Predicate::built_in("kernel.anomaly_free").expect("a built-in");
        }
        let quoted = Value::from(kind).to_string();
        let text = format!("{quoted} in state.counters.anomalies");
        let predicate =
            Predicate::condition(&format!("anomaly {kind}"), &text).expect("a quoted name checks");
        Predicate { monotone: Monotone::ByConstruction, ..predicate }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Which truth value is the violation.
    pub fn polarity(&self) -> Polarity {
        self.polarity
    }

    /// Which state is looked at.
    pub fn window(&self) -> Window {
        self.window
    }

    /// How monotonicity is known.
    pub fn monotone(&self) -> Monotone {
        self.monotone
    }

    /// The expression, if it is one.
    pub fn expr(&self) -> Option<&Expr> {
        match &self.asked {
            Asking::Expr(expr) => Some(expr),
            Asking::Program(_) => None,
        }
    }

    /// Returns the question.
    pub fn asked(&self) -> &Asking {
        &self.asked
    }

    /// Says when it is violated, in words.
    pub fn words(&self) -> String {
        if self.is_policy {
            return "violated when a policy rule or a violation of the pack in force is broken, or a denied request is acted on"
                .to_owned();
        }
        let words = match (&self.asked, self.polarity, &self.owed) {
            (Asking::Expr(expr), Polarity::Condition, _) => format!("violated when {}", expr.text()),
            (Asking::Expr(expr), Polarity::Holds, None) => format!("must hold {}", expr.text()),
            (Asking::Expr(expr), Polarity::Holds, Some(owed)) => format!("must hold {owed}: {}", expr.text()),
            (Asking::Program(program), ..) => {
                format!("violated when module {} says so", program.digest().short())
            }
        };
        match &self.scope[..] {
            [] => words,
            scope => {
                let types: Vec<&str> = scope.iter().map(TypeName::as_str).collect();
                format!("at {}: {words}", types.join(", "))
            }
        }
    }

    /// Whether another predicate asks the same of a run, whatever the two are called: by what is asked with the values of
    /// constants in it, when, and at which types. How it is known that they do not recover makes no difference.
    pub fn means_the_same(&self, other: &Predicate) -> bool {
        // An obligation or a score never means the same as a condition for every tick, even with the same text.
        let plain = |one: &Predicate| one.obligation().is_none() && one.progress().is_none();
        let asked = |one: &Predicate| {
            let asked = match one.asked() {
                Asking::Expr(expr) => expr.in_full(),
                Asking::Program(program) => program.digest().to_string(),
            };
            (asked, one.polarity(), one.window(), one.scope().to_vec())
        };
        match plain(self) && plain(other) {
            true => asked(self) == asked(other),
            false => self.digest() == other.digest(),
        }
    }

    /// Returns the digest that identifies the predicate whatever it is called.
    pub fn digest(&self) -> Digest {
        // The state after, and no lift, is what is meant where nothing is said.
        let lift: &[u8] = if self.monotone == Monotone::Lifted { b"lifted\n" } else { b"" };
        if self.is_policy {
            return Digest::of_parts(&[b"dendrer/policy-compliant/v1\n"]);
        }
        if let (Some(pack), Some(name)) = (self.pack, &self.declared) {
            let name = name.as_bytes();
            return Digest::of_parts(&[b"dendrer/pack-predicate/v1\n", lift, &pack.0, name]);
        }
        let window: &[u8] = if self.window == Window::Before { b"before\n" } else { b"" };
        let polarity: &[u8] = match self.polarity {
            Polarity::Condition => b"condition\n",
            Polarity::Holds => b"holds\n",
        };
        let text = match &self.asked {
            Asking::Expr(expr) => expr.canonical().as_bytes(),
            Asking::Program(program) => {
                let module = program.digest();
                return Digest::of_parts(&[b"dendrer/module-predicate/v1\n", lift, window, &module.0]);
            }
        };
        match &self.pack {
            Some(pack) => {
                let parts = [b"dendrer/pack-expression/v1\n", lift, &pack.0, window, polarity, text];
                Digest::of_parts(&parts)
            }
            None => Digest::of_parts(&[b"dendrer/predicate/v1\n", lift, window, polarity, text]),
        }
    }

    /// Judges a state. `counters` are the derived counters at that state, for expressions that read them.
    ///
    /// An obligation cannot be judged by one state.
    pub fn judge(&self, state: &Value, counters: Option<&Value>) -> Result<Verdict, Stopped> {
        match &self.asked {
            Asking::Expr(expr) => Ok(self.of_expr(expr, state, counters)),
            // A program may look at all of the state.
            Asking::Program(program) => match unknown::meets(state, &Pointer::root()) {
                Some((_, since)) => {
                    Ok(Verdict::Uncertain(format!("the state is unknown: {}", since.words())))
                }
                None => program.judge(state),
            },
        }
    }

    /// As [`Predicate::judge`], for what is no program: policy rules and violations. Of a program that was stopped it says
    /// that nothing can be said, which is not for a record and not for an answer.
    pub fn verdict(&self, state: &Value, counters: Option<&Value>) -> Verdict {
        self.judge(state, counters).unwrap_or_else(|stopped| Verdict::Uncertain(stopped.to_string()))
    }

    fn of_expr(&self, expr: &Expr, state: &Value, counters: Option<&Value>) -> Verdict {
        if self.owed.is_some() {
            return Verdict::Uncertain("an obligation is judged over a run, not by one state".to_owned());
        }
        let env = Env { counters, ..Env::of(state) };
        if let Some(scored) = &self.scored {
            return match scored.evaluate(expr, &env) {
                Evaluation::Ok(_) => Verdict::Ok,
                Evaluation::Violation(_) => Verdict::Violation,
                Evaluation::Uncertain(_, why) => Verdict::Uncertain(why),
            };
        }
        let verdict = self.of_truth(&truth(expr, &env));
        // A bound that is passed by what was counted is passed by what is there.
        if matches!(verdict, Verdict::Uncertain(_))
            && let Some(bounds) = counters.and_then(counters::lower_bounds)
            && (self.monotone == Monotone::ByConstruction || self.cannot_recover())
            && self.of_truth(&truth(expr, &Env { counters: Some(&bounds), ..env })) == Verdict::Violation
        {
            return Verdict::Violation;
        }
        verdict
    }

    fn of_truth(&self, found: &Truth) -> Verdict {
        match found {
            Truth::True if self.polarity == Polarity::Condition => Verdict::Violation,
            Truth::False if self.polarity == Polarity::Holds => Verdict::Violation,
            Truth::True | Truth::False => Verdict::Ok,
            unknown => Verdict::Uncertain(unknown_words(unknown).unwrap_or_default()),
        }
    }
}

/// Judges a condition with the budget that every verdict has.
pub(crate) fn truth(expr: &Expr, env: &Env<'_>) -> Truth {
    expr.holds(env, &mut Budget::default())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Ok => f.write_str("ok"),
            Verdict::Violation => f.write_str("violation"),
            Verdict::Uncertain(why) => write!(f, "uncertain: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_says_whether_two_predicates_mean_the_same() {
        let condition = |name: &str, text: &str| Predicate::condition(name, text).unwrap();
        let one = condition("a", "state.x > 10");
        assert!(one.means_the_same(&condition("b", "(state.x>10)")));
        assert!(one.means_the_same(&condition("b", "state.x > 10").lifted()), "a lift is no other question");
        for other in [
            condition("a", "state.x > 9"),
            Predicate::holds("a", "state.x > 10").unwrap(),
            condition("a", "state.x > 10").at_window(Window::Before),
            condition("a", "state.x > 10").scoped(vec!["plan.update".parse().unwrap()]),
        ] {
            assert!(!one.means_the_same(&other) && !other.means_the_same(&one), "{}", other.words());
        }
    }
}
