//! Holds the rooms of two crates: which files may use which others.
//!
//! Inside a room files are free. An arrow that a room does not allow is a violation, and so is a file without a room.

use super::graph::Graph;
use super::limits::Count;

/// Files of a crate that may use each other.
struct Room {
    /// `a` is `a.rs` and all below `a/`; `a/*` makes a room of its own of each file below `a/`, with what is below it.
    files: &'static [&'static str],
    /// Names in `files` of other rooms, each with what is below it.
    may_use: &'static [&'static [&'static str]],
}

const fn room(files: &'static [&'static str], may_use: &'static [&'static [&'static str]]) -> Room {
    Room { files, may_use }
}

const BASE: &[&str] = &["error", "limits", "files", "handle", "problem", "redact"];
const PARTS: &[&str] = &["watch", "environment", "address", "trust", "pack", "vault"];
const RUN: &[&str] = &["run"];
const SOURCE: &[&str] = &["source"];
const RECORD: &[&str] = &["record"];
const EVIDENCE: &[&str] = &["evidence"];
const FINDINGS: &[&str] = &["casebook", "registry"];
const REPO: &[&str] = &["repo"];
const ASK: &[&str] = &["ask"];
const CHANGE: &[&str] = &["change", "care"];
const CHECKPOINT: &[&str] = &["checkpoint"];

/// Rooms of `crates/dendrer/src`, from the bottom up.
const LIBRARY: &[Room] = &[
    room(BASE, &[]),
    room(PARTS, &[BASE]),
    room(RUN, &[BASE, PARTS]),
    room(&["record", "evidence"], &[BASE, PARTS, RUN]),
    room(FINDINGS, &[BASE, PARTS, RUN, RECORD]),
    room(REPO, &[BASE, PARTS, RUN, RECORD, EVIDENCE, FINDINGS]),
    room(SOURCE, &[BASE, PARTS, RUN, RECORD, EVIDENCE, FINDINGS, REPO]),
    room(ASK, &[BASE, PARTS, RUN, EVIDENCE, FINDINGS, REPO, SOURCE]),
    room(CHANGE, &[BASE, PARTS, RUN, RECORD, EVIDENCE, FINDINGS, REPO, SOURCE, ASK]),
    // Threads of checkpoints: forks, erasures and recorders of their own.
    room(CHECKPOINT, &[BASE, PARTS, RUN, RECORD, EVIDENCE, FINDINGS, REPO, CHANGE]),
    // Re-exports and conversions: all rooms are below them, and no room imports them.
    room(
        &["lib", "prelude", "bridge"],
        &[BASE, PARTS, RUN, RECORD, EVIDENCE, FINDINGS, REPO, SOURCE, ASK, CHANGE, CHECKPOINT],
    ),
];

const FAILURE: &[&str] = &["failure"];
const GROUND: &[&str] = &["global", "demo"];
const GLOBAL: &[&str] = &["global"];
const OUTPUT: &[&str] = &["out", "progress"];
const CONTEXT: &[&str] = &["context"];
const OFFERS: &[&str] = &["offers"];
const VERB: &[&str] = &["verbs/*"];
const VERBS: &[&str] = &["verbs"];

const USAGE: &[&str] = &["typed", "usage", "usage/*"];

/// Rooms of `crates/dendrer-cli/src`, from the bottom up.
const PROGRAM: &[Room] = &[
    room(FAILURE, &[]),
    room(GROUND, &[FAILURE]),
    room(OUTPUT, &[FAILURE, GLOBAL]),
    // `demo` for its key, which is in the program.
    room(CONTEXT, &[FAILURE, GROUND, OUTPUT]),
    // An offer is read from the store.
    room(OFFERS, &[GLOBAL, CONTEXT]),
    room(VERB, &[FAILURE, GROUND, OUTPUT, CONTEXT, OFFERS]),
    room(VERBS, &[FAILURE, GROUND, OUTPUT, CONTEXT, OFFERS, VERB]),
    // Words as they are typed, and what is wrong with them.
    room(USAGE, &[FAILURE, OUTPUT, VERBS]),
    room(&["complete", "lib", "main"], &[FAILURE, GROUND, OUTPUT, CONTEXT, OFFERS, VERBS, USAGE]),
];

/// Counts the violations of a crate that has rooms.
pub(super) fn count(member: &str, graph: &Graph) -> Option<Count> {
    let rooms = match member {
        "dendrer" => LIBRARY,
        "dendrer-cli" => PROGRAM,
        _ => return None,
    };
    let lines = violations(rooms, graph);
    Some(Count::of(&format!("rooms.{member}"), "violations of the rooms", lines))
}

fn violations(rooms: &[Room], graph: &Graph) -> Vec<String> {
    let homes: Vec<Option<Home<'_>>> = graph.files.iter().map(|file| home(rooms, file)).collect();
    let homeless = graph.files.iter().zip(&homes).filter(|(_, home)| home.is_none());
    let mut lines: Vec<String> = homeless.map(|(file, _)| format!("{file} is in no room")).collect();
    for (from, to) in graph.arrows.keys().copied() {
        if let (Some(home), Some(target)) = (&homes[from], &homes[to])
            && !may_use(home, target)
        {
            lines.push(graph.arrow((from, to)));
        }
    }
    lines
}

/// Where a file belongs.
struct Home<'a> {
    room: &'a Room,
    /// The name in `files` of the room.
    name: &'static str,
    /// The name with `*` filled in.
    place: &'a str,
}

fn home<'a>(rooms: &'a [Room], file: &'a str) -> Option<Home<'a>> {
    let all = rooms.iter().flat_map(|room| room.files.iter().map(move |name| (room, *name)));
    let matching = all.filter_map(|(room, name)| Some(Home { room, name, place: place(name, file)? }));
    // `verbs/*` wins over `verbs`.
    matching.max_by_key(|home| home.name.len())
}

/// Returns the part of `file` that matches `name`.
fn place<'a>(name: &str, file: &'a str) -> Option<&'a str> {
    let (fixed, parts) = match name.strip_suffix("/*") {
        Some(fixed) => (fixed, fixed.split('/').count() + 1),
        None => (name, name.split('/').count()),
    };
    let end = file.match_indices('/').map(|(at, _)| at).chain([file.len()]).nth(parts - 1)?;
    let place = &file[..end];
    let is_match = if fixed == name { place == name } else { place.starts_with(&format!("{fixed}/")) };
    is_match.then_some(place)
}

fn may_use(from: &Home<'_>, to: &Home<'_>) -> bool {
    let is_same = std::ptr::eq(from.room, to.room) && (!from.name.ends_with("/*") || from.place == to.place);
    is_same || from.room.may_use.iter().any(|names| names.contains(&to.name))
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    #[test]
    fn every_name_that_a_room_may_use_is_a_room_below_it() {
        for rooms in [LIBRARY, PROGRAM] {
            for (at, room) in rooms.iter().enumerate() {
                let below: Vec<&str> = rooms[..at].iter().flat_map(|room| room.files).copied().collect();
                assert!(
                    room.may_use.iter().copied().flatten().all(|name| below.contains(name)),
                    "{:?}",
                    room.files
                );
            }
        }
    }

    #[test]
    fn an_arrow_up_and_a_file_without_a_room_are_violations() {
        let graph = graph(&[
            ("lib", "use crate::ask::Ask;"),
            ("error", "use crate::run::trace::Trace; pub struct Error;"),
            ("limits", "use crate::error::Error;"),
            ("run/trace", "use crate::error::Error; pub struct Trace;"),
            ("run", "mod trace;"),
            ("ask", "use crate::evidence::Bundle; use crate::record::Recorder; pub struct Ask;"),
            ("record", "pub struct Recorder;"),
            ("evidence", "use crate::record::Recorder; pub struct Bundle;"),
            ("why", "use crate::error::Error;"),
        ]);
        assert_eq!(
            violations(LIBRARY, &graph),
            [
                "why is in no room",
                "error -> run/trace (line 1: crate::run::trace::Trace)",
                "ask -> record (line 1: crate::record::Recorder)",
            ]
        );
    }

    #[test]
    fn a_verb_uses_no_other_verb() {
        let graph = graph(&[
            ("main", "use crate::verbs::run; fn f() { verbs::log::log() }"),
            ("verbs", "pub mod log; pub mod show; pub fn run() { log::log() }"),
            (
                "verbs/log",
                "use super::show::show; use super::run; mod lanes; pub fn log() { lanes::lanes() }",
            ),
            ("verbs/log/lanes", "use super::log; use crate::out::Out; pub fn lanes() {}"),
            ("verbs/show", "pub fn show() {}"),
            ("out", "pub struct Out;"),
        ]);
        assert_eq!(
            violations(PROGRAM, &graph),
            [
                "main -> verbs/log (line 1: verbs::log::log)",
                "verbs/log -> verbs (line 1: super::run)",
                "verbs/log -> verbs/show (line 1: super::show::show)",
            ]
        );
    }
}
