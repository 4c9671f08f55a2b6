//! Numbers of one kind: a finite IEEE double, or an integer beyond 2^53-1 that keeps its digits.
//!
//! A number is identified by its canonical text (RFC 8785 3.2.2.3).
//!
//! Rule: equal numbers have one canonical text. A double whose text is an integer beyond 2^53-1 (`1e20`) *is* that integer, and an
//! integer of 10^21 or more that is exactly a double is that double: 10^21 is written `1e+21`. 10^23 is no double, and is another number
//! than 1e23. Test `equal_numbers_have_one_text`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The largest integer a double holds together with all smaller ones: 2^53 - 1 (RFC 7493 2.2).
pub const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// A number as the format knows it. Made by [`Number::from_f64`], [`Number::from_i64`] or [`Number::parse`].
#[derive(Clone)]
pub struct Number(Repr);

#[derive(Clone)]
enum Repr {
    /// Finite, not negative zero; its canonical text is not an integer beyond 2^53-1.
    Double(f64),
    /// Decimal digits with an optional minus, without leading zeros, beyond +-(2^53-1); of 10^21 or more only what is no double.
    Big(Arc<str>),
}

/// Why a text is not a number of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text does not follow the JSON grammar (RFC 8259 6).
    #[error("not a JSON number")]
    Syntax,
    /// The text has a fraction or an exponent and lies beyond the largest double.
    #[error("the number is outside the range of a double")]
    Range,
}

impl Number {
    /// Takes a double; `None` for NaN and infinities, which have a tagged form instead. `-0` becomes `0`.
    pub fn from_f64(value: f64) -> Option<Number> {
        if !value.is_finite() {
            return None;
        }
        if value.abs() <= SAFE_INTEGER_MAX as f64 || value.abs() >= 1e21 {
            // Adding zero turns -0 into 0 and changes nothing else.
            return Some(Number(Repr::Double(value + 0.0)));
        }
        let mut buffer = ryu_js::Buffer::new();
        let text = buffer.format_finite(value);
        // Between 2^53 and 1e21 every double is integral and RFC 8785 prints its digits.
        Some(Number(Repr::Big(text.into())))
    }

    /// Takes an integer, whatever its size.
    pub fn from_i64(value: i64) -> Number {
        if value.unsigned_abs() <= SAFE_INTEGER_MAX {
            return Number(Repr::Double(value as f64));
        }
        Number(Repr::Big(value.to_string().into()))
    }

    /// Takes an unsigned integer, whatever its size.
    pub fn from_u64(value: u64) -> Number {
        if value <= SAFE_INTEGER_MAX {
            return Number(Repr::Double(value as f64));
        }
        Number(Repr::Big(value.to_string().into()))
    }

    /// Reads a JSON number token. Integers beyond 2^53-1 keep their digits, unless they are doubles of 10^21 or more; anything with
    /// a fraction or an exponent becomes the nearest double.
    pub fn parse(text: &str) -> Result<Number, NumberError> {
        let bytes = text.as_bytes();
        let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
        let integral = digits.iter().take_while(|c| c.is_ascii_digit()).count();
        if integral == 0 || (integral > 1 && digits[0] == b'0') {
            return Err(NumberError::Syntax);
        }
        if integral == digits.len() {
            return Ok(Number::from_digits(text, digits));
        }
        let mut rest = &digits[integral..];
        if let Some(fraction) = rest.strip_prefix(b".") {
            let count = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
            if count == 0 {
                return Err(NumberError::Syntax);
            }
            rest = &fraction[count..];
        }
        if let [b'e' | b'E', exponent @ ..] = rest {
            let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
            if exponent.is_empty() || !exponent.iter().all(u8::is_ascii_digit) {
                return Err(NumberError::Syntax);
            }
            rest = &[];
        }
        if !rest.is_empty() {
            return Err(NumberError::Syntax);
        }
        let value: f64 = text.parse().map_err(|_| NumberError::Syntax)?;
        Number::from_f64(value).ok_or(NumberError::Range)
    }

    fn from_digits(text: &str, digits: &[u8]) -> Number {
        // 16 digits may still be safe, 15 always are; the parse decides.
        if digits.len() <= 16 {
            let magnitude = digits.iter().fold(0u64, |n, c| n * 10 + u64::from(c - b'0'));
            if magnitude <= SAFE_INTEGER_MAX {
                let value = magnitude as f64;
                return Number(Repr::Double(if text.starts_with('-') && magnitude != 0 {
                    -value
                } else {
                    value
                }));
            }
        }
        // Below 10^21 a double is written with its digits as well.
        if digits.len() > 21
            && let Ok(value) = text.parse::<f64>()
            && value.is_finite()
            && whole_part(value) == text
        {
            return Number(Repr::Double(value));
        }
        Number(Repr::Big(text.into()))
    }

    /// Returns the double, or `None` for an integer beyond 2^53-1, which no arithmetic touches.
    pub fn as_f64(&self) -> Option<f64> {
        match &self.0 {
            Repr::Double(value) => Some(*value),
            Repr::Big(_) => None,
        }
    }

    /// Returns the value as an integer within +-(2^53-1), if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        let value = self.as_f64()?;
        (value.fract() == 0.0 && value.abs() <= SAFE_INTEGER_MAX as f64).then_some(value as i64)
    }

    /// Returns the value as a non-negative integer within 2^53-1, if it is one.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i64()?.try_into().ok()
    }

    /// Tells whether this is an integer beyond 2^53-1.
    pub fn is_big(&self) -> bool {
        matches!(self.0, Repr::Big(_))
    }

    /// Appends the canonical text (RFC 8785 3.2.2.3).
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Big(digits) => out.extend_from_slice(digits.as_bytes()),
            Repr::Double(value) => {
                if value.fract() == 0.0 && value.abs() <= SAFE_INTEGER_MAX as f64 {
                    out.extend_from_slice(itoa::Buffer::new().format(*value as i64).as_bytes());
                } else {
                    out.extend_from_slice(ryu_js::Buffer::new().format_finite(*value).as_bytes());
                }
            }
        }
    }

    /// Compares by mathematical value, exactly: no integer is rounded to a double on the way.
    pub fn compare(&self, other: &Number) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Double(a), Repr::Double(b)) => a.partial_cmp(b).expect("no number is NaN"),
            (Repr::Big(a), Repr::Big(b)) => compare_digits(a, b),
            (Repr::Double(a), Repr::Big(b)) => compare_digits(&whole_part(*a), b),
            (Repr::Big(a), Repr::Double(b)) => compare_digits(a, &whole_part(*b)),
        }
    }
}

/// The exact decimal digits of the integral part. A fraction cannot decide against an integer beyond 2^53-1,
/// because a double that has one is smaller than 2^53 in magnitude.
fn whole_part(value: f64) -> String {
    format!("{:.0}", value.trunc())
}

fn compare_digits(a: &str, b: &str) -> Ordering {
    let split = |text: &str| match text.strip_prefix('-') {
        Some(digits) => (true, digits.to_owned()),
        None => (false, text.to_owned()),
    };
    let ((a_negative, a), (b_negative, b)) = (split(a), split(b));
    match (a_negative, b_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(&b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| b.cmp(&a)),
    }
}

/// Rounds to `decimals` places on the exact binary value, ties to even, as Python's `round` does
/// (design, section 3 "Numbers"; dendrer paper 3.3). A value that is not finite comes back as it is.
pub fn round_half_even(value: f64, decimals: u8) -> f64 {
    if !value.is_finite() {
        return value;
    }
    quickly_rounded(value, decimals).unwrap_or_else(|| rounded_by_text(value, decimals))
}

/// Rounds what a multiplication can round: the scaled value is far enough from the middle between two integers that what
/// the multiplication itself rounds away decides nothing, and an exact integer over an exact power of ten is the double
/// that the decimal text would be read as.
fn quickly_rounded(value: f64, decimals: u8) -> Option<f64> {
    const SCALED_MAX: f64 = 4_294_967_296.0;
    const MARGIN: f64 = 1.0 / 1_048_576.0;
    let scale = *POWERS_OF_TEN.get(usize::from(decimals))?;
    let scaled = value * scale;
    let below = scaled.floor();
    let is_clear = scaled.abs() < SCALED_MAX && (scaled - below - 0.5).abs() > MARGIN;
    is_clear.then(|| (if scaled - below < 0.5 { below } else { below + 1.0 }) / scale + 0.0)
}

/// Those that a double is exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Rounds any value. Rust prints the exact binary value correctly rounded, ties to even, for any precision.
fn rounded_by_text(value: f64, decimals: u8) -> f64 {
    format!("{:.*}", usize::from(decimals), value).parse::<f64>().expect("a printed double parses") + 0.0
}

impl PartialEq for Number {
    /// Equal when the canonical texts are.
    fn eq(&self, other: &Number) -> bool {
        match (&self.0, &other.0) {
            (Repr::Double(a), Repr::Double(b)) => a == b,
            (Repr::Big(a), Repr::Big(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        f.write_str(std::str::from_utf8(&text).expect("number text is ASCII"))
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canon(text: &str) -> String {
        Number::parse(text).unwrap().to_string()
    }

    #[test]
    fn equal_numbers_have_one_text() {
        let text = |text: &str| Number::parse(text).unwrap().to_string();
        for (written, canonical) in [
            ("1000000000000000000000", "1e+21"),
            ("-1000000000000000000000", "-1e+21"),
            ("1e21", "1e+21"),
            ("1208925819614629174706176", "1.2089258196146292e+24"),
            ("100000000000000000000000", "100000000000000000000000"),
            ("1e23", "1e+23"),
            ("999999999999999999999", "999999999999999999999"),
            ("-0.0", "0"),
        ] {
            assert_eq!(text(written), canonical);
            assert_eq!(text(canonical), canonical, "canonical text is read as what it was");
        }
    }

    #[test]
    fn canonical_text_is_that_of_rfc_8785_and_big_integers_keep_their_digits() {
        for (input, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("1E30", "1e+30"),
            ("1e20", "100000000000000000000"),
            ("100000000000000000000", "100000000000000000000"),
            ("9007199254740991", "9007199254740991"),
            ("9007199254740992", "9007199254740992"),
            ("9007199254740993", "9007199254740993"),
            ("-9007199254740993", "-9007199254740993"),
            ("1208925819614629174706177", "1208925819614629174706177"),
            ("5e-324", "5e-324"),
        ] {
            assert_eq!(canon(input), expected, "{input}");
            assert_eq!(canon(expected), expected, "{expected} reads back as itself");
        }
    }

    #[test]
    fn what_json_does_not_allow_is_refused() {
        for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", "1_000", "NaN", "1 ", "--1"] {
            assert_eq!(Number::parse(text), Err(NumberError::Syntax), "{text}");
        }
        assert_eq!(Number::parse("1e400"), Err(NumberError::Range));
    }

    #[test]
    fn comparison_is_exact_across_the_two_forms() {
        let order = |a: &str, b: &str| Number::parse(a).unwrap().compare(&Number::parse(b).unwrap());
        assert_eq!(order("9007199254740993", "9007199254740992"), Ordering::Greater);
        assert_eq!(order("9007199254740993", "9007199254740990.5"), Ordering::Greater);
        assert_eq!(order("1208925819614629174706176", "1.2089258196146292e24"), Ordering::Equal);
        assert_eq!(order("1208925819614629174706177", "1.2089258196146292e24"), Ordering::Greater);
        assert_eq!(order("-9007199254740993", "-9007199254740992"), Ordering::Less);
        assert_eq!(order("1e300", "9007199254740993"), Ordering::Greater);
        assert_eq!(order("-1e300", "-9007199254740993"), Ordering::Less);
    }

    #[test]
    fn rounding_works_on_the_exact_binary_value() {
        // Each expectation is what Python's round() prints.
        for (value, decimals, expected) in [
            (2.675, 2, 2.67),
            (0.5, 0, 0.0),
            (1.5, 0, 2.0),
            (2.5, 0, 2.0),
            (0.8305, 3, 0.831),
            (-0.0004, 3, 0.0),
            (0.1 + 0.2, 3, 0.3),
            (1e22, 2, 1e22),
        ] {
            assert_eq!(round_half_even(value, decimals), expected, "round({value}, {decimals})");
        }
    }

    proptest! {
        /// Prices, ratios, and what lies a bit beside the middle between two roundings.
        #[test]
        fn the_quick_rounding_is_the_exact_one(
            whole in -2_000_000i64..2_000_000, decimals in 0u8..18, parts in 1u32..12, bits in -3i64..4, any in any::<f64>(),
        ) {
            let near = (whole as f64 + 0.5) / 10f64.powi(parts as i32 - 1);
            let beside = f64::from_bits(near.to_bits().wrapping_add_signed(bits));
            for value in [near, beside, -beside, whole as f64 / 10f64.powi(parts as i32), any] {
                if let Some(quick) = quickly_rounded(value, decimals) {
                    let exact = rounded_by_text(value, decimals);
                    prop_assert_eq!(quick.to_bits(), exact.to_bits(), "round({}, {})", value, decimals);
                }
            }
        }
    }
}
