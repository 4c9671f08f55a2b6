//! `dendrer contract list`, `show` and `diff`: contracts by themselves.

use std::sync::Arc;

use dendrer::contract::compare::{Ranked, compare};
use dendrer::contract::find::{Added, InForce, Listing, carried, in_force, list as list_all};
use dendrer::contract::terms::{Marks, terms};
use dendrer::kernel::pack::Pack;
use dendrer::pack::{Files, read_with};
use dendrer::run::pack::text_of_run;
use dendrer_object::text::nearest;
use dendrer_object::{Digest, RunName, TypeName, Value};
use dendrer_view::contract::{
    change_json, change_line, extension_json, extension_lines, lines, listing_json, terms_json,
};
use dendrer_view::table::{Align, Table};
use dendrer_view::{count, document, problem, quote};

use super::args::ContractDiff;
use super::args::ContractShow;
use crate::address::Rev;
use crate::context;
use crate::context::packs;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::CUT;
use crate::out::Out;
use crate::out::Style;

/// A contract, and where it was found.
pub(super) struct Resolved {
    /// The pack; of a run, with what extensions add to it.
    pub(super) pack: Pack,
    /// The digest of the pack by itself.
    pub(super) digest: Digest,
    /// The extensions of the run, those to come among them.
    extensions: Vec<Added>,
    marks: Marks,
    /// Name and version.
    pub(super) title: String,
    /// The run and the tick at which it is in force, and the stage it was recorded at.
    pub(super) at: Option<(RunName, u64, Option<u64>)>,
    /// The text it was written in, where it says the same.
    pub(super) text: Option<Arc<str>>,
}

impl Resolved {
    fn new(pack: Pack) -> Resolved {
        let digest = pack.digest();
        Resolved::extended(InForce { pack, digest, extensions: Vec::new(), marks: Marks::default() })
    }

    fn extended(found: InForce) -> Resolved {
        let InForce { pack, digest, extensions, marks } = found;
        let title = format!("{}/{}", pack.name, pack.version);
        Resolved { pack, digest, extensions, marks, title, at: None, text: None }
    }

    /// The extensions that hold.
    fn holding(&self) -> impl Iterator<Item = &Added> {
        self.extensions.iter().filter(|added| added.holds)
    }
}

/// What of a run an address means.
#[derive(Clone, Copy, PartialEq)]
enum Meant {
    /// What is in force there: the pack with what extensions add to it.
    InForce,
    /// The pack by itself.
    Pack,
}

/// Whether an address means a pack in a file.
pub(super) fn is_file(address: &str) -> bool {
    std::path::Path::new(address).is_file() && !address.ends_with(".dnd")
}

/// Finds the contract that an address means: a pack file, NAME/VERSION, or the one in force in a run.
pub(super) fn resolve(global: &Global, address: &str, out: &mut Out) -> Result<Resolved> {
    find(global, address, Meant::InForce, out)
}

/// Finds the pack that an address means, as somebody wrote it: of a run, without its extensions.
pub(super) fn resolve_pack(global: &Global, address: &str, out: &mut Out) -> Result<Resolved> {
    find(global, address, Meant::Pack, out)
}

fn find(global: &Global, address: &str, meant: Meant, out: &mut Out) -> Result<Resolved> {
    if is_file(address) {
        let source = packs::load(address)?;
        let text = Some(Arc::clone(&source.text));
        return Ok(Resolved { text, ..Resolved::new(source.pack) });
    }
    match address.rsplit_once('/') {
        // The name of a run has no slash; that of a bundle or of a pack file may.
        Some((name, version)) if !address.contains(".dnd") => named(global, address, name, version, out),
        _ => in_run(global, address, meant, out),
    }
}

fn named(global: &Global, address: &str, name: &str, version: &str, out: &mut Out) -> Result<Resolved> {
    let store = context::read_store(global)?;
    let listing = list_all(&store)?;
    let mut found = listing.named(name, version);
    let (first, second) = (found.next(), found.next());
    let runs = |runs: &[RunName]| runs.iter().take(3).map(RunName::as_str).collect::<Vec<_>>().join(", ");
    match (first, second) {
        (Some(one), None) => {
            let run = one.runs.last().expect("a listed pack has a run").clone();
            drop(store);
            // Which run carries it, and what was added to it there, says nothing of the contract.
            Ok(Resolved { at: None, ..in_run(global, run.as_str(), Meant::Pack, out)? })
        }
        (Some(_), Some(_)) => {
            let mut failure = Failure::new("E0432", format!("{address} stands for several packs"));
            for one in listing.named(name, version).take(5) {
                failure = failure.at(&one.pack.digest().short(), format!("runs {}", runs(&one.runs)));
            }
            Err(failure.help(&["dendrer", "contract", "list"]))
        }
        (None, _) => {
            let titles: Vec<String> =
                listing.packs.iter().map(|one| format!("{}/{}", one.pack.name, one.pack.version)).collect();
            let failure = Failure::new(
                "E0431",
                format!("no run is under a contract {address}, and no file has that name"),
            );
            let failure = match nearest(address, titles.iter().map(String::as_str)) {
                Some(near) => failure.note(format!("did you mean {near}?")),
                None => failure,
            };
            Err(failure.help(&["dendrer", "contract", "list"]))
        }
    }
}

fn in_run(global: &Global, address: &str, meant: Meant, out: &mut Out) -> Result<Resolved> {
    let rev = Rev::parse(address)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let found = match meant {
        Meant::Pack => carried(&trace, tick)?.map(Resolved::new),
        Meant::InForce => in_force(&trace, tick)?.map(Resolved::extended),
    };
    let Some(found) = found else {
        let failure = Failure::new("E0909", format!("{} has no pack at tick {tick}", trace.name()));
        return Err(problem::no_pack(failure, trace.name().as_str()));
    };
    let stage = trace.start().body().value("/stage").and_then(|stage| stage.as_u64());
    // The text is that of the pack at the tip.
    let text = text_of_run(&trace).filter(|(text, agrees)| {
        *agrees
            && read_with(text.as_bytes(), Files::Of(found.pack.value()))
                .is_ok_and(|source| source.pack.digest() == found.digest)
    });
    let at = Some((trace.name().clone(), tick, stage));
    Ok(Resolved { at, text: text.map(|(text, _)| text), ..found })
}

pub(super) fn list(global: &Global, out: &mut Out) -> Result {
    let store = context::read_store(global)?;
    let listing = list_all(&store)?;
    if !out.is_text() {
        out.document(&listing_json(&listing))?;
        return Ok(0);
    }
    list_text(&listing, out)
}

fn list_text(listing: &Listing, out: &mut Out) -> Result {
    let columns = [("contract", Align::Left), ("runs", Align::Right), ("types", Align::Right)];
    let more = [("violations", Align::Right), ("digest", Align::Left), ("newest run", Align::Left)];
    let mut table = Table::new(
        columns.into_iter().chain(more).collect::<Vec<_>>().try_into().unwrap_or([("", Align::Left); 6]),
    );
    for listed in &listing.packs {
        let pack = &listed.pack;
        table.row(vec![
            format!("{}/{}", pack.name, pack.version),
            listed.runs.len().to_string(),
            pack.contracts.types.len().to_string(),
            pack.predicates.len().to_string(),
            pack.digest().short(),
            listed.runs.last().map(RunName::to_string).unwrap_or_default(),
        ]);
    }
    let (lines, cut) = table.lines(out.width());
    for line in lines {
        out.line(line)?;
    }
    for (index, listed) in listing.packs.iter().enumerate() {
        let title = |pack: &Pack| (Arc::clone(&pack.name), Arc::clone(&pack.version));
        let before = index.checked_sub(1).and_then(|before| listing.packs.get(before));
        if before.is_some_and(|before| title(&before.pack) == title(&listed.pack)) {
            let warn = out.paint(Style::Warn, "WARN");
            out.line(format!(
                "{warn}  {}/{} stands for packs that say different things; a run says which it means",
                listed.pack.name, listed.pack.version
            ))?;
        }
    }
    for (run, why) in &listing.unreadable {
        let warn = out.paint(Style::Warn, "WARN");
        out.line(format!("{warn}  {run}: {}", quote::escape(why)))?;
    }
    out.line(format!(
        "{}, {} without one",
        count(listing.packs.len() as u64, "contract", "contracts"),
        count(listing.without, "run", "runs")
    ))?;
    if cut {
        out.say(CUT);
    }
    Ok(0)
}

pub(super) fn show(global: &Global, args: &ContractShow, out: &mut Out) -> Result {
    let found = resolve(global, &args.contract, out)?;
    let only = args.type_name.as_deref().map(str::parse::<TypeName>).transpose();
    let only = only.map_err(|error| Failure::new("E0210", error.to_string()))?;
    let terms = terms(&found.pack, &found.marks);
    if let Some(only) = &only
        && !terms.types.iter().any(|one| one.name == *only)
    {
        let failure = Failure::new("E0415", format!("{} says nothing of {only} by name", found.title));
        let failure = failure.help(&["dendrer", "contract", "show", &args.contract]);
        let near = nearest(only.as_str(), terms.types.iter().map(|one| one.name.as_str()));
        return Err(near.map_or(failure.clone(), |near| failure.note(format!("did you mean {near}?"))));
    }
    let at = found.at.as_ref();
    if !out.is_text() {
        let mut members = terms_json(&terms, only.as_ref());
        members.push(("digest", Value::from(found.digest)));
        members.push(("extensions", Value::array(found.extensions.iter().map(extension_json))));
        members.push(("run", Value::from(at.map(|(run, ..)| Value::from(run.as_str())))));
        members.push(("tick", Value::from(at.map(|(_, tick, _)| *tick))));
        members.push(("stage", Value::from(at.and_then(|(.., stage)| *stage))));
        out.document(&document("contract", members))?;
        return Ok(0);
    }
    let title = out.paint(Style::Strong, &found.title);
    let words = found.pack.words.as_deref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let words = words.map(|words| format!("   {}", quote::escape(&words))).unwrap_or_default();
    out.line(format!("{title}{words}"))?;
    out.line(format!("digest    {}", found.digest))?;
    let by = match found.pack.module() {
        Some(module) => format!("module {}", module.short()),
        None => count(found.pack.rules() as u64, "rule", "rules"),
    };
    out.line(format!("reducer   {}, {by}", found.pack.engine.as_str()))?;
    out.line(match at {
        Some((run, tick, Some(stage))) if *stage >= 2 => {
            format!("enforced  in {run} at tick {tick}, recorded at stage {stage}: what follows was asked before each commit")
        }
        Some((run, tick, Some(stage))) => {
            format!("enforced  not in {run} (tick {tick}), recorded at stage {stage}: contracts are enforced from stage 2 on")
        }
        Some((run, tick, None)) => format!("enforced  not known of {run} (tick {tick}): its stage cannot be read"),
        None => "enforced  from stage 2 on: what a type needs is looked at in the state before each commit".to_owned(),
    })?;
    let extensions = found.extensions.iter().flat_map(extension_lines);
    for line in extensions.chain(lines(&terms, only.as_ref())) {
        out.line(line)?;
    }
    Ok(0)
}

pub(super) fn diff(global: &Global, args: &ContractDiff, out: &mut Out) -> Result {
    let (old, new) = (resolve(global, &args.a, out)?, resolve(global, &args.b, out)?);
    let changes = compare(&old.pack, &new.pack);
    let ranked = |wanted: Ranked| changes.iter().filter(|change| change.ranked == wanted).count() as u64;
    let (stricter, looser, other) = (ranked(Ranked::Stricter), ranked(Ranked::Looser), ranked(Ranked::Other));
    let code = u8::from(args.exit_code && !changes.is_empty());
    if !out.is_text() {
        let side = |found: &Resolved| {
            Value::record([
                ("name", Value::from(&*found.pack.name)),
                ("version", Value::from(&*found.pack.version)),
                ("digest", Value::from(found.digest)),
                ("extensions", Value::array(found.holding().map(|added| Value::from(&*added.id)))),
            ])
        };
        out.document(&document(
            "contract-diff",
            [
                ("a", side(&old)),
                ("b", side(&new)),
                ("stricter", Value::from(stricter)),
                ("looser", Value::from(looser)),
                ("other", Value::from(other)),
                ("items", Value::array(changes.iter().map(change_json))),
            ],
        ))?;
        return Ok(code);
    }
    let digest = |found: &Resolved| {
        let added = found.holding().map(|added| format!(" + extension {}", quote::escape(&added.id)));
        format!("{} ({}){}", found.title, found.digest.short(), added.collect::<String>())
    };
    out.line(format!("{} -> {}", digest(&old), digest(&new)))?;
    for change in &changes {
        let line = change_line(change);
        let (word, rest) = line.split_at(8);
        let style = match change.ranked {
            Ranked::Stricter => Style::Good,
            Ranked::Looser => Style::Warn,
            Ranked::Other => Style::Strong,
        };
        let word = out.paint(style, word);
        out.line(format!("{word}{rest}"))?;
    }
    out.line(format!("{stricter} stricter, {looser} looser, {other} that cannot be ranked"))?;
    match changes.is_empty() {
        true => out.say("note: words and tests are not compared"),
        false => out.say("note: the second is ranked against the first; words and tests are not compared"),
    }
    Ok(code)
}
