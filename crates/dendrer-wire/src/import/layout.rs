//! Finds the list of messages in a document, by its shape alone.
//!
//! A message is an object with a text `role` and a `content` or calls; a list of messages is an array at least half
//! of whose items are messages. No name of a member decides, so a list may be called anything.

use std::io::Read;

use dendrer_object::Pointer;
use dendrer_object::json::parse_door;

use super::damage::Damage;
use super::error::ImportError;
use super::found::Found;
use super::scan::{Capture, Fingerprint, Scanner, Sizes, Stop};

/// How many lists or runs are remembered to be named in an error.
pub(crate) const NAMED_MAX: usize = 10;

/// How many lists of one run are remembered. A user with more lists names one.
const LISTS_MAX: usize = 1000;

/// How deep in objects a list is looked for.
const DEPTH: usize = 8;

/// A list in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The names that lead to it, from the top of its run.
    pub path: Vec<String>,
    /// How many items it has.
    pub items: u64,
    /// How many of them are messages.
    pub messages: u64,
}

impl List {
    /// Returns the place as a JSON pointer.
    pub fn pointer(&self) -> String {
        pointer(&self.path)
    }

    fn is_of_messages(&self) -> bool {
        is_mostly(self.messages, self.items)
    }
}

fn is_mostly(messages: u64, items: u64) -> bool {
    messages > 0 && messages * 2 >= items
}

/// Writes names as a JSON pointer.
pub fn pointer(names: &[String]) -> String {
    Pointer::of(names.iter().map(String::as_str)).as_str().to_owned()
}

/// The value at the top of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    /// One value.
    Value,
    /// Several values one after the other, as in JSON lines.
    Lines,
    /// One array whose items are what counts.
    Array,
}

/// Terms of a check of nodes, which their document leaves open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CfdTerms {
    /// The first `seq` of a branch; 0 or 1 if it is not given.
    pub s0: Option<u64>,
    /// The `prev_hash` of a node without parents.
    pub genesis: String,
    /// The `schema_version` of a node that has none.
    pub schema_version: Option<String>,
}

/// The path in a source to the items of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The value at the top of the source.
    pub top: Top,
    /// Which of several runs, from 0; `None` where the items stand at the top themselves.
    pub index: Option<u64>,
    /// The names that lead from the top of the run to the list.
    pub path: Vec<String>,
    /// Whether the source ends inside a value.
    pub is_cut: bool,
    /// Facts of the items that a first reading found.
    pub(crate) found: Found,
    /// The place in an item by which they are ordered; `None` for the order of the file.
    pub(crate) order: Option<Pointer>,
    /// Terms of nodes of the forensic debugger specification.
    pub cfd: CfdTerms,
    /// The lines that are no JSON.
    pub(crate) damage: Damage,
}

impl Layout {
    /// Items that are at the top.
    pub(crate) fn new(top: Top) -> Layout {
        Layout {
            top,
            index: None,
            path: Vec::new(),
            is_cut: false,
            found: Found::default(),
            order: None,
            cfd: CfdTerms::default(),
            damage: Damage::default(),
        }
    }
}

/// The hints of the user on where to look.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Which of several runs, from 0.
    pub index: Option<u64>,
    /// The names that lead to the list.
    pub list: Option<Vec<String>>,
    /// Terms of nodes of the forensic debugger specification.
    pub cfd: CfdTerms,
}

/// The summary of one value at the top.
#[derive(Debug, Default)]
struct Seen {
    is_message: bool,
    is_cut: bool,
    lists: Vec<List>,
}

/// The summary of a sequence of values.
#[derive(Debug, Default)]
struct Items {
    count: u64,
    messages: u64,
    /// Runs that are named in an error: index and lists.
    runs: Vec<(u64, Vec<List>)>,
    run_count: u64,
    chosen: Option<(u64, Vec<List>)>,
}

impl Items {
    fn add(&mut self, seen: Seen, choice: &Choice) {
        let index = self.count;
        // A value that was cut off is counted only if it shows a message or a list.
        self.count += u64::from(!seen.is_cut || seen.is_message || !seen.lists.is_empty());
        if seen.is_message {
            self.messages += 1;
        }
        if choice.index == Some(index) {
            self.chosen = Some((index, seen.lists.clone()));
        }
        if !seen.is_message && !seen.lists.is_empty() {
            self.run_count += 1;
            if self.runs.len() < NAMED_MAX {
                self.runs.push((index, seen.lists));
            }
        }
    }

    fn is_list(&self) -> bool {
        is_mostly(self.messages, self.count)
    }
}

/// Reads the whole source, whose items stand at the top: each of a list, or one a line.
pub(crate) fn survey_top<R: Read>(input: R) -> Result<(Layout, Fingerprint, Sizes), ImportError> {
    let mut scanner = Scanner::new(input).map_err(ImportError::stopped)?;
    let (mut count, mut is_list, mut is_open) = (0u64, false, false);
    let result = loop {
        match scanner.next() {
            Ok(Some(byte)) => {
                is_open |= matches!(byte, b'{' | b'[');
                (is_list, count) = (count == 0 && byte == b'[', count + 1);
                if let Err(stop) = scanner.value(&mut Capture::nothing(), 0) {
                    break Err(stop);
                }
            }
            Ok(None) => break Ok(()),
            Err(stop) => break Err(stop),
        }
    };
    let is_cut = match result {
        Ok(()) => false,
        Err(Stop::Cut) => true,
        Err(Stop::Syntax(..)) if !is_open => return Err(ImportError::Unknown("it is not JSON")),
        Err(stop) => return Err(ImportError::stopped(stop)),
    };
    if count == 0 {
        return Err(ImportError::Unknown("it holds no value"));
    }
    let (fingerprint, _) = scanner.finish().map_err(ImportError::stopped)?;
    let top = if is_list { Top::Array } else { Top::Lines };
    Ok((Layout { is_cut, ..Layout::new(top) }, fingerprint, Sizes::default()))
}

/// Reads the whole source and returns the path of its items, a fingerprint, and sizes that were found. `any_items` admits
/// items that are no messages.
pub(crate) fn survey<R: Read>(
    input: R,
    choice: &Choice,
    any_items: bool,
) -> Result<(Layout, Fingerprint, Sizes), ImportError> {
    let mut scanner = Scanner::new(input).map_err(ImportError::stopped)?;
    // One array at the top may be a list of messages, a list of runs, or one of several lines.
    let mut lines = Items::default();
    let mut inner: Option<Items> = None;
    let mut result = Ok(());
    let mut is_open = false;
    loop {
        match scanner.next() {
            Ok(Some(byte)) => {
                is_open |= matches!(byte, b'{' | b'[' | b'"');
                let mut seen = Seen::default();
                result = if byte == b'[' && lines.count == 0 {
                    let mut items = Items::default();
                    let result = look_into(&mut scanner, &mut items, choice);
                    let list = List { path: Vec::new(), items: items.count, messages: items.messages };
                    if list.is_of_messages() || choice.list.as_ref().is_some_and(Vec::is_empty) {
                        seen.lists.push(list);
                    }
                    inner = Some(items);
                    result
                } else {
                    look(&mut scanner, &mut seen, choice)
                };
                seen.is_cut = matches!(result, Err(Stop::Cut));
                lines.add(seen, choice);
                if result.is_err() {
                    break;
                }
            }
            Ok(None) => break,
            Err(stop) => {
                result = Err(stop);
                break;
            }
        }
    }
    let is_cut = match result {
        Ok(()) => false,
        Err(Stop::Cut) => true,
        // Text that does not even begin like JSON is another kind of thing, not broken JSON.
        Err(Stop::Syntax(..)) if lines.count == 1 && !is_open => {
            return Err(ImportError::Unknown("it is not JSON"));
        }
        Err(stop) => return Err(ImportError::stopped(stop)),
    };
    let sizes = std::mem::take(&mut scanner.found);
    let (fingerprint, _) = scanner.finish().map_err(ImportError::stopped)?;
    let inner = inner.filter(|_| lines.count == 1);
    let layout = decide(lines, inner, choice, any_items)?;
    Ok((Layout { is_cut, cfd: choice.cfd.clone(), ..layout }, fingerprint, sizes))
}

fn decide(
    lines: Items,
    inner: Option<Items>,
    choice: &Choice,
    any_items: bool,
) -> Result<Layout, ImportError> {
    let at_top = Layout::new;
    let names_list = choice.list.as_ref().is_some_and(|list| !list.is_empty());
    if lines.count == 0 {
        return Err(ImportError::Unknown("it holds no value"));
    }
    if let Some(items) = inner {
        let takes_items = items.is_list() || (any_items && items.run_count == 0);
        if choice.index.is_none() && !names_list && takes_items {
            return Ok(at_top(Top::Array));
        }
        return one_of(Top::Array, items, choice);
    }
    if lines.count == 1 && choice.index.is_none() {
        let mut lines = lines;
        if lines.messages == 1 && !names_list {
            return Ok(at_top(Top::Lines));
        }
        let lists = lines.runs.pop().map(|(_, lists)| lists).unwrap_or_default();
        if lists.is_empty() && any_items && !names_list {
            return Ok(at_top(Top::Lines));
        }
        return Ok(Layout { path: pick(lists, choice)?, ..at_top(Top::Value) });
    }
    if choice.index.is_none() && !names_list && (lines.is_list() || any_items) {
        return Ok(at_top(Top::Lines));
    }
    one_of(Top::Lines, lines, choice)
}

/// One of several runs.
fn one_of(top: Top, mut items: Items, choice: &Choice) -> Result<Layout, ImportError> {
    let run = match choice.index {
        Some(index) => match items.chosen {
            Some(run) => run,
            None => return Err(ImportError::NoRun { index, count: items.count }),
        },
        None if items.run_count > 1 => {
            let named = items.runs.iter().map(|(index, lists)| (*index, lists[0].items));
            return Err(ImportError::SeveralRuns { count: items.run_count, runs: named.collect() });
        }
        None => match items.runs.pop() {
            Some(run) => run,
            None => return Err(ImportError::Unknown("no list of messages is in it")),
        },
    };
    Ok(Layout { index: Some(run.0), path: pick(run.1, choice)?, ..Layout::new(top) })
}

/// The one list of a run: the one that is named, or the only one at the least depth.
fn pick(lists: Vec<List>, choice: &Choice) -> Result<Vec<String>, ImportError> {
    if let Some(path) = &choice.list {
        return match lists.into_iter().find(|list| list.path == *path) {
            Some(list) => Ok(list.path),
            None => Err(ImportError::NoList(pointer(path))),
        };
    }
    let depth = lists.iter().map(|list| list.path.len()).min().unwrap_or(0);
    let mut nearest: Vec<List> = lists.into_iter().filter(|list| list.path.len() == depth).collect();
    match nearest.len() {
        0 => Err(ImportError::Unknown("no list of messages is in it")),
        1 => Ok(nearest.remove(0).path),
        _ => Err(ImportError::SeveralLists(nearest)),
    }
}

/// Looks at the items of an array at the top.
fn look_into<R: Read>(scanner: &mut Scanner<R>, items: &mut Items, choice: &Choice) -> Result<(), Stop> {
    scanner.array(&mut |scanner| {
        let mut seen = Seen::default();
        let result = look(scanner, &mut seen, choice);
        seen.is_cut = matches!(result, Err(Stop::Cut));
        items.add(seen, choice);
        result
    })
}

/// Looks at one value that may be a message, a list or a run.
fn look<R: Read>(scanner: &mut Scanner<R>, seen: &mut Seen, choice: &Choice) -> Result<(), Stop> {
    let mut path = Vec::new();
    match scanner.next()? {
        Some(b'[') => look_list(scanner, &path, seen, choice),
        Some(b'{') => {
            // Of a message nothing else counts, wherever lists are in it.
            if scanner.skim_message() {
                seen.is_message = true;
                return Ok(());
            }
            let (is_message, result) = look_object(scanner, &mut path, seen, choice);
            seen.is_message = is_message;
            if is_message {
                seen.lists.clear();
            }
            result
        }
        _ => scanner.value(&mut Capture::nothing(), 0).map(|_| ()),
    }
}

fn look_list<R: Read>(
    scanner: &mut Scanner<R>,
    path: &[String],
    seen: &mut Seen,
    choice: &Choice,
) -> Result<(), Stop> {
    let (mut items, mut messages) = (0, 0);
    let result = scanner.array(&mut |scanner| {
        items += 1;
        let is_object = scanner.next()? == Some(b'{');
        if !is_object {
            return scanner.value(&mut Capture::nothing(), 0).map(|_| ());
        }
        let (is_message, result) = look_message(scanner);
        messages += u64::from(is_message);
        result
    });
    // A last item that was cut off is not counted against the list, unless it is a message.
    items -= u64::from(matches!(result, Err(Stop::Cut)) && items > messages);
    let is_candidate = is_mostly(messages, items) && seen.lists.len() < LISTS_MAX;
    if is_candidate || choice.list.as_deref() == Some(path) {
        seen.lists.push(List { path: path.to_vec(), items, messages });
    }
    result
}

/// Looks at the members of an object and at the lists in it, and tells whether it is a message.
fn look_object<R: Read>(
    scanner: &mut Scanner<R>,
    path: &mut Vec<String>,
    seen: &mut Seen,
    choice: &Choice,
) -> (bool, Result<(), Stop>) {
    let mut marks = Marks::default();
    let result = scanner.object(&mut Capture::nothing(), &mut |scanner, _, name| {
        let first = scanner.next()?;
        marks.see(name, first);
        if !matches!(first, Some(b'[' | b'{')) || path.len() == DEPTH {
            return scanner.value(&mut Capture::nothing(), 0).map(|_| ());
        }
        path.push(decode(name));
        let result = match first {
            Some(b'[') => look_list(scanner, path, seen, choice),
            _ => look_object(scanner, path, seen, choice).1,
        };
        path.pop();
        result
    });
    (marks.is_message(), result)
}

fn look_message<R: Read>(scanner: &mut Scanner<R>) -> (bool, Result<(), Stop>) {
    if scanner.skim_message() {
        return (true, Ok(()));
    }
    let mut marks = Marks::default();
    let result = scanner.object(&mut Capture::nothing(), &mut |scanner, _, name| {
        let first = scanner.next()?;
        marks.see(name, first);
        scanner.value(&mut Capture::nothing(), 0).map(|_| ())
    });
    (marks.is_message(), result)
}

/// Returns the text of a name, or its spelling where it is not well-formed.
pub(crate) fn decode(name: &[u8]) -> String {
    match parse_door(name).ok().as_ref().and_then(|value| value.as_str()) {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(name).into_owned(),
    }
}

/// The members by which an object is known as a message.
#[derive(Default)]
pub(crate) struct Marks {
    has_role: bool,
    has_body: bool,
}

impl Marks {
    pub(crate) fn see(&mut self, name: &[u8], first: Option<u8>) {
        match name {
            b"\"role\"" => self.has_role = first == Some(b'"'),
            b"\"content\"" | b"\"tool_calls\"" | b"\"function_call\"" => self.has_body = true,
            b"\"parts\"" => self.has_body |= first == Some(b'['),
            _ => {}
        }
    }

    pub(crate) fn is_message(&self) -> bool {
        self.has_role && self.has_body
    }
}
