//! YAML 1.2 and JSON to a value, with the place of everything in the text.
//!
//! The core schema decides what a plain word is: `no` and `on` are text, `0o17` is 15, there are no dates. Anchors,
//! aliases and tags are refused, so that what a reader sees is what there is and nothing can grow from a few lines. A
//! name that stands twice in one map is refused. JSON is YAML: one reader takes both. Never recurses.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::expr::Span;
use dendrer_object::json::DEPTH_MAX;
use dendrer_object::{Code, Number, Pointer, Value, tag};
use granit_parser::{Event, Marker, Parser, ScalarStyle};

/// A place in a text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextMark {
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

/// Something wrong in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackProblem {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// The place in the text.
    pub mark: TextMark,
    /// The place in the value; empty for the whole.
    pub place: String,
    /// One sentence.
    pub message: String,
    /// The text to write instead.
    pub hint: Option<String>,
    /// The line of the text, or an empty text.
    pub line: String,
}

/// A text that was read.
#[derive(Debug)]
pub struct Document {
    /// Its value.
    pub value: Value,
    places: BTreeMap<Pointer, Place>,
    text: String,
}

#[derive(Debug, Clone)]
struct Place {
    name: Option<TextMark>,
    value: TextMark,
    scalar: Option<Scalar>,
}

/// A text as it stands in the file.
#[derive(Debug, Clone)]
struct Scalar {
    text: Arc<str>,
    is_block: bool,
    /// The byte of the file at which it begins, quotes included.
    at: Option<usize>,
}

impl Document {
    /// Reads a text. Returns everything that can be told at once; a fault of the grammar ends the reading.
    pub fn read(text: &[u8]) -> Result<Document, Vec<PackProblem>> {
        let whole = |code, message: String| {
            let mark = TextMark { line: 1, column: 1 };
            vec![PackProblem { code, mark, place: String::new(), message, hint: None, line: String::new() }]
        };
        if text.len() > dendrer_kernel::pack::TEXT_SIZE_MAX {
            let most = dendrer_kernel::pack::TEXT_SIZE_MAX;
            return Err(whole(
                Code::E0904,
                format!("the text has more than {most} bytes, which is as much as is read"),
            ));
        }
        let text = std::str::from_utf8(text).map_err(|error| vec![not_utf_8(text, error.valid_up_to())])?;
        if text.as_bytes().iter().take(2).any(|byte| *byte == 0) {
            return Err(vec![not_utf_8(text.as_bytes(), 0)]);
        }
        let mut builder = Builder::default();
        let options = granit_parser::options! { emit_comments: false, simple_key_max_lookahead: 1 << 16 };
        for event in Parser::new_from_str_with_options(text, options) {
            match event {
                Ok((event, span)) => builder.take(event, &span.start),
                Err(error) => {
                    let message = format!("this is not YAML: {}", error.info());
                    // The one slip that paths with a condition and texts with a colon bring about.
                    let colon = message.contains("mapping values are not allowed");
                    let hint = colon.then_some(
                        "text with `: ` in it stands in quotes, like \"users[first u: u.id == id]\"",
                    );
                    builder.problem(Code::E0901, mark(error.marker()), message, hint);
                    break;
                }
            }
        }
        builder.finish(text)
    }

    /// Finds the place in the text of a place in the value, or of a stretch of the text that stands there.
    pub fn mark(&self, path: &Pointer, at_name: bool, span: Option<Span>) -> TextMark {
        let Some(place) = self.nearest(path) else { return TextMark { line: 1, column: 1 } };
        match (span, &place.scalar) {
            _ if at_name => place.name.unwrap_or(place.value),
            (Some(span), Some(scalar)) => self.inside(place, scalar, span.start as usize),
            _ => place.value,
        }
    }

    /// Returns the line of a place in the text.
    pub fn line(&self, mark: TextMark) -> String {
        line_of(&self.text, mark)
    }

    /// Finds the comments, in order.
    pub(crate) fn comments(&self) -> Vec<TextMark> {
        let options = granit_parser::options! { emit_comments: true, simple_key_max_lookahead: 1 << 16 };
        let events = Parser::new_from_str_with_options(&self.text, options).map_while(Result::ok);
        let comments = events.filter(|(event, _)| matches!(event, Event::Comment(..)));
        comments.map(|(_, span)| mark(&span.start)).collect()
    }

    /// The place itself, or what it lies in: a member that is missing is missed where it should stand.
    fn nearest(&self, path: &Pointer) -> Option<&Place> {
        let tokens: Vec<_> = path.tokens().collect();
        (0..=tokens.len())
            .rev()
            .find_map(|count| self.places.get(&Pointer::of(tokens[..count].iter().map(|token| &**token))))
    }

    /// Finds a byte of a scalar in the file, as far as it stands there as it is.
    fn inside(&self, place: &Place, scalar: &Scalar, byte: usize) -> TextMark {
        let before = scalar.text.get(..byte).unwrap_or(&scalar.text);
        if scalar.is_block {
            let line_of_text = before.matches('\n').count();
            let wanted = scalar.text.lines().nth(line_of_text).unwrap_or_default();
            // The place of a block is that of its indicator or of its first line.
            let first = self.text.lines().nth(place.value.line - 1).unwrap_or_default();
            let from: String = first.chars().skip(place.value.column - 1).take(1).collect();
            let line = place.value.line + line_of_text + usize::from(matches!(from.as_str(), "|" | ">"));
            let indent = self.text.lines().nth(line - 1).and_then(|there| there.find(wanted));
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
            return indent.map_or(place.value, |indent| TextMark { line, column: indent + column + 1 });
        }
        let there = scalar.at.and_then(|at| self.text.get(at..)).unwrap_or_default();
        let quoted = usize::from(there.starts_with(['"', '\'']));
        match there.get(quoted..).is_some_and(|there| there.starts_with(before)) && !before.contains('\n') {
            true => TextMark { column: place.value.column + quoted + before.chars().count(), ..place.value },
            false => place.value,
        }
    }
}

/// The problem of bytes of which only the first are UTF-8.
fn not_utf_8(text: &[u8], sound: usize) -> PackProblem {
    let is_wide = text.starts_with(&[0xff, 0xfe])
        || text.starts_with(&[0xfe, 0xff])
        || text.iter().take(2).any(|byte| *byte == 0);
    let before = String::from_utf8_lossy(&text[..sound]);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let mark = TextMark { line: before.matches('\n').count() + 1, column };
    let (message, from) = match is_wide {
        true => ("the text is UTF-16, and is to be UTF-8", "UTF-16"),
        false => ("the text is not UTF-8 from here on", "LATIN1"),
    };
    let hint = Some(format!("like `iconv -f {from} -t UTF-8`"));
    let line = if is_wide { String::new() } else { line_of(&String::from_utf8_lossy(text), mark) };
    PackProblem { code: Code::E0206, mark, place: String::new(), message: message.to_owned(), hint, line }
}

fn line_of(text: &str, mark: TextMark) -> String {
    text.lines().nth(mark.line.saturating_sub(1)).unwrap_or_default().to_owned()
}

fn mark(marker: &Marker) -> TextMark {
    TextMark { line: marker.line().max(1), column: marker.col() + 1 }
}

/// The likely meaning of a word that other readers take for a number, or for another number: digits in groups, times as numbers
/// of base 60, binary digits, and the octal of YAML 1.1.
fn number_as_text(text: &str) -> Option<String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = &text[..text.len() - digits.len()];
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let plain = digits.replace('_', "");
    let (whole, fraction) =
        plain.split_once('.').map_or((&*plain, None), |(whole, rest)| (whole, Some(rest)));
    if digits.contains('_') && are_digits(whole) && fraction.is_none_or(are_digits) {
        return Some(format!("{sign}{plain}"));
    }
    if let Some(binary) =
        plain.strip_prefix("0b").filter(|binary| binary.bytes().all(|c| matches!(c, b'0' | b'1')))
    {
        return u64::from_str_radix(binary, 2).ok().map(|number| format!("{sign}{number}"));
    }
    let groups: Vec<&str> = digits.split(',').collect();
    if groups.len() > 1
        && are_digits(groups[0])
        && groups[1..].iter().all(|group| group.len() == 3 && are_digits(group))
    {
        return Some(format!("{sign}{}", groups.concat()));
    }
    let parts: Vec<&str> = digits.split(':').collect();
    if parts.len() > 1 && parts.iter().all(|part| are_digits(part) && part.len() <= 2) {
        return Some(format!("\"{text}\""));
    }
    let is_octal = digits.len() > 1 && digits.starts_with('0') && are_digits(digits);
    is_octal.then(|| {
        format!(
            "{} (0o{} is octal)",
            digits.trim_start_matches('0').parse::<u64>().unwrap_or(0),
            digits.trim_start_matches('0')
        )
    })
}

enum Frame {
    List(Vec<Value>),
    Map { members: BTreeMap<Arc<str>, Value>, name: Option<Name> },
}

/// The name of the member whose value comes next. `None` inside for one that was refused.
struct Name(Arc<str>, TextMark, bool);

#[derive(Default)]
struct Builder {
    frames: Vec<Frame>,
    tokens: Vec<String>,
    places: BTreeMap<Pointer, Place>,
    root: Option<Value>,
    documents: usize,
    problems: Vec<PackProblem>,
    /// How many collections are open that stand where none may, and are passed over.
    skipped: usize,
}

impl Builder {
    fn problem(&mut self, code: Code, mark: TextMark, message: impl Into<String>, hint: Option<&str>) {
        let place = Pointer::of(self.tokens.iter().map(String::as_str)).dotted();
        let hint = hint.map(str::to_owned);
        self.problems.push(PackProblem {
            code,
            mark,
            place,
            message: message.into(),
            hint,
            line: String::new(),
        });
    }

    fn finish(mut self, text: &str) -> Result<Document, Vec<PackProblem>> {
        if self.root.is_none() && self.problems.is_empty() {
            self.problem(Code::E0901, TextMark { line: 1, column: 1 }, "the text is empty", None);
        }
        match self.root {
            Some(value) if self.problems.is_empty() => {
                Ok(Document { value, places: self.places, text: text.to_owned() })
            }
            _ => {
                let line = |mark: TextMark| line_of(text, mark);
                let problems = self.problems.into_iter();
                Err(problems.map(|problem| PackProblem { line: line(problem.mark), ..problem }).collect())
            }
        }
    }

    fn take(&mut self, event: Event<'_>, marker: &Marker) {
        let at = mark(marker);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents == 2 {
                    self.problem(
                        Code::E0901,
                        at,
                        "a second document begins here",
                        Some("one file holds one document"),
                    );
                }
            }
            Event::Alias(_) => self.refuse_reference(at),
            Event::Scalar(text, style, anchor, tagged) => {
                self.refuse_extras(at, anchor, tagged.is_some());
                self.scalar(&text, style, at, marker.byte_offset());
            }
            Event::SequenceStart(_, anchor, tagged) => {
                self.open(at, anchor, tagged.is_some(), Frame::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tagged) => {
                self.open(at, anchor, tagged.is_some(), Frame::Map { members: BTreeMap::new(), name: None });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => {}
        }
    }

    fn refuse_extras(&mut self, at: TextMark, anchor: usize, tagged: bool) {
        if anchor != 0 {
            let hint = "write the value out, or name it under `constants` or `define`";
            self.problem(Code::E0901, at, "anchors are not taken here", Some(hint));
        }
        if tagged {
            let hint = "text stands in quotes; numbers, true, false and null stand as they are";
            self.problem(Code::E0901, at, "tags are not taken here", Some(hint));
        }
    }

    fn refuse_reference(&mut self, at: TextMark) {
        // The anchor was told already; the alias still fills its place.
        self.value(Value::Null, at, None);
    }

    /// Whether what comes next is the name of a member.
    fn is_name(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Map { name: None, .. }))
    }

    fn open(&mut self, at: TextMark, anchor: usize, tagged: bool, frame: Frame) {
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        self.refuse_extras(at, anchor, tagged);
        if self.is_name() {
            self.problem(Code::E0901, at, "a name is text, not a list or a map", None);
            self.skipped = 1;
            return;
        }
        if self.frames.len() >= DEPTH_MAX {
            self.problem(Code::E0204, at, format!("the text is nested deeper than {DEPTH_MAX} levels"), None);
            self.skipped = 1;
            return;
        }
        self.enter(at, None);
        self.frames.push(frame);
    }

    fn close(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            if self.skipped == 0 {
                self.fill();
            }
            return;
        }
        let value = match self.frames.pop() {
            Some(Frame::List(items)) => Value::array(items),
            Some(Frame::Map { members, .. }) => Value::record(members),
            None => return,
        };
        self.leave(value);
    }

    /// Puts something where what was passed over stands, so that names and values stay in step.
    fn fill(&mut self) {
        let at = TextMark { line: 1, column: 1 };
        if self.is_name() {
            self.name("".into(), at, false);
        } else {
            self.value(Value::Null, at, None);
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: TextMark, offset: Option<usize>) {
        if self.skipped > 0 {
            return;
        }
        if style == ScalarStyle::Plain
            && !self.is_name()
            && let Some(meant) = number_as_text(text)
        {
            let hint = format!("write {meant}, or put it in quotes if it is text");
            let message = format!("{text} looks like a number, and YAML 1.2 reads it as another thing");
            self.problem(Code::E0901, at, message, Some(&hint));
        }
        let value = match style {
            ScalarStyle::Plain => match plain(text) {
                Ok(value) => value,
                Err(why) => {
                    self.problem(Code::E0901, at, why, Some("put it in quotes if it is text"));
                    Value::Null
                }
            },
            _ => Value::from(text),
        };
        if !self.is_name() {
            let scalar = value.as_str().map(|text| Scalar {
                text: text.into(),
                is_block: matches!(style, ScalarStyle::Literal | ScalarStyle::Folded),
                at: offset,
            });
            self.value(value, at, scalar);
            return;
        }
        match value.as_str() {
            Some("<<") => {
                self.problem(Code::E0901, at, "YAML 1.2 has no merge keys", Some("write the members out"));
                self.name("<<".into(), at, false);
            }
            Some(name) => self.name(tag::stored_name(name), at, true),
            None => {
                let hint = format!("put it in quotes: \"{text}\"");
                self.problem(Code::E0901, at, format!("a name is text, and this is {value}"), Some(&hint));
                self.name(text.into(), at, false);
            }
        }
    }

    fn name(&mut self, text: Arc<str>, at: TextMark, is_good: bool) {
        let Some(Frame::Map { members, name }) = self.frames.last_mut() else { return };
        let twice = members.contains_key(&text);
        *name = Some(Name(Arc::clone(&text), at, is_good && !twice));
        if twice && is_good {
            let hint = "readers would disagree on which of the two counts";
            self.problem(Code::E0202, at, format!("{text} stands twice here"), Some(hint));
        }
    }

    fn value(&mut self, value: Value, at: TextMark, scalar: Option<Scalar>) {
        if self.skipped > 0 {
            return;
        }
        self.enter(at, scalar);
        self.leave(value);
    }

    fn enter(&mut self, at: TextMark, scalar: Option<Scalar>) {
        let name = match self.frames.last() {
            None => None,
            Some(Frame::List(items)) => {
                self.tokens.push(items.len().to_string());
                None
            }
            Some(Frame::Map { name, .. }) => {
                let name = name.as_ref();
                self.tokens.push(name.map_or_else(String::new, |name| name.0.to_string()));
                name.map(|name| name.1)
            }
        };
        let path = Pointer::of(self.tokens.iter().map(String::as_str));
        self.places.entry(path).or_insert(Place { name, value: at, scalar });
    }

    fn leave(&mut self, value: Value) {
        match self.frames.last_mut() {
            None => {
                self.root.get_or_insert(value);
                return;
            }
            Some(Frame::List(items)) => items.push(value),
            Some(Frame::Map { members, name }) => {
                if let Some(Name(name, _, true)) = name.take() {
                    members.insert(name, value);
                }
            }
        }
        self.tokens.pop();
    }
}

/// Reads a plain scalar by the core schema of YAML 1.2 (10.3.2).
fn plain(text: &str) -> Result<Value, &'static str> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Ok(tag::float(f64::NAN)),
        _ => {}
    }
    let (sign, unsigned) = match text.as_bytes()[0] {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Ok(tag::float(if sign == "-" { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_digit(radix))
        {
            let number = u64::from_str_radix(digits, radix);
            return number.map(Value::from).map_err(|_| "this number is larger than 64 bits hold");
        }
    }
    match json_number(sign, unsigned) {
        None => Ok(Value::from(text)),
        Some(number) => Number::parse(&number)
            .map(Value::Number)
            .map_err(|_| "this number is outside the range of a double"),
    }
}

/// Writes a number of the core schema as JSON does: a digit on either side of the point, no leading zeros.
fn json_number(sign: &str, text: &str) -> Option<String> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    let exponent_is_good = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let has_digits = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
    if !has_digits || !digits(whole) || !fraction.is_none_or(digits) || !exponent_is_good {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let mut number = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
    if let Some(fraction) = fraction {
        number.push('.');
        number.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    if let Some(exponent) = exponent {
        number.push('e');
        number.push_str(exponent);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use dendrer_object::json;

    use super::*;

    fn read(text: &str) -> String {
        match Document::read(text.as_bytes()) {
            Ok(document) => document.value.to_string(),
            Err(problems) => problems
                .iter()
                .map(|p| format!("{}:{} {} {}: {}", p.mark.line, p.mark.column, p.code, p.place, p.message))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    #[test]
    fn plain_words_mean_what_the_core_schema_says() {
        for (text, expected) in [
            ("no", "\"no\""),
            ("Yes", "\"Yes\""),
            ("on", "\"on\""),
            ("2024-05-14", "\"2024-05-14\""),
            ("0o17", "15"),
            ("0xFf", "255"),
            ("0o8", "\"0o8\""),
            ("+12", "12"),
            ("-0", "0"),
            ("1.", "1"),
            (".5", "0.5"),
            ("-.5e-3", "-0.0005"),
            ("1e3", "1000"),
            ("e3", "\"e3\""),
            (".", "\".\""),
            ("9007199254740993", "9007199254740993"),
            ("~", "null"),
            ("Null", "null"),
            ("nULL", "\"nULL\""),
            ("TRUE", "true"),
            (".inf", "{\"$float\":\"Infinity\"}"),
            ("'true'", "\"true\""),
            ("\"\\u00e9\\x41\"", "\"\u{e9}A\""),
            ("|\n  a\n  b\n", "\"a\\nb\\n\""),
            (">-\n  a\n  b\n", "\"a b\""),
        ] {
            let found = read(&format!("x: {text}"));
            assert_eq!(found, format!("{{\"x\":{expected}}}"), "{text}");
        }
        for text in ["12:30:00", "12:30", "1_000", "-1_000.5", "0b11", "017", "1,000"] {
            let found = read(&format!("x: {text}"));
            assert!(found.contains("E0901") && found.contains("looks like a number"), "{found}");
            assert_eq!(read(&format!("x: '{text}'")), format!("{{\"x\":\"{text}\"}}"));
        }
    }

    #[test]
    fn json_is_taken_as_it_is() {
        let text = "{\n\t\"a\":\t[1, -2.5e3, \"\\ud83d\\ude00\\/\", null, true],\n\t\"$x\": {}\n}";
        assert_eq!(read(text), json::parse_door(text.as_bytes()).unwrap().to_string());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused_with_its_place() {
        for (text, expected) in [
            ("a: 1\nb: 2\na: 3\n", "3:1 E0202 : a stands twice here"),
            ("a: &x 1\nb: *x\n", "1:7 E0901 : anchors are not taken here"),
            ("a: !!str 1\n", "1:10 E0901 : tags are not taken here"),
            (
                "1: x\n? [a]\n: y\n",
                "1:1 E0901 : a name is text, and this is 1\n2:3 E0901 : a name is text, not a list or a map",
            ),
            ("<<: {a: 1}\n", "1:1 E0901 : YAML 1.2 has no merge keys"),
            ("a: 1\n---\nb: 2\n", "2:1 E0901 : a second document begins here"),
            ("", "1:1 E0901 : the text is empty"),
            ("a: 1e999\n", "1:4 E0901 : this number is outside the range of a double"),
        ] {
            let found = read(text);
            assert_eq!(found, expected, "{text}");
        }
        assert!(read("a: b: c").starts_with("1:5 E0901 : this is not YAML: "), "{}", read("a: b: c"));
        assert!(read(&"[".repeat(300)).contains("E0"), "deep");
        assert!(
            read(&format!("{}{}", "[".repeat(200), "]".repeat(200))).contains("E0204"),
            "deeper than the format allows"
        );
        assert!(Document::read(&[0xff]).is_err());
    }

    #[test]
    fn places_of_the_value_are_places_of_the_text() {
        let text = "a:\n  - b: \"x + y\"\n    'c': z + q\nlong: |\n  first\n   second\n";
        let document = Document::read(text.as_bytes()).unwrap();
        let mark = |path: &str, at_name: bool, byte: Option<u32>| {
            let span = byte.map(|start| Span { start, end: start + 1 });
            let mark = document.mark(&path.parse().unwrap(), at_name, span);
            format!("{}:{}", mark.line, mark.column)
        };
        assert_eq!(mark("/a/0/b", false, None), "2:8");
        assert_eq!(mark("/a/0/b", true, None), "2:5");
        assert_eq!(mark("/a/0/b", false, Some(4)), "2:13");
        assert_eq!(mark("/a/0/c", false, Some(4)), "3:14");
        assert_eq!(mark("/a/0/missing", false, None), "2:5");
        assert_eq!(mark("/long", false, Some(7)), "6:4");
        assert_eq!(mark("", false, None), "1:1");
    }
}
