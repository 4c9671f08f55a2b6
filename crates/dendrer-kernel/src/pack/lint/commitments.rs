//! Findings about the commitments of a pack: they are tested as predicates are (design, section 14.2).
//!
//! Rule: a finding is about a name or a value that can never be what the pack states; test
//! `commitments_are_tested_as_predicates_are`.

use std::collections::BTreeSet;

use dendrer_object::text::nearest;
use dendrer_object::{Code, Pointer, Value};

use super::{LintFinding, Linter, some, texts_of};
use crate::commitment::{EXPRESSIONS, INITIAL, TRUST, condition, scope_of_pack};
use crate::expr::{Expr, Scope};
use crate::names::STATE_FIELDS;
use crate::policy;

/// Members of a commitment with ids of others.
const NAMING: [&str; 5] = ["conflicts", "depends_on", "refines", "support", "supersedes"];

impl Linter<'_> {
    /// Unknown tools, values of another type than a field, places that are no field, ids of nothing, and hard commitments that
    /// forbid nothing.
    pub(super) fn commitments(&mut self) {
        let value = self.pack.value.clone();
        let items: Vec<Value> = value
            .get(INITIAL)
            .and_then(Value::as_array)
            .map(|list| list.iter().cloned().collect())
            .unwrap_or_default();
        let scope = scope_of_pack(Some(&value));
        let ids: BTreeSet<&str> = items.iter().filter_map(|item| item.get("id")?.as_str()).collect();
        for (number, item) in items.iter().enumerate() {
            let at = |member: &str| Pointer::of([INITIAL, &number.to_string(), member]);
            for name in EXPRESSIONS {
                let text = item.get(name).and_then(Value::as_str);
                if let Some(expr) = text.and_then(|text| condition(text, &scope).ok()) {
                    self.words_of_calls(&at(name), &expr, ("action", &["tool"]));
                }
            }
            for name in NAMING {
                for other in item.get(name).into_iter().flat_map(texts_of).filter(|id| !ids.contains(id)) {
                    self.unknown(at(name), "commitment", other, ids.iter().copied().collect());
                }
            }
            self.watched(&at("watch"), item);
            self.forbids_nothing(&Pointer::of([INITIAL, &number.to_string()]), item, &scope);
        }
        let tools: Vec<&str> = self.pack.tools.iter().map(|tool| &*tool.name).collect();
        let trusted = value.get(TRUST).and_then(|trust| trust.get("tools"));
        for (number, tool) in trusted.into_iter().flat_map(texts_of).enumerate() {
            if !tools.is_empty() && !tools.contains(&tool) {
                let path = Pointer::of([TRUST, "tools", &number.to_string()]);
                self.unknown(path, "tool", tool, tools.clone());
            }
        }
    }

    fn unknown(&mut self, path: Pointer, what: &str, word: &str, known: Vec<&str>) {
        let hint = nearest(word, known.iter().copied()).map_or_else(
            || format!("declare it, or write one of {}", some(&known)),
            |near| format!("did you mean {near}?"),
        );
        let message = format!("there is no {what} {word:?}");
        let why = "nothing is ever called so, so that what names it has no effect or cannot be judged";
        self.push(LintFinding::new(Code::W0447, path, message, why, hint));
    }

    /// Names of tools, and values of another type than the field begins with.
    fn words_of_calls(&mut self, path: &Pointer, expr: &Expr, (root, tool): (&str, &[&str])) {
        let tools: Vec<&str> = self.pack.tools.iter().map(|tool| &*tool.name).collect();
        for one in expr.comparisons() {
            let [place] = &one.places[..] else { continue };
            if place.is(root, tool) && !tools.is_empty() {
                for literal in &one.literals {
                    for word in texts_of(&literal.value).filter(|word| !tools.contains(word)) {
                        let hint = nearest(word, tools.iter().copied()).map_or_else(
                            || format!("declare it, or write one of {}", some(&tools)),
                            |near| format!("did you mean {near}?"),
                        );
                        let message = format!("there is no tool {word:?}");
                        let why = "nothing is ever called so, so that the comparison always says the same";
                        let finding = LintFinding::new(Code::W0447, path.clone(), message, why, hint);
                        self.push(finding.spanning(literal.span));
                    }
                }
            }
            let ([name], "state") = (&place.names[..], &*place.root) else { continue };
            let Some(begins) = self.pack.fixed_init(name).map(|value| kind(&value)) else { continue };
            for literal in one.literals.iter().filter(|_| matches!(one.symbol, "==" | "!=")) {
                let found = kind(&literal.value);
                if begins != "null" && found != "null" && found != begins {
                    let message = format!("state.{name} begins as a {begins} and is compared with a {found}");
                    let why = "two values of different types are never equal";
                    let step = format!("compare with a {begins}");
                    let finding = LintFinding::new(Code::W0445, path.clone(), message, why, step);
                    self.push(finding.spanning(literal.span));
                }
            }
        }
    }

    /// Tools and fields of policy rules that the pack does not declare: such a rule is never judged, or always has the same verdict.
    pub(super) fn policy(&mut self) {
        let fields: Vec<&str> = self.pack.fields.iter().map(|field| &*field.name).collect();
        let rules = self.pack.policy.clone();
        for (number, rule) in rules.iter().enumerate() {
            let Some(expr) = policy::expression(rule) else { continue };
            let path = Pointer::of(["policy", &number.to_string(), "holds"]);
            self.words_of_calls(&path, &expr, ("t", &["action", "tool"]));
            for name in expr.read_set().iter().filter_map(|place| place.tokens().next()) {
                if !fields.is_empty() && !fields.contains(&&*name) && !STATE_FIELDS.contains(&&*name) {
                    self.unknown(path.clone(), "field", &name, fields.clone());
                }
            }
        }
    }

    /// Watched names that are a slip of a field. Any other is a name that atoms touch.
    fn watched(&mut self, path: &Pointer, item: &Value) {
        let fields: Vec<&str> = self.pack.fields.iter().map(|field| &*field.name).collect();
        for watched in item.get("watch").into_iter().flat_map(texts_of) {
            let name = watched.trim_start_matches('/').split(['.', '/']).next().unwrap_or_default();
            if fields.contains(&name) {
                continue;
            }
            if let Some(near) = nearest(name, fields.iter().copied()) {
                let message = format!("there is no field {name:?}");
                let why = "no write ever meets it, so that it never makes anything stale";
                let step = format!("did you mean {near}?");
                self.push(LintFinding::new(Code::W0447, path.clone(), message, why, step));
            }
        }
    }

    /// A hard commitment that no call can violate.
    fn forbids_nothing(&mut self, path: &Pointer, item: &Value, scope: &Scope) {
        if item.get("hard").and_then(Value::as_bool) != Some(true) {
            return;
        }
        let read = |name: &str| {
            let text = item.get(name).and_then(Value::as_str)?;
            condition(text, scope).ok()
        };
        let (holds, violated, guard) = (read("holds"), read("condition"), read("guard"));
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
        let has_text = ["holds", "condition"].iter().any(|name| item.get(name).is_some());
        let message = if !has_text {
            format!("{id} is hard and has neither holds nor condition")
        } else if holds.is_some_and(|expr| expr.can_never_be(false, &[]))
            || violated.is_some_and(|expr| expr.can_never_be(true, &[]))
            || guard.is_some_and(|expr| expr.can_never_be(true, &[]))
        {
            format!("{id} can never be violated")
        } else {
            return;
        };
        let why = "no call is ever refused by it, so that it binds in name alone";
        let step = "say in holds what a call must meet, or in condition what it must not";
        self.push(LintFinding::new(Code::W0445, path.clone(), message, why, step));
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        _ => "map",
    }
}
