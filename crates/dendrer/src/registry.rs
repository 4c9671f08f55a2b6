//! Predicates under names: `register` records in the log of a store.
//!
//! A registration is a record of no run: a new version of a name is a new record, and so is its end. Nothing is ever
//! changed. Rule: a name means its newest registration, so a registration that cannot be read any more is listed and never
//! skipped.

use dendrer_kernel::expr::ExprError;
use dendrer_kernel::predicate::{Asking, Monotone, Polarity, Predicate, Verdict, Window};
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Code, Digest, RunName, Timestamp, Value, tag};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::environment::{Environment, seal_by_institution};
use crate::error::Error;
use crate::run::timeline::{self, Timeline};
use crate::run::trace::{ReadHandle, Trace, read};

/// How many records are taken from the store at a time.
const BATCH: usize = 1024;

/// The longest name, in bytes.
pub const NAME_SIZE_MAX: usize = 128;

/// How it is known that a registered predicate does not recover, or that it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonotoneEvidence {
    /// The values that it reads can only grow.
    ByConstruction,
    /// It asks for the first violation, whatever comes after.
    Lifted,
    /// It did not recover on these runs.
    Tested(Vec<Sample>),
    /// It recovered on one of these runs: good for monitoring, and bisect refuses it wherever it recovers.
    Recovers(Vec<Sample>),
    /// Nobody looked.
    Untested,
}

/// A run that a predicate was judged on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The run.
    pub run: RunName,
    /// How many ticks it had.
    pub ticks: u64,
    /// The record it ended with.
    pub tip: Digest,
    /// The ticks at which the verdict became another, from the first violation on.
    pub turns: Vec<(u64, Verdict)>,
}

impl Sample {
    /// Returns the sample as a record and an answer hold it.
    pub fn to_value(&self) -> Value {
        let turn = |(tick, verdict): &(u64, Verdict)| {
            let word = if *verdict == Verdict::Violation { "violation" } else { "ok" };
            Value::array([Value::from(*tick), Value::from(word)])
        };
        Value::record([
            ("run", Value::from(self.run.as_str())),
            ("ticks", Value::from(self.ticks)),
            ("tip", Value::from(self.tip)),
            ("turns", Value::array(self.turns.iter().map(turn))),
        ])
    }

    /// Judges a predicate on a whole run.
    pub fn take(trace: &Trace, predicate: &Predicate) -> Result<(Sample, Timeline), Error> {
        let line = timeline::judge(trace, predicate, 0, trace.tip())?;
        let turns = line.turns.iter().skip_while(|(_, verdict)| *verdict != Verdict::Violation);
        let turns = turns.cloned().collect();
        let tip = trace.record(trace.tip())?.id();
        Ok((Sample { run: trace.name().clone(), ticks: trace.tip(), tip, turns }, line))
    }

    /// Whether the predicate was violated.
    pub fn is_violated(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Whether the predicate was ok again after a violation.
    pub fn recovers(&self) -> bool {
        self.turns.len() > 1
    }
}

impl MonotoneEvidence {
    /// Returns what follows from the text of a predicate and from the runs it was judged on.
    pub fn of(predicate: &Predicate, samples: Vec<Sample>) -> MonotoneEvidence {
        match predicate.monotone() {
            _ if predicate.cannot_recover() => MonotoneEvidence::ByConstruction,
            Monotone::Lifted => MonotoneEvidence::Lifted,
            _ => MonotoneEvidence::of_samples(samples),
        }
    }

    /// Returns what follows from the runs a predicate was judged on. A run on which it was never violated tests nothing.
    pub fn of_samples(samples: Vec<Sample>) -> MonotoneEvidence {
        if samples.iter().any(Sample::recovers) {
            return MonotoneEvidence::Recovers(samples);
        }
        let tested: Vec<Sample> = samples.into_iter().filter(Sample::is_violated).collect();
        if tested.is_empty() { MonotoneEvidence::Untested } else { MonotoneEvidence::Tested(tested) }
    }

    /// Adds what earlier registrations of the same predicate say: one that recovered stays rejected.
    pub fn after<'r>(self, earlier: impl IntoIterator<Item = &'r Registered>) -> MonotoneEvidence {
        if !matches!(self, MonotoneEvidence::Tested(_) | MonotoneEvidence::Untested) {
            return self;
        }
        let rejected = earlier.into_iter().filter_map(|entry| match &entry.known {
            MonotoneEvidence::Recovers(samples) => Some(samples.clone()),
            _ => None,
        });
        let Some(mut samples) = rejected.last() else { return self };
        for sample in self.samples() {
            if !samples.contains(sample) {
                samples.push(sample.clone());
            }
        }
        MonotoneEvidence::Recovers(samples)
    }

    /// The word that stands in records.
    pub fn as_str(&self) -> &'static str {
        match self {
            MonotoneEvidence::ByConstruction => "by construction",
            MonotoneEvidence::Lifted => "lifted",
            MonotoneEvidence::Tested(_) => "tested",
            MonotoneEvidence::Recovers(_) => "recovers",
            MonotoneEvidence::Untested => "not tested",
        }
    }

    /// The runs it was judged on.
    pub fn samples(&self) -> &[Sample] {
        match self {
            MonotoneEvidence::Tested(samples) | MonotoneEvidence::Recovers(samples) => samples,
            _ => &[],
        }
    }

    fn to_value(&self) -> Value {
        Value::record([
            ("known", Value::from(self.as_str())),
            ("on", Value::array(self.samples().iter().map(Sample::to_value))),
        ])
    }

    fn from_value(value: &Value) -> Option<MonotoneEvidence> {
        let sample = |value: &Value| {
            let turn = |value: &Value| {
                let turn = value.as_array()?;
                let verdict = match turn.get(1)?.as_str()? {
                    "violation" => Verdict::Violation,
                    "ok" => Verdict::Ok,
                    _ => return None,
                };
                Some((turn.get(0)?.as_u64()?, verdict))
            };
            Some(Sample {
                run: value.get("run")?.as_str()?.parse().ok()?,
                ticks: value.get("ticks")?.as_u64()?,
                tip: value.get("tip")?.as_str()?.parse().ok()?,
                turns: value.get("turns")?.as_array()?.iter().map(turn).collect::<Option<_>>()?,
            })
        };
        let samples = || value.get("on")?.as_array()?.iter().map(sample).collect::<Option<Vec<_>>>();
        Some(match value.get("known")?.as_str()? {
            "by construction" => MonotoneEvidence::ByConstruction,
            "lifted" => MonotoneEvidence::Lifted,
            "tested" => MonotoneEvidence::Tested(samples()?),
            "recovers" => MonotoneEvidence::Recovers(samples()?),
            "not tested" => MonotoneEvidence::Untested,
            _ => return None,
        })
    }
}

/// A registration.
#[derive(Debug, Clone)]
pub struct Registered {
    /// The predicate, with its name and version, lifted if it was registered so.
    pub predicate: Predicate,
    /// How it is known whether it recovers.
    pub known: MonotoneEvidence,
    /// The record.
    pub id: Digest,
    /// When it was registered.
    pub ts: Timestamp,
    /// The record that ended it, if one did.
    pub retired: Option<Digest>,
}

/// Every registration of a store.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// In order of registration.
    pub entries: Vec<Registered>,
    /// Registrations that are no longer there to be read, by the ids of their records: erased, withheld, or of a
    /// form that this version does not know.
    pub unreadable: Vec<Digest>,
}

impl Registry {
    /// Reads the registrations of a store.
    pub fn read(store: &impl ReadHandle) -> Result<Registry, Error> {
        let store = &*store.to_handle();
        let mut registry = Registry::default();
        let mut from = 0;
        loop {
            let batch = store.beside_runs(from, BATCH)?;
            let Some((last, _)) = batch.last() else { return Ok(registry) };
            from = last + 1;
            for (position, _) in batch.iter().filter(|(_, kind)| *kind == Kind::Register) {
                registry.take(&read(store, *position)?);
            }
        }
    }

    fn take(&mut self, record: &Record) {
        let content = record.content();
        match content.get("registers").and_then(Value::as_str) {
            Some("predicate") => {}
            // Something else that may be registered; only what is hidden can be a predicate.
            Some(_) => return,
            None => return self.unreadable.push(record.id()),
        }
        let name =
            content.get("predicate").and_then(|predicate| predicate.get("name")).and_then(Value::as_str);
        match (name, content.get("retired")) {
            (Some(name), Some(_)) => {
                let of_name = self.entries.iter_mut().filter(|entry| entry.predicate.name() == name);
                of_name.for_each(|entry| entry.retired = entry.retired.or(Some(record.id())));
            }
            (Some(_), None) => match Registered::of(record, &content) {
                Some(entry) => self.entries.push(entry),
                None => self.unreadable.push(record.id()),
            },
            (None, _) => self.unreadable.push(record.id()),
        }
    }

    /// Returns the newest registration of a name, retired or not.
    pub fn newest(&self, name: &str) -> Option<&Registered> {
        self.entries.iter().rev().find(|entry| entry.predicate.name() == name)
    }

    /// Lists the registrations of a name, oldest first.
    pub fn versions<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r Registered> {
        self.entries.iter().filter(move |entry| entry.predicate.name() == name)
    }

    /// Lists the registrations of a predicate under any name, oldest first.
    pub fn of_digest(&self, digest: Digest) -> impl Iterator<Item = &Registered> {
        self.entries.iter().filter(move |entry| entry.predicate.digest() == digest)
    }

    /// Returns a version that the name does not have yet: `v` and a number.
    pub fn next_version(&self, name: &str) -> String {
        let taken = |version: &str| self.versions(name).any(|entry| entry.predicate.version() == version);
        let mut number = 1u64;
        while taken(&format!("v{number}")) {
            number += 1;
        }
        format!("v{number}")
    }

    /// Returns the version to register a predicate under: the given one, the one it has under this name, or the next.
    /// Fails with the registration that gave this version to another predicate.
    pub fn version_for(
        &self,
        name: &str,
        predicate: &Predicate,
        given: Option<&str>,
    ) -> Result<String, &Registered> {
        let is_same = |entry: &&Registered| entry.predicate.digest() == predicate.digest();
        let known = || Some(self.versions(name).filter(is_same).last()?.predicate.version().to_owned());
        let version = given.map(str::to_owned).or_else(known).unwrap_or_else(|| self.next_version(name));
        let has_version = |entry: &&Registered| entry.predicate.version() == version;
        match self
            .entries
            .iter()
            .find(|entry| entry.predicate.name() == name && has_version(entry) && !is_same(entry))
        {
            Some(taken) => Err(taken),
            None => Ok(version),
        }
    }

    /// Returns the newest registration of the name of a predicate, if it is this one in every part and not retired.
    pub fn registered(&self, predicate: &Predicate, known: &MonotoneEvidence) -> Option<&Registered> {
        self.newest(predicate.name()).filter(|entry| {
            entry.retired.is_none()
                && entry.known == *known
                && entry.predicate.digest() == predicate.digest()
                && entry.predicate.version() == predicate.version()
        })
    }
}

impl Registered {
    fn of(record: &Record, content: &Value) -> Option<Registered> {
        let said = content.get("predicate")?;
        let text = |name: &str| said.get(name).and_then(Value::as_str);
        let window = Window::from_word(text("window")?)?;
        let name = text("name")?;
        let module = said.get("module").map(|module| tag::as_bytes(module).unwrap_or_default());
        let made = match (text("condition"), text("holds"), module) {
            (Some(expr), None, None) => Predicate::condition(name, expr).ok()?,
            (None, Some(expr), None) => Predicate::holds(name, expr).ok()?,
            // A predicate that another program let in is checked here, too.
            (None, None, Some(bytes)) => dendrer_wasm::predicate(name, &bytes).ok()?,
            _ => return None,
        };
        let predicate = made.named(name, text("version")?).at_window(window);
        let predicate = match text("lift") {
            None => predicate.monotone_by_text(),
            Some("monotone") => predicate.lifted(),
            Some(_) => return None,
        };
        let known = match MonotoneEvidence::from_value(content.get("monotone")?)? {
            // A record is not believed where the text does not show it.
            MonotoneEvidence::ByConstruction if !predicate.cannot_recover() => MonotoneEvidence::Untested,
            known => known,
        };
        // The digest is kept so that a reader whose language differs cannot take it for another predicate.
        if text("digest")? != predicate.digest().to_string() {
            return None;
        }
        let (id, ts) = (record.id(), record.header().ts);
        Some(Registered { predicate, known, id, ts, retired: None })
    }
}

/// A predicate was not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is no name for a predicate ([`is_name`]).
    #[error("\"{0}\" is not a name for a predicate")]
    Name(String),
    /// The version has another predicate.
    #[error("{} {} is another predicate", .0.name(), .0.version())]
    Taken(Box<Predicate>),
    /// The predicate needs more than its own text: a pack declares it, or it is an obligation, a progress contract or
    /// limited to some types.
    #[error("{0} needs the pack that declares it, and a name is registered for every run")]
    OfPack(String),
    /// The store cannot be read or written.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl RegisterError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            RegisterError::Name(_) => Code::E0513,
            RegisterError::Taken(_) => Code::E0514,
            RegisterError::OfPack(_) => Code::E0106,
            RegisterError::Failed(error) => error.code(),
        }
    }
}

/// Result of a registration.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The registration on record.
    pub entry: Registered,
    /// Whether a record was written. A predicate that is registered already in every part is not registered again.
    pub changed: bool,
}

/// Registers a predicate under its name, and under its version or, where that is empty, the one that the registry gives it.
/// `samples` are the runs it was judged on ([`Sample::take`]).
///
/// # Errors
///
/// Nothing is written for a text that cannot be a name, for a version that means another predicate, and for a predicate that needs its
/// pack.
pub fn register(
    store: &Shared,
    predicate: &Predicate,
    samples: Vec<Sample>,
    surroundings: &mut dyn Environment,
) -> Result<Registration, RegisterError> {
    let name = predicate.name();
    if !is_name(name) {
        return Err(RegisterError::Name(name.to_owned()));
    }
    let names = Registry::read(store)?;
    let given = Some(predicate.version()).filter(|version| !version.is_empty());
    let version = names
        .version_for(name, predicate, given)
        .map_err(|taken| RegisterError::Taken(Box::new(taken.predicate.clone())))?;
    let predicate = predicate.clone().named(name, &version).monotone_by_text();
    let known = MonotoneEvidence::of(&predicate, samples).after(names.of_digest(predicate.digest()));
    if let Some(entry) = names.registered(&predicate, &known) {
        return Ok(Registration { entry: entry.clone(), changed: false });
    }
    let is_plain = predicate.pack().is_none()
        && predicate.obligation().is_none()
        && predicate.progress().is_none()
        && predicate.scope().is_empty();
    if !is_plain {
        return Err(RegisterError::OfPack(name.to_owned()));
    }
    let asked = match (predicate.asked(), predicate.polarity()) {
        (Asking::Expr(expr), Polarity::Condition) => ("condition", Value::from(expr.text())),
        (Asking::Expr(expr), Polarity::Holds) => ("holds", Value::from(expr.text())),
        (Asking::Program(program), _) => ("module", tag::bytes(program.bytes())),
    };
    let lift = (predicate.monotone() == Monotone::Lifted).then_some(("lift", Value::from("monotone")));
    let said = Value::record(
        [
            ("name", Value::from(name)),
            ("version", Value::from(&*version)),
            asked,
            ("window", Value::from(predicate.window())),
            ("digest", Value::from(predicate.digest())),
        ]
        .into_iter()
        .chain(lift),
    );
    let content = [("predicate", said), ("monotone", known.to_value())];
    let record = commit(store, content, surroundings)?;
    let (id, ts) = (record.id(), record.header().ts);
    Ok(Registration { entry: Registered { predicate, known, id, ts, retired: None }, changed: true })
}

/// Ends a name: it resolves to nothing until it is registered again. `None` if no predicate has the name.
pub fn retire(
    store: &Shared,
    name: &str,
    surroundings: &mut dyn Environment,
) -> Result<Option<Record>, Error> {
    if Registry::read(store)?.newest(name).is_none_or(|entry| entry.retired.is_some()) {
        return Ok(None);
    }
    let content =
        [("predicate", Value::record([("name", Value::from(name))])), ("retired", Value::from(true))];
    commit(store, content, surroundings).map(Some)
}

fn commit(
    store: &Shared,
    content: [(&str, Value); 2],
    surroundings: &mut dyn Environment,
) -> Result<Record, Error> {
    let content = Value::record(content.into_iter().chain([("registers", Value::from("predicate"))]));
    let record = seal_by_institution(store.info().id, Kind::Register, None, &content, surroundings)?;
    store.clone().commit(std::slice::from_ref(&record))?;
    Ok(record)
}

/// Tells whether a text can be the name of a predicate: words joined by dots, like `acme.tax_compliance_v2`. The
/// names of the kernel, and what reads as a path of the state, are taken.
pub fn is_name(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'/'))
    };
    let first = text.split('.').next().unwrap_or_default();
    text.len() <= NAME_SIZE_MAX
        && text.contains('.')
        && text.split('.').all(word)
        && first.starts_with(|c: char| c.is_ascii_alphabetic())
        && !matches!(first, "state" | "kernel")
}

/// A predicate as files write it: `holds` or `condition`, and perhaps a name, a version, a window and a lift. The entry of a
/// contract in the dendrer paper, 3.3.3, is one as well: `id`, `base_predicate`, `bisect_predicate` and `pure`. Its text
/// stands for itself.
pub fn from_value(value: &Value, name: &str, version: &str) -> Result<Predicate, Unfit> {
    read_value(value, name, version, &|polarity, text| match polarity {
        Polarity::Holds => Predicate::holds("expression", text),
        Polarity::Condition => Predicate::condition("expression", text),
    })
}

/// The members of a predicate as files write it.
const MEMBERS: [&str; 11] = [
    "name",
    "id",
    "version",
    "words",
    "holds",
    "condition",
    "base_predicate",
    "window",
    "lift",
    "bisect_predicate",
    "pure",
];

/// As [`from_value`], where the caller knows what a text may use.
pub fn read_value(
    value: &Value,
    name: &str,
    version: &str,
    make: &dyn Fn(Polarity, &str) -> Result<Predicate, ExprError>,
) -> Result<Predicate, Unfit> {
    let object = value.as_object().ok_or(Unfit::Shape("a predicate is an object".to_owned()))?;
    if let Some((member, _)) = object.iter().find(|(member, _)| !MEMBERS.contains(&&***member)) {
        let near =
            dendrer_object::text::nearest(member, MEMBERS).map(|near| format!("; did you mean {near}?"));
        return Err(Unfit::Shape(format!("a predicate has no \"{member}\"{}", near.unwrap_or_default())));
    }
    let text = |member: &str| match object.get(member) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(Unfit::Shape(format!("{member} is text"))),
        },
    };
    if object.get("pure").is_some_and(|pure| *pure != Value::from(true)) {
        return Err(Unfit::Shape("pure is true: no expression is anything else".to_owned()));
    }
    // The id of an entry is a name inside its contract; whoever registers it says under which name.
    let id = text("id")?.filter(|_| name.is_empty());
    let name = text("name")?.or(id).unwrap_or(name);
    let version = text("version")?.unwrap_or(version);
    let forms = [
        text("holds")?.map(|expr| make(Polarity::Holds, expr)),
        text("condition")?.map(|expr| make(Polarity::Condition, expr)),
        text("base_predicate")?.map(|expr| make(Polarity::Condition, expr)),
    ];
    let mut given = forms.into_iter().flatten();
    let (Some(made), None) = (given.next(), given.next()) else {
        return Err(Unfit::Shape("a predicate has exactly one of holds and condition".to_owned()));
    };
    let window = text("window")?.map_or(Some(Window::After), Window::from_word);
    let window = window.ok_or_else(|| Unfit::Shape("a window is after or before".to_owned()))?;
    let predicate = made.map_err(Unfit::Expr)?.named(name, version).at_window(window);
    match (text("lift")?, text("bisect_predicate")?) {
        (None, None) => Ok(predicate),
        (Some("monotone"), None) | (None, Some(MONOTONE_LIFT)) => Ok(predicate.lifted()),
        (None, Some(_)) => Err(Unfit::Shape(format!("a bisect_predicate is {MONOTONE_LIFT}"))),
        (Some(_), _) => Err(Unfit::Shape("the only lift is monotone".to_owned())),
    }
}

/// The word of a contract's entry for a lift (dendrer paper 3.3.3).
pub use dendrer_kernel::pack::MONOTONE_LIFT;

/// Why a value is not a predicate.
#[derive(Debug)]
pub enum Unfit {
    /// It has not the form of one.
    Shape(String),
    /// Its expression does not check.
    Expr(ExprError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dotted_words_that_mean_nothing_else() {
        for good in ["acme.tax_compliance_v2", "ws.risk_threshold", "insurance.claims/over_limit_payout"] {
            assert!(is_name(good), "{good}");
        }
        let long = format!("a.{}", "x".repeat(NAME_SIZE_MAX));
        for bad in ["", "plain", "state.x", "kernel.mine", "a..b", "a.", ".a", "1.5", "a.b c", "a.b()", &long]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
