//! Finds parts of a pack that are allowed and most likely not meant (dendrer paper 4.4 and 9.4).
//!
//! Reads packs without faults. Every finding has a place, a reason and a remedy.
//!
//! Rule: report nothing that may be right, or the findings go unread.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::number::round_half_even;
use dendrer_object::text::nearest;
use dendrer_object::{Code, Pointer, TypeName, Value, tag};

use super::writes::Sound;
use super::{Effect, Pack, PackEngine};
use crate::contract::{Contract, Match, Required, path_of};
use crate::expr::{Expr, Literal, NamedComparison, NamedPlace, Span};
use crate::fold::{Act, Rule, Step, Template, Write};
use crate::names::{COUNTERS, KERNEL_PATHS};
use crate::ontology;
use crate::predicate::Polarity;

/// How many findings are kept; a pack with more is not better understood by more.
const FINDINGS_MAX: usize = 1000;

/// Something in a pack that is most likely not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// Place in the pack.
    pub path: Pointer,
    /// Whether it is about the name of the member there and not about its value.
    pub at_name: bool,
    /// Span in the text at `path`.
    pub span: Option<Span>,
    /// One sentence that says what there is.
    pub message: String,
    /// The consequence.
    pub why: String,
    /// The change to make.
    pub step: String,
}

impl LintFinding {
    fn new(
        code: Code,
        path: Pointer,
        message: impl Into<String>,
        why: impl Into<String>,
        step: impl Into<String>,
    ) -> LintFinding {
        let (message, why, step) = (message.into(), why.into(), step.into());
        LintFinding { code, path, at_name: false, span: None, message, why, step }
    }

    fn spanning(self, span: Span) -> LintFinding {
        LintFinding { span: Some(span), ..self }
    }

    fn of_name(self) -> LintFinding {
        LintFinding { at_name: true, ..self }
    }
}

/// An expression of the pack, and its purpose.
struct Text<'p> {
    path: Pointer,
    expr: &'p Expr,
    what: What<'p>,
}

#[derive(Clone, Copy)]
enum What<'p> {
    Predicate,
    /// The condition of a rule, or of one of its steps.
    Condition(&'p Rule),
    /// A value that a rule computes.
    Value,
    Match,
}

struct Linter<'p> {
    pack: &'p Pack,
    texts: Vec<Text<'p>>,
    found: Vec<LintFinding>,
}

impl Pack {
    /// Looks for what is most likely not meant. In the order of the pack's members, each place once for each code.
    pub fn lint(&self) -> Vec<LintFinding> {
        let mut linter = Linter { pack: self, texts: texts(self), found: Vec::new() };
        linter.words();
        linter.commitments();
        linter.policy();
        linter.precisions();
        linter.guard_bands();
        linter.uncovered();
        linter.unreachable();
        linter.unmeetable();
        linter.open_fields();
        linter.never_missing();
        linter.may_be_missing();
        linter.moments_as_texts();
        linter.found
    }

    /// Judges what the text of a pack says of a predicate: that it cannot recover. The claim is the member
    /// `monotone` of an entry of `predicates` or `violations`, whose place is given; nothing where the claim holds or the
    /// first violation is what counts (dendrer paper, appendix G, with its fault).
    pub fn judge_claim(&self, claim: &Pointer) -> Option<LintFinding> {
        let tokens: Vec<_> = claim.tokens().collect();
        let [kind, entry, _] = &tokens[..] else { return None };
        let name = match &**kind {
            "violations" => {
                let list = self.value.get("violations")?.as_array()?;
                list.get(entry.parse().ok()?)?.get("id")?.as_str()?
            }
            _ => entry,
        };
        let Sound::Unknown { turned_by } = self.sound(self.predicate(name)?) else { return None };
        let why = match &turned_by[..] {
            [] => "nothing that is known of what it reads keeps it from recovering".to_owned(),
            rules => {
                let names = rules.iter().filter_map(|rule| self.rule_names().nth(rule - 1));
                format!("{} may turn it back", names.collect::<Vec<_>>().join(", "))
            }
        };
        let message = format!("{name} is said to be monotone, and can recover");
        let step = "take `monotone` out and write `bisect_predicate: monotone_lift`, so that its first violation counts; or keep in a field of the state that it happened";
        Some(LintFinding::new(Code::W0444, claim.clone(), message, why, step).of_name())
    }
}

/// Collects every expression over the state that is a question or a write.
fn texts(pack: &Pack) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    for declared in &pack.predicates {
        let path = predicate_path(&pack.value, declared.predicate.name());
        if let (Some(expr), Some(path)) = (declared.predicate.expr(), path) {
            texts.push(Text { path, expr, what: What::Predicate });
        }
    }
    for (name, contract) in &pack.contracts.types {
        for (field, rule) in &contract.matches {
            if let Match::Holds(expr) = rule {
                let path = Pointer::of(["contracts", name.as_str(), "match", &tag::stored_name(field)]);
                texts.push(Text { path, expr, what: What::Match });
            }
        }
    }
    for (index, rule) in pack.fold.rules.iter().enumerate() {
        let path = Pointer::of(["rules", &index.to_string()]);
        if let Some(expr) = &rule.when {
            texts.push(Text { path: below(&path, &["when"]), expr, what: What::Condition(rule) });
        }
        step_texts(rule, &rule.steps, &path, &mut texts);
    }
    texts
}

fn step_texts<'p>(rule: &'p Rule, steps: &'p [Step], parent: &Pointer, texts: &mut Vec<Text<'p>>) {
    for (index, step) in steps.iter().enumerate() {
        let path = below(parent, &["steps", &index.to_string()]);
        if let Some(expr) = &step.condition {
            texts.push(Text { path: below(&path, &["if"]), expr, what: What::Condition(rule) });
        }
        match &step.act {
            Act::Let(values) => values
                .iter()
                .for_each(|(name, value)| template_texts(value, &below(&path, &["let", name]), texts)),
            Act::Each { list, steps, .. } => {
                let path_in = below(&path, &["each", "in"]);
                texts.push(Text { path: path_in, expr: list, what: What::Value });
                step_texts(rule, steps, &path, texts);
            }
            Act::Write { kind: Write::Set(value) | Write::Append(value) | Write::Add(value), .. } => {
                template_texts(value, &below(&path, &["value"]), texts);
            }
            Act::Write { .. } => {}
        }
    }
}

fn template_texts<'p>(template: &'p Template, path: &Pointer, texts: &mut Vec<Text<'p>>) {
    match template {
        Template::Literal(_) => {}
        Template::Expr(expr) => texts.push(Text { path: path.clone(), expr, what: What::Value }),
        Template::List(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, item)| template_texts(item, &below(path, &[&index.to_string()]), texts)),
        Template::Map(members) => {
            members.iter().for_each(|(name, member)| template_texts(member, &below(path, &[name]), texts));
        }
    }
}

fn below(path: &Pointer, names: &[&str]) -> Pointer {
    let tokens: Vec<_> = path.tokens().collect();
    Pointer::of(tokens.iter().map(|token| &**token).chain(names.iter().copied()))
}

/// Finds the place of the expression of a predicate.
fn predicate_path(pack: &Value, name: &str) -> Option<Pointer> {
    let form = |entry: &Value| {
        ["holds", "condition", "base_predicate"].into_iter().find(|form| entry.get(form).is_some())
    };
    if let Some(entry) = pack.get("predicates").and_then(|map| map.get(name)) {
        return Some(Pointer::of(["predicates", name, form(entry)?]));
    }
    let listed = |member: &str| {
        let list = pack.get(member)?.as_array()?;
        let is_it = |entry: &Value| entry.get("id").and_then(Value::as_str) == Some(name);
        list.iter().enumerate().find(|(_, entry)| is_it(entry))
    };
    if let Some((index, entry)) = listed("violations") {
        return Some(Pointer::of(["violations", &index.to_string(), form(entry)?]));
    }
    let (index, _) = listed("progress_contracts")?;
    Some(Pointer::of(["progress_contracts", &index.to_string(), "violation"]))
}

mod commitments;
mod doors;

impl<'p> Linter<'p> {
    fn push(&mut self, finding: LintFinding) {
        let same = |other: &LintFinding| {
            (other.code, &other.path, other.span) == (finding.code, &finding.path, finding.span)
                && (other.span.is_some() || other.message == finding.message)
        };
        if self.found.len() < FINDINGS_MAX && !self.found.iter().any(same) {
            self.found.push(finding);
        }
    }

    /// Every comparison of the pack with its place: in a text, or in the definition that the text uses.
    fn comparisons(&self, wanted: impl Fn(&What<'p>) -> bool) -> Vec<(Pointer, NamedComparison)> {
        let mut all = Vec::new();
        for text in self.texts.iter().filter(|text| wanted(&text.what)) {
            for one in text.expr.comparisons() {
                let path = match &one.definition {
                    Some(name) => self.definition_path(name).unwrap_or_else(|| text.path.clone()),
                    None => text.path.clone(),
                };
                all.push((path, one));
            }
        }
        all
    }

    fn definition_path(&self, name: &str) -> Option<Pointer> {
        let definitions = self.pack.value.get("define")?.as_object()?;
        let signature = definitions
            .iter()
            .map(|(signature, _)| signature)
            .find(|signature| signature.split('(').next().unwrap_or_default().trim() == name)?;
        Some(Pointer::of(["define", signature]))
    }

    /// Words in conditions that nothing is ever called: tools, types, authors, effects.
    fn words(&mut self) {
        let types = ontology::TYPES.iter().map(|(name, _)| *name);
        let types: Vec<&str> = types.chain(self.pack.types.keys().map(TypeName::as_str)).collect();
        let tools: Vec<&str> = self.pack.tools.iter().map(|tool| &*tool.name).collect();
        let effects = Effect::WORDS.to_vec();
        let known: [(&[&str], &str, Vec<&str>); 4] = [
            (&["type"], "transition type", types),
            (&["action", "tool"], "tool", tools),
            (&["author"], "author", vec!["agent", "runtime", "user"]),
            (&["effect"], "effect", effects),
        ];
        for (path, one) in self.comparisons(|_| true) {
            for (names, what, words) in &known {
                let is_it = one.places.len() == 1 && one.places[0].is("t", names);
                // A pack that declares no tools says nothing about their names.
                if !is_it || words.is_empty() || !matches!(one.symbol, "==" | "!=" | "in") {
                    continue;
                }
                for literal in &one.literals {
                    for word in texts_of(&literal.value).filter(|word| !words.contains(word)) {
                        let near = nearest(word, words.iter().copied());
                        let hint = near.map_or_else(
                            || format!("declare it, or write one of {}", some(words)),
                            |near| format!("did you mean {near}?"),
                        );
                        let message = format!("there is no {what} {word:?}");
                        let why = "nothing is ever called so, so that the comparison always says the same";
                        self.push(
                            LintFinding::new(Code::W0447, path.clone(), message, why, hint)
                                .spanning(literal.span),
                        );
                    }
                }
            }
        }
    }

    /// To how many decimals a place is kept; `Err` says to how many a contract counts what is kept as it comes.
    fn decimals(&self, place: &NamedPlace) -> Option<Result<u8, u8>> {
        if !matches!(&*place.root, "state" | "before" | "source" | "target") {
            return None;
        }
        if let [name] = &place.names[..]
            && let Some(decimals) = self.pack.fields.iter().find(|field| field.name == *name)?.decimals
        {
            return Some(Ok(decimals));
        }
        let name = place.names.iter().map(|name| &**name).collect::<Vec<_>>().join(".");
        let required = self.required().filter(|(_, required)| *required.name == *name);
        required.filter_map(|(_, required)| required.precision).max().map(Err)
    }

    fn required(&self) -> impl Iterator<Item = (&'p TypeName, &'p Required)> + use<'p> {
        let contracts = self.pack.contracts.types.iter();
        contracts.flat_map(|(name, contract)| contract.required.iter().map(move |required| (name, required)))
    }

    fn precisions(&mut self) {
        for (path, one) in self.comparisons(|what| !matches!(what, What::Value)) {
            let known: Vec<Result<u8, u8>> =
                one.places.iter().filter_map(|place| self.decimals(place)).collect();
            if known.is_empty() || known.len() != one.places.len() || !one.is_whole {
                continue;
            }
            let count = |known: &Result<u8, u8>| known.unwrap_or_else(|counted| counted);
            let finest = known.iter().map(count).max().unwrap_or(0);
            for literal in one.literals.iter().filter(|literal| is_finer(literal, finest)) {
                let message = format!(
                    "{} has more than the {finest} decimals of {}",
                    shown(literal),
                    names(&one.places)
                );
                let why =
                    "no value of the field is that fine, so that the threshold is not where it is written";
                let step = format!("write it with {finest} decimals");
                self.push(
                    LintFinding::new(Code::W0441, path.clone(), message, why, step).spanning(literal.span),
                );
            }
            if let ([Ok(first), Ok(second)], true) = (&known[..], one.literals.is_empty())
                && first != second
            {
                let message =
                    format!("{} are kept to {first} and {second} decimals and compared", names(&one.places));
                let why = "the coarser one was rounded: values that differ by less than its last decimal compare either way";
                let step = "give both fields the same `decimals`";
                self.push(LintFinding::new(Code::W0441, path, message, why, step).spanning(one.span));
            }
        }
        // Finds values that an import takes for equal and a predicate does not.
        let reads: Vec<Pointer> = self
            .pack
            .predicates
            .iter()
            .flat_map(|declared| declared.predicate.expr().into_iter().flat_map(Expr::read_set))
            .cloned()
            .collect();
        for (type_name, required) in self.required() {
            let Some(precision) = required.precision else { continue };
            let place = path_of(&required.name);
            let kept = self.pack.fields.iter().find(|field| *field.name == *required.name);
            let is_kept = kept.is_some_and(|field| field.decimals.is_some());
            if is_kept || !reads.iter().any(|read| read.overlaps(&place)) {
                continue;
            }
            let path =
                Pointer::of(["contracts", type_name.as_str(), "required_state", &required.name, "precision"]);
            let message = format!(
                "{} counts to {precision} decimals here, and the state keeps all of them",
                required.name
            );
            let why = "two values that an import takes for equal can be judged differently by a predicate";
            let step = format!(
                "keep the field to as many: `decimals: {precision}` under state, in a field of its own"
            );
            self.push(LintFinding::new(Code::W0441, path, message, why, step));
        }
    }

    /// A threshold written to the last decimal that its field is kept to: rounding alone may cross it (paper 9.4).
    fn guard_bands(&mut self) {
        for (path, one) in self.comparisons(|what| matches!(what, What::Predicate)) {
            let ([place], [literal], true) = (&one.places[..], &one.literals[..], one.is_whole) else {
                continue;
            };
            let Some(Ok(kept)) = self.decimals(place) else { continue };
            let orders = matches!(one.symbol, "<" | "<=" | ">" | ">=");
            if !orders || kept == 0 || literal.decimals != Some(kept) {
                continue;
            }
            let message = format!(
                "{} is a threshold at the last of the {kept} decimals of {}",
                shown(literal),
                names(&one.places)
            );
            let why = "rounding alone may put a value on it or beyond: what differs in nothing that matters is judged differently";
            let step = format!(
                "put the threshold a step further than what is meant and write it with {} (0.86 and not 0.850), or keep the field to one decimal more",
                match kept - 1 {
                    0 => "no decimals".to_owned(),
                    1 => "at most 1 decimal".to_owned(),
                    most => format!("at most {most} decimals"),
                }
            );
            self.push(LintFinding::new(Code::W0442, path, message, why, step).spanning(literal.span));
        }
    }

    /// Predicates that read what no contract requires, so that an import compares nothing of it (D-187).
    fn uncovered(&mut self) {
        if self.pack.contracts.types.is_empty() || self.pack.engine != PackEngine::Fold {
            return;
        }
        let pack = self.pack;
        for declared in &pack.predicates {
            let Some(path) = predicate_path(&pack.value, declared.predicate.name()) else { continue };
            let mut lacking: Vec<&Pointer> = Vec::new();
            for place in declared.predicate.expr().into_iter().flat_map(Expr::read_set) {
                if !self.is_covered(place, &mut BTreeSet::new()) {
                    lacking.push(place);
                }
            }
            if lacking.is_empty() {
                continue;
            }
            let fields: Vec<String> = lacking.iter().map(|place| place.in_state()).collect();
            let fields = fields.join(", ");
            let message = format!("{} reads {fields}, which no contract requires", declared.predicate.name());
            let why = "a transition is committed where it is missing and imported where it is another, and then the predicate says something else or nothing";
            let step = format!("add {fields} to required_state of the types that it judges");
            self.push(LintFinding::new(Code::W0443, path, message, why, step));
        }
    }

    /// Whether a contract requires a place, or it follows from what contracts require: begun the same in every run and
    /// written only where a contract is kept, by rules that look at nothing else of the state.
    fn is_covered(&self, place: &Pointer, open: &mut BTreeSet<Arc<str>>) -> bool {
        let Some(top) = place.tokens().next() else { return false };
        if *top == *COUNTERS || KERNEL_PATHS.contains(&&*top) {
            return true;
        }
        let is_required = |required: &Required| path_of(&required.name).overlaps(place);
        if self.required().any(|(_, required)| is_required(required)) {
            return true;
        }
        let Some(field) = self.pack.fields.iter().find(|field| *field.stored() == *top) else { return false };
        // A field that depends on itself depends on its other sources.
        if !open.insert(Arc::clone(&field.name)) {
            return true;
        }
        self.pack.fixed_init(&field.name).is_some()
            && field.written_by.iter().all(|number| {
                let rule = &self.pack.fold.rules[number - 1];
                let contracts = &self.pack.contracts.types;
                let is_kept =
                    |types: &BTreeSet<TypeName>| types.iter().all(|name| contracts.contains_key(name));
                if !rule.types.as_ref().is_some_and(is_kept) {
                    return false;
                }
                let mut reads: Vec<Pointer> = Vec::new();
                let mut note = |expr: &Expr| {
                    reads.extend(expr.read_set().iter().chain(expr.reads_of("before")).cloned());
                };
                rule.when.iter().for_each(&mut note);
                crate::fold::steps_exprs(&rule.steps, &mut note);
                reads.iter().all(|read| self.is_covered(read, open))
            })
    }

    fn unreachable(&mut self) {
        let is_told: Vec<Pointer> = self.found.iter().map(|finding| finding.path.clone()).collect();
        let never = |path, message: String, step: &str| {
            let why = "what stands there never happens, so that a reader is told something that is not so";
            LintFinding::new(Code::W0445, path, message, why, step)
        };
        let mut found = Vec::new();
        for (index, rule) in self.pack.fold.rules.iter().enumerate() {
            let is_unasked =
                |types: &BTreeSet<TypeName>| !types.is_empty() && !types.iter().any(ontology::asks_rules);
            if rule.types.as_ref().is_some_and(is_unasked) {
                let path = Pointer::of(["rules", &index.to_string(), "when_type"]);
                let message = format!(
                    "{} is for what the kernel or the institution writes, and no rule is asked then",
                    rule.place
                );
                found.push(never(path, message, "take the rule out, or name a type that is proposed"));
            }
        }
        for text in &self.texts {
            let What::Condition(rule) = text.what else { continue };
            if is_told.contains(&text.path) || !text.expr.is_never(&given(rule)) {
                continue;
            }
            let message = format!("this condition of {} is never true", rule.place);
            found.push(never(text.path.clone(), message, "mend the condition, or take out what it guards"));
        }
        for declared in &self.pack.predicates {
            let predicate = &declared.predicate;
            let violates = predicate.polarity() == Polarity::Condition;
            let Some(expr) = predicate.expr() else { continue };
            // A progress contract or an obligation has more than the text of its expression.
            if predicate.obligation().is_some() || predicate.progress().is_some() {
                continue;
            }
            let Some(path) = predicate_path(&self.pack.value, predicate.name()) else { continue };
            if !is_told.contains(&path) && expr.can_never_be(violates, &[]) {
                let message = format!("{} can never be violated", predicate.name());
                found.push(never(path, message, "mend the condition, or take it out: it forbids nothing"));
            }
        }
        found.into_iter().for_each(|finding| self.push(finding));
    }

    /// Contracts that no state of a run can meet.
    fn unmeetable(&mut self) {
        if self.pack.engine != PackEngine::Fold {
            return;
        }
        let pack = self.pack;
        for (name, contract) in &pack.contracts.types {
            for required in &contract.required {
                let Some(value) = never_written(pack, required) else { continue };
                let path = match pack.value.get("contracts").and_then(|all| {
                    all.get(name.as_str())?.get("required_state")?.get(&tag::stored_name(&required.name))
                }) {
                    Some(_) => Pointer::of([
                        "contracts",
                        name.as_str(),
                        "required_state",
                        &tag::stored_name(&required.name),
                    ]),
                    None => Pointer::of(["contracts", name.as_str(), "hash_seeds"]),
                };
                let Some(lack) = lack_of(contract, required, &value) else { continue };
                let message = format!("{} can never be what {name} requires: {lack}", required.name);
                let why = format!(
                    "no rule writes it, and it begins as {value} in every run, so that {name} is always refused"
                );
                let step =
                    "write a rule that sets it, begin it with what the run is given, or make it nullable";
                self.push(LintFinding::new(Code::W0446, path, message, why, step));
            }
        }
    }
}

/// The value that a required top-level field has for ever, if it has one.
fn never_written(pack: &Pack, required: &Required) -> Option<Value> {
    let field = pack.fields.iter().find(|field| *field.name == *required.name)?;
    field.written_by.is_empty().then(|| pack.fixed_init(&field.name))?
}

fn lack_of(contract: &Contract, required: &Required, value: &Value) -> Option<Arc<str>> {
    let state = Value::record([(tag::stored_name(&required.name), value.clone())]);
    contract
        .check(&state)
        .into_iter()
        .find(|lack| lack.name == required.name)
        .map(|lack| lack.why.to_string().into())
}

/// Returns places of a transition, each with the values that it can have under a rule.
fn given(rule: &Rule) -> Vec<(NamedPlace, Vec<Value>)> {
    let place = |name: &str| NamedPlace { root: "t".into(), names: vec![name.into()] };
    let mut given = vec![(place("author"), ["agent", "runtime", "user"].map(Value::from).to_vec())];
    if let Some(types) = &rule.types {
        given.push((place("type"), types.iter().map(|name| Value::from(name.as_str())).collect()));
    }
    given
}

fn is_finer(literal: &Literal, decimals: u8) -> bool {
    literal.value.as_f64().is_some_and(|value| round_half_even(value, decimals) != value)
}

fn shown(literal: &Literal) -> String {
    match &literal.constant {
        Some(name) => format!("{name}, {},", literal.value),
        None => literal.value.to_string(),
    }
}

fn names(places: &[NamedPlace]) -> String {
    let name = |place: &NamedPlace| {
        let names: Vec<&str> = place.names.iter().map(|name| &**name).collect();
        format!("{}.{}", place.root, names.join("."))
    };
    places.iter().map(name).collect::<Vec<_>>().join(" and ")
}

fn some(words: &[&str]) -> String {
    let shown = words.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if words.len() > 8 { format!("{shown} and {} more", words.len() - 8) } else { shown }
}

fn texts_of(value: &Value) -> impl Iterator<Item = &str> {
    let own = value.as_str();
    let inside = value.as_array().into_iter().flat_map(|list| list.iter().filter_map(Value::as_str));
    own.into_iter().chain(inside)
}

#[cfg(test)]
mod tests;
