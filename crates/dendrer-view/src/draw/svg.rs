//! SVG as text: escaped words, paths of many shapes, and the frame around a picture.

use std::fmt::Write as _;

use crate::layout::cut;

/// The width of a picture, in units.
pub const WIDTH: u64 = 960;
/// The height of a line of text.
pub const LINE: u64 = 18;
/// The left edge of what is drawn to scale: names are in front of it.
pub const LEFT: u64 = 150;
/// The right edge of what is drawn to scale.
pub const RIGHT: u64 = WIDTH - 12;
/// The columns of text that fit the width of a picture: the font is 12 units high and at most 7.3 wide.
pub const COLUMNS: usize = 128;
/// The columns of text that fit in front of [`LEFT`].
pub const NAME_COLUMNS: usize = 18;

/// The colours of a picture, for a light and a dark page.
pub const STYLE: &str = include_str!("draw.css");

/// Writes text for SVG and HTML: what is markup is an entity. Text of a record was escaped by [`quote`](crate::quote) before.
pub fn markup(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no spelling for these.
            '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A length in tenths of a unit, as SVG has it.
pub fn tenths(length: u64) -> String {
    match length % 10 {
        0 => (length / 10).to_string(),
        rest => format!("{}.{rest}", length / 10),
    }
}

/// A picture without the element around it: shapes in order, and the height that they take.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    body: String,
    /// The height so far.
    pub height: u64,
}

/// The way a picture is put into what is around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A file of its own, with its colours.
    File,
    /// A part of a page that has the colours.
    Part,
}

impl Drawn {
    /// Adds words at a place; `class` names their colour.
    pub fn words(&mut self, class: &str, (x, y): (u64, u64), words: &str, most: usize) {
        let words = markup(&cut(words, most));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(self.body, "<text{class} x=\"{x}\" y=\"{y}\">{words}</text>");
    }

    /// Adds a line of words below what is there.
    pub fn line(&mut self, class: &str, words: &str) {
        self.height += LINE;
        self.words(class, (12, self.height - 5), words, COLUMNS);
    }

    /// Adds a path of many shapes; nothing for an empty one. `words` are its description.
    pub fn path(&mut self, class: &str, path: &str, words: Option<&str>) {
        if path.is_empty() {
            return;
        }
        let title = words.map_or_else(String::new, |words| format!("<title>{}</title>", markup(words)));
        let _ = match title.is_empty() {
            true => writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>"),
            false => writeln!(self.body, "<path class=\"{class}\" d=\"{path}\">{title}</path>"),
        };
    }

    /// Leaves room.
    pub fn space(&mut self, height: u64) {
        self.height += height;
    }

    /// Puts the picture into an element, with its title and its description.
    pub fn framed(&self, title: &str, about: &str, frame: Frame) -> String {
        let height = self.height + 8;
        let (space, style) = match frame {
            Frame::File => (" xmlns=\"http://www.w3.org/2000/svg\"", format!("<style>{STYLE}</style>\n")),
            Frame::Part => ("", String::new()),
        };
        let (title, about) = (markup(title), markup(about));
        format!(
            "<svg{space} class=\"draw\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
             <title>{title}</title>\n<desc>{about}</desc>\n{style}{}</svg>\n",
            self.body
        )
    }
}

/// Columns of one width between [`LEFT`] and [`RIGHT`], in tenths of a unit.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    count: u64,
}

impl Scale {
    /// Makes room for so many columns.
    pub fn new(count: u64) -> Scale {
        Scale { count: count.max(1) }
    }

    /// The left edge of a column.
    pub fn left(self, column: u64) -> u64 {
        LEFT * 10 + (u128::from(RIGHT - LEFT) * 10 * u128::from(column) / u128::from(self.count)) as u64
    }

    /// The middle of a column.
    pub fn middle(self, column: u64) -> u64 {
        (self.left(column) + self.left(column + 1)) / 2
    }

    /// The width of a column.
    pub fn wide(self) -> u64 {
        (RIGHT - LEFT) * 10 / self.count
    }
}

/// A box of a path, in tenths of a unit.
pub fn block((x, y): (u64, u64), wide: u64, high: u64) -> String {
    let (wide, high) = (tenths(wide), tenths(high));
    format!("M{} {}h{wide}v{high}h-{wide}z", tenths(x), tenths(y))
}

/// Slanted strokes that fill a box of a path, in tenths of a unit.
pub fn hatch((x, y): (u64, u64), wide: u64, high: u64) -> String {
    const STEP: u64 = 50;
    let mut path = String::new();
    let mut at = 0;
    while at < wide + high {
        // From the lower left to the upper right, cut at the edges of the box.
        let (x1, y1) = if at <= high { (0, at) } else { (at - high, high) };
        let (x2, y2) = if at <= wide { (at, 0) } else { (wide, at - wide) };
        let _ = write!(path, "M{} {}L{} {}", tenths(x + x1), tenths(y + y1), tenths(x + x2), tenths(y + y2));
        at += STEP;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(
            markup("</text><script>x('&\u{1b}')</script>\u{ffff}"),
            "&lt;/text&gt;&lt;script&gt;x(&#39;&amp;\\u{1b}&#39;)&lt;/script&gt;\\u{ffff}"
        );
    }

    #[test]
    fn a_hatch_stays_in_its_box() {
        assert_eq!(hatch((0, 0), 100, 50), "M0 0L0 0M0 5L5 0M5 5L10 0");
    }
}
