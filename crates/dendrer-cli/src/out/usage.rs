//! Help texts as wide as the page.

use std::io::IsTerminal as _;

use dendrer_view::layout::columns;

use crate::{global, out};

/// Returns a help text, with the line of its usage as wide as the text; with the styles of the parser if it is coloured.
pub(crate) fn help_text(help: &clap::Error, is_colored: bool) -> String {
    let text = help.render();
    let text = if is_colored { text.ansi().to_string() } else { text.to_string() };
    let is_terminal = std::io::stdout().is_terminal();
    let width = out::page_width(global::asked_width(), is_terminal, terminal_size::terminal_size);
    let Some(width) = width else { return text };
    let one =
        |line: &str| if drawn(line).starts_with("Usage: ") { wrapped(line, width) } else { line.to_owned() };
    text.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

/// Returns a line without its colours.
fn drawn(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |drawn, part| drawn + part.split_once('m').map_or(part, |(_, text)| text))
}

/// Wraps a usage at blanks and in front of the marks between choices; it continues below its first word.
fn wrapped(line: &str, width: usize) -> String {
    const DEEPER: &str = "       ";
    let mut lines = vec![String::new()];
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| matches!(c, ' ' | '|'))
            .map_or(rest.len(), |(at, _)| at);
        let (part, others) = rest.split_at(end);
        rest = others;
        let used = lines.last().map_or(0, |last| columns(&drawn(last)));
        if lines.len() + used > 1 && used + columns(&drawn(part)) > width {
            lines.push(format!("{DEEPER}{}", part.trim_start()));
        } else if let Some(last) = lines.last_mut() {
            last.push_str(part);
        }
    }
    lines.join("\n")
}
