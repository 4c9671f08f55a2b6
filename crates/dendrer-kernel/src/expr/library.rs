//! Evaluates the functions of the language.
//!
//! Each takes whatever it is given: what it cannot use makes it uncertain, with the path of the argument. None of
//! them looks at anything but its arguments, and none depends on tables of Unicode, which change from version to
//! version: letters are told apart in ASCII alone.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Array, Number, Object, Value, json, marker, tag};

use super::ast::Node;
use super::error::{EvalError, Span};
use super::eval::{ENTERED, MADE, Machine, REDACTED, price, user_name, wrong};
use super::functions::Function;
use super::met::{no_time, path_of, time_fault, trouble, uncertain, uncertain_for};
use super::number::{self, Num};
use super::time::{self, Part, Time};
use super::view::{Val, View, dated_text, is_dated, tag_of, time_of};
use crate::sealed;

/// How many decimals `round` keeps at most.
const DECIMALS_MAX: i64 = 100;

/// The values a function is called with, and the nodes they came from.
struct Call<'a> {
    function: Function,
    nodes: &'a [Node],
    values: Vec<Val<'a>>,
}

impl<'a> Call<'a> {
    fn text(&self, at: usize) -> Result<&str, EvalError> {
        match self.values[at].view() {
            View::Text(text) => Ok(text),
            other => Err(self.wrong(at, &other, "a string")),
        }
    }

    fn list(&self, at: usize) -> Result<&Array, EvalError> {
        match self.values[at].view() {
            View::List(list) => Ok(list),
            other => Err(self.wrong(at, &other, "a list")),
        }
    }

    fn map(&self, at: usize) -> Result<&Object, EvalError> {
        match self.values[at].view() {
            View::Map(map) => Ok(map),
            other => Err(self.wrong(at, &other, "a map")),
        }
    }

    fn number(&self, at: usize) -> Result<Num, EvalError> {
        match self.values[at].view() {
            View::Num(num) => Ok(num),
            other => Err(self.wrong(at, &other, "a number")),
        }
    }

    /// An integer; one that is beyond 64 bits is the nearest that is not.
    fn whole(&self, at: usize) -> Result<i64, EvalError> {
        let found = match self.number(at)? {
            Num::Int(value) => Some(value),
            Num::Double(value) => (value.fract() == 0.0).then_some(value as i64),
            Num::Data(number) if number.is_big() => {
                Some(if number.to_string().starts_with('-') { i64::MIN } else { i64::MAX })
            }
            Num::Data(number) => number.as_i64(),
        };
        found.ok_or_else(|| trouble(number::Trouble::Fraction, &[&self.nodes[at]]))
    }

    fn wrong(&self, at: usize, found: &View<'_>, wanted: &str) -> EvalError {
        wrong(&self.nodes[at], found, self.function.name(), wanted)
    }

    /// Says that a member of a list is not what the function takes.
    fn wrong_member(&self, at: usize, index: usize, found: &View<'_>, wanted: &str) -> EvalError {
        let path = path_of(&self.nodes[at]).map(|path| format!("{path}[{index}]"));
        let what = path.clone().unwrap_or_else(|| format!("member {index}"));
        let message =
            format!("{what} is {}, and `{}` takes {wanted}", found.describe(), self.function.name());
        uncertain_for(sealed::KIND, self.nodes[at].span, path, message, None)
    }

    fn fail(&self, at: usize, message: String) -> EvalError {
        uncertain(self.nodes[at].span, path_of(&self.nodes[at]), message, None)
    }
}

/// A member of a list as it is written, and whether redacted parts are in it.
struct Identity {
    written: Vec<u8>,
    is_marked: bool,
}

/// Members of a list among which others are looked for.
#[derive(Default)]
struct Members<'v> {
    /// Those without redacted parts, as they are written.
    written: BTreeSet<Vec<u8>>,
    marked: Vec<&'v Value>,
    all: Vec<&'v Value>,
}

impl<'v> Members<'v> {
    fn add(&mut self, value: &'v Value, identity: Identity) {
        match identity.is_marked {
            true => self.marked.push(value),
            false => _ = self.written.insert(identity.written),
        }
        self.all.push(value);
    }
}

/// A list whose members were data or stood in the value at `of`.
fn list_of<'a>(items: impl IntoIterator<Item = Value>, of: &Val<'_>) -> Val<'a> {
    Val::Made(Value::array(items), of.levels().max(1))
}

impl<'a> Machine<'a, '_> {
    pub(super) fn call(&mut self, function: Function, nodes: &'a [Node]) -> Result<Val<'a>, EvalError> {
        let values = nodes.iter().map(|node| self.eval(node)).collect::<Result<Vec<_>, _>>()?;
        if function.makes() {
            self.budget.spend(MADE)?;
        }
        let call = Call { function, nodes, values };
        match function {
            Function::Size => self.size(&call),
            Function::Double | Function::Int => self.converted(&call),
            Function::String => to_text(&call),
            Function::Bool => to_bool(&call),
            Function::Div => number::div(&call.number(0)?, &call.number(1)?)
                .map(Val::Num)
                .map_err(|why| trouble(why, &[&nodes[0], &nodes[1]])),
            Function::StartsWith | Function::EndsWith | Function::Contains => self.find(&call),
            Function::Matches => unreachable!("the parser compiles patterns"),
            Function::ParseJson => self.parse_json(&call),
            Function::Canon => {
                let mut out = Vec::new();
                self.write(&call.values[0].clone().into_value(), &mut out, &call, 0)?;
                self.budget.spend(price(out.len()))?;
                Ok(Val::scalar(String::from_utf8_lossy(&out).into_owned()))
            }
            Function::Words => self.words(&call),
            Function::Lower => {
                let text = call.text(0)?;
                self.budget.spend(price(text.len()))?;
                Ok(Val::scalar(text.to_ascii_lowercase()))
            }
            Function::StripPrefix => {
                let (text, prefix) = (call.text(0)?, call.text(1)?);
                self.budget.spend(price(text.len()))?;
                Ok(Val::scalar(text.strip_prefix(prefix).unwrap_or(text)))
            }
            Function::Trim => {
                let text = call.text(0)?;
                self.budget.spend(price(text.len()))?;
                Ok(Val::scalar(text.trim_matches(is_blank)))
            }
            Function::Distinct => self.distinct(&call),
            Function::Intersects => self.intersects(&call),
            Function::Sum => self.sum(&call),
            Function::Min | Function::Max => self.extreme(call),
            Function::Abs => match call.number(0)? {
                num if number::compare(&num, &Num::Int(0)) == Ordering::Less => {
                    number::negate(&num).map(Val::Num).map_err(|why| trouble(why, &[&nodes[0]]))
                }
                num => Ok(Val::Num(num)),
            },
            Function::Round => round(&call),
            Function::Merge => self.merge(&call),
            Function::Pick => self.pick(&call),
            Function::Without => self.without(&call),
            Function::Keys | Function::Values => {
                let map = call.map(0)?;
                self.budget.spend(2 * map.len() as u64)?;
                Ok(match function {
                    Function::Keys => {
                        list_of(map.iter().map(|(name, _)| Value::String(user_name(name))), &call.values[0])
                    }
                    _ => list_of(map.iter().map(|(_, value)| value.clone()), &call.values[0]),
                })
            }
            Function::Indices => {
                let count = call.list(0)?.len() as i64;
                self.range(0, count)
            }
            Function::Range => match call.values.len() {
                1 => self.range(0, call.whole(0)?),
                _ => self.range(call.whole(0)?, call.whole(1)?),
            },
            Function::Slice => self.slice(&call),
            Function::Sort => self.sort(&call),
            Function::Timestamp | Function::Duration => self.time(&call),
            Function::Part(part) => self.part(part, &call),
        }
    }

    fn time(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let is_point = call.function == Function::Timestamp;
        match call.values[0].view() {
            View::Time(time) if time.is_timestamp() == is_point => Ok(Val::Time(time)),
            View::Text(text) if is_point => self.read_time(text, Time::timestamp, &call.nodes[0]),
            View::Text(text) => self.read_time(text, Time::duration, &call.nodes[0]),
            View::Num(num) if is_point => {
                self.pay_number(&num)?;
                let seconds = call.whole(0)?;
                self.budget.has_times = true;
                Time::at(seconds, 0).map(Val::Time).map_err(|fault| time_fault(fault, &call.nodes[0]))
            }
            other if is_point => Err(call.wrong(0, &other, "a string or whole seconds since 1970")),
            other => Err(call.wrong(0, &other, "a string")),
        }
    }

    fn part(&mut self, part: Part, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let time = match call.values[0].view() {
            View::Time(time) => time,
            other => return Err(no_time(&call.nodes[0], &other, call.function.name())),
        };
        let offset = match call.values.len() {
            1 => 0,
            _ => {
                let text = call.text(1)?;
                self.budget.spend(price(text.len()))?;
                time::offset(text).map_err(|fault| time_fault(fault, &call.nodes[1]))?
            }
        };
        if call.values.len() == 2 && !time.is_timestamp() {
            return Err(call.wrong(0, &View::Time(time), "a timestamp beside an offset"));
        }
        match time.part(part, offset) {
            Some(value) => Ok(Val::Num(Num::Int(value))),
            None => Err(call.wrong(0, &View::Time(time), "a timestamp")),
        }
    }

    fn size(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let size = match call.values[0].view() {
            View::Text(text) => {
                self.budget.spend(price(text.len()))?;
                text.chars().count()
            }
            View::List(list) => list.len(),
            View::Map(map) => map.len(),
            other => return Err(call.wrong(0, &other, "a string, a list or a map")),
        };
        Ok(Val::Num(Num::Int(size as i64)))
    }

    fn converted(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let to_double = call.function == Function::Double;
        if let View::Num(num) = call.values[0].view() {
            self.pay_number(&num)?;
        }
        let result = match call.values[0].view() {
            View::Time(Time::Timestamp { seconds, .. }) if !to_double => Ok(Num::Int(seconds)),
            View::Num(num) if to_double => number::to_double(&num).map(Num::Double),
            View::Num(num) => number::to_int(&num).map(Num::Int),
            View::Text(text) => {
                self.budget.spend(price(text.len()))?;
                let num = if to_double {
                    number::text_to_double(text).map(Num::Double)
                } else {
                    text.parse().ok().map(Num::Int)
                };
                let what = if to_double { "a double" } else { "an int" };
                return num
                    .map(Val::Num)
                    .ok_or_else(|| call.fail(0, format!("the text is not that of {what}")));
            }
            other => return Err(call.wrong(0, &other, "a number or a string")),
        };
        result.map(Val::Num).map_err(|why| trouble(why, &[&call.nodes[0]]))
    }

    fn find(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let part = |at: usize| match call.values[at].view() {
            View::Text(text) => Ok(text),
            other => Err(call.wrong(at, &other, "strings")),
        };
        let (text, part) = (part(0)?, part(1)?);
        self.budget.spend(price(text.len() + part.len()))?;
        Ok(Val::Bool(match call.function {
            Function::StartsWith => text.starts_with(part),
            Function::EndsWith => text.ends_with(part),
            _ => text.contains(part),
        }))
    }

    fn parse_json(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let text = call.text(0)?;
        self.budget.spend(4 * price(text.len()))?;
        let value = json::parse_door(text.as_bytes()).map_err(|why| {
            let place = path_of(&call.nodes[0]).unwrap_or_else(|| "the text".to_owned());
            call.fail(0, format!("{place} is not JSON: {why}"))
        })?;
        Ok(Val::Made(value, 0))
    }

    /// Writes a value as canonical JSON with the names its user knows.
    fn write(
        &mut self,
        value: &Value,
        out: &mut Vec<u8>,
        call: &Call<'a>,
        at: usize,
    ) -> Result<(), EvalError> {
        self.budget.spend(1)?;
        match value {
            Value::String(text) => {
                self.budget.spend(price(text.len()))?;
                json::write_string(text, out);
            }
            Value::Array(list) => {
                self.budget.spend(ENTERED)?;
                out.push(b'[');
                for (index, member) in list.iter().enumerate() {
                    out.extend((index > 0).then_some(b','));
                    self.write(member, out, call, at)?;
                }
                out.push(b']');
            }
            Value::Object(map) => {
                if let Some(name) = tag_of(map) {
                    return self.write_tagged(value, (map, name), out, call, at);
                }
                self.budget.spend(ENTERED + map.len() as u64)?;
                out.push(b'{');
                for (index, (name, member)) in map.iter().enumerate() {
                    self.budget.spend(price(name.len()))?;
                    out.extend((index > 0).then_some(b','));
                    json::write_string(&user_name(name), out);
                    out.push(b':');
                    self.write(member, out, call, at)?;
                }
                out.push(b'}');
            }
            Value::Number(number) => {
                self.pay_number(&Num::Data(number.clone()))?;
                number.write(out);
            }
            scalar => json::write(scalar, out),
        }
        Ok(())
    }

    /// As [`Machine::write`], of a tagged value. Among members of a list a time and its text are two values, and what is
    /// redacted is compared afterwards.
    fn write_tagged(
        &mut self,
        value: &Value,
        (map, name): (&Object, &'static str),
        out: &mut Vec<u8>,
        call: &Call<'a>,
        at: usize,
    ) -> Result<(), EvalError> {
        let is_canon = call.function == Function::Canon;
        if let Some(text) = dated_text(map) {
            self.budget.spend(price(text.len()))?;
            json::write_string(text, out);
        } else if let Some(time) = time_of(map).filter(|_| is_canon) {
            json::write_string(&time.text(), out);
        } else if time_of(map).is_some() || (self.knows_markers && name == REDACTED && !is_canon) {
            json::write(value, out);
        } else {
            let what = View::Tagged(map, name).describe();
            return Err(call.fail(at, format!("a value given to `{}` is {what}", call.function.name())));
        }
        Ok(())
    }

    /// Writes a member of a list so that equal ones are written the same.
    fn identity(&mut self, member: &Value, call: &Call<'a>, at: usize) -> Result<Identity, EvalError> {
        self.budget.spend(MADE)?;
        let mut written = Vec::new();
        self.write(member, &mut written, call, at)?;
        Ok(Identity { written, is_marked: self.knows_markers && marker::is_marked(member) })
    }

    fn words(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let text = call.text(0)?;
        self.budget.spend(4 * price(text.len()))?;
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
            let word: Arc<str> = word.to_ascii_lowercase().into();
            if seen.insert(Arc::clone(&word)) {
                found.push(Value::String(word));
            }
        }
        self.budget.spend(MADE * found.len() as u64)?;
        Ok(Val::Made(Value::array(found), 1))
    }

    fn distinct(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let list = call.list(0)?;
        let mut kept = Members::default();
        for member in list.iter() {
            let identity = self.identity(member, call, 0)?;
            if !self.is_among(member, &identity, &kept, call.nodes[0].span)? {
                kept.add(member, identity);
            }
        }
        Ok(list_of(kept.all.into_iter().cloned(), &call.values[0]))
    }

    fn intersects(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let (left, right) = (call.list(0)?, call.list(1)?);
        let mut members = Members::default();
        for member in left.iter() {
            members.add(member, self.identity(member, call, 0)?);
        }
        let mut first_error = None;
        for member in right.iter() {
            let identity = self.identity(member, call, 1)?;
            match self.is_among(member, &identity, &members, call.nodes[1].span) {
                Ok(true) => return Ok(Val::Bool(true)),
                Ok(false) => {}
                Err(error) => self.absorb(error, &mut first_error)?,
            }
        }
        first_error.map_or(Ok(Val::Bool(false)), Err)
    }

    /// Whether a value is equal to one of those members. Values without markers are looked up; one with a marker is compared
    /// with each, and each with a marker with it.
    fn is_among(
        &mut self,
        value: &Value,
        identity: &Identity,
        members: &Members<'_>,
        span: Span,
    ) -> Result<bool, EvalError> {
        let others = match identity.is_marked {
            true => &members.all,
            false if members.written.contains(&identity.written) => return Ok(true),
            false => &members.marked,
        };
        let mut first_error = None;
        for other in others {
            match self.equal(&View::of(value), &View::of(other), span) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => self.absorb(error, &mut first_error)?,
            }
        }
        first_error.map_or(Ok(false), Err)
    }

    fn sum(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let mut total = Num::Data(Number::from_i64(0));
        for (index, member) in call.list(0)?.iter().enumerate() {
            self.budget.spend(1)?;
            total = match View::of(member) {
                View::Num(num) => number::combine(number::Operator::Add, &total, &num)
                    .map_err(|why| trouble(why, &[&call.nodes[0]]))?,
                other => return Err(call.wrong_member(0, index, &other, "numbers")),
            };
        }
        Ok(Val::Num(total))
    }

    /// The least or greatest of a list, or of the arguments; of equal ones the first.
    fn extreme(&mut self, call: Call<'a>) -> Result<Val<'a>, EvalError> {
        let better = if call.function == Function::Min { Ordering::Less } else { Ordering::Greater };
        if call.values.len() > 1 {
            let nodes: Vec<&Node> = call.nodes.iter().collect();
            // If one value is declared a moment, all are compared as moments; if all are texts, one of the texts is the answer.
            let are_texts = call.values.iter().all(|value| value.view().text().is_some());
            let moments = match call.values.iter().any(Val::is_dated) {
                true => {
                    let each = call.values.iter().zip(call.nodes);
                    each.map(|(value, node)| self.moment(value.clone(), node))
                        .collect::<Result<Vec<_>, _>>()?
                }
                false => Vec::new(),
            };
            let compared = if moments.is_empty() { &call.values } else { &moments };
            let views: Vec<View<'_>> = compared.iter().map(Val::view).collect();
            self.one_spelling(&mut None, views.iter().filter_map(View::text), &nodes)?;
            let mut best = 0;
            for at in 1..views.len() {
                let (a, b) = (&views[at], &views[best]);
                if self.order(a, b, || call.wrong(at, a, MIXTURE))? == better {
                    best = at;
                }
            }
            let view = &views[best];
            if !matches!(view, View::Num(_) | View::Text(_) | View::Time(_)) {
                return Err(call.wrong(best, view, MIXTURE));
            }
            return Ok(if are_texts { call.values[best].clone() } else { compared[best].clone() });
        }
        if call.list(0)?.iter().any(is_dated) {
            return self.extreme_member(&call, better);
        }
        let mut spelling = None;
        let mut best: Option<&Value> = None;
        for (index, member) in call.list(0)?.iter().enumerate() {
            self.budget.spend(1)?;
            self.one_spelling(&mut spelling, View::of(member).text(), &[&call.nodes[0]])?;
            let view = View::of(member);
            let other = View::of(best.unwrap_or(member));
            let order = self.order(&view, &other, || call.wrong_member(0, index, &view, MIXTURE))?;
            if best.is_none() || order == better {
                best = Some(member);
            }
        }
        match best {
            Some(best) => Ok(call.values[0].part(best)),
            None => Err(call.fail(0, format!("an empty list has no {}", call.function.name()))),
        }
    }

    /// The least or greatest member of a list in which one is declared a moment.
    fn extreme_member(&mut self, call: &Call<'a>, better: Ordering) -> Result<Val<'a>, EvalError> {
        let mut best: Option<(Time, &Value)> = None;
        for (index, member) in call.list(0)?.iter().enumerate() {
            let time = self.member_time(call, index, member)?;
            let order = best.map_or(Some(better), |(best, _)| time.compare(best));
            if order.ok_or_else(|| call.wrong_member(0, index, &View::of(member), MIXTURE))? == better {
                best = Some((time, member));
            }
        }
        match best {
            Some((_, best)) => Ok(call.values[0].part(best)),
            None => unreachable!("a member is declared a moment"),
        }
    }

    /// The moment that a member of a list is.
    fn member_time(&mut self, call: &Call<'a>, index: usize, member: &Value) -> Result<Time, EvalError> {
        match View::of(member) {
            View::Text(text) => match self.read_time(text, Time::timestamp, &call.nodes[0])? {
                Val::Time(time) => Ok(time),
                _ => unreachable!("a text is read as a time"),
            },
            View::Time(time) => Ok(time),
            other => Err(call.wrong_member(0, index, &other, MIXTURE)),
        }
    }

    /// Orders two numbers or two strings.
    fn order(
        &mut self,
        a: &View<'_>,
        b: &View<'_>,
        otherwise: impl FnOnce() -> EvalError,
    ) -> Result<Ordering, EvalError> {
        match (a, b) {
            (View::Num(a), View::Num(b)) => {
                self.pay_number(a)?;
                self.pay_number(b)?;
                Ok(number::compare(a, b))
            }
            (View::Text(a), View::Text(b)) => {
                self.budget.spend(price(a.len().min(b.len())))?;
                Ok(a.cmp(b))
            }
            (View::Time(a), View::Time(b)) => a.compare(*b).ok_or_else(otherwise),
            _ => Err(otherwise()),
        }
    }

    fn merge(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let mut pairs: Vec<(Arc<str>, Value)> = Vec::new();
        for at in 0..call.values.len() {
            let map = call.map(at)?;
            self.budget.spend(4 * map.len() as u64)?;
            pairs.extend(map.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        }
        Ok(map_of(pairs, &call.values))
    }

    /// Takes the names of a list in their stored form.
    fn names(&mut self, call: &Call<'a>) -> Result<Vec<Arc<str>>, EvalError> {
        let mut names = Vec::new();
        for (index, member) in call.list(1)?.iter().enumerate() {
            match View::of(member) {
                View::Text(name) => {
                    self.budget.spend(4 + price(name.len()))?;
                    names.push(tag::stored_name(name));
                }
                other => return Err(call.wrong_member(1, index, &other, "names")),
            }
        }
        Ok(names)
    }

    fn pick(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let (map, names) = (call.map(0)?, self.names(call)?);
        let pairs = names.into_iter().filter_map(|name| map.get(&name).cloned().map(|value| (name, value)));
        Ok(map_of(pairs, &call.values))
    }

    fn without(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let map = call.map(0)?;
        let names: BTreeSet<Arc<str>> = self.names(call)?.into_iter().collect();
        self.budget.spend(4 * map.len() as u64)?;
        let kept = map.iter().filter(|(name, _)| !names.contains(*name));
        Ok(map_of(kept.map(|(name, value)| (Arc::clone(name), value.clone())), &call.values))
    }

    fn range(&mut self, from: i64, to: i64) -> Result<Val<'a>, EvalError> {
        self.budget.spend(to.saturating_sub(from).max(0).unsigned_abs())?;
        Ok(Val::Made(Value::array((from..to).map(Value::from)), 1))
    }

    fn slice(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let from = call.whole(1)?;
        let to = if call.values.len() == 3 { call.whole(2)? } else { i64::MAX };
        match call.values[0].view() {
            View::List(list) => {
                let (from, to) = bounds(from, to, list.len());
                self.budget.spend((to - from) as u64)?;
                let items = (from..to).filter_map(|at| list.get(at)).cloned();
                Ok(list_of(items, &call.values[0]))
            }
            View::Text(text) => {
                self.budget.spend(2 * price(text.len()))?;
                let (from, to) = bounds(from, to, text.chars().count());
                Ok(Val::scalar(text.chars().skip(from).take(to - from).collect::<String>()))
            }
            other => Err(call.wrong(0, &other, "a string or a list")),
        }
    }

    fn sort(&mut self, call: &Call<'a>) -> Result<Val<'a>, EvalError> {
        let list = call.list(0)?;
        // Every member is compared about as often as the length has binary digits, however sorting is done.
        let rounds = 1 + u64::from(usize::BITS - list.len().leading_zeros());
        self.budget.spend(rounds * list.len() as u64)?;
        if list.iter().any(is_dated) {
            let mut dated = Vec::with_capacity(list.len());
            for (index, member) in list.iter().enumerate() {
                dated.push((self.member_time(call, index, member)?, member));
            }
            if let Some((index, _)) =
                dated.iter().enumerate().find(|(_, (time, _))| time.compare(dated[0].0).is_none())
            {
                return Err(call.wrong_member(0, index, &View::of(dated[index].1), MIXTURE));
            }
            dated.sort_by(|(a, _), (b, _)| a.compare(*b).unwrap_or(Ordering::Equal));
            return Ok(list_of(dated.into_iter().map(|(_, member)| member.clone()), &call.values[0]));
        }
        let mut items: Vec<&Value> = Vec::with_capacity(list.len());
        let mut spelling = None;
        for (index, member) in list.iter().enumerate() {
            self.one_spelling(&mut spelling, View::of(member).text(), &[&call.nodes[0]])?;
            let view = View::of(member);
            let first = View::of(items.first().copied().unwrap_or(member));
            let fits = match (&view, &first) {
                (View::Num(num), View::Num(_)) => {
                    for _ in 0..rounds {
                        self.pay_number(num)?;
                    }
                    true
                }
                (View::Bool(_), View::Bool(_)) => true,
                (View::Time(a), View::Time(b)) => a.is_timestamp() == b.is_timestamp(),
                (View::Text(text), View::Text(_)) => {
                    self.budget.spend(rounds * price(text.len()))?;
                    true
                }
                _ => false,
            };
            if !fits {
                return Err(call.wrong_member(
                    0,
                    index,
                    &view,
                    "numbers, strings or booleans, all of one kind",
                ));
            }
            items.push(member);
        }
        items.sort_by(|a, b| match (View::of(a), View::of(b)) {
            (View::Num(a), View::Num(b)) => number::compare(&a, &b),
            (View::Text(a), View::Text(b)) => a.cmp(b),
            (View::Bool(a), View::Bool(b)) => a.cmp(&b),
            (View::Time(a), View::Time(b)) => a.compare(b).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        });
        Ok(list_of(items.into_iter().cloned(), &call.values[0]))
    }
}

const MIXTURE: &str = "numbers or strings, all of one kind";

fn map_of<'a>(pairs: impl IntoIterator<Item = (Arc<str>, Value)>, of: &[Val<'_>]) -> Val<'a> {
    let levels = of.iter().map(Val::levels).max().unwrap_or(0).max(1);
    Val::Made(Value::Object(pairs.into_iter().collect()), levels)
}

fn to_text<'a>(call: &Call<'a>) -> Result<Val<'a>, EvalError> {
    match call.values[0].view() {
        View::Text(_) => Ok(call.values[0].clone()),
        View::Bool(value) => Ok(Val::scalar(value.to_string())),
        View::Time(time) => Ok(Val::scalar(time.text())),
        View::Num(num) => Ok(Val::scalar(Val::Num(num).into_value().to_string())),
        other => Err(call.wrong(0, &other, "a number, a boolean or a string")),
    }
}

fn to_bool<'a>(call: &Call<'a>) -> Result<Val<'a>, EvalError> {
    match call.values[0].view() {
        View::Bool(value) => Ok(Val::Bool(value)),
        View::Text("1" | "t" | "true" | "TRUE" | "True") => Ok(Val::Bool(true)),
        View::Text("0" | "f" | "false" | "FALSE" | "False") => Ok(Val::Bool(false)),
        View::Text(_) => Err(call.fail(0, "the text is not that of a boolean".to_owned())),
        other => Err(call.wrong(0, &other, "a boolean or a string")),
    }
}

/// Rounds on the exact binary value, ties to even. An integer has no decimals to lose, whatever its size.
fn round<'a>(call: &Call<'a>) -> Result<Val<'a>, EvalError> {
    let decimals = if call.values.len() == 2 { call.whole(1)? } else { 0 };
    let Some(decimals) = u8::try_from(decimals).ok().filter(|decimals| i64::from(*decimals) <= DECIMALS_MAX)
    else {
        return Err(call.fail(1, format!("`round` keeps 0 to {DECIMALS_MAX} decimals")));
    };
    let rounded = |value: f64| dendrer_object::number::round_half_even(value, decimals);
    Ok(Val::Num(match call.number(0)? {
        Num::Double(value) => Num::Double(rounded(value)),
        Num::Data(number) => match number.as_f64().and_then(|value| Number::from_f64(rounded(value))) {
            Some(number) => Num::Data(number),
            None => Num::Data(number),
        },
        int => int,
    }))
}

/// Turns two positions, negative ones counted from the end, into a stretch that is there.
fn bounds(from: i64, to: i64, count: usize) -> (usize, usize) {
    let count = count as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(count).max(0) } else { at.min(count) };
    let (from, to) = (place(from), place(to));
    (from as usize, to.max(from) as usize)
}

/// Returns whether `trim` takes a character away: those with the property `White_Space` of Unicode 16.
fn is_blank(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}')
}
