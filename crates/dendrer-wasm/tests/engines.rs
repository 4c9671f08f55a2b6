//! Engines give the same answers. Without the feature `wasmtime` there is one, and it is held against itself: made anew,
//! it says the same.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[path = "hostile/list.rs"]
mod list;

use std::fmt::Write as _;

use dendrer_wasm::{Engine, FUEL, Module, NoAnswer};
use list::{Asked, cases};

/// What both engines say of an input; nothing where a limit of one of them ended the call.
fn agreed(name: &str, bytes: &[u8], input: &[u8]) -> Option<Result<Vec<u8>, NoAnswer>> {
    let ask = |engine| Module::in_engine(engine, bytes, "evaluate").map(|it| it.call(input, 1 << 16, FUEL));
    let said: Vec<_> = [Engine::Interpreter, Engine::default()].into_iter().map(ask).collect();
    match (&said[0], &said[1]) {
        (Err(_), Err(_)) => None,
        (Ok(Err(NoAnswer::Limit(_))), Ok(_)) | (Ok(_), Ok(Err(NoAnswer::Limit(_)))) => None,
        (first, second) => {
            assert_eq!(first, second, "{name}");
            said.into_iter().next().unwrap().ok()
        }
    }
}

fn announce() {
    if Engine::ALL.len() < 2 {
        eprintln!("SKIPPED: there is one engine; the feature `wasmtime` brings the other");
    }
}

#[test]
fn engines_agree_on_what_is_hostile() {
    announce();
    let mut answers = 0;
    for case in cases() {
        let Asked::Module(bytes, _) = &case.asked else { continue };
        let taken = Engine::ALL.iter().map(|engine| Module::in_engine(*engine, bytes, "evaluate").is_ok());
        assert_eq!(taken.clone().min(), taken.max(), "taken everywhere or nowhere: {}", case.name());
        for input in [&b"{}"[..], br#"{"n":1}"#] {
            let name = format!("{}, {:?}: {}", case.class, case.fate, case.name());
            answers += usize::from(agreed(&name, bytes, input).is_some());
        }
    }
    assert!(answers > 20, "{answers}");
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}

const BITS: [&str; 10] = [
    "0",
    "1",
    "-1",
    "0x7ff0000000000000",
    "0xfff8000000000001",
    "0x7ff4000000000000",
    "0x8000000000000000",
    "0x3fe0000000000000",
    "0x41dfffffffc00000",
    "0x7fffffffffffffff",
];

/// Writes an expression of a type, nested so deep.
fn write(dice: &mut Dice, kind: &str, depth: usize, out: &mut String) {
    if depth == 0 {
        match (kind, dice.below(3)) {
            ("i32", 0) => out.push_str("(i32.load8_u offset=1 (local.get 0))"),
            ("i32", 1) => out.push_str("(local.get 1)"),
            ("i32", _) => {
                write!(out, "(i32.const {})", dice.of(&["0", "1", "-1", "0x80000000", "77"])).unwrap()
            }
            ("i64", 0) => out.push_str("(i64.load offset=2 align=1 (local.get 0))"),
            ("i64", _) => write!(out, "(i64.const {})", dice.of(&BITS)).unwrap(),
            ("f32", _) => {
                let bits = ["0", "0x7fc00001", "0xff800000", "0x7fa00000", "0x3f000000", "0x4f000000"];
                write!(out, "(f32.reinterpret_i32 (i32.const {}))", dice.of(&bits)).unwrap();
            }
            _ => write!(out, "(f64.reinterpret_i64 (i64.const {}))", dice.of(&BITS)).unwrap(),
        }
        return;
    }
    let whole = kind.starts_with('i');
    let both: &[&str] = match whole {
        true => &[
            "add", "sub", "mul", "div_s", "div_u", "rem_s", "rem_u", "and", "or", "xor", "shl", "shr_s",
            "shr_u", "rotl", "rotr",
        ],
        false => &["add", "sub", "mul", "div", "min", "max", "copysign"],
    };
    let one: &[&str] = match whole {
        true => &["clz", "ctz", "popcnt", "extend8_s", "extend16_s"],
        false => &["neg", "abs", "sqrt", "ceil", "floor", "trunc", "nearest"],
    };
    let other: &[(&str, &str)] = match kind {
        "i32" => &[
            ("wrap_i64", "i64"),
            ("trunc_sat_f64_s", "f64"),
            ("trunc_f32_u", "f32"),
            ("reinterpret_f32", "f32"),
            ("trunc_sat_f32_u", "f32"),
        ],
        "i64" => &[
            ("extend_i32_s", "i32"),
            ("extend_i32_u", "i32"),
            ("trunc_f64_s", "f64"),
            ("reinterpret_f64", "f64"),
            ("trunc_sat_f64_u", "f64"),
        ],
        "f32" => &[
            ("demote_f64", "f64"),
            ("convert_i64_u", "i64"),
            ("convert_i32_s", "i32"),
            ("reinterpret_i32", "i32"),
        ],
        _ => &[
            ("promote_f32", "f32"),
            ("convert_i64_s", "i64"),
            ("convert_i32_u", "i32"),
            ("reinterpret_i64", "i64"),
        ],
    };
    match dice.below(8) {
        0 | 1 => {
            write!(out, "({kind}.{} ", dice.of(one)).unwrap();
            write(dice, kind, depth - 1, out);
        }
        2 | 3 => {
            let (name, from) = other[dice.below(other.len())];
            write!(out, "({kind}.{name} ").unwrap();
            write(dice, from, depth - 1, out);
        }
        4 => {
            out.push_str("(select ");
            write(dice, kind, depth - 1, out);
            write(dice, kind, depth - 1, out);
            let of = dice.of(&["f64", "f32"]);
            write!(out, "({of}.{} ", dice.of(&["lt", "ge", "eq", "ne"])).unwrap();
            write(dice, of, depth - 1, out);
            write(dice, of, depth - 1, out);
            out.push(')');
        }
        _ => {
            write!(out, "({kind}.{} ", dice.of(both)).unwrap();
            write(dice, kind, depth - 1, out);
            write(dice, kind, depth - 1, out);
        }
    }
    out.push(')');
}

/// Every bit of what is computed is in the answer, so a NaN of another form would be another answer.
#[test]
fn engines_compute_the_same_bits() {
    announce();
    let rounds = if std::env::var_os("DENDRER_DEEP").is_some() { 20_000 } else { 300 };
    let mut dice = Dice(1);
    let (mut answers, mut traps) = (0, 0);
    for round in 0..rounds {
        let mut body = String::new();
        for (at, kind) in ["i32", "i64", "f32", "f64", "f64", "i64"].into_iter().enumerate() {
            write!(body, "({kind}.store offset={} (i32.const 2048) ", at * 8).unwrap();
            let depth = 1 + dice.below(6);
            write(&mut dice, kind, depth, &mut body);
            body.push(')');
        }
        let wat = format!(
            r#"(module (memory (export "memory") 1)
  (func (export "alloc") (param i32) (result i32) (i32.const 64))
  (func (export "evaluate") (param i32 i32) (result i64) {body} (i64.const 0x80000000030)))"#
        );
        let bytes = wat::parse_str(&wat).unwrap_or_else(|error| panic!("{error}\n{wat}"));
        match agreed(&format!("round {round}: {wat}"), &bytes, br#"{"amount":12.5,"n":7}"#) {
            Some(Ok(answer)) => {
                assert_eq!(answer.len(), 48);
                answers += 1;
            }
            Some(Err(_)) => traps += 1,
            None => panic!("nothing of it comes near a limit: {wat}"),
        }
    }
    assert!(answers > rounds / 4 && traps > rounds / 20, "{answers} answers, {traps} traps");
}
