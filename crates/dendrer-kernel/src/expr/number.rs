//! Arithmetic on numbers of three descents.
//!
//! A literal is an int or a double, and the two do not mix, as in CEL. A number of the data has one kind: where it
//! is integral it acts as an int, else as a double, and it follows whatever literal it meets. A result that data
//! took part in is a number of data again, so that it makes no difference whether a sum is stored and read back
//! or used at once.
//!
//! Never rounds an integer and never gives NaN or an infinity: an exact result out of reach is an error.

use std::cmp::Ordering;

use dendrer_object::Number;
use dendrer_object::number::SAFE_INTEGER_MAX;

use crate::sealed;

dendrer_object::words! {
    /// An operator of a calculation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Operator {
        Add = "+",
        Subtract = "-",
        Multiply = "*",
        Divide = "/",
        Remainder = "%",
    }
}

impl Operator {
    pub(super) fn is_sum(self) -> bool {
        matches!(self, Operator::Add | Operator::Subtract)
    }
}

/// A number on the way.
#[derive(Debug, Clone)]
pub(super) enum Num {
    Int(i64),
    Double(f64),
    Data(Number),
}

dendrer_object::words! {
    /// Why there is no result, with the message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Trouble {
        /// An operand is an integer beyond 2^53-1.
        Big = "an integer beyond 2^53-1 can be compared but not calculated with",
        /// An int result beyond 64 bits.
        Overflow = "the result is beyond 64 bits",
        /// A double result that is NaN or infinite.
        NotFinite = "the result is not a finite number",
        DivisionByZero = "division by zero",
        /// A remainder or `div` of a number with a fraction.
        Fraction = "a number with a fraction where an integer is needed",
        /// An int and a double of CEL.
        Mixed = "an int and a double do not mix",
    }
}

impl Trouble {
    /// The word that is put on record.
    pub(super) fn word(self) -> &'static str {
        match self {
            Trouble::Big => sealed::BIG_INTEGER,
            Trouble::Overflow => sealed::OVERFLOW,
            Trouble::NotFinite => sealed::NOT_FINITE,
            Trouble::DivisionByZero => sealed::DIVISION_BY_ZERO,
            Trouble::Fraction => sealed::FRACTION,
            Trouble::Mixed => sealed::MIXED,
        }
    }

    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            Trouble::Fraction => Some("write double(a) / double(b) for a division that keeps the fraction"),
            Trouble::Mixed => Some("write double(a) for the int"),
            Trouble::Big => Some("int(a) and double(a) say how it is to be taken"),
            Trouble::DivisionByZero => Some("guard it: b != 0 && ..."),
            Trouble::Overflow | Trouble::NotFinite => None,
        }
    }
}

/// Two numbers as one operation takes them.
enum Pair {
    Ints(i64, i64),
    Doubles(f64, f64),
}

/// `a operator b`.
pub(super) fn combine(operator: Operator, a: &Num, b: &Num) -> Result<Num, Trouble> {
    let from_data = matches!(a, Num::Data(_)) || matches!(b, Num::Data(_));
    match (pair(a, b)?, from_data) {
        (Pair::Ints(x, y), false) => Ok(Num::Int(ints(operator, x, y)?)),
        (Pair::Ints(x, y), true) => Ok(Num::Data(Number::from_i64(ints(operator, x, y)?))),
        (Pair::Doubles(x, y), _) => {
            let result = doubles(operator, x, y)?;
            match Number::from_f64(result) {
                None => Err(Trouble::NotFinite),
                Some(number) if from_data => Ok(Num::Data(number)),
                Some(_) => Ok(Num::Double(result)),
            }
        }
    }
}

/// The whole part of `a / b`, both integers: the int division of CEL.
pub(super) fn div(a: &Num, b: &Num) -> Result<Num, Trouble> {
    match pair(a, b)? {
        Pair::Ints(..) => combine(Operator::Divide, a, b),
        Pair::Doubles(..) => Err(Trouble::Fraction),
    }
}

/// `-a`.
pub(super) fn negate(a: &Num) -> Result<Num, Trouble> {
    Ok(match a {
        Num::Int(value) => Num::Int(value.checked_neg().ok_or(Trouble::Overflow)?),
        Num::Double(value) => Num::Double(-value),
        Num::Data(number) => {
            let value = number.as_f64().ok_or(Trouble::Big)?;
            Num::Data(Number::from_f64(-value).ok_or(Trouble::NotFinite)?)
        }
    })
}

/// `double(a)`: the nearest double.
pub(super) fn to_double(a: &Num) -> Result<f64, Trouble> {
    match a {
        Num::Int(value) => Ok(*value as f64),
        Num::Double(value) => Ok(*value),
        Num::Data(number) => match number.as_f64() {
            Some(value) => Ok(value),
            None => text_to_double(&number.to_string()).ok_or(Trouble::NotFinite),
        },
    }
}

/// `int(a)`: the whole part, if it fits 64 bits.
pub(super) fn to_int(a: &Num) -> Result<i64, Trouble> {
    let double = match a {
        Num::Int(value) => return Ok(*value),
        Num::Double(value) => *value,
        Num::Data(number) => match number.as_f64() {
            Some(value) => value,
            None => return number.to_string().parse().map_err(|_| Trouble::Overflow),
        },
    };
    // Both ends are left out, as in CEL: a double there may stand for an integer that does not fit.
    if double.abs() < TWO_TO_63 { Ok(double as i64) } else { Err(Trouble::Overflow) }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Reads a double as both CEL and JSON write it; names of what is not finite are not numbers here.
pub(super) fn text_to_double(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse::<f64>().ok().filter(|value| plain && value.is_finite())
}

/// Compares by value. Integers compare exactly with each other whatever their size; next to a double of CEL an integer is taken
/// as the nearest double, as the conformance cases of CEL have it. The difference only matters beyond 2^53.
pub(super) fn compare(a: &Num, b: &Num) -> Ordering {
    match (a, b) {
        (Num::Int(x), Num::Int(y)) => x.cmp(y),
        (Num::Data(x), Num::Data(y)) => x.compare(y),
        (Num::Data(x), Num::Int(y)) => compare_with_int(x, *y),
        (Num::Int(x), Num::Data(y)) => compare_with_int(y, *x).reverse(),
        // Exactly: no integer beyond 2^53-1 is rounded to a double on the way.
        (Num::Double(x), Num::Data(y)) if y.is_big() => double(*x).compare(y),
        (Num::Data(x), Num::Double(y)) if x.is_big() => x.compare(&double(*y)),
        (Num::Double(x), y) => compare_doubles(*x, nearest_double(y)),
        (x, Num::Double(y)) => compare_doubles(nearest_double(x), *y),
    }
}

fn double(value: f64) -> Number {
    Number::from_f64(value).expect("no number on the way is NaN or infinite")
}

fn compare_with_int(a: &Number, b: i64) -> Ordering {
    match a.as_f64() {
        Some(x) if b.unsigned_abs() <= SAFE_INTEGER_MAX => compare_doubles(x, b as f64),
        _ => a.compare(&Number::from_i64(b)),
    }
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).expect("no number on the way is NaN")
}

/// As [`to_double`], with an infinity for integers beyond all doubles, which are beyond all that is compared.
fn nearest_double(a: &Num) -> f64 {
    match a {
        Num::Int(value) => *value as f64,
        Num::Double(value) => *value,
        Num::Data(number) => match number.as_f64() {
            Some(value) => value,
            None => number.to_string().parse().unwrap_or(f64::INFINITY),
        },
    }
}

fn pair(a: &Num, b: &Num) -> Result<Pair, Trouble> {
    Ok(match (a, b) {
        (Num::Int(x), Num::Int(y)) => Pair::Ints(*x, *y),
        (Num::Double(x), Num::Double(y)) => Pair::Doubles(*x, *y),
        (Num::Int(_), Num::Double(_)) | (Num::Double(_), Num::Int(_)) => return Err(Trouble::Mixed),
        _ => match (data_int(a), data_int(b)) {
            (Some(x), Some(y)) => Pair::Ints(x, y),
            _ => Pair::Doubles(data_double(a)?, data_double(b)?),
        },
    })
}

/// Returns the int that an operand acts as next to data, if it does.
fn data_int(a: &Num) -> Option<i64> {
    match a {
        Num::Int(value) => Some(*value),
        Num::Double(_) => None,
        Num::Data(number) => number.as_i64(),
    }
}

fn data_double(a: &Num) -> Result<f64, Trouble> {
    match a {
        Num::Int(value) if value.unsigned_abs() <= SAFE_INTEGER_MAX => Ok(*value as f64),
        Num::Int(_) => Err(Trouble::Big),
        Num::Double(value) => Ok(*value),
        Num::Data(number) => number.as_f64().ok_or(Trouble::Big),
    }
}

fn ints(operator: Operator, x: i64, y: i64) -> Result<i64, Trouble> {
    if y == 0 && matches!(operator, Operator::Divide | Operator::Remainder) {
        return Err(Trouble::DivisionByZero);
    }
    match operator {
        Operator::Add => x.checked_add(y),
        Operator::Subtract => x.checked_sub(y),
        Operator::Multiply => x.checked_mul(y),
        Operator::Divide => x.checked_div(y),
        Operator::Remainder => x.checked_rem(y),
    }
    .ok_or(Trouble::Overflow)
}

fn doubles(operator: Operator, x: f64, y: f64) -> Result<f64, Trouble> {
    match operator {
        Operator::Add => Ok(x + y),
        Operator::Subtract => Ok(x - y),
        Operator::Multiply => Ok(x * y),
        Operator::Divide if y == 0.0 => Err(Trouble::DivisionByZero),
        Operator::Divide => Ok(x / y),
        Operator::Remainder => Err(Trouble::Fraction),
    }
}

/// Returns the integer that an index is, if it is one.
pub(super) fn exact_index(num: &Num) -> Option<i64> {
    match num {
        Num::Int(value) => Some(*value),
        Num::Double(value) => (value.fract() == 0.0).then(|| to_int(num).unwrap_or(-1)),
        Num::Data(number) if number.is_big() => Some(-1),
        // A double of 10^21 or more is whole, and an index of nothing.
        Num::Data(number) => {
            number.as_i64().or_else(|| number.as_f64().filter(|value| value.fract() == 0.0).map(|_| -1))
        }
    }
}
