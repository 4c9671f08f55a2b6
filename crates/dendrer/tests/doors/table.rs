//! The table of doors by rules, as the generator finds it: `docs/design/doors.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::doors::{DOORS, Door};
use crate::found::{Found, Rule};

/// What was found at a door about a kind of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Refuses,
    Notes,
}

impl Cell {
    fn words(self) -> &'static str {
        match self {
            Cell::Refuses => "refuses",
            Cell::Notes => "notes",
        }
    }
}

/// What the generator found.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Lines that are no intent.
    pub(crate) no_intent: u64,
    main: BTreeMap<Rule, BTreeSet<Cell>>,
    doors: BTreeMap<(&'static str, Rule), BTreeSet<Cell>>,
    /// The codes of its own that a door used, by the kinds of rules of the main door.
    own: BTreeMap<(&'static str, Rule), BTreeSet<String>>,
    cannot: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
}

impl Tally {
    pub(crate) fn main(&mut self, found: &Found) {
        let cell = if found.code().is_some() { Cell::Refuses } else { Cell::Notes };
        for rule in found.rules() {
            self.main.entry(rule).or_default().insert(cell);
        }
    }

    pub(crate) fn door(&mut self, door: &Door, main: &Found, found: &Found) {
        if let Found::Cannot(why) = found {
            *self.cannot.entry(door.name).or_default().entry(why).or_default() += 1;
            return;
        }
        let own = found.code().filter(|code| door.own.iter().any(|(own, _)| own == code));
        for rule in main.rules() {
            let place = (door.name, rule);
            match (own, found) {
                (Some(code), _) => drop(self.own.entry(place).or_default().insert(code.to_owned())),
                (None, Found::Refused(_)) => drop(self.doors.entry(place).or_default().insert(Cell::Refuses)),
                (None, _) if door.tells || !found.facts().is_empty() => {
                    self.doors.entry(place).or_default().insert(Cell::Notes);
                }
                (None, _) => {}
            }
        }
    }

    fn cell(&self, door: &Door, rule: Rule) -> String {
        let found = self.doors.get(&(door.name, rule)).cloned().unwrap_or_default();
        let own = self.own.get(&(door.name, rule)).cloned().unwrap_or_default();
        if found.is_empty() && own.is_empty() {
            let why = door.cannot.iter().find(|(cannot, _)| *cannot == rule).map(|(_, why)| *why);
            return format!("cannot express ({})", why.unwrap_or("NOT TRIED"));
        }
        let words: Vec<&str> = found.iter().map(|cell| cell.words()).collect();
        let own: Vec<String> = own.iter().map(|code| code.replace('_', " ")).collect();
        let own = if own.is_empty() { String::new() } else { format!("by itself {}", own.join(", ")) };
        [words.join(", "), own].iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("; ")
    }

    fn page(&self) -> String {
        let mut page = HEAD.to_owned();
        page.push_str("| door |");
        for rule in Rule::ALL {
            write!(page, " {} |", rule.words()).unwrap();
        }
        page.push_str("\n| --- |");
        page.push_str(&" --- |".repeat(Rule::ALL.len()));
        page.push_str("\n| `commit`, library, HTTP, Python |");
        for rule in Rule::ALL {
            let found = self.main.get(&rule).cloned().unwrap_or_default();
            let words: Vec<&str> = found.iter().map(|cell| cell.words()).collect();
            write!(page, " {} |", words.join(", ")).unwrap();
        }
        for door in DOORS {
            write!(page, "\n| {} |", door.name).unwrap();
            for rule in Rule::ALL {
                write!(page, " {} |", self.cell(door, rule)).unwrap();
            }
        }
        page.push_str("\n\n## What a door does by itself\n\n");
        for door in DOORS.iter().filter(|door| !door.own.is_empty()) {
            let own = door.own.iter().map(|(code, why)| format!("{} ({why})", code.replace('_', " ")));
            writeln!(page, "* {}: {}.", door.name, own.collect::<Vec<_>>().join("; ")).unwrap();
        }
        page.push_str("\n## What a door cannot express\n\n");
        for (door, whys) in DOORS.iter().filter_map(|door| Some((door, self.cannot.get(door.name)?))) {
            let whys: Vec<&str> = whys.keys().copied().collect();
            writeln!(page, "* {}: {}.", door.name, whys.join("; ")).unwrap();
        }
        page
    }
}

const HEAD: &str = "# Doors: what each way into a run refuses and notes

Made by `crates/dendrer/tests/doors` with `DENDRER_WRITE=1`, which proposes 2,000 drawn lines at stages 0 to 3 and fails where a door
takes silently what `commit` refuses or notes. A door that begins a run is asked about every fourth line, with `DENDRER_DEEP=1` about each
of 20,000. Do not edit.

A row is a door, a column a kind of rules. *refuses*: as `commit` does, with its code. *notes*: it is committed with the note that
`commit` makes, or the answer says what would have refused it. *by itself*: a check of the door comes first, with a code of its own.

";

/// Writes the page beside the other files of the build.
pub(crate) fn draft(tally: &Tally) {
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("doors.md"), tally.page()).unwrap();
}

/// Compares the page with what was found, and writes it if that is asked for.
pub(crate) fn compare(tally: &Tally) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/doors.md");
    let page = tally.page();
    assert!(!page.contains("NOT TRIED"), "{page}");
    if std::env::var_os("DENDRER_WRITE").is_some() {
        std::fs::write(&place, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&place).unwrap_or_default(), page, "run it with DENDRER_WRITE=1");
}
