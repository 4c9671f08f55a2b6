//! Which contracts the runs of a store are under, and the one that a name means.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::pack::Pack;
use dendrer_object::{Digest, RunName};
use dendrer_store::{RunSummary, Store};

use crate::error::Error;
use crate::pack;
use crate::trace::Trace;

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
pub fn list(store: &dyn Store) -> Result<Listing, Error> {
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

/// Returns the pack in force at a tick of a run; `None` where it has none, or where it was erased or withheld.
pub fn in_force(trace: &Trace<'_>, tick: u64) -> Result<Option<Pack>, Error> {
    pack::of_segment(trace, trace.segment(tick))
}
