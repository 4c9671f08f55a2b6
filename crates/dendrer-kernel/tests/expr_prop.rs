//! Random expressions over random states, held against a second evaluator that was written another way: it walks the
//! tree the generator made, evaluates every branch, keeps integers in 128 bits and never shares a line with
//! the first.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, STEPS_MAX, Scope};
use dendrer_object::{Code, Number, Value, json};
use proptest::prelude::*;

/// An expression as the generator makes it.
#[derive(Debug, Clone)]
enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(&'static str),
    List(Vec<Tree>),
    Map(Vec<(&'static str, Tree)>),
    Field(Vec<&'static str>),
    Has(Vec<&'static str>),
    Index(Box<Tree>, Box<Tree>),
    Not(Box<Tree>),
    Minus(Box<Tree>),
    Logic(bool, Vec<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Choose(Box<Tree>, Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

/// A value of the second evaluator. Data numbers are whole or not; a whole one is exact.
#[derive(Debug, Clone, PartialEq)]
enum Slow {
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    Whole(i128),
    Broken(f64),
    Text(String),
    List(Vec<Slow>),
    Map(BTreeMap<String, Slow>),
}

/// An error of any kind: which one is not compared.
#[derive(Debug, Clone, PartialEq)]
struct Fails;

const SAFE: i128 = (1 << 53) - 1;

fn render(tree: &Tree, words: bool, out: &mut String) {
    match tree {
        Tree::Null => out.push_str("null"),
        Tree::Bool(value) => write!(out, "{value}").unwrap(),
        Tree::Int(value) => write!(out, "({value})").unwrap(),
        Tree::Double(value) => write!(out, "({value:?})").unwrap(),
        Tree::Text(text) => write!(out, "{text:?}").unwrap(),
        Tree::List(items) => {
            out.push('[');
            many_in(items, words, out);
            out.push(']');
        }
        Tree::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                write!(out, "{}{key:?}: ", if index > 0 { ", " } else { "" }).unwrap();
                render(value, words, out);
            }
            out.push('}');
        }
        Tree::Field(path) => render_path(path, words, out),
        Tree::Has(path) => {
            out.push_str("has(");
            render_path(path, words, out);
            out.push(')');
        }
        Tree::Index(base, index) => {
            out.push('(');
            render(base, words, out);
            out.push_str(")[");
            render(index, words, out);
            out.push(']');
        }
        Tree::Not(inner) => {
            out.push_str(if words { "(not (" } else { "(!(" });
            render(inner, words, out);
            out.push_str("))");
        }
        Tree::Minus(inner) => {
            out.push_str("-(");
            render(inner, words, out);
            out.push(')');
        }
        Tree::Logic(all, parts) => {
            let between = match (all, words) {
                (true, true) => ") and (",
                (true, false) => ") && (",
                (false, true) => ") or (",
                (false, false) => ") || (",
            };
            out.push_str("((");
            for (index, part) in parts.iter().enumerate() {
                out.push_str(if index > 0 { between } else { "" });
                render(part, words, out);
            }
            out.push_str("))");
        }
        Tree::Binary(symbol, left, right) => {
            out.push('(');
            render(left, words, out);
            write!(out, " {symbol} ").unwrap();
            render(right, words, out);
            out.push(')');
        }
        Tree::Choose(condition, yes, no) => {
            out.push_str("((");
            render(condition, words, out);
            out.push_str(") ? (");
            render(yes, words, out);
            out.push_str(") : (");
            render(no, words, out);
            out.push_str("))");
        }
        Tree::Call(name @ ("startsWith" | "endsWith" | "contains"), arguments) => {
            out.push('(');
            render(&arguments[0], words, out);
            write!(out, ").{name}(").unwrap();
            render(&arguments[1], words, out);
            out.push(')');
        }
        Tree::Call(name, arguments) => {
            write!(out, "{name}(").unwrap();
            many_in(arguments, words, out);
            out.push(')');
        }
    }
}

fn many_in(items: &[Tree], words: bool, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        render(item, words, out);
    }
}

fn render_path(path: &[&str], words: bool, out: &mut String) {
    out.push_str("state");
    for name in path {
        if words { write!(out, "[{name:?}]").unwrap() } else { write!(out, ".{name}").unwrap() }
    }
}

fn slow_of(value: &Value) -> Slow {
    match value {
        Value::Null => Slow::Null,
        Value::Bool(value) => Slow::Bool(*value),
        Value::Number(number) => match number.to_string().parse::<i128>() {
            Ok(whole) => Slow::Whole(whole),
            Err(_) => Slow::Broken(number.to_string().parse().unwrap()),
        },
        Value::String(text) => Slow::Text(text.to_string()),
        Value::Array(items) => Slow::List(items.iter().map(slow_of).collect()),
        Value::Object(object) => Slow::Map(object.iter().map(|(k, v)| (k.to_string(), slow_of(v))).collect()),
    }
}

fn value_of(slow: &Slow) -> Value {
    match slow {
        Slow::Null => Value::Null,
        Slow::Bool(value) => Value::Bool(*value),
        Slow::Int(value) | Slow::Whole(value) => Value::Number(Number::parse(&value.to_string()).unwrap()),
        Slow::Double(value) | Slow::Broken(value) => Value::Number(Number::from_f64(*value).unwrap()),
        Slow::Text(text) => Value::from(text.as_str()),
        Slow::List(items) => Value::array(items.iter().map(value_of)),
        Slow::Map(map) => Value::record(map.iter().map(|(key, value)| (key.as_str(), value_of(value)))),
    }
}

/// A value that went through a list or a map is data.
fn stored(slow: Slow) -> Slow {
    slow_of(&value_of(&slow))
}

fn as_data(value: f64) -> Slow {
    slow_of(&Value::Number(Number::from_f64(value).unwrap()))
}

fn slow(tree: &Tree, state: &Slow) -> Result<Slow, Fails> {
    let bool_of = |tree: &Tree| match slow(tree, state)? {
        Slow::Bool(value) => Ok(value),
        _ => Err(Fails),
    };
    Ok(match tree {
        Tree::Null => Slow::Null,
        Tree::Bool(value) => Slow::Bool(*value),
        Tree::Int(value) => Slow::Int(i128::from(*value)),
        Tree::Double(value) => Slow::Double(*value),
        Tree::Text(text) => Slow::Text((*text).to_owned()),
        Tree::List(items) => {
            Slow::List(items.iter().map(|item| slow(item, state).map(stored)).collect::<Result<_, _>>()?)
        }
        Tree::Map(entries) => {
            let pair = |(key, value): &(&str, Tree)| Ok(((*key).to_owned(), stored(slow(value, state)?)));
            Slow::Map(entries.iter().map(pair).collect::<Result<_, Fails>>()?)
        }
        Tree::Field(path) => follow(path, state)?.ok_or(Fails)?.clone(),
        Tree::Has(path) => {
            let (last, before) = path.split_last().unwrap();
            let container = follow(before, state)?.ok_or(Fails)?;
            Slow::Bool(follow(&[last], container)?.is_some())
        }
        Tree::Index(base, index) => {
            let (base, index) = (slow(base, state)?, slow(index, state)?);
            match (base, index) {
                (Slow::List(items), Slow::Int(at) | Slow::Whole(at)) => {
                    usize::try_from(at).ok().and_then(|at| items.get(at).cloned()).ok_or(Fails)?
                }
                (Slow::Map(map), Slow::Text(name)) => map.get(&name).cloned().ok_or(Fails)?,
                _ => return Err(Fails),
            }
        }
        Tree::Not(inner) => Slow::Bool(!bool_of(inner)?),
        Tree::Minus(inner) => match slow(inner, state)? {
            Slow::Int(value) => Slow::Int(fits(-value)?),
            Slow::Double(value) => Slow::Double(-value),
            Slow::Whole(value) if value.abs() <= SAFE => Slow::Whole(-value),
            Slow::Broken(value) => Slow::Broken(-value),
            _ => return Err(Fails),
        },
        Tree::Logic(all, parts) => {
            // Every part is evaluated; one that settles it wins over any error.
            let found: Vec<Result<bool, Fails>> = parts.iter().map(bool_of).collect();
            if found.contains(&Ok(!all)) {
                Slow::Bool(!all)
            } else if found.contains(&Err(Fails)) {
                return Err(Fails);
            } else {
                Slow::Bool(*all)
            }
        }
        Tree::Binary(symbol, left, right) => binary(symbol, slow(left, state)?, slow(right, state)?)?,
        Tree::Choose(condition, yes, no) => {
            let (yes, no) = (slow(yes, state), slow(no, state));
            if bool_of(condition)? { yes? } else { no? }
        }
        Tree::Call(name, arguments) => {
            let arguments: Vec<Slow> =
                arguments.iter().map(|tree| slow(tree, state)).collect::<Result<_, _>>()?;
            call(name, &arguments)?
        }
    })
}

fn follow<'s>(path: &[&str], from: &'s Slow) -> Result<Option<&'s Slow>, Fails> {
    let mut place = from;
    for (index, name) in path.iter().enumerate() {
        let Slow::Map(map) = place else { return Err(Fails) };
        match map.get(*name) {
            Some(found) => place = found,
            None if index + 1 == path.len() => return Ok(None),
            None => return Err(Fails),
        }
    }
    Ok(Some(place))
}

fn fits(value: i128) -> Result<i128, Fails> {
    i64::try_from(value).map(i128::from).map_err(|_| Fails)
}

fn call(name: &str, arguments: &[Slow]) -> Result<Slow, Fails> {
    Ok(match (name, arguments) {
        ("size", [Slow::Text(text)]) => Slow::Int(text.chars().count() as i128),
        ("size", [Slow::List(items)]) => Slow::Int(items.len() as i128),
        ("size", [Slow::Map(map)]) => Slow::Int(map.len() as i128),
        ("double", [Slow::Int(value) | Slow::Whole(value)]) => Slow::Double(*value as f64),
        ("double", [Slow::Double(value) | Slow::Broken(value)]) => Slow::Double(*value),
        ("int", [Slow::Int(value) | Slow::Whole(value)]) => Slow::Int(fits(*value)?),
        ("int", [Slow::Double(value) | Slow::Broken(value)]) => {
            let whole = value.trunc() as i128;
            if whole.unsigned_abs() >= 1 << 63 {
                return Err(Fails);
            }
            Slow::Int(whole)
        }
        ("div", [a, b]) => match (a, b) {
            (Slow::Int(a), Slow::Int(b)) if *b != 0 => Slow::Int(fits(a / b)?),
            (Slow::Int(a) | Slow::Whole(a), Slow::Int(b) | Slow::Whole(b)) if *b != 0 => {
                acts_as_int(&arguments[0]).ok_or(Fails)?;
                acts_as_int(&arguments[1]).ok_or(Fails)?;
                Slow::Whole(fits(a / b)?)
            }
            _ => return Err(Fails),
        },
        ("startsWith", [Slow::Text(a), Slow::Text(b)]) => Slow::Bool(a.find(b.as_str()) == Some(0)),
        ("endsWith", [Slow::Text(a), Slow::Text(b)]) => {
            Slow::Bool(a.rfind(b.as_str()).is_some_and(|at| at + b.len() == a.len()))
        }
        ("contains", [Slow::Text(a), Slow::Text(b)]) => Slow::Bool(a.find(b.as_str()).is_some()),
        _ => return Err(Fails),
    })
}

fn acts_as_int(value: &Slow) -> Option<i128> {
    match value {
        Slow::Int(value) => Some(*value),
        Slow::Whole(value) if value.abs() <= SAFE => Some(*value),
        _ => None,
    }
}

fn acts_as_double(value: &Slow) -> Option<f64> {
    match value {
        Slow::Double(value) | Slow::Broken(value) => Some(*value),
        Slow::Int(value) | Slow::Whole(value) if value.abs() <= SAFE => Some(*value as f64),
        _ => None,
    }
}

fn binary(symbol: &str, left: Slow, right: Slow) -> Result<Slow, Fails> {
    match symbol {
        "==" => return Ok(Slow::Bool(equal(&left, &right))),
        "!=" => return Ok(Slow::Bool(!equal(&left, &right))),
        "in" => {
            return match (&left, right) {
                (item, Slow::List(items)) => Ok(Slow::Bool(items.iter().any(|other| equal(item, other)))),
                (Slow::Text(name), Slow::Map(map)) => Ok(Slow::Bool(map.contains_key(name))),
                (_, Slow::Map(_)) => Ok(Slow::Bool(false)),
                _ => Err(Fails),
            };
        }
        "<" | "<=" | ">" | ">=" => {
            let order = match (&left, &right) {
                (Slow::Text(a), Slow::Text(b)) => a.chars().cmp(b.chars()),
                (Slow::Bool(a), Slow::Bool(b)) => u8::from(*a).cmp(&u8::from(*b)),
                _ => compare(&left, &right).ok_or(Fails)?,
            };
            return Ok(Slow::Bool(match symbol {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                _ => order.is_ge(),
            }));
        }
        _ => {}
    }
    match (symbol, left, right) {
        ("+", Slow::Text(a), Slow::Text(b)) => Ok(Slow::Text(a + &b)),
        ("+", Slow::List(mut a), Slow::List(b)) => {
            a.extend(b);
            Ok(Slow::List(a))
        }
        (_, Slow::Int(_), Slow::Double(_)) | (_, Slow::Double(_), Slow::Int(_)) => Err(Fails),
        (_, Slow::Double(a), Slow::Double(b)) => double_step(symbol, a, b).map(Slow::Double),
        (_, Slow::Int(a), Slow::Int(b)) => int_step(symbol, a, b).map(Slow::Int),
        (_, a, b) => match (acts_as_int(&a), acts_as_int(&b)) {
            (Some(a), Some(b)) => int_step(symbol, a, b).map(Slow::Whole),
            _ => double_step(symbol, acts_as_double(&a).ok_or(Fails)?, acts_as_double(&b).ok_or(Fails)?)
                .map(as_data),
        },
    }
}

fn int_step(symbol: &str, a: i128, b: i128) -> Result<i128, Fails> {
    fits(match symbol {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "%" if b != 0 => {
            fits(a / b)?;
            a % b
        }
        "/" if b != 0 => a / b,
        _ => return Err(Fails),
    })
}

fn double_step(symbol: &str, a: f64, b: f64) -> Result<f64, Fails> {
    let result = match symbol {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => return Err(Fails),
    };
    if result.is_finite() { Ok(result) } else { Err(Fails) }
}

fn equal(a: &Slow, b: &Slow) -> bool {
    match (a, b) {
        (Slow::List(a), Slow::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Slow::Map(a), Slow::Map(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => compare(a, b).map_or(a == b, Ordering::is_eq),
    }
}

/// Two numbers: as doubles if both are literals and one is a double of CEL, else exactly.
fn compare(a: &Slow, b: &Slow) -> Option<Ordering> {
    let rounded = |slow: &Slow| match slow {
        Slow::Int(value) => Slow::Double(*value as f64),
        other => other.clone(),
    };
    let lossy = matches!(a, Slow::Double(_)) || matches!(b, Slow::Double(_));
    let (a, b) = if lossy { (rounded(a), rounded(b)) } else { (a.clone(), b.clone()) };
    Some(exact(&a)?.cmp(&exact(&b)?))
}

/// A number as something that orders as numbers do: its integral part, and its fraction.
fn exact(value: &Slow) -> Option<(i128, i128)> {
    match value {
        Slow::Int(value) | Slow::Whole(value) => Some((*value, 0)),
        // Such a double is the integer of its shortest digits, as canonical JSON writes it.
        Slow::Double(value) | Slow::Broken(value) if value.abs() > SAFE as f64 && value.abs() < 1e21 => {
            Some((format!("{value}").parse().unwrap(), 0))
        }
        Slow::Double(value) | Slow::Broken(value) => {
            // Positive doubles are ordered as their bits are; the integral part decides first.
            let part = if value.abs() >= 1e30 { *value } else { value.fract() };
            let bits = i128::from(part.abs().to_bits());
            Some((value.trunc() as i128, if part < 0.0 { -bits } else { bits }))
        }
        _ => None,
    }
}

const NAMES: [&str; 7] = ["a", "n", "b", "c", "l", "m", "zzz"];
const TEXTS: [&str; 7] =
    ["", "a", "ab", "b", "text of more than sixteen bytes", "\u{e9}\u{1f600}", "a\"\\\n"];
const DOUBLES: [f64; 10] = [0.0, 1.0, -1.5, 0.1, 0.25, 3.0, 9007199254740993.0, 1e19, -1e300, 1e-300];
const INTS: [i64; 12] = [0, 1, -1, 2, 3, 7, 2, 1, 9007199254740991, 9007199254740993, i64::MAX, i64::MIN];

/// Draws a tree from random bytes. Most trees are well-typed, or nearly all would be refused by the check; every
/// now and then a part is of any type.
struct Draw<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Want {
    Bool,
    Int,
    Double,
    Data,
    Text,
    List,
}

impl Draw<'_> {
    /// A number below `count`; 0 when the bytes are used up, so that every tree ends.
    fn pick(&mut self, count: usize) -> usize {
        usize::from(*self.bytes.next().unwrap_or(&0)) % count
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    fn any(&mut self, depth: u32) -> Tree {
        match self.pick(9) {
            0 => Tree::Null,
            1 => Tree::Field(vec![self.of(&NAMES)]),
            2 => Tree::Field(vec!["m", self.of(&NAMES)]),
            3 => Tree::Map(vec![("a", self.any(depth.saturating_sub(1))), ("m", Tree::Int(1))]),
            _ => {
                let want =
                    self.of(&[Want::Bool, Want::Int, Want::Double, Want::Data, Want::Text, Want::List]);
                self.tree(want, depth)
            }
        }
    }

    fn boxed(&mut self, want: Want, depth: u32) -> Box<Tree> {
        Box::new(self.tree(want, depth))
    }

    fn number(&mut self) -> Want {
        self.of(&[Want::Data, Want::Int, Want::Double, Want::Data])
    }

    fn tree(&mut self, want: Want, depth: u32) -> Tree {
        if depth == 0 {
            return self.leaf(want);
        }
        let depth = depth - 1;
        match self.pick(40) {
            39 => return self.any(depth),
            1..=3 => {
                let (yes, no) = (self.boxed(want, depth), self.boxed(want, depth));
                return Tree::Choose(self.boxed(Want::Bool, depth), yes, no);
            }
            0 | 4..=8 => return self.leaf(want),
            _ => {}
        }
        match want {
            Want::Bool => self.boolean(depth),
            Want::Text => Tree::Binary("+", self.boxed(want, depth), self.boxed(want, depth)),
            Want::List => match self.pick(3) {
                0 => Tree::Binary("+", self.boxed(want, depth), self.boxed(want, depth)),
                _ => Tree::List((0..self.pick(4)).map(|_| self.any(depth)).collect()),
            },
            Want::Int => match self.pick(6) {
                0 => Tree::Call("size", vec![self.tree(Want::List, depth)]),
                1 => Tree::Call("size", vec![self.tree(Want::Text, depth)]),
                2 => {
                    let number = self.number();
                    Tree::Call("int", vec![self.tree(number, depth)])
                }
                3 => Tree::Minus(self.boxed(want, depth)),
                4 => Tree::Call("div", vec![self.tree(want, depth), self.tree(want, depth)]),
                _ => Tree::Binary(
                    self.of(&["+", "-", "*", "%"]),
                    self.boxed(want, depth),
                    self.boxed(want, depth),
                ),
            },
            Want::Double => match self.pick(4) {
                0 => {
                    let number = self.number();
                    Tree::Call("double", vec![self.tree(number, depth)])
                }
                1 => Tree::Minus(self.boxed(want, depth)),
                _ => Tree::Binary(
                    self.of(&["+", "-", "*", "/"]),
                    self.boxed(want, depth),
                    self.boxed(want, depth),
                ),
            },
            Want::Data => match self.pick(8) {
                0 => Tree::Index(self.boxed(Want::List, depth), self.boxed(Want::Int, depth)),
                1 => Tree::Minus(self.boxed(want, depth)),
                2 => Tree::Call("div", vec![self.tree(want, depth), self.tree(Want::Int, depth)]),
                _ => {
                    let other = self.number();
                    let symbol = self.of(&["+", "-", "*", "+", "%"]);
                    let pair = (self.boxed(want, depth), self.boxed(other, depth));
                    if self.pick(2) == 0 {
                        Tree::Binary(symbol, pair.0, pair.1)
                    } else {
                        Tree::Binary(symbol, pair.1, pair.0)
                    }
                }
            },
        }
    }

    fn boolean(&mut self, depth: u32) -> Tree {
        match self.pick(10) {
            0 => Tree::Not(self.boxed(Want::Bool, depth)),
            1..=3 => {
                let all = self.pick(2) == 0;
                Tree::Logic(all, (0..2 + self.pick(3)).map(|_| self.tree(Want::Bool, depth)).collect())
            }
            4 => Tree::Binary("in", Box::new(self.any(depth)), self.boxed(Want::List, depth)),
            5 => Tree::Call(
                self.of(&["startsWith", "endsWith", "contains"]),
                vec![self.tree(Want::Text, depth), self.tree(Want::Text, depth)],
            ),
            6 => {
                let want = self.of(&[Want::Bool, Want::Text, Want::List]);
                let symbol =
                    if want == Want::List { "==" } else { self.of(&["==", "!=", "<", "<=", ">", ">="]) };
                Tree::Binary(symbol, self.boxed(want, depth), self.boxed(want, depth))
            }
            7 => {
                let field = Box::new(Tree::Field(vec![self.of(&NAMES)]));
                Tree::Binary(self.of(&["==", "!=", "in"]), field, Box::new(self.any(depth)))
            }
            _ => {
                let (left, right) = (self.number(), self.number());
                let symbol = self.of(&["==", "!=", "<", "<=", ">", ">="]);
                Tree::Binary(symbol, self.boxed(left, depth), self.boxed(right, depth))
            }
        }
    }

    fn leaf(&mut self, want: Want) -> Tree {
        match (want, self.pick(4)) {
            (Want::Bool, 0) => Tree::Bool(self.pick(2) == 0),
            (Want::Bool, 1) => Tree::Has(vec![self.of(&NAMES)]),
            (Want::Bool, 2) => Tree::Has(vec!["m", self.of(&NAMES)]),
            (Want::Bool, _) => Tree::Field(vec!["c"]),
            (Want::Int, _) => Tree::Int(self.of(&INTS)),
            (Want::Double, _) => Tree::Double(self.of(&DOUBLES)),
            (Want::Data, 0) => Tree::Field(vec!["m", self.of(&["a", "n"])]),
            (Want::Data, _) => Tree::Field(vec![self.of(&["a", "n"])]),
            (Want::Text, 0 | 1) => Tree::Field(vec!["b"]),
            (Want::Text, _) => Tree::Text(self.of(&TEXTS)),
            (Want::List, 0) => Tree::List(Vec::new()),
            (Want::List, _) => Tree::Field(vec!["l"]),
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    prop::collection::vec(any::<u8>(), 1..160).prop_map(|bytes| {
        let mut draw = Draw { bytes: bytes.iter() };
        let want =
            draw.of(&[Want::Bool, Want::Data, Want::Bool, Want::Int, Want::Double, Want::List, Want::Text]);
        draw.tree(want, 5)
    })
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => prop::sample::select(&INTS[..]).prop_map(Value::from),
        1 => prop::sample::select(&DOUBLES[..]).prop_map(Value::from),
        1 => (-1000i64..1000).prop_map(|n| Value::from(n as f64 / 8.0)),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::Bool),
        3 => number(),
        2 => prop::sample::select(&TEXTS[..]).prop_map(Value::from),
    ]
}

/// A state whose members mostly have the types that the trees want.
fn state() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(&TEXTS[..]).prop_map(Value::from);
    let map =
        prop::collection::vec((prop::sample::select(&NAMES[..5]), number()), 0..5).prop_map(Value::record);
    let list = prop::collection::vec(scalar(), 0..4).prop_map(Value::array);
    let odd = prop::option::weighted(0.2, (prop::sample::select(&NAMES[..]), prop::option::of(scalar())));
    (number(), number(), text(), any::<bool>(), list, map, odd).prop_map(|(a, n, b, c, l, m, odd)| {
        let mut members = vec![("a", a), ("n", n), ("b", b), ("c", c.into()), ("l", l), ("m", m)];
        match odd {
            Some((name, Some(value))) => members.push((name, value)),
            Some((name, None)) => members.retain(|(known, _)| *known != name),
            None => {}
        }
        Value::record(members)
    })
}

/// The same content after a change that was taken back: another form in memory.
fn churned(value: &Value) -> Value {
    let mut object = value.as_object().unwrap().clone();
    object.set("churn", Value::Null);
    object.remove("churn");
    if let Some(inner) = object.get("m").and_then(Value::as_object) {
        let mut inner = inner.clone();
        inner.set("churn", Value::Null);
        inner.remove("churn");
        object.set("m", Value::Object(inner));
    }
    Value::Object(object)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_evaluators_agree(tree in tree(), state in state(), words in any::<bool>()) {
        let mut text = String::new();
        render(&tree, words, &mut text);
        let expr = match Expr::parse(&text, &Scope::new()) {
            Ok(expr) => expr,
            Err(error) => {
                prop_assert!([Code::E0502, Code::E0507].contains(&error.code), "{text}: {error}");
                return Ok(());
            }
        };
        let expected = slow(&tree, &slow_of(&state)).map(|value| value_of(&value));
        let mut budget = Budget::default();
        let found = expr.evaluate(&Env::of(&state), &mut budget);
        match (&found, &expected) {
            (Ok(found), Ok(expected)) => prop_assert_eq!(found, expected, "{}", text),
            (Err(EvalError::Uncertain(_)), Err(Fails)) => {}
            _ => prop_assert!(false, "{text} over {state}: {found:?}, expected {expected:?}"),
        }

        // The canonical text means the same for the same price, and is its own canonical text.
        let again = Expr::parse(expr.canonical(), &Scope::new()).expect("canonical text is a text");
        prop_assert_eq!(again.canonical(), expr.canonical());
        prop_assert_eq!(again.read_set(), expr.read_set());
        let mut other = Budget::default();
        let same = again.evaluate(&Env::of(&state), &mut other);
        prop_assert_eq!(same.as_ref().ok(), found.as_ref().ok());
        prop_assert_eq!(other.left(), budget.left());

        // How the state came about changes neither the answer nor the price.
        let mut other = Budget::default();
        let same = expr.evaluate(&Env::of(&churned(&state)), &mut other);
        prop_assert_eq!(&same, &found);
        prop_assert_eq!(other.left(), budget.left());

        // One step less is no answer.
        let steps = STEPS_MAX - budget.left();
        prop_assert_eq!(expr.evaluate(&Env::of(&state), &mut Budget::new(steps - 1)), Err(EvalError::Exhausted));
    }

    #[test]
    fn a_write_outside_the_read_set_changes_nothing(tree in tree(), before in state(), after in state()) {
        let mut text = String::new();
        render(&tree, false, &mut text);
        let Ok(expr) = Expr::parse(&text, &Scope::new()) else { return Ok(()) };
        // Members of the state that the expression cannot look at are taken from the second state.
        let mut mixed = before.as_object().unwrap().clone();
        for name in NAMES {
            let place = dendrer_object::Pointer::of([name]);
            if !expr.read_set().iter().any(|read| read.overlaps(&place)) {
                match after.get(name) {
                    Some(value) => mixed.set(name, value.clone()),
                    None => drop(mixed.remove(name)),
                }
            }
        }
        let run = |state: &Value| expr.evaluate(&Env::of(state), &mut Budget::default());
        prop_assert_eq!(run(&before), run(&Value::Object(mixed)), "{}", text);
    }

    #[test]
    fn any_text_is_answered(text in "[a-z0-9.()\\[\\]{}\"'`!&|=<>+*/% ,:?_-]{0,40}") {
        let scope = Scope::new().root("a").root("b");
        match Expr::parse(&text, &scope) {
            Ok(expr) => {
                let again = Expr::parse(expr.canonical(), &scope).expect("canonical text is a text");
                prop_assert_eq!(again.canonical(), expr.canonical());
            }
            Err(error) => drop(error.render(&text)),
        }
    }
}

#[test]
fn the_state_of_a_file_is_read_as_the_second_evaluator_reads_it() {
    let state = json::parse_door(br#"{"a":1e20,"b":0.5,"c":1208925819614629174706177}"#).unwrap();
    let Slow::Map(map) = slow_of(&state) else { panic!("an object") };
    assert_eq!(map["a"], Slow::Whole(100_000_000_000_000_000_000));
    assert_eq!(map["b"], Slow::Broken(0.5));
    assert_eq!(map["c"], Slow::Whole((1 << 80) + 1));
}
