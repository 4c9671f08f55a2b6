//! Evaluates macros: what is done with every member of a list or a map.
//!
//! A list or map of the data is walked in place, without a copy.
//!
//! Rule: the variables of a member are removed again on every way out: a value, an error or an early end.

use std::sync::Arc;

use dendrer_object::{Value, tag};

use super::ast::{Base, Comprehension, Kind};
use super::error::{EvalError, Span, shown};
use super::eval::{MADE, Machine, one_more, user_name, wrong};
use super::functions::Macro;
use super::met::{path_of, uncertain};
use super::number::Num;
use super::print;
use super::view::{Val, View, tag_of};

/// Called with a key and its member; returns whether to continue.
type Visit<'f, 'a, 'b> = dyn FnMut(&mut Machine<'a, 'b>, &Val<'a>, Val<'a>) -> Result<bool, EvalError> + 'f;

/// Returns whether the one variable of a comprehension is bound to the keys of a map.
fn over_map(node: &Comprehension, key: &Val<'_>) -> bool {
    node.variables.len() == 1 && matches!(key, Val::Made(..))
}

/// Says of an error at a member which member that was.
fn located(error: EvalError, node: &Comprehension, key: &Val<'_>) -> EvalError {
    let EvalError::Uncertain(mut why) = error else { return error };
    let (Some(variable), Kind::Path(over)) = (node.variables.last(), &node.range.kind) else {
        return EvalError::Uncertain(why);
    };
    let rest = why.path.as_deref().and_then(|path| path.strip_prefix(&**variable));
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    if let Some(rest) = rest
        && !over_map(node, key)
        && !matches!(over.base, Base::Node(_))
    {
        let mut place = print::print(&node.range);
        match key.view() {
            View::Text(name) => print::push_name(&shown(name), &mut place),
            View::Num(at) => place.push_str(&format!("[{}]", Val::Num(at).into_value())),
            _ => {}
        }
        why.path = Some(format!("{place}{rest}"));
        why.message.push_str(&format!(", where {variable} is {place}"));
    }
    EvalError::Uncertain(why)
}

impl<'a, 'b> Machine<'a, 'b> {
    pub(super) fn comprehend(&mut self, node: &'a Comprehension, span: Span) -> Result<Val<'a>, EvalError> {
        if node.kind.is_test() {
            return self.test(node).map(Val::Bool);
        }
        self.budget.spend(MADE)?;
        let mut items: Vec<Value> = Vec::new();
        let mut levels = 0;
        let mut pairs = Vec::new();
        self.each(node, &mut |machine, key, member| {
            if let Some(filter) = &node.filter
                && !machine.truth(filter, node.kind.name(2))?
            {
                return Ok(true);
            }
            let mut take = |machine: &mut Self, value: Val<'a>| {
                machine.budget.spend(1)?;
                levels = levels.max(value.levels());
                items.push(value.into_value());
                Ok(())
            };
            match node.kind {
                Macro::Filter if !machine.truth(&node.body, "filter")? => {}
                Macro::Filter => take(machine, if over_map(node, key) { key.clone() } else { member })?,
                Macro::TransformMap => {
                    let View::Text(name) = key.view() else {
                        let message = "the names of a map are strings, and a list has indexes".to_owned();
                        let hint = "write a.transformMapEntry(i, x, {key: value})".to_owned();
                        return Err(uncertain(node.range.span, path_of(&node.range), message, Some(hint)));
                    };
                    machine.budget.spend(4)?;
                    pairs.push((tag::stored_name(name), machine.eval(&node.body)?));
                }
                Macro::TransformMapEntry => {
                    let entry = machine.eval(&node.body)?;
                    let View::Map(map) = entry.view() else {
                        return Err(wrong(&node.body, &entry.view(), "transformMapEntry", "a map"));
                    };
                    machine.budget.spend(4 * map.len() as u64)?;
                    pairs.extend(map.iter().map(|(name, value)| (Arc::clone(name), entry.part(value))));
                }
                _ => {
                    let value = machine.eval(&node.body)?;
                    take(machine, value)?;
                }
            }
            Ok(true)
        })?;
        match node.kind {
            Macro::TransformMap | Macro::TransformMapEntry => self.made_map(pairs, span),
            _ => Ok(Val::Made(Value::array(items), one_more(std::iter::once(levels), span)?)),
        }
    }

    /// `all`, `exists` and `exists_one`. The first two are chains of `&&` and `||`; the last takes no error.
    pub(super) fn test(&mut self, node: &'a Comprehension) -> Result<bool, EvalError> {
        let symbol = node.kind.name(node.variables.len());
        let mut first_error = None;
        let mut count = 0;
        let mut settled = false;
        self.each(node, &mut |machine, key, _| {
            match (node.kind, machine.truth(&node.body, symbol)) {
                (Macro::ExistsOne, found) => count += u64::from(found?),
                (kind, Ok(found)) => settled = found == (kind == Macro::Exists),
                (_, Err(error)) => {
                    let error = if first_error.is_none() { located(error, node, key) } else { error };
                    machine.absorb(error, &mut first_error)?;
                }
            }
            Ok(!settled)
        })?;
        match (node.kind, first_error) {
            (Macro::ExistsOne, _) => Ok(count == 1),
            (kind, _) if settled => Ok(kind == Macro::Exists),
            (_, Some(error)) => Err(error),
            (kind, None) => Ok(kind == Macro::All),
        }
    }

    /// Binds the variables to every member in turn and visits it with its key, until a visit says that it is enough.
    fn each(&mut self, node: &'a Comprehension, visit: &mut Visit<'_, 'a, 'b>) -> Result<(), EvalError> {
        let range = self.eval(&node.range)?;
        let index = |at: usize| Val::Num(Num::Int(at as i64));
        let name = |name: &Arc<str>| Val::Made(Value::String(user_name(name)), 0);
        match &range {
            Val::Ref(Value::Array(list)) => {
                let members = list.iter().enumerate().map(|(at, member)| (index(at), Val::Ref(member)));
                return self.each_of(node, members, visit);
            }
            Val::Ref(Value::Object(map)) if tag_of(map).is_none() => {
                self.budget.spend(map.len() as u64)?;
                let members = map.iter().map(|(key, member)| (name(key), Val::Ref(member)));
                return self.each_of(node, members, visit);
            }
            _ => {}
        }
        match range.view() {
            View::List(list) => {
                let members = list.iter().enumerate().map(|(at, member)| (index(at), range.part(member)));
                self.each_of(node, members, visit)
            }
            View::Map(map) => {
                self.budget.spend(map.len() as u64)?;
                let members = map.iter().map(|(key, member)| (name(key), range.part(member)));
                self.each_of(node, members, visit)
            }
            other => Err(wrong(&node.range, &other, node.kind.name(node.variables.len()), "a list or a map")),
        }
    }

    fn each_of(
        &mut self,
        node: &'a Comprehension,
        members: impl Iterator<Item = (Val<'a>, Val<'a>)>,
        visit: &mut Visit<'_, 'a, 'b>,
    ) -> Result<(), EvalError> {
        let outside = self.locals.len();
        let mut is_empty = true;
        for (key, member) in members {
            is_empty = false;
            self.budget.spend(1)?;
            match node.variables.len() {
                1 if over_map(node, &key) => self.locals.push(key.clone()),
                1 => self.locals.push(member.clone()),
                _ => self.locals.extend([key.clone(), member.clone()]),
            }
            self.budget.depth += 1;
            let visited = visit(self, &key, member);
            self.budget.depth -= 1;
            self.locals.truncate(outside);
            match visited {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(located(error, node, &key)),
            }
        }
        if is_empty && node.kind.is_test() && self.budget.depth == 0 {
            self.budget.is_vacuous = true;
        }
        Ok(())
    }
}
