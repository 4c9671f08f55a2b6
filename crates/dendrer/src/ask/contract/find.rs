//! Which contracts the runs of a store are under, and what is in force at a tick of a run: its pack with what extensions
//! added to it on the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::pack::{Pack, extend};
use dendrer_object::{Digest, Pointer, RunName, Value};
use dendrer_store::RunSummary;

use super::compare::{ContractChange, compare};
use super::stage;
use super::terms::Marks;
use crate::error::Error;
use crate::pack::{Files, Source, read_with};
use crate::run::pack;
use crate::run::trace::{ReadHandle, Trace};

/// How many runs are taken from the store at a time.
const BATCH: usize = 1024;

/// A pack that runs are under at their tips.
#[derive(Debug)]
pub struct Listed {
    /// The pack.
    pub pack: Pack,
    /// The runs, in order of their beginning.
    pub runs: Vec<RunName>,
}

/// What the runs of a store are under.
#[derive(Debug, Default)]
pub struct Listing {
    /// The packs, by name, version and digest.
    pub packs: Vec<Listed>,
    /// The runs that are under none.
    pub without: u64,
    /// The runs whose pack cannot be read, with why.
    pub unreadable: Vec<(RunName, String)>,
}

impl Listing {
    /// The packs that a name and version stand for. More than one where two say different things under one name.
    pub fn named<'l>(&'l self, name: &'l str, version: &'l str) -> impl Iterator<Item = &'l Listed> {
        self.packs.iter().filter(move |listed| &*listed.pack.name == name && &*listed.pack.version == version)
    }
}

/// Lists the packs that the runs of a store are under at their tips. Reads the record each run begins with, and each
/// pack once. A run that cannot be read is told and passed over.
pub fn list(store: &impl ReadHandle) -> Result<Listing, Error> {
    let store = &store.to_handle();
    let mut found: BTreeMap<(Arc<str>, Arc<str>, Digest), Listed> = BTreeMap::new();
    let mut known: BTreeMap<Digest, (Arc<str>, Arc<str>)> = BTreeMap::new();
    let mut listing = Listing::default();
    let mut from = 0;
    loop {
        let batch: Vec<RunSummary> = store.runs(from, BATCH)?;
        let Some(last) = batch.last() else { break };
        from = last.begin + 1;
        for summary in batch {
            let read = Trace::open(store, &summary.name).and_then(|trace| {
                let digest = trace.begins().last().and_then(|begin| begin.header().pack);
                match digest.filter(|digest| known.contains_key(digest)) {
                    Some(digest) => Ok(Some((digest, None))),
                    None => Ok(pack::of_run(&trace)?.map(|pack| (pack.digest(), Some(pack)))),
                }
                .map(|read| (read, digest))
            });
            match read {
                Ok((Some((digest, pack)), _)) => {
                    let (name, version) = known.entry(digest).or_insert_with(|| {
                        let pack = pack.as_ref().expect("a pack that is not known was read");
                        (Arc::clone(&pack.name), Arc::clone(&pack.version))
                    });
                    let key = (Arc::clone(name), Arc::clone(version), digest);
                    match (found.get_mut(&key), pack) {
                        (Some(listed), _) => listed.runs.push(summary.name),
                        (None, Some(pack)) => {
                            drop(found.insert(key, Listed { pack, runs: vec![summary.name] }))
                        }
                        (None, None) => {}
                    }
                }
                Ok((None, Some(_))) => {
                    let why = "its pack was erased or withheld".to_owned();
                    listing.unreadable.push((summary.name, why));
                }
                Ok((None, None)) => listing.without += 1,
                Err(error) => listing.unreadable.push((summary.name, error.to_string())),
            }
        }
    }
    listing.packs = found.into_values().collect();
    Ok(listing)
}

/// A contract as it is in force for the transition with a tick.
#[derive(Debug)]
pub struct ContractInForce {
    /// The pack, with what extensions add to it.
    pub pack: Pack,
    /// The digest of the pack that the run carries, without them.
    pub digest: Digest,
    /// The extensions that are on record up to that tick: first what holds at it, in the order of the ledger, then what is
    /// to hold later, in that order.
    pub extensions: Vec<Added>,
    /// What of the pack came from which of them.
    pub marks: Marks,
}

/// An extension on record, as it stands at a tick.
#[derive(Debug, Clone)]
pub struct Added {
    /// What it is called.
    pub id: Arc<str>,
    /// What it is for.
    pub words: Option<Arc<str>>,
    /// The tick that put it on record.
    pub tick: u64,
    /// The first tick under it.
    pub from: u64,
    /// Whether it holds at the tick that was asked about.
    pub holds: bool,
    /// Who approved it.
    pub approved_by: Arc<str>,
    /// Whether they signed it with a key that the contract names.
    pub is_signed: bool,
    /// What it brings about.
    pub adds: Vec<ContractChange>,
}

/// A contract that was looked up.
#[derive(Debug)]
pub struct FoundContract {
    /// The pack, with what extensions add to it.
    pub terms: ContractInForce,
    /// The place at which it is in force; `None` for a contract by itself.
    pub place: Option<ContractPlace>,
    /// The text that people wrote, if it is that of this pack.
    pub text: Option<Arc<str>>,
}

/// The place at which a contract is in force.
#[derive(Debug, Clone)]
pub struct ContractPlace {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub tick: u64,
    /// The stage of the run; `None` if it cannot be read.
    pub stage: Option<u64>,
}

impl ContractInForce {
    /// Returns a pack without extensions.
    fn of(pack: Pack) -> ContractInForce {
        ContractInForce { digest: pack.digest(), pack, extensions: Vec::new(), marks: Marks::default() }
    }

    /// Returns name and version of the pack.
    pub fn title(&self) -> String {
        format!("{}/{}", self.pack.name, self.pack.version)
    }

    /// Lists the extensions that hold.
    pub fn holding(&self) -> impl Iterator<Item = &Added> {
        self.extensions.iter().filter(|added| added.holds)
    }
}

impl FoundContract {
    /// Returns the contract of a pack as it was written.
    pub fn of_source(source: Source) -> FoundContract {
        FoundContract { text: Some(source.text), terms: ContractInForce::of(source.pack), place: None }
    }

    /// Returns the contract of a pack without its text.
    pub fn of_pack(pack: Pack) -> FoundContract {
        FoundContract { text: None, terms: ContractInForce::of(pack), place: None }
    }

    /// Returns the contract in force at a tick of a run, or the pack alone that the run carries there; `None` if the run has
    /// no pack there.
    pub fn in_run(trace: &Trace, tick: u64, with_extensions: bool) -> Result<Option<FoundContract>, Error> {
        let terms = match with_extensions {
            true => in_force(trace, tick)?,
            false => carried(trace, tick)?.map(ContractInForce::of),
        };
        let Some(terms) = terms else { return Ok(None) };
        // The text is that of the pack at the tip.
        let text = pack::text_of_run(trace).filter(|(text, agrees)| {
            let read = || read_with(text.as_bytes(), Files::Of(terms.pack.value()));
            *agrees && read().is_ok_and(|source| source.pack.digest() == terms.digest)
        });
        let place = ContractPlace { run: trace.name().clone(), tick, stage: stage(trace) };
        Ok(Some(FoundContract { terms, place: Some(place), text: text.map(|(text, _)| text) }))
    }
}

/// Returns the pack that a run carries at a tick, without what extensions add; `None` where it has none, or where it was
/// erased or withheld.
pub fn carried(trace: &Trace, tick: u64) -> Result<Option<Pack>, Error> {
    pack::of_segment(trace, trace.segment(tick))
}

/// Returns what is in force for the transition with this tick, and what is on record up to it and in force later; `None`
/// where the run has no pack there, or where it was erased or withheld.
pub fn in_force(trace: &Trace, tick: u64) -> Result<Option<ContractInForce>, Error> {
    let Some(bound) = carried(trace, tick)? else { return Ok(None) };
    let (state, version) = (trace.state(tick)?, trace.rules_version(tick));
    let since = |one: &&Value| extend::governs_from(one).unwrap_or(u64::MAX);
    let mut listed: Vec<&Value> = extend::listed(bound.value(), &state).collect();
    listed.sort_by_key(|one| Some(since(one)).filter(|from| *from > tick));
    let (mut extensions, mut marks) = (Vec::new(), Marks::default());
    let (mut pack, mut later) = (pack::read_recorded(trace.name(), bound.value(), version)?, None);
    for one in listed {
        let before = later.as_ref().unwrap_or(&pack);
        let after = pack::read_recorded(trace.name(), &extend::with(before.value(), one), version)?;
        let text = |name: &str| one.get(name).and_then(Value::as_str).map(Arc::<str>::from);
        let made = one.get("tick").and_then(Value::as_u64).unwrap_or(0);
        let approval = Pointer::of(["approval"]);
        let added = Added {
            id: text("id").unwrap_or_default(),
            words: text("words"),
            tick: made,
            from: since(&one),
            holds: since(&one) <= tick,
            approved_by: text("approved_by").unwrap_or_default(),
            is_signed: trace.record(made)?.body().fields().iter().any(|field| field.pointer == approval),
            adds: compare(before, &after),
        };
        if added.holds {
            marks.note(&added.id, before, &after);
            pack = after;
        } else {
            later = Some(after);
        }
        extensions.push(added);
    }
    Ok(Some(ContractInForce { pack, digest: bound.digest(), extensions, marks }))
}
