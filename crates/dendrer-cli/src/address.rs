//! Addresses: `RUN`, `RUN@POS`, `@`, `file.dnd#RUN@POS`, a label, and the first digits of an id.

use std::path::Path;

use dendrer::Trace;
use dendrer::casebook::{self, Moment};
use dendrer::store::Store;
use dendrer_object::record::{Kind, Record};
use dendrer_object::text::nearest;
use dendrer_object::{Pointer, RunName};

use crate::failure::{Failure, Result};

/// What a REV says, before anything was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rev {
    /// The bundle file, where one is named.
    pub(crate) bundle: Option<String>,
    /// The run; `None` where the source decides.
    pub(crate) run: Option<String>,
    /// The place.
    pub(crate) pos: Option<Pos>,
}

/// A place in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pos {
    /// A tick.
    Tick(u64),
    /// So many before the tip.
    Back(u64),
    /// The last tick.
    Tip,
    /// The first tick of a fork that is its own.
    Fork,
    /// The onset that the last recorded bisect of the run found.
    Onset,
    /// The tick that a label is on.
    Label(String),
}

impl Rev {
    /// Reads an address.
    pub(crate) fn parse(text: &str) -> Result<Rev> {
        let bad = || {
            Failure::new("E0105", format!("\"{text}\" is not an address"))
                .note("write RUN, RUN@TICK, RUN@tip, RUN@fork, RUN@LABEL or file.dnd")
        };
        let bundle_end = [".dnd#", ".dnd@"].iter().find_map(|mark| text.find(mark)).map(|at| at + 4);
        // What is there and has a path that no run could be named by is a file, or a pipe in place of one.
        let is_file = |path: &Path| path.is_file() || (text.contains('/') && path.exists() && !path.is_dir());
        let bundle_end =
            bundle_end.or_else(|| (text.ends_with(".dnd") || is_file(Path::new(text))).then_some(text.len()));
        let (bundle, rest) = match bundle_end {
            Some(end) => (Some(text[..end].to_owned()), text[end..].trim_start_matches('#')),
            None => (None, text),
        };
        if bundle.is_none() && matches!(rest, "@" | "@-") {
            return Ok(Rev { bundle, run: Some(rest.to_owned()), pos: None });
        }
        let (run, pos) = match rest.rfind('@') {
            Some(at) => (&rest[..at], Some(Pos::parse(&rest[at + 1..]).ok_or_else(bad)?)),
            None => (rest, None),
        };
        if run.is_empty() && bundle.is_none() {
            return Err(bad());
        }
        Ok(Rev { bundle, run: (!run.is_empty()).then(|| run.to_owned()), pos })
    }

    /// Reads `RUN@FROM..TO`: the address of the run, and the two places. `None` for any other address.
    pub(crate) fn range(text: &str) -> Result<Option<(&str, Pos, Pos)>> {
        let Some((whole, from, to)) = text
            .rsplit_once('@')
            .and_then(|(whole, places)| places.split_once("..").map(|(from, to)| (whole, from, to)))
            .filter(|_| !Path::new(text).exists())
        else {
            return Ok(None);
        };
        let (Some(from), Some(to)) = (Pos::parse(from), Pos::parse(to)) else {
            return Err(Failure::new("E0105", format!("\"{text}\" is not a range of ticks"))
                .note("write RUN@FROM..TO, like run@10..12 or run@10..tip"));
        };
        Ok(Some((whole, from, to)))
    }

    /// Writes the address of another tick of the same run, in the same file if it is in one.
    pub(crate) fn beside(&self, trace: &Trace<'_>, tick: u64) -> String {
        match (&self.bundle, &self.run) {
            (Some(file), Some(run)) => format!("{file}#{run}@{tick}"),
            (Some(file), None) => format!("{file}@{tick}"),
            (None, _) => format!("{}@{tick}", trace.name()),
        }
    }

    /// Finds the record that is named by the first digits of its id.
    pub(crate) fn named_record(&self, store: &dyn Store) -> Result<Option<Record>> {
        let Some(text) = self.run.as_deref().filter(|text| !matches!(*text, "@" | "@-")) else {
            return Ok(None);
        };
        if let Ok(name) = text.parse::<RunName>()
            && store.run(&name)?.is_some()
        {
            return Ok(None);
        }
        by_prefix(store, text)
    }

    /// Puts run and tick in place of a label, or of the id of a transition or of the beginning of a run. Any other record
    /// is no place in a run.
    pub(crate) fn settle(self, store: &dyn Store) -> Result<Rev> {
        if let Some(at) = self.run.as_deref().map(|text| labelled(store, text)).transpose()?.flatten() {
            let pos = self.pos.or(at.tick.map(Pos::Tick));
            return Ok(Rev { run: Some(at.run.to_string()), pos, bundle: self.bundle });
        }
        let Some(record) = self.named_record(store)? else { return Ok(self) };
        let header = record.header();
        let Some(run) = &header.run else { return Ok(self) };
        let tick = match (header.kind, header.prev) {
            (Kind::Transition, _) => header.tick,
            (Kind::Run, None) => Some(0),
            _ => None,
        };
        match (tick, self.pos) {
            (_, pos @ Some(_)) => Ok(Rev { run: Some(run.to_string()), pos, ..self }),
            (Some(tick), None) => {
                Ok(Rev { run: Some(run.to_string()), pos: Some(Pos::Tick(tick)), bundle: self.bundle })
            }
            (None, None) => {
                let id = record.id().short();
                let what = format!("{id} is the id of a {} record of {run}, and no tick of it", header.kind);
                Err(Failure::new("E0105", what).help(&["dendrer", "show", &id]))
            }
        }
    }

    /// Finds the run that is meant.
    pub(crate) fn run_in(&self, store: &dyn Store, named: &[RunName]) -> Result<RunName> {
        match self.run.as_deref() {
            None => match named {
                [only] => Ok(only.clone()),
                [] => Err(Failure::new("E0101", "the bundle holds no run")),
                many => {
                    let names: Vec<&str> = many.iter().map(RunName::as_str).collect();
                    Err(Failure::new(
                        "E0107",
                        format!("the bundle holds {} runs; say which with #RUN", many.len()),
                    )
                    .at("runs", names.join(", ")))
                }
            },
            Some("@") => latest(store, 0),
            Some("@-") => latest(store, 1),
            Some(text) => find_run(store, text),
        }
    }
}

impl Pos {
    /// Reads a place: `12`, `tick:12`, `tip`, `fork`, `onset`, `-1` or a label.
    pub(crate) fn parse(text: &str) -> Option<Pos> {
        let digits = |text: &str| {
            (!text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()))
                .then(|| text.parse().ok())
                .flatten()
        };
        let is_label =
            |text: &str| text.parse::<RunName>().is_ok() && !text.bytes().all(|c| c.is_ascii_digit());
        let label = || is_label(text).then(|| Pos::Label(text.to_owned()));
        match text {
            "tip" => Some(Pos::Tip),
            "fork" => Some(Pos::Fork),
            "onset" => Some(Pos::Onset),
            _ => match text.strip_prefix('-') {
                Some(back) => digits(back).map(Pos::Back),
                None => digits(text.strip_prefix("tick:").unwrap_or(text)).map(Pos::Tick).or_else(label),
            },
        }
    }

    /// Finds the tick that is meant.
    pub(crate) fn tick(&self, trace: &Trace<'_>) -> Result<u64> {
        let tip = trace.tip();
        let back = match self {
            Pos::Onset => return recorded_onset(trace),
            Pos::Fork => return fork_tick(trace),
            Pos::Label(label) => return label_tick(trace, label),
            other => other,
        };
        match *back {
            Pos::Tick(tick) if tick > tip => {
                Err(dendrer::Error::NoTick { run: trace.name().clone(), tick, tip }.into())
            }
            Pos::Tick(tick) => Ok(tick),
            Pos::Tip => Ok(tip),
            Pos::Back(back) => tip.checked_sub(back).ok_or_else(|| {
                Failure::new(
                    "E0102",
                    format!("{} has {tip} ticks, there is none {back} before the last", trace.name()),
                )
            }),
            Pos::Fork | Pos::Onset | Pos::Label(_) => unreachable!("looked up above"),
        }
    }
}

/// Finds what a label names, where no run is called that.
fn labelled(store: &dyn Store, text: &str) -> Result<Option<Moment>> {
    match text.parse::<RunName>() {
        Ok(name) if store.run(&name)?.is_none() => Ok(casebook::find(store, text)?),
        _ => Ok(None),
    }
}

/// Finds the tick with which a fork begins: the one behind the last that it shares with its parent.
fn fork_tick(trace: &Trace<'_>) -> Result<u64> {
    match trace.lineage() {
        [.., (_, shared), _] => Pos::Tick(shared.saturating_add(1)).tick(trace),
        _ => Err(Failure::new("E0102", format!("{} is no fork", trace.name()))),
    }
}

/// Finds the onset that was written down last for a run.
fn recorded_onset(trace: &Trace<'_>) -> Result<u64> {
    let name = trace.name();
    let help = ["dendrer", "bisect", name.as_str(), "--predicate", "kernel.policy_compliant", "--record"];
    match casebook::read(trace.store())?.and_then(|state| casebook::onset(&state, name)) {
        Some(Some(tick)) => Pos::Tick(tick).tick(trace),
        Some(None) => {
            Err(Failure::new("E0120", format!("the last bisect of {name} that is recorded found no onset")))
        }
        None => Err(Failure::new("E0120", format!("no bisect of {name} is recorded")).help(&help)),
    }
}

/// Finds the tick of a run that a label is on.
fn label_tick(trace: &Trace<'_>, label: &str) -> Result<u64> {
    let labels = casebook::read(trace.store())?.map(|state| casebook::labels(&state)).unwrap_or_default();
    let Some(at) = labels.get(label) else {
        let near = nearest(label, labels.keys().map(String::as_str)).map(str::to_owned);
        return Err(dendrer::Error::NoLabel { name: label.to_owned(), near }.into());
    };
    // The ticks that a fork shares are its own, too.
    let here = at.tick.filter(|tick| *tick <= trace.tip());
    match here.map(|tick| trace.record(tick)).transpose()? {
        Some(record) if record.id() == at.id => Ok(here.unwrap_or_default()),
        _ => {
            let what =
                format!("the label {label} is on {}, which is no tick of {}", at.address(), trace.name());
            Err(Failure::new("E0120", what).help(&["dendrer", "show", label]))
        }
    }
}

fn latest(store: &dyn Store, back: usize) -> Result<RunName> {
    let mut runs = Vec::new();
    let mut from = 0;
    loop {
        let batch = store.runs(from, 1024)?;
        let Some(last) = batch.last() else { break };
        from = last.begin + 1;
        for run in batch {
            // What was written about runs is not the latest of them.
            if !casebook::is_casebook_run(store, &run.name)? {
                runs.push((run.head_position, run.name));
            }
        }
    }
    runs.sort();
    match runs.len().checked_sub(1 + back) {
        Some(at) => Ok(runs.swap_remove(at).1),
        None => {
            Err(Failure::new("E0101", "there is no such run: the store is empty").help(&["dendrer", "demo"]))
        }
    }
}

fn find_run(store: &dyn Store, text: &str) -> Result<RunName> {
    let name = text.parse::<RunName>();
    if let Ok(name) = &name
        && store.run(name)?.is_some()
    {
        return Ok(name.clone());
    }
    if let Some(at) = labelled(store, text)? {
        return Ok(at.run);
    }
    if let Some(record) = by_prefix(store, text)? {
        let what =
            format!("{} is the id of a {} record, of no run", record.id().short(), record.header().kind);
        let run = record.header().run.clone();
        return run
            .ok_or_else(|| Failure::new("E0105", what).help(&["dendrer", "show", &record.id().short()]));
    }
    // Asking for the trace gives the same answer as every other reader: the name, and what may have been meant.
    match name {
        Ok(name) => {
            Err(Trace::open(store, &name).err().map_or_else(|| Failure::new("E0101", text), Failure::from))
        }
        Err(_) => Err(Failure::new("E0101", format!("no run named \"{text}\"")).help(&["dendrer", "runs"])),
    }
}

/// Finds the one record whose id begins with these digits, if they are digits of an id.
fn by_prefix(store: &dyn Store, text: &str) -> Result<Option<Record>> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let is_digits = hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    if !is_digits || !(4..=64).contains(&hex.len()) {
        return Ok(None);
    }
    match store.find_prefix(hex, 9)?.as_slice() {
        [] => Ok(None),
        [(_, position)] => Ok(store.get(*position)?),
        many => {
            let ids: Vec<String> = many.iter().map(|(id, _)| id.short()).collect();
            Err(Failure::new("E0107", format!("{} records begin with {hex}", many.len()))
                .at("ids", ids.join(", ")))
        }
    }
}

/// Reads a path of the state: `a.b[2]`, `a["x y"]`, `state.a.b`, or a JSON pointer.
pub(crate) fn state_path(text: &str) -> Result<Pointer> {
    if text.is_empty() || text == "state" {
        return Ok(Pointer::root());
    }
    if text.starts_with('/') {
        return text.parse().map_err(|error: dendrer_object::pointer::PointerError| {
            Failure::new("E0104", error.to_string())
        });
    }
    let bad = || Failure::new("E0104", format!("\"{text}\" is not a path")).note("write a.b[2] or /a/b/2");
    let mut names: Vec<String> = Vec::new();
    let mut rest = text.strip_prefix("state.").unwrap_or(text);
    let mut first = true;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end =
                if inner.starts_with('"') { inner.find("\"]").map(|at| at + 1) } else { inner.find(']') }
                    .ok_or_else(bad)?;
            let token = &inner[..end];
            names.push(match token.strip_prefix('"') {
                Some(_) => dendrer_object::json::parse_tagged(token.as_bytes())
                    .ok()
                    .and_then(|v| v.as_str().map(str::to_owned))
                    .ok_or_else(bad)?,
                None => token.to_owned(),
            });
            rest = &inner[end + 1..];
        } else {
            let word = if first { rest } else { rest.strip_prefix('.').ok_or_else(bad)? };
            let end = word.find(['.', '[']).unwrap_or(word.len());
            if end == 0 {
                return Err(bad());
            }
            names.push(word[..end].to_owned());
            rest = &word[end..];
        }
        first = false;
    }
    Ok(Pointer::of(names.iter().map(String::as_str)))
}

/// Finds the tick that is named by a flag or in the address, and exactly once; `say` is what to do otherwise.
pub(crate) fn one_tick(flag: Option<&Pos>, rev: &Rev, trace: &Trace<'_>, say: &str) -> Result<u64> {
    match (flag, &rev.pos) {
        (Some(pos), None) | (None, Some(pos)) => pos.tick(trace),
        _ => Err(Failure::new("E0106", say).note("nothing was changed")),
    }
}

/// Refuses a range that ends before it begins.
pub(crate) fn in_order(from: u64, to: u64) -> Result<()> {
    if from > to {
        return Err(Failure::new("E0106", format!("--from tick {from} lies behind --to tick {to}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let check = |text: &str, expected: &str| {
            let found =
                Rev::parse(text).map_or_else(|failure| failure.code.to_owned(), |rev| format!("{rev:?}"));
            assert_eq!(found, expected, "{text}");
        };
        check("r", "Rev { bundle: None, run: Some(\"r\"), pos: None }");
        check("r@22", "Rev { bundle: None, run: Some(\"r\"), pos: Some(Tick(22)) }");
        check("r@-2", "Rev { bundle: None, run: Some(\"r\"), pos: Some(Back(2)) }");
        check("r@tip", "Rev { bundle: None, run: Some(\"r\"), pos: Some(Tip) }");
        check("@", "Rev { bundle: None, run: Some(\"@\"), pos: None }");
        check("a.dnd", "Rev { bundle: Some(\"a.dnd\"), run: None, pos: None }");
        check("a.dnd#r@3", "Rev { bundle: Some(\"a.dnd\"), run: Some(\"r\"), pos: Some(Tick(3)) }");
        check("a.dnd@3", "Rev { bundle: Some(\"a.dnd\"), run: None, pos: Some(Tick(3)) }");
        check("r@onset", "Rev { bundle: None, run: Some(\"r\"), pos: Some(Onset) }");
        check("r@x", "Rev { bundle: None, run: Some(\"r\"), pos: Some(Label(\"x\")) }");
        check("r@x y", "E0105");
        check("r@3x:", "E0105");
        check("", "E0105");
    }

    #[test]
    fn paths_are_read_in_both_spellings() {
        let check =
            |text: &str, expected: &str| assert_eq!(state_path(text).unwrap().as_str(), expected, "{text}");
        check("risk_score", "/risk_score");
        check("state.a.b[2].c", "/a/b/2/c");
        check("a[\"x y/z\"]", "/a/x y~1z");
        check("/a/b", "/a/b");
        check("state", "");
        for bad in ["a..b", "a[", ".a", "a[\"x]", "/~"] {
            assert!(state_path(bad).is_err(), "{bad}");
        }
    }
}
