//! A bundle inside a page of HTML: how it is written there, and how its lines are read again.
//!
//! The bundle is the text of one element, `<script type="application/dendrer-bundle">`, with each `<` as `\u003c`, so that no text
//! of a record ends the element. Nothing else of a page is read: its words are not checked by the bundle.
//!
//! Rule: a reader takes the one bundle of a page or none; test `a_second_bundle_is_refused`.

use std::io::{self, BufRead, ErrorKind};

use crate::error::{Error, PageError};

/// The tag that begins the bundle of a page.
pub const BEGIN: &str = "<script type=\"application/dendrer-bundle\">\n";
/// The tag that ends it.
pub const END: &str = "</script>\n";

/// The type of the element, as it is looked for in any tag.
const KIND: &[u8] = b"application/dendrer-bundle";
/// The beginning of the tags that are looked at, and what is between `<` and `>` of a tag that ends the bundle.
const SCRIPT: &[u8] = b"<script";
const SCRIPT_END: &[u8] = b"/script";
/// How many bytes of a tag are looked at.
const TAG_MAX: usize = 1024;
/// A `<` as a bundle in a page has it.
const ESCAPE: &[u8] = b"\\u003c";

/// Whether a text is a page and not a bundle by itself.
pub(crate) fn is_page(text: &mut impl BufRead) -> io::Result<bool> {
    Ok(fill(text)?.first() == Some(&b'<'))
}

/// Writes a part of a bundle as it is in a page.
pub fn escape(part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(part.len());
    for (at, stretch) in part.split(|byte| *byte == b'<').enumerate() {
        if at > 0 {
            out.extend_from_slice(ESCAPE);
        }
        out.extend_from_slice(stretch);
    }
    out
}

/// The lines of the bundle of a page.
#[derive(Debug)]
pub(crate) struct PageLines<R> {
    page: R,
    /// Whether the bundle has ended.
    ended: bool,
}

impl<R: BufRead> PageLines<R> {
    /// Reads a page up to its bundle.
    pub(crate) fn new(mut page: R) -> Result<PageLines<R>, Error> {
        if !next_bundle(&mut page)? {
            return Err(PageError::NoBundle.into());
        }
        if fill(&mut page)?.first() == Some(&b'\n') {
            page.consume(1);
        }
        Ok(PageLines { page, ended: false })
    }

    /// Appends the next line of the bundle, and little more than `most` bytes of it; nothing at the end. The rest of the page is
    /// searched for a second bundle then.
    pub(crate) fn next(&mut self, line: &mut Vec<u8>, most: usize) -> Result<(), Error> {
        while !self.ended {
            let part = fill(&mut self.page)?;
            line.try_reserve(part.len()).map_err(|error| Error::Unreadable(error.into()))?;
            let end = part.iter().position(|byte| matches!(byte, b'<' | b'\n' | b'c'));
            let taken = end.map_or(part.len(), |end| end + 1);
            let is_tag = taken > 0 && part[taken - 1] == b'<';
            line.extend_from_slice(&part[..taken]);
            let is_end = taken == 0 || line.ends_with(b"\n") || line.len() > most;
            self.page.consume(taken);
            if is_tag {
                return self.end(line);
            }
            turn_back(line);
            if is_end {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the bundle at a tag, which is the first of its line.
    fn end(&mut self, line: &mut Vec<u8>) -> Result<(), Error> {
        let mut name = [0; SCRIPT_END.len()];
        let is_read = line.len() == 1 && self.page.read_exact(&mut name).is_ok();
        if !is_read || !name.eq_ignore_ascii_case(SCRIPT_END) {
            return Err(PageError::Tag.into());
        }
        line.clear();
        self.ended = true;
        match next_bundle(&mut self.page)? {
            true => Err(PageError::Second.into()),
            false => Ok(()),
        }
    }
}

/// Turns an escape at the end of a line back into `<`. After an odd number of backslashes it is text of a record that reads so.
fn turn_back(line: &mut Vec<u8>) {
    let Some(before) = line.strip_suffix(ESCAPE) else { return };
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    if backslashes % 2 == 0 {
        line.truncate(line.len() - ESCAPE.len());
        line.push(b'<');
    }
}

/// Reads a page to the end of the next tag that begins a bundle; returns false at the end of the page.
fn next_bundle(page: &mut impl BufRead) -> Result<bool, Error> {
    let mut tag: Vec<u8> = Vec::new();
    loop {
        let part = fill(page)?;
        if part.is_empty() {
            return Ok(false);
        }
        for (at, byte) in part.iter().enumerate() {
            let byte = byte.to_ascii_lowercase();
            if byte == b'<' {
                tag.clear();
            } else if tag.is_empty() || tag.len() == TAG_MAX {
                continue;
            }
            tag.push(byte);
            if tag.len() <= SCRIPT.len() && !SCRIPT.starts_with(&tag) {
                tag.clear();
            } else if byte == b'>' {
                let is_bundle = tag.windows(KIND.len()).any(|window| window == KIND);
                tag.clear();
                if is_bundle {
                    page.consume(at + 1);
                    return Ok(true);
                }
            }
        }
        let read = part.len();
        page.consume(read);
    }
}

/// Reads on if nothing is left to consume.
fn fill(text: &mut impl BufRead) -> io::Result<&[u8]> {
    // A borrow that is returned cannot be asked for again in a loop.
    while let Err(error) = text.fill_buf() {
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    text.fill_buf()
}

#[cfg(test)]
mod tests {
    use dendrer_object::Code;
    use proptest::prelude::*;

    use super::*;

    /// Reads all lines of the bundle in a page, some bytes at a time.
    fn read(page: &[u8], at_once: usize) -> Result<Vec<u8>, Code> {
        let text = io::BufReader::with_capacity(at_once, page);
        let mut lines = PageLines::new(text).map_err(|error| error.code())?;
        let mut all = Vec::new();
        loop {
            let mut line = Vec::new();
            lines.next(&mut line, usize::MAX).map_err(|error| error.code())?;
            if line.is_empty() {
                return Ok(all);
            }
            all.extend(line);
        }
    }

    fn page(bundle: &[u8], rest: &str) -> Vec<u8> {
        [b"<!doctype html><p>", BEGIN.as_bytes(), &escape(bundle), END.as_bytes(), rest.as_bytes()].concat()
    }

    #[test]
    fn a_second_bundle_is_refused() {
        for second in [
            BEGIN,
            "<SCRIPT\nid=x type='Application/Dendrer-Bundle' >",
            "<script><script type=application/dendrer-bundle>",
        ] {
            assert_eq!(read(&page(b"{}\n", second), 7), Err(Code::E0306), "{second}");
        }
        assert_eq!(
            read(&page(b"{}\n", "<p>application/dendrer-bundle<script>x</script>"), 7),
            Ok(b"{}\n".to_vec())
        );
    }

    #[test]
    fn a_page_without_a_bundle_cannot_be_checked() {
        assert_eq!(read(b"<!doctype html><script>1 < 2</script>", 64), Err(Code::E0315));
        assert_eq!(read(b"<", 64), Err(Code::E0315));
    }

    #[test]
    fn a_tag_in_a_bundle_is_refused() {
        for bundle in ["{}\n<b>\n", "{\"a\":\"<\"}\n", "{}\n<!-- \n", "{}\n<"] {
            let page = format!("<html>{BEGIN}{bundle}{END}");
            assert_eq!(read(page.as_bytes(), 64), Err(Code::E0306), "{bundle}");
        }
    }

    proptest! {
        #[test]
        fn a_bundle_in_a_page_is_read_as_it_was(
            text in "([<u003c\\\\/> \n]|</script>|<!--){0,60}", at_once in 1usize..20,
        ) {
            // A line of canonical JSON has its backslashes in pairs, or in front of an escape.
            let lines: String = text.lines().map(|line| format!("{}\n", line.replace('\\', "\\\\"))).collect();
            prop_assert_eq!(read(&page(lines.as_bytes(), "<p>"), at_once), Ok(lines.into_bytes()));
        }
    }
}
