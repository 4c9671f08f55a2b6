//! Random expressions over random states, held against the `cel` crate: wherever both give a value, it is the same
//! value. Deviations that are meant are listed by reason and counted.
//!
//! 50,000 cases in a normal run; `DENDRER_ORACLE_CASES=1000000` asks for more, `DENDRER_ORACLE_SEED` for others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, Program, Value as Cel};
use dendrer_kernel::expr::{Budget, Env, Expr, Scope};
use dendrer_object::Value;

/// A small generator of numbers, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn of<'x>(&mut self, items: &[&'x str]) -> &'x str {
        items[self.below(items.len())]
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Want {
    Bool,
    Int,
    Double,
    /// A number of the state.
    Data,
    Text,
    List,
    Map,
}

const INTS: &[&str] = &["0", "1", "-1", "2", "3", "7", "10", "-5", "9223372036854775807", "100"];
const DOUBLES: &[&str] = &["0.0", "1.0", "-1.5", "0.1", "0.25", "3.0", "1e3", "2.5e-3", "-7.0", "1e300"];
const TEXTS: &[&str] = &[
    "\"\"",
    "\"a\"",
    "\"ab\"",
    "\"b c\"",
    "\"xyz1\"",
    "\"\u{e9}\u{1f600}\"",
    "\"12\"",
    "'a\"b'",
    "r\"\\d\"",
];
const PATTERNS: &[&str] = &[
    "\"a\"",
    "\"^a\"",
    "\"b+$\"",
    "\"[a-c]{2}\"",
    "\"(a|x)y?z*\"",
    "\"^$\"",
    "\"^.$\"",
    "\"[0-9]+\"",
    "\"a|b|\"",
];
const NAMES: &[&str] = &["a", "n", "f", "b", "c", "l", "m", "r", "z"];

/// Writes expressions in the syntax of CEL.
struct Writer<'r> {
    random: &'r mut Random,
    variables: Vec<(String, Want)>,
}

impl Writer<'_> {
    fn any(&mut self, depth: u32) -> String {
        const ALL: [Want; 7] =
            [Want::Bool, Want::Int, Want::Double, Want::Data, Want::Text, Want::List, Want::Map];
        if self.random.below(12) == 0 {
            return "null".to_owned();
        }
        let want = ALL[self.random.below(ALL.len())];
        self.write(want, depth)
    }

    fn number(&mut self, depth: u32) -> String {
        let want = [Want::Int, Want::Double, Want::Data, Want::Data][self.random.below(4)];
        self.write(want, depth)
    }

    fn write(&mut self, want: Want, depth: u32) -> String {
        let known: Vec<String> =
            self.variables.iter().filter(|(_, found)| *found == want).map(|(name, _)| name.clone()).collect();
        if !known.is_empty() && self.random.below(3) == 0 {
            return known[self.random.below(known.len())].clone();
        }
        let depth = depth.saturating_sub(1);
        if depth > 0 && self.random.below(14) == 0 {
            let condition = self.write(Want::Bool, depth);
            let (yes, no) = (self.write(want, depth), self.write(want, depth));
            return format!("({condition} ? {yes} : {no})");
        }
        // One in many is of another type than is wanted. A list never is: a map in its place has no order in CEL, and
        // that of the crate changes from run to run.
        if depth > 0 && want != Want::List && self.random.below(60) == 0 {
            return self.any(depth);
        }
        match want {
            Want::Bool => self.boolean(depth),
            Want::Int => self.int(depth),
            Want::Double => self.double(depth),
            Want::Data => self.data(depth),
            Want::Text => self.text(depth),
            Want::List => self.list(depth),
            Want::Map => self.map(depth),
        }
    }

    fn boolean(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self
                .random
                .of(&["true", "false", "state.c", "has(state.z)", "has(state.m.a)"])
                .to_owned();
        }
        match self.random.below(13) {
            0 => format!("!({})", self.write(Want::Bool, depth)),
            1 | 2 => {
                let symbol = self.random.of(&["&&", "||"]);
                format!("({} {symbol} {})", self.write(Want::Bool, depth), self.write(Want::Bool, depth))
            }
            3 | 4 => {
                let symbol = self.random.of(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {symbol} {})", self.number(depth), self.number(depth))
            }
            5 => {
                let symbol = self.random.of(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {symbol} {})", self.write(Want::Text, depth), self.write(Want::Text, depth))
            }
            6 => {
                let symbol = self.random.of(&["==", "!="]);
                format!("({} {symbol} {})", self.write(Want::List, depth), self.write(Want::List, depth))
            }
            7 => format!("({} in {})", self.number(depth), self.write(Want::List, depth)),
            8 => format!("({} in {})", self.write(Want::Text, depth), self.write(Want::Map, depth)),
            9 => {
                let method = self.random.of(&["startsWith", "endsWith", "contains"]);
                format!("{}.{method}({})", self.write(Want::Text, depth), self.write(Want::Text, depth))
            }
            10 => format!("{}.matches({})", self.write(Want::Text, depth), self.random.of(PATTERNS)),
            _ => {
                let name = self.random.of(&["all", "exists", "exists_one"]);
                self.comprehension(name, depth)
            }
        }
    }

    /// `range.name(x, condition)`.
    fn comprehension(&mut self, name: &str, depth: u32) -> String {
        let (range, member) = self.range(depth);
        let variable = format!("v{}", self.variables.len());
        self.variables.push((variable.clone(), member));
        let body = match name {
            "map" => self.any(depth),
            _ => self.write(Want::Bool, depth),
        };
        self.variables.pop();
        format!("{range}.{name}({variable}, {body})")
    }

    fn range(&mut self, depth: u32) -> (String, Want) {
        match self.random.below(5) {
            0 => ("state.r".to_owned(), Want::Map),
            1 => (self.write(Want::Map, depth), Want::Text),
            2 => (format!("[{}, {}]", self.write(Want::Text, 0), self.write(Want::Text, depth)), Want::Text),
            _ => (self.write(Want::List, depth), Want::Data),
        }
    }

    fn int(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.random.of(INTS).to_owned();
        }
        match self.random.below(8) {
            0 => {
                let want = [Want::Text, Want::List, Want::Map][self.random.below(3)];
                format!("size({})", self.write(want, depth))
            }
            1 => format!("int({})", self.number(depth)),
            2 => format!("-({})", self.write(Want::Int, depth)),
            3 => format!("({} / {})", self.random.of(INTS), self.random.of(INTS)),
            4 => format!("int({})", self.random.of(&["\"12\"", "\"-3\"", "\"x\"", "\"\""])),
            _ => {
                let symbol = self.random.of(&["+", "-", "*", "%"]);
                format!("({} {symbol} {})", self.write(Want::Int, depth), self.write(Want::Int, depth))
            }
        }
    }

    fn double(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.random.of(DOUBLES).to_owned();
        }
        match self.random.below(6) {
            0 => format!("double({})", self.number(depth)),
            1 => format!("-({})", self.write(Want::Double, depth)),
            2 => format!("double({})", self.random.of(&["\"1.5\"", "\"-3\"", "\"1e2\"", "\"x\""])),
            _ => {
                let symbol = self.random.of(&["+", "-", "*", "/"]);
                format!("({} {symbol} {})", self.write(Want::Double, depth), self.write(Want::Double, depth))
            }
        }
    }

    fn data(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.random.of(&["state.a", "state.n", "state.m.a", "state.l[0]", "state.f"]).to_owned();
        }
        match self.random.below(6) {
            0 => format!("state.l[{}]", self.write(Want::Int, depth)),
            1 => format!("{}[{}]", self.write(Want::Map, depth), self.write(Want::Text, depth)),
            2 => format!("state.r[{}].{}", self.random.below(3), self.random.of(NAMES)),
            3 => format!("-({})", self.write(Want::Data, depth)),
            _ => {
                let symbol = self.random.of(&["+", "-", "*", "%"]);
                let (left, right) = (self.number(depth), self.write(Want::Data, depth));
                if self.random.below(2) == 0 {
                    format!("({left} {symbol} {right})")
                } else {
                    format!("({right} {symbol} {left})")
                }
            }
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            return if self.random.below(2) == 0 {
                "state.b".to_owned()
            } else {
                self.random.of(TEXTS).to_owned()
            };
        }
        match self.random.below(5) {
            0 => match self.random.below(3) {
                0 => format!("string({})", self.write(Want::Int, depth)),
                1 => format!("string({})", self.write(Want::Data, depth)),
                _ => format!("string({})", self.random.of(&["0.25", "-1.5", "3.0", "0.1"])),
            },
            1 => format!("string({})", self.write(Want::Text, depth)),
            2 => format!("({} + {})", self.write(Want::Text, depth), self.write(Want::Text, depth)),
            _ => self.write(Want::Text, 0),
        }
    }

    fn list(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.random.of(&["state.l", "[]", "[1, 2, 3]", "[1.5, 2]", "state.l"]).to_owned();
        }
        match self.random.below(8) {
            0 => format!("[{}]", self.any(depth)),
            1 => format!("[{}, {}]", self.number(depth), self.any(depth)),
            2 => format!("({} + {})", self.write(Want::List, depth), self.write(Want::List, depth)),
            // CEL does not say in which order the members of a map come.
            3 | 4 => {
                let range = self.write(Want::List, depth);
                let variable = format!("v{}", self.variables.len());
                self.variables.push((variable.clone(), Want::Data));
                let text = match self.random.below(3) {
                    0 => format!("{range}.filter({variable}, {})", self.write(Want::Bool, depth)),
                    1 => format!("{range}.map({variable}, {})", self.any(depth)),
                    _ => {
                        let filter = self.write(Want::Bool, depth);
                        format!("{range}.map({variable}, {filter}, {})", self.number(depth))
                    }
                };
                self.variables.pop();
                text
            }
            _ => self.write(Want::List, 0),
        }
    }

    fn map(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.random.of(&["state.m", "{}", "{\"a\": 1, \"b\": 2.5}", "state.r[0]"]).to_owned();
        }
        match self.random.below(4) {
            0 => format!("{{\"a\": {}, \"n\": {}}}", self.number(depth), self.any(depth)),
            1 => format!("{{{}: {}}}", self.write(Want::Text, depth), self.number(depth)),
            _ => self.write(Want::Map, 0),
        }
    }
}

fn number(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::from(0.5),
        1 => Value::from(random.below(2000) as f64 / 8.0 - 100.0),
        2 => Value::from(3_000_000_000i64),
        _ => Value::from(random.below(12) as i64 - 4),
    }
}

fn scalar(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::from(random.of(&["", "a", "ab", "xyz", "\u{e9}"])),
        _ => number(random),
    }
}

/// A state whose members mostly have the types that expressions want; now and then one is missing or another.
fn state(random: &mut Random) -> Value {
    let text = Value::from(random.of(&["", "a", "ab", "abc 1", "\u{e9}\u{1f600}", "xyz"]));
    let list = Value::array((0..random.below(5)).map(|_| number(random)).collect::<Vec<_>>());
    let map = |random: &mut Random| {
        let count = random.below(4);
        Value::record((0..count).map(|_| (random.of(&NAMES[..5]), scalar(random))).collect::<Vec<_>>())
    };
    let records = Value::array((0..random.below(4)).map(|_| map(random)).collect::<Vec<_>>());
    let mut members = vec![
        ("a", Value::from(random.below(20) as i64 - 5)),
        ("n", number(random)),
        ("f", Value::from(random.below(100) as f64 / 16.0)),
        ("b", text),
        ("c", Value::Bool(random.below(2) == 0)),
        ("l", list),
        ("m", map(random)),
        ("r", records),
    ];
    if random.below(8) == 0 {
        let at = random.below(members.len());
        members[at].1 = scalar(random);
    }
    if random.below(8) == 0 {
        members.remove(random.below(members.len()));
    }
    Value::record(members)
}

/// Every integral number is an int, or the crate would make some of them unsigned.
fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Cel::Int(value),
            None => Cel::Float(number.as_f64().expect("the generator makes no larger ones")),
        },
        Value::String(text) => Cel::String(Arc::new(text.to_string())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(object) => {
            let pairs = object.iter().map(|(name, value)| (Key::from(name.to_string()), to_cel(value)));
            Cel::Map(cel::objects::Map { map: Arc::new(pairs.collect::<HashMap<Key, Cel>>()) })
        }
    }
}

/// Tells whether both are the same value, numbers by what they stand for.
fn same(ours: &Value, theirs: &Cel) -> bool {
    match (ours, theirs) {
        (Value::Null, Cel::Null) => true,
        (Value::Bool(a), Cel::Bool(b)) => a == b,
        (Value::Number(a), Cel::Int(b)) => a.to_string() == b.to_string(),
        (Value::Number(a), Cel::UInt(b)) => a.to_string() == b.to_string(),
        (Value::Number(_), Cel::Float(b)) => *ours == Value::from(*b),
        (Value::String(a), Cel::String(b)) => **a == **b,
        (Value::Array(a), Cel::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Cel::Map(b)) => {
            a.len() == b.map.len()
                && a.iter()
                    .all(|(name, a)| b.map.get(&Key::from(name.to_string())).is_some_and(|b| same(a, b)))
        }
        _ => false,
    }
}

/// The deviations that are meant, or that are the crate's own.
fn deviation(text: &str) -> Option<&'static str> {
    // The crate writes -0 and 300 digits, where the language writes 0 and 1e+300, as canonical JSON does.
    text.contains("string(").then_some("a double as text has the form of RFC 8785")
}

#[test]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stderr,
    reason = "asks for more cases and says what it did"
)]
fn wherever_both_give_a_value_it_is_the_same() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = asked("DENDRER_ORACLE_CASES").unwrap_or(50_000);
    let mut random = Random(asked("DENDRER_ORACLE_SEED").unwrap_or(1));
    let library = Context::default();
    let (mut both, mut ours_only, mut theirs_only, mut neither) = (0u64, 0u64, 0u64, 0u64);
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for _ in 0..cases {
        let state = state(&mut random);
        let depth = 1 + random.below(5) as u32;
        let text = Writer { random: &mut random, variables: Vec::new() }.any(depth);
        let ours = Expr::parse(&text, &Scope::new())
            .ok()
            .and_then(|expr| expr.evaluate(&Env::of(&state), &mut Budget::default()).ok());
        let theirs = Program::compile(&text).ok().and_then(|program| {
            let mut context = library.new_inner_scope();
            context.add_variable_from_value("state", to_cel(&state));
            program.execute(&context).ok()
        });
        match (ours, theirs) {
            (Some(ours), Some(theirs)) if same(&ours, &theirs) => both += 1,
            (Some(ours), Some(theirs)) => match deviation(&text) {
                Some(reason) => *known.entry(reason).or_default() += 1,
                None if wrong.len() < 20 => {
                    wrong.push(format!("{text}\n  over {state}\n  gives {ours}, and CEL {theirs:?}"));
                }
                None => {}
            },
            (Some(_), None) => ours_only += 1,
            (None, Some(_)) => theirs_only += 1,
            (None, None) => neither += 1,
        }
    }
    eprintln!(
        "{cases} cases: {both} agree, {ours_only} ours alone, {theirs_only} theirs alone, {neither} neither"
    );
    known.iter().for_each(|(reason, count)| eprintln!("{count:8} {reason}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known.values().sum::<u64>() <= cases / 1000, "a deviation that is rare has become common");
    assert!(both > cases / 5, "too few cases say anything: {both} of {cases}");
}
