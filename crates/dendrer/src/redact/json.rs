//! JSON in a text, and what is written like it: values of Python and JavaScript, flow mappings of YAML.
//!
//! [`read`] walks the text once with a stack of its own, so the depth of nesting costs no stack. A text that stops being JSON is
//! left to the readers of lines; the values that were complete before that place stay read.

use std::borrow::Cow;

use super::command;
use super::fields;
use super::headers;
use super::judge::{self, Setting};
use super::names::Strength;
use super::part::{Depth, has_marker};
use super::rules::Rules;
use super::vendor::{SecretSpan, named_span};
use super::views::{self, View};

/// A value of JSON that was read whole, from its bracket to the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// How many objects and lists are open at once, at most.
const STACK_MAX: usize = 1024;

/// The place of a text, a number or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    start: usize,
    end: usize,
    /// The quote around it, 0 if it has none.
    quote: u8,
    has_escapes: bool,
}

/// A member of an object, without a value that nests: that one is read by itself.
#[derive(Debug, Clone, Copy)]
struct Member {
    name: Node,
    value: Option<Node>,
}

/// A text of an object that is a secret if the object around is a manifest or the step of a gate.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// The member of the object around.
    of: Node,
    name: Option<Node>,
    value: Node,
}

/// The part that may come next in an object or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Name,
    Sign,
    Value,
    Comma,
}

/// An object or a list that is open.
#[derive(Debug)]
struct Frame {
    start: usize,
    close: u8,
    next: Next,
    name: Option<Node>,
    members: Vec<Member>,
    items: Vec<Node>,
    held: Vec<Held>,
    /// The name of the object.
    label: Option<Node>,
    /// How many objects and lists are items of a list.
    nested: usize,
    /// The strength of the name of a list, for its items; of an object, for the member that has its value.
    strength: Option<Strength>,
}

struct Reader<'r> {
    text: &'r str,
    bytes: &'r [u8],
    at: usize,
    rules: &'r Rules,
    depth: Depth,
    stack: Vec<Frame>,
    regions: Vec<Region>,
    found: Vec<SecretSpan>,
}

/// Why reading stops.
enum Stop {
    /// The outermost value is complete, or the text was cut in it.
    End,
    /// The text is no JSON from this place on.
    Broken,
}

/// Reads each value of JSON in a text, and adds the secrets in them. Returns the parts of the text that were read.
pub(super) fn read(text: &str, rules: &Rules, depth: Depth, found: &mut Vec<SecretSpan>) -> Vec<Region> {
    let bytes = text.as_bytes();
    let mut regions = Vec::new();
    let mut at = 0;
    while let Some(open) = memchr::memchr2(b'{', b'[', &bytes[at..]).map(|open| at + open) {
        // `${TOKEN:-X}` is a variable of a shell.
        let is_variable = open > 0 && bytes[open - 1] == b'$';
        if is_variable || !may_begin(bytes, open) {
            at = open + 1;
            continue;
        }
        let mut reader = Reader {
            text,
            bytes,
            at: open,
            rules,
            depth,
            stack: Vec::new(),
            regions: Vec::new(),
            found: Vec::new(),
        };
        reader.run();
        at = reader.at.max(open + 1);
        found.append(&mut reader.found);
        regions.append(&mut reader.regions);
    }
    regions
}

/// Whether a bracket may open a value: the next sign is a quote, a bracket, a name or a number.
fn may_begin(bytes: &[u8], open: usize) -> bool {
    let next = bytes[open + 1..].iter().find(|c| !c.is_ascii_whitespace());
    next.is_some_and(|c| {
        matches!(c, b'"' | b'\'' | b'{' | b'[' | b'(' | b'-' | b'/' | b'_') || c.is_ascii_alphanumeric()
    })
}

impl Reader<'_> {
    fn run(&mut self) {
        loop {
            self.pass_blanks();
            let Some(&c) = self.bytes.get(self.at) else {
                self.cut();
                return;
            };
            match self.step(c) {
                Ok(()) => {}
                Err(Stop::Broken) => return,
                Err(Stop::End) => return,
            }
        }
    }

    /// Closes what is open where the text ends: a text that was cut is read up to its end.
    fn cut(&mut self) {
        self.at = self.bytes.len();
        while !self.stack.is_empty() {
            self.close();
        }
    }

    fn pass_blanks(&mut self) {
        while let Some(c) = self.bytes.get(self.at) {
            let is_comment =
                *c == b'/' && self.bytes.get(self.at + 1) == Some(&b'/') && !self.stack.is_empty();
            match c {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ if is_comment => {
                    let rest = &self.bytes[self.at..];
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn step(&mut self, c: u8) -> Result<(), Stop> {
        let Some(frame) = self.stack.last_mut() else {
            self.open(c);
            return Ok(());
        };
        if c == frame.close && frame.next != Next::Sign && (frame.next != Next::Value || frame.close != b'}')
        {
            self.at += 1;
            self.close();
            return if self.stack.is_empty() { Err(Stop::End) } else { Ok(()) };
        }
        match frame.next {
            Next::Name => {
                let node = self.scalar(c, true)?;
                let frame = self.stack.last_mut().expect("a frame is open");
                frame.name = Some(node);
                frame.next = Next::Sign;
                Ok(())
            }
            Next::Sign => {
                self.at += match c {
                    b'=' if self.bytes.get(self.at + 1) == Some(&b'>') => 2,
                    b'=' if self.bytes.get(self.at + 1) == Some(&b'=') => return Err(Stop::Broken),
                    b':' if self.bytes.get(self.at + 1) == Some(&b':') => return Err(Stop::Broken),
                    b':' | b'=' => 1,
                    _ => return Err(Stop::Broken),
                };
                frame.next = Next::Value;
                Ok(())
            }
            Next::Value => self.value(c),
            Next::Comma if c == b',' => {
                frame.next = if frame.close == b'}' { Next::Name } else { Next::Value };
                self.at += 1;
                Ok(())
            }
            Next::Comma => Err(Stop::Broken),
        }
    }

    fn value(&mut self, c: u8) -> Result<(), Stop> {
        if self.stack.len() >= STACK_MAX {
            return Err(Stop::Broken);
        }
        if matches!(c, b'{' | b'[' | b'(') {
            self.open(c);
            return Ok(());
        }
        let node = self.scalar(c, false)?;
        // `Secret('...')`: a call is a list of its arguments.
        let is_call = node.quote == 0 && self.bytes.get(self.at) == Some(&b'(');
        let frame = self.stack.last_mut().expect("a frame is open");
        frame.next = Next::Comma;
        if is_call {
            frame.next = Next::Value;
            self.open(b'(');
            return Ok(());
        }
        match frame.close {
            b'}' => frame.members.extend(frame.name.take().map(|name| Member { name, value: Some(node) })),
            _ => frame.items.push(node),
        }
        Ok(())
    }

    /// Opens an object or a list. A deeper value than [`STACK_MAX`] is read as one of its own.
    fn open(&mut self, c: u8) {
        let strength = self.stack.last().and_then(|above| match above.name {
            Some(name) => self.rules.strength(&self.text[name.start..name.end]),
            None if above.close != b'}' => above.strength,
            None => None,
        });
        let close = match c {
            b'{' => b'}',
            b'[' => b']',
            _ => b')',
        };
        let next = if c == b'{' { Next::Name } else { Next::Value };
        self.stack.push(Frame {
            start: self.at,
            close,
            next,
            name: None,
            members: Vec::new(),
            items: Vec::new(),
            held: Vec::new(),
            label: self.stack.last().and_then(|above| above.name),
            nested: 0,
            strength,
        });
        self.at += 1;
    }

    /// Reads a text in quotes, a number or a word.
    fn scalar(&mut self, c: u8, is_name: bool) -> Result<Node, Stop> {
        let start = self.at;
        // `b'...'`, `u"..."`: letters before a quote.
        let lead = self.bytes[start..]
            .iter()
            .take(2)
            .take_while(|c| matches!(c, b'b' | b'u' | b'r' | b'f' | b'B' | b'R'))
            .count();
        let quote = match (c, self.bytes.get(start + lead)) {
            (b'"' | b'\'', _) => Some(start),
            (_, Some(b'"' | b'\'')) if lead > 0 => Some(start + lead),
            _ => None,
        };
        match quote {
            Some(quote) => self.quoted(quote),
            None => self.word(is_name),
        }
    }

    fn quoted(&mut self, open: usize) -> Result<Node, Stop> {
        let quote = self.bytes[open];
        let mut at = open + 1;
        let mut has_escapes = false;
        while let Some(found) = memchr::memchr3(quote, b'\\', b'\n', &self.bytes[at..]) {
            at += found;
            match self.bytes[at] {
                b'\\' => {
                    has_escapes = true;
                    at += 2;
                    if at > self.bytes.len() {
                        break;
                    }
                }
                b'\n' => {
                    self.at = at;
                    return Err(Stop::Broken);
                }
                _ => {
                    self.at = at + 1;
                    return Ok(Node { start: open + 1, end: at, quote, has_escapes });
                }
            }
        }
        // The text was cut here; an apostrophe that nothing closes is one of a word.
        if quote == b'\'' {
            self.at = open + 1;
            return Err(Stop::Broken);
        }
        self.at = self.bytes.len();
        Ok(Node { start: open + 1, end: self.bytes.len(), quote, has_escapes })
    }

    fn word(&mut self, is_name: bool) -> Result<Node, Stop> {
        let is_part = |c: u8| {
            c.is_ascii_alphanumeric()
                || matches!(c, b'_' | b'-' | b'.' | b'+')
                || (!is_name
                    && (c >= 0x80
                        || matches!(
                            c,
                            b'$' | b'@'
                                | b'!'
                                | b'/'
                                | b'*'
                                | b'%'
                                | b'~'
                                | b'^'
                                | b'#'
                                | b'&'
                                | b'?'
                                | b':'
                                | b'='
                        )))
                || (is_name && matches!(c, b'$' | b'/'))
        };
        let start = self.at;
        let mut end = start;
        while end < self.bytes.len() && is_part(self.bytes[end]) {
            end += 1;
        }
        if end == start {
            return Err(Stop::Broken);
        }
        self.at = end;
        Ok(Node { start, end, quote: 0, has_escapes: false })
    }

    /// Judges the innermost object or list, which is complete.
    fn close(&mut self) {
        let Some(mut frame) = self.stack.pop() else { return };
        let end = self.at;
        if frame.close == b'}' {
            // A member that was cut has no value.
            self.object(&mut frame);
        } else {
            self.list(&frame);
        }
        let is_region = match frame.close {
            b'}' => !frame.members.is_empty(),
            _ => {
                frame.nested > 0 || (frame.items.len() > 1 && frame.items.iter().all(|item| item.quote != 0))
            }
        };
        if is_region {
            while self.regions.last().is_some_and(|inner| inner.start >= frame.start) {
                self.regions.pop();
            }
            self.regions.push(Region { start: frame.start, end });
        }
        let Some(above) = self.stack.last_mut() else { return };
        above.next = Next::Comma;
        match above.name.take() {
            Some(name) if above.close == b'}' => {
                let texts = frame.members.iter().filter_map(|member| Some((member.name, member.value?)));
                let of = &self.text[name.start..name.end];
                if fields::is_data(of) || fields::is_exchange(of) {
                    above.held.extend(texts.map(|(own, value)| Held { of: name, name: Some(own), value }));
                }
                above.members.push(Member { name, value: None });
            }
            _ => above.nested += usize::from(frame.close != b')'),
        }
    }

    fn at_node(&self, node: Node) -> &str {
        &self.text[node.start..node.end]
    }

    fn object(&mut self, frame: &mut Frame) {
        let text = self.text;
        let of = |node: Node| &text[node.start..node.end];
        let members = &frame.members;
        let pairs = || members.iter().filter_map(|member| Some((of(member.name), of(member.value?))));
        let is_named = pairs().any(|(name, _)| fields::is_name(name));
        let said = if is_named { fields::strength(pairs(), self.rules) } else { None };
        let said =
            said.or(frame.strength.filter(|_| !pairs().any(|(name, _)| self.rules.strength(name).is_some())));
        for held in std::mem::take(&mut frame.held) {
            let is_manifest =
                fields::is_data(of(held.of)) && pairs().any(|(name, text)| fields::is_manifest(name, text));
            let is_gate =
                fields::is_exchange(of(held.of)) && pairs().any(|(name, text)| fields::is_gate(name, text));
            let value = of(held.value);
            let is_name =
                held.name.is_some_and(|name| fields::is_name(of(name)) && !fields::is_value(of(name)));
            let is_kept =
                judge::is_placeholder(value) || (is_gate && (is_name || fields::is_name_in_gate(value)));
            if (is_manifest || is_gate) && held.value.quote != 0 && !is_kept {
                self.found.push(named_span(held.value.start, held.value.end));
            }
        }
        let is_web_key = pairs().any(|(name, _)| fields::is_web_key(name));
        for member in members {
            let Some(value) = member.value else { continue };
            let name = of(member.name);
            let own = self.rules.strength(name).or_else(|| match frame.label {
                // `"Jwt": {"Key": ...}`
                Some(label) if name.eq_ignore_ascii_case("key") => {
                    self.rules.strength(&format!("{} key", of(label)))
                }
                _ if is_web_key && fields::is_private_part(name) => Some(Strength::Strong),
                Some(label) if fields::holds_secrets(of(label)) && judge::is_drawn(of(value)) => {
                    Some(Strength::Password)
                }
                Some(label) if fields::is_by_owner(of(label)) && !fields::is_name(name) => {
                    Some(Strength::Password)
                }
                _ => None,
            });
            let strength = match said {
                Some(said) if fields::is_value(name) => Some(said),
                _ => own,
            };
            // Without quotes it may be a program: `Token { password: other }`.
            let is_bare = member.name.quote == 0 && value.quote == 0;
            let setting = if is_bare { Setting::Code } else { Setting::Data };
            self.beside(value, strength, setting, name);
        }
    }

    fn list(&mut self, frame: &Frame) {
        let text = self.text;
        let of = |node: Node| &text[node.start..node.end];
        let texts: Vec<&str> = frame.items.iter().map(|item| of(*item)).collect();
        for (item, start, end) in command::in_list(&texts, self.rules) {
            let from = frame.items[item].start;
            self.found.push(named_span(from + start, from + end));
        }
        let mut flag: Option<Strength> = None;
        // `("Authorization", "...")`: a name and its value.
        let pair = match &texts[..] {
            [name, _] if frame.items[0].quote != 0 && frame.nested == 0 && fields::is_plain_name(name) => {
                self.rules.strength(name)
            }
            _ => None,
        };
        for (place, (item, text)) in frame.items.iter().zip(&texts).enumerate() {
            let strength = frame.strength.filter(|_| frame.close != b')' || item.quote != 0);
            let (strength, setting) = match (strength, flag.take()) {
                (Some(strength), _) => (Some(strength), Setting::Data),
                (None, Some(flag)) => (Some(flag).filter(|_| !text.starts_with("--")), Setting::Data),
                (None, None) if place == 1 => (pair, Setting::Bare),
                (None, None) => (None, Setting::Data),
            };
            self.beside(*item, strength, setting, "");
            if text.starts_with('-') && !text.contains(['=', ' ']) {
                flag = self.rules.strength(text.trim_start_matches('-'));
            }
        }
    }

    /// Takes a value after a name of this strength, or the secrets in it.
    fn beside(&mut self, node: Node, strength: Option<Strength>, setting: Setting, name: &str) {
        let raw = self.at_node(node);
        if raw.len() < 3 {
            return;
        }
        if let Some(strength) = strength {
            let value = decoded(raw, node);
            let is_number = node.quote == 0 && raw.bytes().all(|c| c.is_ascii_digit());
            let lead = headers::scheme(&value);
            let rest = &value[lead..];
            let is_quoted = node.quote != 0;
            let is_cookie = name.to_ascii_lowercase().contains("cookie");
            if is_cookie && rest.contains('=') {
                let mut pairs = Vec::new();
                headers::cookies(raw, 0, &mut pairs);
                self.found.extend(pairs.into_iter().map(|one| one.shifted(node.start)));
                return;
            }
            let is_secret = match is_number {
                true => strength != Strength::Weak && raw.len() >= 4 && !judge::is_placeholder(raw),
                false => {
                    judge::is_secret(rest, strength, setting, is_quoted)
                        || (lead > 0 && rest.len() >= 6 && judge::is_after_scheme(rest))
                }
            };
            if is_secret && !has_marker(rest) {
                let lead = if node.has_escapes { 0 } else { lead };
                let mut span = named_span(node.start + lead, node.end);
                // A text in place of a number keeps the syntax.
                span.quotes = u8::from(node.quote == 0 && setting != Setting::Code);
                self.found.push(span);
                return;
            }
        }
        self.inside(node);
    }

    /// Adds the secrets in a text.
    fn inside(&mut self, node: Node) {
        let raw = self.at_node(node);
        if node.quote == 0 || raw.len() < 6 {
            return;
        }
        if !node.has_escapes {
            let depth = self.depth.in_json();
            let inner = match views::may_be_rewritten(raw) && self.depth.may_read_json() {
                true => depth.find(raw, self.rules),
                false => depth.by_syntax(raw, self.rules),
            };
            let is_doubled = node.quote == b'"';
            self.found.extend(inner.into_iter().map(|mut one| {
                one.quotes += u8::from(one.quotes > 0 && is_doubled);
                one.shifted(node.start)
            }));
            return;
        }
        let Some(view) = View::of_json(raw) else { return };
        if self.depth.may_read_json() {
            let inner = self.depth.in_json().find(&view.text, self.rules);
            let is_doubled = node.quote == b'"';
            self.found.extend(view.placed(inner).map(|mut one| {
                one.quotes += u8::from(one.quotes > 0 && is_doubled);
                one.shifted(node.start)
            }));
        }
    }
}

/// The text that a text in quotes has, without its escapes.
fn decoded(raw: &str, node: Node) -> Cow<'_, str> {
    match node.has_escapes.then(|| View::of_json(raw)).flatten() {
        Some(view) => Cow::Owned(view.text),
        None => Cow::Borrowed(raw),
    }
}
