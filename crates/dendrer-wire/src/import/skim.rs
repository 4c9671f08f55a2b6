//! Reads what lies in memory as a whole, as fast as it can be read without being kept.
//!
//! Finds where a value ends and whether it is a message. An unusual or incomplete value is left to the
//! [scanner](super::scan), which reads anything and reports the fault. Rule: a skimmed value is JSON to its innermost
//! bracket, so that a closer reading finds no fault in its grammar.

use dendrer_object::json::plain_prefix;

use super::layout::Marks;
use super::scan::{SCALAR_SIZE_MAX, ends_a_scalar, is_scalar};

/// How deep values are nested that are skimmed.
const DEPTH: usize = 16;

/// Returns the size of the text, array or object in front.
pub(crate) fn value(text: &[u8]) -> Option<usize> {
    let mut skim = Skim { text, at: 0 };
    match skim.peek()? {
        b'"' | b'{' | b'[' => skim.value(0)?,
        _ => return None,
    }
    Some(skim.at)
}

/// Returns the size of the message in front.
pub(crate) fn message(text: &[u8]) -> Option<usize> {
    let mut skim = Skim { text, at: 0 };
    let mut marks = Marks::default();
    skim.object(0, &mut marks)?;
    marks.is_message().then_some(skim.at)
}

struct Skim<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Skim<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Steps over white space and returns the byte behind it.
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn enter(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.next()? {
            b'"' => self.string().map(|_| ()),
            b'{' => self.object(depth, &mut Marks::default()),
            b'[' => self.array(depth),
            _ => self.scalar(),
        }
    }

    /// Steps over a string and returns its spelling.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..)?;
            self.at += plain_prefix(rest);
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => return None,
            }
        }
        self.at += 1;
        Some(&self.text[start..self.at])
    }

    fn object(&mut self, depth: usize, marks: &mut Marks) -> Option<()> {
        self.enter(b'{').filter(|()| depth < DEPTH)?;
        if self.next()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = if self.next()? == b'"' { self.string()? } else { return None };
            self.enter(b':')?;
            marks.see(name, self.next());
            self.value(depth + 1)?;
            match self.next()? {
                b',' => self.at += 1,
                _ => return self.enter(b'}'),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.enter(b'[').filter(|()| depth < DEPTH)?;
        if self.next()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            match self.next()? {
                b',' => self.at += 1,
                _ => return self.enter(b']'),
            }
        }
    }

    fn scalar(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let size = rest.iter().take(SCALAR_SIZE_MAX).position(|byte| ends_a_scalar(*byte))?;
        let word = &rest[..size];
        let is_known = matches!(word, b"null" | b"true" | b"false");
        (is_known || is_scalar(word)).then(|| self.at += size)
    }
}
