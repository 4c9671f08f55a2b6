//! Contracts that are named on the command line.

use dendrer::address::Address;
use dendrer::contract::find::{FoundContract, list};
use dendrer_object::text::nearest;
use dendrer_object::{Code, RunName};
use dendrer_view::problem;

use crate::context::packs::is_file;
use crate::context::{self, packs};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// Finds the contract that an address means: a pack file, NAME/VERSION, or that of a run, with or without its extensions.
pub(super) fn resolve(
    global: &Global,
    address: &str,
    with_extensions: bool,
    out: &mut Out,
) -> Result<FoundContract> {
    if is_file(address) {
        return Ok(FoundContract::of_source(packs::load(address)?));
    }
    match address.rsplit_once('/') {
        // The name of a run has no slash; that of a bundle or of a pack file may.
        Some((name, version)) if !address.contains(".dnd") => named(global, address, name, version, out),
        _ => in_run(global, address, with_extensions, out),
    }
}

fn named(global: &Global, address: &str, name: &str, version: &str, out: &mut Out) -> Result<FoundContract> {
    let store = context::read_store(global)?;
    let listing = list(&store)?;
    let mut found = listing.named(name, version);
    let (first, second) = (found.next(), found.next());
    let runs = |runs: &[RunName]| runs.iter().take(3).map(RunName::as_str).collect::<Vec<_>>().join(", ");
    match (first, second) {
        (Some(one), None) => {
            let run = one.runs.last().expect("a listed pack has a run").clone();
            drop(store);
            // The run that carries the contract, and what was added to it there, say nothing of the contract.
            Ok(FoundContract { place: None, ..in_run(global, run.as_str(), false, out)? })
        }
        (Some(_), Some(_)) => {
            let mut failure = Failure::new(Code::E0432, format!("{address} stands for several packs"));
            for one in listing.named(name, version).take(5) {
                failure = failure.at(&one.pack.digest().short(), format!("runs {}", runs(&one.runs)));
            }
            Err(failure.help(&["dendrer", "contract", "list"]))
        }
        (None, _) => {
            let titles: Vec<String> =
                listing.packs.iter().map(|one| format!("{}/{}", one.pack.name, one.pack.version)).collect();
            let failure = Failure::new(
                Code::E0431,
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

fn in_run(global: &Global, address: &str, with_extensions: bool, out: &mut Out) -> Result<FoundContract> {
    let rev = Address::parse(address)?;
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    FoundContract::in_run(&trace, tick, with_extensions)?.ok_or_else(|| {
        let failure = Failure::new(Code::E0909, format!("{} has no pack at tick {tick}", trace.name()));
        problem::no_pack(failure, trace.name().as_str())
    })
}
