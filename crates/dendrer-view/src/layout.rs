//! Lines as a terminal shows them: widths in columns, wrapping, cutting.
//!
//! Every answer, note, error and command passes through here, and no verb pads or cuts by itself. Without a width
//! nothing is wrapped or cut: a pipe gets what a program would parse.
//!
//! Rule: no line is wider than the page; test `no_line_is_wider_than_the_page`.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::answer::{Line, LinePlace, Page, TextSpan};
use crate::{count, quote};

/// The least width of a page, in columns.
pub const WIDTH_MIN: usize = 40;
/// The number of lines of one value that are shown before the rest is counted.
const VALUE_LINES: usize = 12;
/// The number of columns by which a wrapped line continues deeper.
const DEEPER: usize = 2;

/// Returns the number of columns that a terminal draws a text in: East Asian wide is 2, a combining mark 0, an
/// emoji of several code points 2.
pub fn columns(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.graphemes(true).map(cluster).sum(),
    }
}

/// The columns of a character as a reader sees it.
fn cluster(grapheme: &str) -> usize {
    match grapheme.len() {
        1 => 1,
        _ => grapheme.width(),
    }
}

/// Fills a text with blanks up to a number of columns.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Fills a text with blanks in front, up to a number of columns.
pub fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Cuts a text to a number of columns, with `...` at its end if anything is left out.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let kept = prefix(text, width.saturating_sub(3));
    format!("{}...", &text[..kept])
}

/// Returns the length in bytes of the longest beginning that fits a number of columns.
fn prefix(text: &str, width: usize) -> usize {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += cluster(grapheme);
        if used > width {
            return at;
        }
    }
    text.len()
}

/// Returns the lines of an answer as they fit the page; of a value with more than twelve lines the first twelve, and
/// the command that shows the rest.
pub fn lay(lines: Vec<Line>, page: &Page) -> Vec<Line> {
    let spelled = lines.into_iter().map(|line| if page.ascii { spell(line, page) } else { line });
    let Some(width) = page.width else { return spelled.collect() };
    spelled.flat_map(|line| fit(line, width, page)).collect()
}

/// Spells a line in ASCII. Without a width its command becomes text.
fn spell(mut line: Line, page: &Page) -> Line {
    for span in &mut line.spans {
        span.text = page.spell(std::mem::take(&mut span.text));
    }
    match line.command.take_if(|_| page.width.is_none()) {
        Some(argv) => line.then(quote::shell_words(&argv, true)),
        None => line,
    }
}

/// Returns a line as lines of at most `width` columns.
fn fit(line: Line, width: usize, page: &Page) -> Vec<Line> {
    // The words of a help line are laid out when the store is known.
    if line.is_document || matches!(line.place, LinePlace::Help(_)) {
        return vec![line];
    }
    if let Some(argv) = &line.command {
        let texts = command(&line.lead(), argv, width, page.ascii);
        return texts.into_iter().map(|text| line.of_same_place(text)).collect();
    }
    let text = line.text();
    // The last column stays free after a value: one that ends there would read as one that continues.
    let room = if line.more.is_some() { width - 1 } else { width };
    if columns(&text) <= room {
        return vec![line];
    }
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let deeper = line.hang.unwrap_or(blanks + DEEPER).min(width / 2);
    let pieces = pieces(&text, room, deeper);
    let shown = match &line.more {
        Some(_) if !page.full && pieces.len() > VALUE_LINES => VALUE_LINES,
        _ => pieces.len(),
    };
    let lead = " ".repeat(deeper);
    let mut lines: Vec<Line> = Vec::with_capacity(shown + 1);
    for (at, piece) in pieces[..shown].iter().enumerate() {
        let spans = slice(&line.spans, piece);
        let one = Line { spans, place: line.place.clone(), ..Line::default() };
        lines.push(if at == 0 { one } else { one.after(lead.clone()) });
    }
    if let Some(argv) = line.more.as_ref().filter(|_| shown < pieces.len()) {
        let rest = count((pieces.len() - shown) as u64, "more line", "more lines");
        let texts = closed(&format!("{lead}({rest}: "), argv, width, page.ascii);
        lines.extend(texts.into_iter().map(|text| line.of_same_place(text)));
    }
    lines
}

/// Returns the ranges of a text that fill lines: the first of `width` columns, the others `deeper` columns narrower.
fn pieces(text: &str, width: usize, deeper: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = 0;
    let mut room = width;
    while columns(&text[begin..]) > room {
        let rest = &text[begin..];
        // A character wider than the room has a line of its own: no page is that narrow.
        let end = prefix(rest, room).max(rest.graphemes(true).next().map_or(1, str::len));
        let end = break_at(rest, end, width - deeper);
        found.push(begin..begin + rest[..end].trim_end_matches(' ').len());
        begin += end + (rest[end..].len() - rest[end..].trim_start_matches(' ').len());
        room = width - deeper;
    }
    if begin < text.len() || found.is_empty() {
        found.push(begin..text.len());
    }
    found
}

/// Returns the end of a line that fits up to `end`: the last blank if the word after it fits a line of its own, else
/// `end`.
fn break_at(rest: &str, end: usize, room: usize) -> usize {
    if rest[end..].starts_with(' ') {
        return end;
    }
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    let Some(blank) = rest[blanks.min(end)..end].rfind(' ').map(|at| at + blanks) else { return end };
    let word = rest[blank + 1..].split(' ').next().unwrap_or_default();
    if columns(word) <= room { blank } else { end }
}

/// Returns the spans of a range of the text of a line.
fn slice(spans: &[TextSpan], range: &Range<usize>) -> Vec<TextSpan> {
    let mut at = 0;
    let mut kept = Vec::new();
    for span in spans {
        let (from, to) = (range.start.max(at), range.end.min(at + span.text.len()));
        if from < to {
            kept.push(TextSpan { style: span.style, text: span.text[from - at..to - at].to_owned() });
        }
        at += span.text.len();
    }
    kept
}

/// Returns a command as lines that a shell reads as one: they break between words and end in a backslash. A word that
/// is longer than a line is broken at its end, and continues in the first column.
pub fn command(lead: &str, argv: &[String], width: usize, is_ascii: bool) -> Vec<String> {
    let blanks = lead.len() - lead.trim_start_matches(' ').len();
    let deeper = " ".repeat((blanks + DEEPER).min(width / 2));
    let mut lines = Vec::new();
    let mut line = lead.to_owned();
    let mut is_begun = false;
    for (at, word) in argv.iter().enumerate() {
        // A line that continues ends in a blank and a backslash; the last word has that room.
        let room = if at + 1 == argv.len() { width } else { width - 2 };
        let shown = quote::shell_words(std::slice::from_ref(word), is_ascii);
        let gap = usize::from(is_begun);
        if is_begun && columns(&line) + gap + columns(&shown) > room {
            lines.push(format!("{line} \\"));
            line = deeper.clone();
        } else if is_begun {
            line.push(' ');
        }
        is_begun = true;
        if columns(&line) + columns(&shown) <= room {
            line.push_str(&shown);
            continue;
        }
        for (at, part) in broken(word, [width - 2 - columns(&line), width - 2], is_ascii).iter().enumerate() {
            if at > 0 {
                lines.push(format!("{line}\\"));
                line.clear();
            }
            line.push_str(part);
        }
    }
    lines.push(line);
    lines
}

/// Returns a word as parts that a shell reads as one, if a backslash and a line break join them.
fn broken(word: &str, [first, others]: [usize; 2], is_ascii: bool) -> Vec<String> {
    let shown = |part: &str| quote::shell_words(&[part.to_owned()], is_ascii);
    let mut parts = vec![String::new()];
    for grapheme in word.graphemes(true) {
        let room = if parts.len() == 1 { first } else { others };
        let longer = format!("{}{grapheme}", parts.last().map_or("", String::as_str));
        match parts.last_mut() {
            Some(last) if last.is_empty() || columns(&shown(&longer)) <= room => *last = longer,
            _ => parts.push(grapheme.to_owned()),
        }
    }
    parts.iter().map(|part| shown(part)).collect()
}

/// As [`command`], with a closing bracket after it.
fn closed(lead: &str, argv: &[String], width: usize, is_ascii: bool) -> Vec<String> {
    let mut lines = command(lead, argv, width - 1, is_ascii);
    if let Some(last) = lines.last_mut() {
        last.push(')');
    }
    lines
}

/// Returns the line that counts a list, with the note that its last column was cut.
pub fn counted(text: &str, cut: bool, page: &Page) -> Vec<Line> {
    let (true, Some(width)) = (cut, page.width) else { return vec![text.into()] };
    let note = format!("(... at {width} columns; --full)");
    match columns(text) + 1 + columns(&note) <= width {
        true => vec![format!("{text} {note}").into()],
        false => vec![text.into(), note.into()],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answer::{Style, plain};

    const EMOJI: &str = "👨\u{200d}👩\u{200d}👧";

    fn page(width: usize) -> Page {
        Page { width: Some(width), ..Page::WIDE }
    }

    fn laid(line: Line, width: usize) -> Vec<String> {
        plain(&lay(vec![line], &page(width))).lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_are_those_of_a_terminal() {
        for (text, width) in [
            ("abc", 3),
            ("田中太郎", 8),
            ("e\u{301}", 1),
            (EMOJI, 2),
            ("🇨🇭", 2),
            ("한", 2),
            ("❤\u{fe0f}", 2),
            ("…→", 2),
        ] {
            assert_eq!(columns(text), width, "{text}");
        }
        assert_eq!(cut("田中太郎 works", 10), "田中太...");
        assert_eq!(cut(&format!("ab{EMOJI}cdefg"), 7), format!("ab{EMOJI}..."));
        assert_eq!((pad("田", 4), pad_left("田", 4)), ("田  ".to_owned(), "  田".to_owned()));
    }

    #[test]
    fn a_line_wraps_at_blanks_and_continues_two_deeper() {
        let line = Line::from("  the first words of a line that is far longer than forty columns");
        assert_eq!(
            laid(line, 40),
            ["  the first words of a line that is far", "    longer than forty columns"]
        );
        let word = "x".repeat(60);
        let lines = laid(Line::from(format!("  a {word}")), 40);
        assert_eq!(lines, [format!("  a {}", "x".repeat(36)), format!("    {}", "x".repeat(24))]);
        let hanging = Line::from("witness   UNWITNESSED  a full rewrite by the key holder").hang(10);
        assert_eq!(
            laid(hanging, 40),
            ["witness   UNWITNESSED  a full rewrite by", "          the key holder"]
        );
        assert_eq!(lay(vec![Line::from("x".repeat(99))], &Page::WIDE).len(), 1);
    }

    #[test]
    fn styles_survive_a_wrap() {
        let line = Line::styled(Style::Strong, "HEAD").then(format!("  {}", "word ".repeat(12).trim_end()));
        let lines = lay(vec![line], &page(40));
        assert_eq!(lines[0].spans[0].style, Some(Style::Strong));
        assert_eq!(lines[1].spans.iter().map(|span| span.style).collect::<Vec<_>>(), [None, None]);
    }

    #[test]
    fn of_a_long_value_twelve_lines_and_a_command_are_shown() {
        let more = ["dendrer", "show", "a@1", "--full"].map(str::to_owned).to_vec();
        let value = Line::value(format!("  {}", "word ".repeat(200).trim_end()), more);
        let lines = laid(value.clone(), 40);
        assert_eq!(lines[12..], ["    (17 more lines: dendrer show a@1 \\", "      --full)"]);
        let whole = plain(&lay(vec![value], &Page { full: true, ..page(40) }));
        assert_eq!(whole.lines().count(), 29);
    }

    #[test]
    fn a_shell_reads_a_wrapped_command() {
        let argv = [
            "dendrer",
            "bisect",
            "a run with blanks",
            "--holds",
            "state.total_chf <= 860 && state.x == 'it''s'",
        ];
        let long = "/a/very/long/path/".repeat(5) + "with 'quotes' and \u{202e} marks";
        let argv: Vec<String> = argv.map(str::to_owned).into_iter().chain([long]).collect();
        for width in [40, 61, 80] {
            let lines = command("", &argv, width, false);
            assert!(lines.iter().all(|line| columns(line) <= width), "{lines:#?}");
            let script = format!("printf '%s\\0' {}", lines.join("\n"));
            let output =
                std::process::Command::new("bash").env("LC_ALL", "C.UTF-8").arg("-c").arg(&script).output();
            let output = output.expect("bash is installed, as for the completions");
            let read: Vec<&str> =
                std::str::from_utf8(&output.stdout).unwrap().split_terminator('\0').collect();
            assert_eq!(read, argv, "{script}");
        }
    }

    #[test]
    fn a_list_reports_that_it_was_cut() {
        assert_eq!(
            plain(&counted("3 of 3 runs", true, &page(80))),
            "3 of 3 runs (... at 80 columns; --full)\n"
        );
        assert_eq!(plain(&counted("13 of 13 runs", true, &page(40))).lines().count(), 2);
        assert_eq!(plain(&counted("3 of 3 runs", false, &page(80))), "3 of 3 runs\n");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_page(text in "\\PC{0,300}", width in 40usize..200, deep in 0usize..12) {
            let line = Line::from(format!("{}{}", " ".repeat(deep), quote::escape(&text)));
            let before: String = line.text().chars().filter(|c| *c != ' ').collect();
            let lines = laid(line, width);
            prop_assert!(lines.iter().all(|line| columns(line) <= width), "{lines:#?}");
            let after: String = lines.concat().chars().filter(|c| *c != ' ').collect();
            prop_assert_eq!(before, after);
        }
    }
}
