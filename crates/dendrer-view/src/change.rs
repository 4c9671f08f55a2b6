//! A change of one place, as lines and as a document.

use dendrer::ask::show::PlaceChange;
use dendrer_object::lookalike::hidden_difference;
use dendrer_object::text::is_same_but_for_form;
use dendrer_object::{Delta, Pointer, Record, RunName, Value, document};

use crate::answer::{Line, Page, Style};
use crate::layout::{columns, pad};
use crate::quote;

/// A change as it is shown: the place, and both sides as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownChange {
    /// `~` for changed, `+` for new, `-` for gone, `=` for written alike.
    pub sign: char,
    /// The place.
    pub place: String,
    /// The value before, if it is shown.
    pub before: Option<String>,
    /// The value after, if it is shown.
    pub after: Option<String>,
    /// Words after the values.
    pub note: String,
    /// The command that prints both sides whole.
    pub more: Vec<String>,
}

/// The columns between the beginning of a change and its sides, if they have lines of their own.
const SIDES: usize = 4;

impl ShownChange {
    /// Returns a change of a place whose sides are values; a side that is missing is `None`.
    pub fn of(
        place: String,
        before: Option<&Value>,
        after: Option<&Value>,
        more: Vec<String>,
    ) -> ShownChange {
        let show = |value: Option<&Value>| value.map(side_words);
        let (mut shown_before, mut shown_after) = (show(before), show(after));
        let is_alike = |(a, b): (&String, &String)| a == b || is_same_but_for_form(a, b);
        // Texts in two Unicode forms read alike.
        if before != after && shown_before.as_ref().zip(shown_after.as_ref()).is_some_and(is_alike) {
            (shown_before, shown_after) = (before.map(quote::in_its_form), after.map(quote::in_its_form));
        }
        let (sign, before, after) = match (before, after) {
            (Some(before), Some(after)) if before == after => ('=', None, shown_after),
            (Some(_), Some(_)) => ('~', shown_before, shown_after),
            (None, Some(_)) => ('+', None, shown_after),
            (Some(_), None) => ('-', shown_before, None),
            (None, None) => ('=', None, None),
        };
        let note = match (&before, &after) {
            (_, None) if sign == '=' => "(made and removed)".to_owned(),
            (Some(before), Some(after)) => unseen(before, after).unwrap_or_default(),
            _ => String::new(),
        };
        ShownChange { sign, place, before, after, note, more }
    }

    /// Returns a write of the state; an item that a list gained is shown alone.
    pub fn of_write(change: &PlaceChange, more: Vec<String>) -> ShownChange {
        let place = place_text(&change.path);
        match (&change.before, &change.after) {
            (Some(Value::Array(before)), Some(Value::Array(after)))
                if after.len() == before.len() + 1 && before.iter().eq(after.iter().take(before.len())) =>
            {
                let place = format!("{place}[{}]", before.len());
                ShownChange::of(place, None, after.get(before.len()), more)
            }
            (before, after) => ShownChange::of(place, before.as_ref(), after.as_ref(), more),
        }
    }

    /// The change in the characters of a page.
    fn spelled(self, page: &Page) -> ShownChange {
        let side = |text: Option<String>| text.map(|text| page.spell(text));
        let (before, after) = (side(self.before), side(self.after));
        ShownChange { place: page.spell(self.place), before, after, note: page.spell(self.note), ..self }
    }

    /// The sides on one line, with the note.
    fn sides(&self) -> String {
        let sides = match (&self.before, &self.after) {
            (Some(before), Some(after)) => format!("{before} -> {after}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => String::new(),
        };
        [sides, self.note.clone()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
    }

    fn style(&self) -> Option<Style> {
        match self.sign {
            '+' => Some(Style::Added),
            '-' => Some(Style::Removed),
            '~' => Some(Style::Warn),
            _ => None,
        }
    }

    fn line(&self, text: String) -> Line {
        Line::of(self.style(), text)
    }

    /// The lines of a change that does not fit one: the place, then both sides below it.
    fn below(&self, lead: &str, width: usize) -> Vec<Line> {
        let place = self.line(format!("{lead}{} {}", self.sign, self.place));
        let deeper = format!("{lead}{}", " ".repeat(SIDES));
        let sides = self.sides();
        let value = |text: String| Line::value(text, self.more.clone());
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return vec![place, value(format!("{deeper}{sides}"))];
        };
        if columns(&deeper) + columns(&sides) <= width {
            return vec![place, value(format!("{deeper}{sides}"))];
        }
        let mut lines = vec![
            place,
            value(format!("{deeper}- {before}")).paint(Style::Removed),
            value(format!("{deeper}+ {after}")).paint(Style::Added),
        ];
        lines.extend((!self.note.is_empty()).then(|| value(format!("{deeper}{}", self.note))));
        lines
    }
}

impl Page {
    /// Returns the lines of changes: `~ PLACE  BEFORE -> AFTER`, `indent` columns deep.
    pub fn changes(&self, changes: &[ShownChange], indent: usize) -> Vec<Line> {
        let spelled = |change: &ShownChange| change.clone().spelled(self);
        match self.ascii {
            true => lines(&changes.iter().map(spelled).collect::<Vec<_>>(), indent, self),
            false => lines(changes, indent, self),
        }
    }
}

/// Returns the lines of changes, `indent` columns deep. Places are padded within neighbours that fit a line, so that
/// one long place pads no other line.
fn lines(changes: &[ShownChange], indent: usize, page: &Page) -> Vec<Line> {
    let lead = " ".repeat(indent);
    if page.accessible {
        return changes
            .iter()
            .map(|change| Line::value(in_words(change, &lead), change.more.clone()))
            .collect();
    }
    // An eye takes in a change at once if its line ends some columns before the edge.
    let limit = page.width.map_or(usize::MAX, |width| width * 9 / 10);
    let head = indent + 2;
    let fits = |change: &ShownChange, padded: usize| head + padded + 2 + columns(&change.sides()) <= limit;
    let mut lines = Vec::new();
    let mut rest = changes;
    while let Some((first, _)) = rest.split_first() {
        let mut padded = columns(&first.place);
        if !fits(first, padded) {
            lines.extend(first.below(&lead, page.width.unwrap_or(usize::MAX)));
            rest = &rest[1..];
            continue;
        }
        let mut together = 1;
        for next in &rest[1..] {
            let wider = padded.max(columns(&next.place));
            if !fits(next, columns(&next.place)) || rest[..=together].iter().any(|one| !fits(one, wider)) {
                break;
            }
            (padded, together) = (wider, together + 1);
        }
        for change in &rest[..together] {
            let text = format!("{lead}{} {}  {}", change.sign, pad(&change.place, padded), change.sides());
            lines.push(change.line(text.trim_end().to_owned()));
        }
        rest = &rest[together..];
    }
    lines
}

/// Names the first characters that differ in two sides that look alike; `None` if a reader sees the difference.
fn unseen(before: &str, after: &str) -> Option<String> {
    let (number, [before, after]) = hidden_difference(before, after)?;
    let name =
        |c: Option<char>| c.map_or_else(|| "the end".to_owned(), |c| format!("U+{:04X}", u32::from(c)));
    Some(format!("(character {number}: {} -> {})", name(before), name(after)))
}

/// Writes a change with a word for its sign.
fn in_words(change: &ShownChange, lead: &str) -> String {
    let word = match change.sign {
        '~' => "changed",
        '+' => "added",
        '-' => "removed",
        _ => "written alike",
    };
    format!("{lead}{word} {}  {}", change.place, change.sides()).trim_end().to_owned()
}

/// Writes a value as a side of a change. A text that holds JSON is that JSON, marked as text: the JSON itself is another value.
pub(crate) fn side_words(value: &Value) -> String {
    match value.as_str().and_then(quote::held_json) {
        Some(held) => format!("{held} (text)"),
        None => quote::value(value),
    }
}

/// Writes a place of the state; the state itself has no name of its own.
pub fn place_text(path: &Pointer) -> String {
    match path.as_str() {
        "" => "state".to_owned(),
        _ => quote::path(path),
    }
}

/// Returns the command that prints a transition whole, or what it wrote at a place.
pub(crate) fn whole_command(run: &RunName, tick: u64, path: Option<&Pointer>) -> Vec<String> {
    let flags = path.map(quote::path).into_iter().flat_map(|place| ["--path".to_owned(), place]);
    let begin = ["dendrer".to_owned(), "show".to_owned(), format!("{run}@{tick}")].into_iter();
    begin.chain(flags).chain(["--full".to_owned()]).collect()
}

/// Returns the content of a record as answers show it: the paths of its delta have the names of the user, as its values have.
pub fn content_json(record: &Record) -> Value {
    let mut content = record.content();
    let delta = content.get("delta").and_then(|delta| Delta::from_value(delta).ok());
    if let (Some(delta), Value::Object(members)) = (delta, &mut content) {
        members.set("delta", delta.written());
    }
    content
}

document! {
    /// A change of one place of the state
    pub object ChangeObject(change: &PlaceChange) {
        /// The place
        path: &Pointer = &change.path,
        /// The value before; absent if there was none
        before?: &Value = change.before.as_ref(),
        /// The value after; absent if it is missing
        after?: &Value = change.after.as_ref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::plain;
    use crate::layout::lay;

    fn change(place: &str, before: Option<&str>, after: Option<&str>) -> ShownChange {
        let sign = match (before, after) {
            (Some(_), Some(_)) => '~',
            (None, _) => '+',
            _ => '-',
        };
        let text = |side: Option<&str>| side.map(str::to_owned);
        ShownChange {
            sign,
            place: place.to_owned(),
            before: text(before),
            after: text(after),
            note: String::new(),
            more: Vec::new(),
        }
    }

    #[test]
    fn a_long_place_pads_no_other_line() {
        let page = Page { width: Some(80), ..Page::WIDE };
        let long = "x".repeat(70);
        let changes = [
            change("sources[2]", None, Some("\"feed\"")),
            change("quality_score", Some("0.84"), Some("0.62")),
            change("policy.violated", None, Some(r#"{"rule":"logistics.risk_within_threshold","tick":22}"#)),
            change("orders", Some("1"), None),
            change("action.params.url", Some(&long), Some("2")),
        ];
        let shown = plain(&lay(lines(&changes, 2, &page), &page));
        assert_eq!(
            shown,
            format!(
                "  + sources[2]     \"feed\"\n  ~ quality_score  0.84 -> 0.62\n  + policy.violated\n      \
                 {{\"rule\":\"logistics.risk_within_threshold\",\"tick\":22}}\n  - orders  1\n  ~ action.params.url\n      \
                 - {long}\n      + 2\n"
            )
        );
        let pipe = plain(&lines(&changes[3..], 0, &Page::WIDE));
        assert_eq!(pipe, format!("- orders             1\n~ action.params.url  {long} -> 2\n"));
    }

    #[test]
    fn sides_that_look_alike_name_what_differs() {
        let sides = |before: &str, after: &str| {
            let (before, after) = (Value::from(before), Value::from(after));
            ShownChange::of("v".to_owned(), Some(&before), Some(&after), Vec::new()).sides()
        };
        for (before, after, shown) in [
            ("a\u{a0}b", "a b", r#""a\u{a0}b" -> "a b""#),
            ("a\u{2009}b", "a\u{2003}b", r#""a\u{2009}b" -> "a\u{2003}b""#),
            ("a\u{202f}b", "ab", r#""a\u{202f}b" -> "ab""#),
            ("a\u{2011}b", "a-b", "\"a\u{2011}b\" -> \"a-b\"  (character 3: U+2011 -> U+002D)"),
            ("\u{410}", "A", "\"\u{410}\" -> \"A\"  (character 2: U+0410 -> U+0041)"),
            ("a", "b", r#""a" -> "b""#),
        ] {
            assert_eq!(sides(before, after), shown);
        }
    }

    #[test]
    fn a_text_of_json_and_the_json_differ() {
        let json = dendrer_object::json::parse_door(br#"{"a":1}"#).unwrap();
        let text = Value::from(r#"{"a":1}"#);
        let shown = ShownChange::of("x".to_owned(), Some(&text), Some(&json), Vec::new());
        assert_eq!(shown.sides(), r#"{"a":1} (text) -> {"a":1}"#);
        let sides = ["Zo\u{e9}", "Zoe\u{301}"].map(Value::from);
        let shown = ShownChange::of("x".to_owned(), Some(&sides[0]), Some(&sides[1]), Vec::new());
        assert_eq!(shown.sides(), "\"Zo\u{e9}\" -> \"Zoe\\u{301}\"");
    }
}
