//! Differences of numbers in exact decimal arithmetic, on the texts that answers print.
//!
//! The double 311.4 - 223.4 has a tail of noise; the decimals that a reader sees differ by 88. Knows no place and no run.

use std::cmp::Ordering;

use dendrer_object::number::Number;

/// A decimal: `digits` times 10 to the power of `exponent`, digits from the largest on.
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Returns the canonical text of a number.
pub(super) fn text(number: &Number) -> String {
    let mut text = Vec::new();
    number.write(&mut text);
    String::from_utf8(text).expect("the text of a number is ASCII")
}

/// Returns the significant digits of a number, without sign, point and zeros at both ends; empty for 0.
pub(super) fn significant(number: &Number) -> Vec<u8> {
    let digits: Vec<u8> = Decimal::of(number).digits.iter().map(|digit| digit + b'0').collect();
    let zeros = |digit: &&u8| **digit == b'0';
    let front = digits.iter().take_while(zeros).count();
    let back = digits.iter().rev().take_while(zeros).count();
    if front == digits.len() { Vec::new() } else { digits[front..digits.len() - back].to_vec() }
}

/// The significant digits of a number with a fraction; a double has a tail of noise after its fifteenth.
const DIGITS: usize = 12;

/// Returns a number with a fraction rounded to twelve significant digits, if it has at least as many as a double has noise in.
/// Any other number as it is.
pub(super) fn without_noise(number: &Number) -> Number {
    if significant(number).len() < 16 || Decimal::of(number).exponent >= 0 {
        return number.clone();
    }
    let rounded = number.as_f64().map(|double| format!("{double:.*e}", DIGITS - 1));
    rounded.and_then(|text| Number::parse(&text).ok()).unwrap_or_else(|| number.clone())
}

/// Returns `after - before` without noise; `None` if the difference is beyond the largest double and no integer.
pub(super) fn difference(after: &Number, before: &Number) -> Option<Number> {
    let (mut a, mut b) = (Decimal::of(after), Decimal::of(before));
    let exponent = a.exponent.min(b.exponent);
    for one in [&mut a, &mut b] {
        let zeros = usize::try_from(one.exponent - exponent).unwrap_or(0);
        one.digits.extend(std::iter::repeat_n(0, zeros));
    }
    let length = a.digits.len().max(b.digits.len());
    for one in [&mut a, &mut b] {
        let missing = length - one.digits.len();
        one.digits.splice(0..0, std::iter::repeat_n(0, missing));
    }
    let (is_negative, digits) = match (a.is_negative == b.is_negative, a.digits.cmp(&b.digits)) {
        (false, _) => (a.is_negative, added(&a.digits, &b.digits)),
        (true, Ordering::Less) => (!a.is_negative, taken(&b.digits, &a.digits)),
        (true, _) => (a.is_negative, taken(&a.digits, &b.digits)),
    };
    Number::parse(&written(is_negative, &digits, exponent)).ok().map(|number| without_noise(&number))
}

/// Returns the number without its sign.
pub(super) fn magnitude(number: &Number) -> Number {
    let text = text(number);
    Number::parse(text.strip_prefix('-').unwrap_or(&text)).expect("a number without its sign is a number")
}

/// Whether a number is 0, 1 or -1.
pub(super) fn is_trivial(number: &Number) -> bool {
    matches!(&*text(number), "0" | "1" | "-1")
}

impl Decimal {
    fn of(number: &Number) -> Decimal {
        let text = text(number);
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, &*text),
        };
        let (mantissa, power) = rest.split_once('e').unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
        let power: i64 = power.parse().expect("the exponent of a number is an integer");
        Decimal { is_negative, digits, exponent: power - fraction.len() as i64 }
    }
}

/// Adds digits of one length.
fn added(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (mut sum, mut carry) = (Vec::with_capacity(a.len() + 1), 0);
    for (a, b) in a.iter().rev().zip(b.iter().rev()) {
        let digit = a + b + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    sum.push(carry);
    sum.reverse();
    sum
}

/// Subtracts digits of one length, the smaller number second.
fn taken(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (mut rest, mut borrow) = (Vec::with_capacity(a.len()), 0);
    for (a, b) in a.iter().rev().zip(b.iter().rev()) {
        let wanted = b + borrow;
        borrow = u8::from(*a < wanted);
        rest.push(a + 10 * borrow - wanted);
    }
    rest.reverse();
    rest
}

/// Writes a decimal as JSON: an integer with its digits, so that none is lost.
fn written(is_negative: bool, digits: &[u8], exponent: i64) -> String {
    let mut text: String = digits.iter().map(|digit| char::from(digit + b'0')).collect();
    let fraction = usize::try_from(-exponent).unwrap_or(0);
    text.extend(std::iter::repeat_n('0', usize::try_from(exponent).unwrap_or(0)));
    if text.len() <= fraction {
        text.insert_str(0, &"0".repeat(fraction + 1 - text.len()));
    }
    let at = text.len() - fraction;
    let (whole, tail) = text.split_at(at);
    let (whole, tail) = (whole.trim_start_matches('0'), tail.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if is_negative { "-" } else { "" };
    if tail.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{tail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn differences_have_no_noise() {
        for (after, before, expected) in [
            ("311.4", "223.4", "88"),
            ("0.83", "0.71", "0.12"),
            ("873.8", "812.8", "61"),
            ("0.3", "0.1", "0.2"),
            ("0.1", "0.3", "-0.2"),
            ("0.30000000000000004", "0.1", "0.2"),
            ("0.123456789012345", "0", "0.123456789012345"),
            ("-5", "2.5", "-7.5"),
            ("5", "-2.5", "7.5"),
            ("7", "7", "0"),
            ("-7", "-7", "0"),
            ("1e22", "1", "9999999999999999999999"),
            ("12345678901234567890", "1", "12345678901234567889"),
            ("1e-7", "0", "1e-7"),
            ("1e300", "1e-300", "1e+300"),
        ] {
            let found = difference(&number(after), &number(before)).unwrap();
            assert_eq!(text(&found), expected, "{after} - {before}");
        }
    }

    #[test]
    fn significant_digits_have_no_zeros_at_the_ends() {
        for (number, expected) in
            [("310", "31"), ("0.05", "5"), ("-149.9", "1499"), ("1e22", "1"), ("0", ""), ("10.01", "1001")]
        {
            assert_eq!(significant(&self::number(number)), expected.as_bytes(), "{number}");
        }
    }
}
