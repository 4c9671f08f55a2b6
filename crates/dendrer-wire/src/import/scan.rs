//! Cuts values out of a stream of JSON without holding the stream.
//!
//! Finds where values begin and end, and nothing else: [`parse_door`](dendrer_object::json::parse_door) reads the
//! pieces and decides what is accepted. Rule: whatever the bytes are, memory holds one buffer, the bytes of a
//! [`Capture`] and [`SIZES_MAX`] sizes.

use std::io::{self, Read};

use dendrer_object::Code;
use dendrer_object::json::{DEPTH_MAX, VALUE_SIZE_MAX, parse_door, plain_prefix};

use super::error::ImportError;
use super::skim;

/// How many bytes are read at once.
const BUFFER: usize = 1 << 16;

/// The longest scalar that is not text. No number is longer by much, and none needs to be.
pub(crate) const SCALAR_SIZE_MAX: usize = 1 << 16;

/// How much a capture may be larger than a value, for the blanks and commas between values.
const SLACK: usize = 1 << 20;

/// Why scanning stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The source ends inside a value.
    Cut,
    /// Another token than the grammar expects: the expected one, and the offset.
    Syntax(&'static str, u64),
    /// The source cannot be read.
    Io(io::Error),
    /// The receiver of the values stopped with this error.
    Failed(ImportError),
}

impl From<ImportError> for Stop {
    fn from(error: ImportError) -> Stop {
        Stop::Failed(error)
    }
}

/// Beyond this a text is large, and its room is not kept for the next.
const LARGE: usize = 1 << 20;

/// Text that was cut out, up to a limit.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The text. A value that did not fit reads `null`.
    pub(crate) text: Vec<u8>,
    /// Whether text is kept at all.
    keeps: bool,
    /// Whether there was more than can be kept, even with large values left out.
    pub(crate) is_over: bool,
}

impl Capture {
    /// Keeps at most what one value may have.
    pub(crate) fn new() -> Capture {
        Capture { text: Vec::new(), keeps: true, is_over: false }
    }

    /// Keeps nothing.
    pub(crate) fn nothing() -> Capture {
        Capture { text: Vec::new(), keeps: false, is_over: false }
    }

    /// Forgets the text, and the room of one that was large.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(LARGE);
        self.is_over = false;
    }

    /// Adds text.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.keeps && !self.is_over {
            // Values stop at the limit; a little more is for the names and the nulls in their places.
            let needed = self.text.len() + bytes.len();
            self.is_over = needed > VALUE_SIZE_MAX + SLACK;
            if needed > self.text.capacity() && needed > LARGE {
                // Growing step by step would hold the old room and the new at once. Room that is not written to takes no memory.
                self.text.reserve_exact(VALUE_SIZE_MAX + SLACK + bytes.len() - self.text.len());
            }
            self.text.extend_from_slice(bytes);
        }
    }
}

/// A part that was left out of a capture, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// It has more bytes than a value may have.
    TooLarge(u64),
    /// It is nested deeper than a value may be.
    TooDeep,
}

/// Steps over the value of a member, given its name as it is spelled.
pub(crate) type Member<'a, R> = dyn FnMut(&mut Scanner<R>, &mut Capture, &[u8]) -> Result<(), Stop> + 'a;

/// A check whether a source changed since it was read before. It finds an accident, not a forgery; the SHA-256 of the
/// source binds its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// How many bytes there were.
    pub(crate) size: u64,
    crc: u32,
}

impl Fingerprint {
    /// The fingerprint of bytes in memory.
    pub(crate) fn of(bytes: &[u8]) -> Fingerprint {
        Fingerprint { size: bytes.len() as u64, crc: crc32c::crc32c(bytes) }
    }
}

/// How many sizes are remembered: 4 MB of them.
const SIZES_MAX: usize = 1 << 18;

/// Offsets and sizes of messages, for the second reading of the source. They are only a hint: the bytes they point at
/// must prove to be a value.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// Offsets and sizes, in order.
    known: Vec<(u64, u32)>,
    next: usize,
}

impl Sizes {
    fn keep(&mut self, offset: u64, size: usize) {
        if let (true, Ok(size)) = (self.known.len() < SIZES_MAX, u32::try_from(size)) {
            self.known.push((offset, size));
        }
    }

    /// The size of what was found here. Asked in the order of the source.
    fn at(&mut self, offset: u64) -> Option<usize> {
        while self.known.get(self.next)?.0 < offset {
            self.next += 1;
        }
        let (known, size) = self.known[self.next];
        (known == offset).then_some(size as usize)
    }
}

/// A reader of JSON from front to back.
pub(crate) struct Scanner<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// The offset of the buffer in the source.
    base: u64,
    crc: u32,
    /// Sizes that are known from before.
    pub(crate) hints: Sizes,
    /// Sizes that were found.
    pub(crate) found: Sizes,
}

impl<R: Read> Scanner<R> {
    pub(crate) fn new(input: R) -> Result<Scanner<R>, Stop> {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        let (hints, found) = (Sizes::default(), Sizes::default());
        let mut scanner = Scanner { input, buffer, at: 0, end: 0, base: 0, crc: 0, hints, found };
        scanner.fill()?;
        // A source that is no text from its first bytes is reported as such: another encoding, or compressed.
        let first = &scanner.buffer[..scanner.end.min(8)];
        if let Err(error) = parse_door(first)
            && error.code() == Code::E0206
            && std::str::from_utf8(first).is_err_and(|wrong| wrong.error_len().is_some())
        {
            return Err(Stop::Failed(ImportError::Json { error, at: None, offset: None }));
        }
        // A byte order mark belongs to the file, not to any value in it.
        if scanner.buffer[..scanner.end].starts_with(b"\xef\xbb\xbf") {
            scanner.at = 3;
        }
        Ok(scanner)
    }

    /// The offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Reads to the end and returns what the source was, and the input.
    pub(crate) fn finish(mut self) -> Result<(Fingerprint, R), Stop> {
        while self.fill()? {
            self.at = self.end;
        }
        Ok((Fingerprint { size: self.base + self.end as u64, crc: self.crc }, self.input))
    }

    /// Makes sure that a byte is in the buffer; false at the end of the source.
    #[inline]
    fn fill(&mut self) -> Result<bool, Stop> {
        if self.at < self.end { Ok(true) } else { self.refill() }
    }

    fn refill(&mut self) -> Result<bool, Stop> {
        self.base += self.end as u64;
        (self.at, self.end) = (0, 0);
        // The first bytes are taken together, so that a mark in front is seen whole.
        while self.end < 3 {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(count) => {
                    self.crc = crc32c::crc32c_append(self.crc, &self.buffer[self.end..self.end + count]);
                    self.end += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Io(error)),
            }
        }
        Ok(self.end > 0)
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<u8>, Stop> {
        Ok(if self.fill()? { Some(self.buffer[self.at]) } else { None })
    }

    /// Steps over white space and returns the byte behind it; `None` at the end of the source.
    pub(crate) fn next(&mut self) -> Result<Option<u8>, Stop> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                byte => return Ok(byte),
            }
        }
    }

    /// As [`Scanner::next`] where something must come.
    fn must(&mut self) -> Result<u8, Stop> {
        self.next()?.ok_or(Stop::Cut)
    }

    fn syntax<T>(&self, expected: &'static str) -> Result<T, Stop> {
        Err(Stop::Syntax(expected, self.offset()))
    }

    /// Returns the rest of the buffer.
    fn ahead(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Steps over a message where the buffer holds all of it; else does nothing and returns false.
    pub(crate) fn skim_message(&mut self) -> bool {
        let Some(size) = skim::message(self.ahead()) else { return false };
        self.found.keep(self.offset(), size);
        self.at += size;
        true
    }

    /// Returns what is probably the whole text, array or object that comes next, where the buffer holds it. Steps over
    /// nothing.
    pub(crate) fn whole(&mut self) -> Option<&[u8]> {
        let hint = self.hints.at(self.offset());
        let size = hint.or_else(|| skim::value(self.ahead()))?;
        // A value that ends in its own bracket or quote is complete, whatever precedes it; any other value is not.
        self.ahead().get(..size).filter(|text| matches!(text.first(), Some(b'"' | b'{' | b'[')))
    }

    /// Steps over bytes of the buffer.
    pub(crate) fn skip(&mut self, size: usize) {
        assert!(size <= self.end - self.at, "only what is in the buffer is stepped over");
        self.at += size;
    }

    /// Steps over a value and captures its text. `depth` is the nesting so far. Returns the part that did not fit; the
    /// capture has `null` in its place.
    pub(crate) fn value(&mut self, capture: &mut Capture, depth: usize) -> Result<Option<LeftOut>, Stop> {
        let first = self.must()?;
        let start = capture.text.len();
        let mut left_out = None;
        let mut size = 0;
        match first {
            b'"' | b'{' | b'[' => {
                let mut walk = Walk { depth, deepest: depth, ..Walk::default() };
                loop {
                    if !self.fill()? {
                        return Err(Stop::Cut);
                    }
                    let chunk = &self.buffer[self.at..self.end];
                    let used = match walk.step(chunk, depth) {
                        Ok(used) => used,
                        Err(at) => {
                            return Err(Stop::Syntax("the end of the string", self.offset() + at as u64));
                        }
                    };
                    size += used as u64;
                    if walk.deepest > DEPTH_MAX {
                        left_out = Some(LeftOut::TooDeep);
                    } else if capture.text.len() + used > VALUE_SIZE_MAX {
                        left_out = Some(LeftOut::TooLarge(0));
                    }
                    if left_out.is_none() {
                        capture.push(&self.buffer[self.at..self.at + used]);
                    } else {
                        capture.text.truncate(start);
                    }
                    self.at += used;
                    if walk.done {
                        break;
                    }
                }
            }
            _ => self.scalar(capture)?,
        }
        Ok(left_out.map(|why| {
            capture.push(b"null");
            if why == LeftOut::TooDeep { why } else { LeftOut::TooLarge(size) }
        }))
    }

    /// A number or a word. Read here, because nothing else marks what is not JSON at all.
    fn scalar(&mut self, capture: &mut Capture) -> Result<(), Stop> {
        let at = self.offset();
        let here = &self.buffer[self.at..self.end.min(self.at + SCALAR_SIZE_MAX)];
        if let Some(size) = here.iter().position(|byte| ends_a_scalar(*byte)) {
            if !is_scalar(&here[..size]) {
                return Err(Stop::Syntax("a value", at));
            }
            capture.push(&here[..size]);
            self.at += size;
            return Ok(());
        }
        let mut text = Vec::new();
        while let Some(byte) = self.peek()? {
            if ends_a_scalar(byte) || text.len() > SCALAR_SIZE_MAX {
                break;
            }
            text.push(byte);
            self.at += 1;
        }
        let is_whole = self.peek()?.is_some();
        if is_scalar(&text) {
            capture.push(&text);
            return Ok(());
        }
        match is_whole || !begins_a_scalar(&text) {
            true => Err(Stop::Syntax("a value", at)),
            false => Err(Stop::Cut),
        }
    }

    /// Walks the members of an object. `member` is called in front of each value with its name, must step over
    /// the value, and says what it did in [`Scanner::value`]'s terms.
    pub(crate) fn object(&mut self, capture: &mut Capture, member: &mut Member<'_, R>) -> Result<(), Stop> {
        self.enter(b'{', "`{`", capture)?;
        if self.must()? == b'}' {
            return self.enter(b'}', "`}`", capture);
        }
        let mut name = Capture::new();
        loop {
            if self.must()? != b'"' {
                return self.syntax("a name in quotes");
            }
            name.clear();
            let start = self.offset();
            if self.value(&mut name, 0)?.is_some() {
                return Err(Stop::Syntax("a name of a size that can be kept", start));
            }
            capture.push(&name.text);
            self.must()?;
            self.enter(b':', "`:`", capture)?;
            self.must()?;
            member(self, capture, &name.text)?;
            match self.must()? {
                b',' => self.enter(b',', "`,`", capture)?,
                _ => return self.enter(b'}', "`,` or `}`", capture),
            }
        }
    }

    /// Walks the items of an array. `item` must step over each.
    pub(crate) fn array(
        &mut self,
        item: &mut dyn FnMut(&mut Scanner<R>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut none = Capture::nothing();
        self.enter(b'[', "`[`", &mut none)?;
        if self.must()? == b']' {
            return self.enter(b']', "`]`", &mut none);
        }
        loop {
            self.must()?;
            item(self)?;
            match self.must()? {
                b',' => self.enter(b',', "`,`", &mut none)?,
                _ => return self.enter(b']', "`,` or `]`", &mut none),
            }
        }
    }

    fn enter(&mut self, byte: u8, expected: &'static str, capture: &mut Capture) -> Result<(), Stop> {
        if self.peek()? != Some(byte) {
            return self.syntax(expected);
        }
        capture.push(&[byte]);
        self.at += 1;
        Ok(())
    }
}

pub(crate) fn ends_a_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}' | b' ' | b'\t' | b'\n' | b'\r')
}

/// Tells whether this is a number or a word. JSON that is not accepted is for the door to refuse, which knows the
/// place.
pub(crate) fn is_scalar(text: &[u8]) -> bool {
    !parse_door(text).is_err_and(|error| error.code() == Code::E0201)
}

/// Tells whether more text could make this a number or a word.
fn begins_a_scalar(text: &[u8]) -> bool {
    let words = [&b"true"[..], b"false", b"null", b"NaN", b"Infinity", b"-Infinity"];
    let is_number = text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    !text.is_empty() && (is_number || words.iter().any(|word| word.starts_with(text)))
}

/// The position of the scanner in a text, array or object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Walk {
    depth: usize,
    deepest: usize,
    in_string: bool,
    escaped: bool,
    done: bool,
}

impl Walk {
    /// Takes bytes up to the end of the value or of the chunk and returns how many. Fails at a byte that cannot
    /// stand in a string: there the quotes are out of step, and all that follows would be misread.
    fn step(&mut self, chunk: &[u8], outside: usize) -> Result<usize, usize> {
        let mut at = 0;
        while at < chunk.len() {
            if self.escaped {
                self.escaped = false;
            } else if self.in_string {
                at += plain_prefix(&chunk[at..]);
                match chunk.get(at) {
                    None => break,
                    Some(b'\\') => self.escaped = true,
                    Some(b'"') => self.in_string = false,
                    Some(_) => return Err(at),
                }
            } else {
                match chunk[at] {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => {
                        self.depth += 1;
                        self.deepest = self.deepest.max(self.depth);
                    }
                    b'}' | b']' => self.depth -= 1,
                    _ => {
                        at += 1;
                        continue;
                    }
                }
            }
            at += 1;
            if self.depth == outside && !self.in_string {
                self.done = true;
                return Ok(at);
            }
        }
        Ok(chunk.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out one byte at a time, so that every place is the edge of a buffer.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(buffer.len()).min(1);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn cut<R: Read>(input: R) -> Result<Vec<String>, Stop> {
        let mut scanner = Scanner::new(input)?;
        let mut found = Vec::new();
        while scanner.next()?.is_some() {
            let mut capture = Capture::new();
            scanner.value(&mut capture, 0)?;
            found.push(String::from_utf8(capture.text).unwrap());
        }
        Ok(found)
    }

    #[test]
    fn values_are_cut_where_they_end() {
        let text = "\u{feff} {\"a\":[1,\"]}\\\"\"]} [] \"x y\"12 true\n{}";
        let expected = ["{\"a\":[1,\"]}\\\"\"]}", "[]", "\"x y\"", "12", "true", "{}"];
        assert_eq!(cut(text.as_bytes()).unwrap(), expected);
        assert_eq!(cut(Slow(text.as_bytes())).unwrap(), expected);
    }

    #[test]
    fn what_is_no_value_stops() {
        assert!(matches!(cut(&b"{\"a\":1"[..]), Err(Stop::Cut)));
        assert!(matches!(cut(&b"\"abc"[..]), Err(Stop::Cut)));
        assert!(matches!(cut(&b"tru"[..]), Err(Stop::Cut)));
        assert!(matches!(cut(&b"{} garbage {}"[..]), Err(Stop::Syntax("a value", 3))));
        assert!(matches!(cut(&b"]"[..]), Err(Stop::Syntax("a value", 0))));
        // A line that was cut inside a text must not swallow the lines that follow.
        assert!(matches!(
            cut(&b"{\"a\":\"b\n{\"a\":\"c\"}"[..]),
            Err(Stop::Syntax("the end of the string", 7))
        ));
    }

    #[test]
    fn what_is_too_deep_is_left_out_and_what_follows_is_not() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let text = format!("{} {} 7", deep(DEPTH_MAX), deep(DEPTH_MAX + 1));
        let mut scanner = Scanner::new(text.as_bytes()).unwrap();
        let mut next = || {
            scanner.next().unwrap();
            let mut capture = Capture::new();
            let left_out = scanner.value(&mut capture, 0).unwrap();
            (left_out, capture.text.len())
        };
        assert_eq!(next(), (None, 2 * DEPTH_MAX));
        assert_eq!(next(), (Some(LeftOut::TooDeep), 4));
        assert_eq!(next(), (None, 1));
    }

    /// The same walk, byte by byte.
    fn slow_step(walk: &mut Walk, chunk: &[u8], outside: usize) -> Result<usize, usize> {
        for (at, &byte) in chunk.iter().enumerate() {
            if walk.in_string {
                match byte {
                    _ if walk.escaped => walk.escaped = false,
                    b'\\' => walk.escaped = true,
                    b'"' => walk.in_string = false,
                    0..0x20 => return Err(at),
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => walk.in_string = true,
                    b'{' | b'[' => walk.depth += 1,
                    b'}' | b']' => walk.depth -= 1,
                    _ => {}
                }
                walk.deepest = walk.deepest.max(walk.depth);
            }
            if walk.depth == outside && !walk.in_string {
                walk.done = true;
                return Ok(at + 1);
            }
        }
        Ok(chunk.len())
    }

    proptest! {
        #[test]
        fn walking_in_blocks_is_walking_byte_by_byte(
            first in prop_oneof![Just(b'{'), Just(b'['), Just(b'"')],
            rest in proptest::collection::vec(
                prop_oneof![
                    4 => proptest::collection::vec(0x20..0x7fu8, 0..30),
                    1 => any::<u8>().prop_map(|byte| vec![byte]),
                    4 => prop_oneof![Just("{"), Just("}"), Just("[\""), Just("]"), Just("\""), Just("\\"), Just("\\\"")]
                        .prop_map(|text| text.as_bytes().to_vec()),
                ],
                0..30,
            ),
            piece in 1..40usize,
            outside in 0..3usize)
        {
            let bytes = [vec![first], rest.concat()].concat();
            let start = || Walk { depth: outside, deepest: outside, ..Walk::default() };
            let (mut fast, mut slow) = (start(), start());
            for chunk in bytes.chunks(piece) {
                let found = fast.step(chunk, outside);
                prop_assert_eq!(found, slow_step(&mut slow, chunk, outside));
                prop_assert_eq!(&fast, &slow);
                if found.is_err() || fast.done {
                    break;
                }
            }
        }

        #[test]
        fn any_bytes_are_scanned_alike_in_any_pieces(data in proptest::collection::vec(
            prop_oneof![Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b'\\'), Just(b','),
                Just(b':'), Just(b'1'), Just(b' '), any::<u8>()], 0..60))
        {
            let show = |result: Result<Vec<String>, Stop>| format!("{result:?}");
            let strict = std::str::from_utf8(&data).is_ok();
            if strict {
                prop_assert_eq!(show(cut(&data[..])), show(cut(Slow(&data))));
            }
        }
    }
}
