//! Runs of a bundle in a store of another: foreign runs, named `STORE/RUN` (design, section 2).
//!
//! Each record is sealed again as a record of this store, with the same content and the same commitments: a value that the bundle
//! withholds is withheld here. The record with which a foreign run begins has one member more, `inputs.foreign`: the store, key, size
//! and root of the log that it is of, the digest of the bundle, and the last tick of each of its runs. The records that a bundle lacks, and the
//! places that it withholds although others may have a value of them, are there as well, so that answers go on to say it. A fork in the bundle is a fork
//! here. Nothing is added to a foreign run but what a later bundle of the same store has of it; a fork of it is a run like any other.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::record::{Body, Header, Kind, Link, Part, Record, Salt, cut};
use dendrer_object::{Digest, Object, Pointer, RunName, StoreId, Value, json};
use dendrer_store::prelude::*;

use crate::address::OF_STORE;
use crate::environment::Environment;
use crate::error::{Error, ForeignError};
use crate::evidence::bundle::Opened;
use crate::evidence::verify::judge::another_log;
use crate::evidence::verify::{self, VerifyReport, VerifyTerms, VerifyVerdict};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::lost::{Lost, MissingRecords};
use crate::run::trace::{Trace, all_runs};
use crate::run::unfinished::{self, ALTHOUGH, FOREIGN, INPUTS, PARTIAL, TICKS};

/// How many records are appended together.
const GROUP: usize = 256;

/// The type of the marker of a fork, and its member about the fork.
const FORK: (&str, &str) = ("run.fork", "fork");

/// How many digits of a store's id name it, if no name is given.
const DIGITS: usize = 8;

/// A run that was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRun {
    /// Its name here.
    pub run: RunName,
    /// Its name in its own store.
    pub of: RunName,
    /// The last tick.
    pub ticks: u64,
    /// Whether a part of it was here before.
    pub was_here: bool,
    /// The number of ticks of its own that were not here before.
    pub added: u64,
    /// The id of its newest record here.
    pub tip: Digest,
    /// The records that the bundle lacks of it.
    pub lost: Option<Lost>,
}

/// The runs of a bundle that were taken in.
#[derive(Debug, Clone)]
pub struct ForeignRuns {
    /// The store that the bundle is of.
    pub store: StoreId,
    /// The runs, in the order of the bundle's log.
    pub runs: Vec<ForeignRun>,
    /// The verdict on the bundle.
    pub verified: VerifyVerdict,
    /// The number of links to records that the bundle has not.
    pub links_left_out: u64,
    /// The number of records that are of no run: labels, findings and registrations of the store.
    pub left: u64,
}

impl Repo {
    /// Verifies a bundle, replays it once, and records its runs as foreign runs. `name` names the store in theirs; without one, the first
    /// digits of its id do. `sha256` is the digest of the file. With `dry`, nothing is written.
    ///
    /// # Errors
    ///
    /// The code of the first finding if the bundle is not what was signed; E0111 if a run of the name is no part of this one; E0601 for a
    /// bundle of this store itself.
    pub fn take_in(
        &self,
        opened: &Opened,
        name: Option<&str>,
        sha256: Digest,
        dry: bool,
    ) -> Result<ForeignRuns, Error> {
        let (trust, id) = (self.trust(), opened.bundle.store);
        let head = trust.head(id).ok().flatten().map(|head| (head.size, head.root));
        if let Some((code, what)) = another_log(opened, trust.own_key(id).ok().flatten(), head) {
            return Err(ForeignError::Unsound { code, what, run: None, tick: None }.into());
        }
        let report = sound(opened)?;
        let mut store = self.writer()?.clone();
        if opened.bundle.store == store.info().id {
            return Err(ForeignError::Own(opened.bundle.store).into());
        }
        let name = match (name, name_of(&store, opened.bundle.store)?) {
            (Some(name), Some(known)) if *name != known => {
                return Err(ForeignError::Known { store: opened.bundle.store, name: known }.into());
            }
            (_, Some(known)) => known,
            (Some(name), None) => name.to_owned(),
            (None, None) => opened.bundle.store.to_string()[..DIGITS].to_owned(),
        };
        let mut taking = Taking {
            here: store.info().id,
            opened,
            sha256,
            name,
            surroundings: self.environment(),
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
            links_left_out: 0,
        };
        let (mut group, mut left) = (Vec::new(), 0);
        for (position, entry) in opened.bundle.positions() {
            let Some(record) = opened.store.get(position)? else { continue };
            let is_of_casebook = entry.run.as_ref().is_some_and(|run| taking.is_of_casebook(run));
            let Some(run) = entry.run.as_ref().filter(|_| !is_of_casebook) else {
                left += u64::from(!matches!(record.header().kind, Kind::Key | Kind::Map));
                continue;
            };
            group.extend(taking.take(&store, run, &record)?);
            if group.len() >= GROUP && !dry {
                store.append(&std::mem::take(&mut group))?;
            }
        }
        if !dry {
            store.commit(&group)?;
        }
        let Taking { names, links_left_out, .. } = taking;
        let mut runs: Vec<ForeignRun> = names.into_values().map(|taken| taken.run).collect();
        runs.sort_by(|a, b| a.run.cmp(&b.run));
        Ok(ForeignRuns { store: opened.bundle.store, runs, verified: report.verdict, links_left_out, left })
    }
}

/// The name under which runs of a store are here already. A store has one, so that an erasure of a value has one place.
fn name_of(here: &(impl Store + Clone + 'static), store: StoreId) -> Result<Option<String>, Error> {
    for run in all_runs(here)? {
        let Some((name, _)) = run.name.as_str().split_once(OF_STORE) else { continue };
        let Some(begin) = here.get(run.begin)? else { continue };
        let of = unfinished::foreign(&begin).and_then(|of| of.get("store")?.as_str().map(str::to_owned));
        if of == Some(store.to_string()) {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// Verifies and replays a bundle. A value that is withheld is no fault of it.
fn sound(opened: &Opened) -> Result<VerifyReport, Error> {
    let report = verify::bundle(opened, &VerifyTerms { replay: true, ..VerifyTerms::default() })?;
    let unmade = report.runs.iter().find_map(|run| run.replay.as_ref()?.as_ref().err());
    if let Some(error) = unmade.filter(|_| report.verdict == VerifyVerdict::Diverged) {
        return Err(error.clone().into());
    }
    match report.findings.first() {
        Some(finding) => Err(Error::Foreign(ForeignError::Unsound {
            code: finding.refusal(),
            what: finding.message.clone(),
            run: finding.run.clone(),
            tick: finding.tick,
        })),
        None => Ok(report),
    }
}

struct Taken {
    run: ForeignRun,
    /// The records that are here already; `None` for a run that begins.
    there: Option<Trace>,
}

/// Records of a bundle on their way.
struct Taking<'o> {
    here: StoreId,
    opened: &'o Opened,
    sha256: Digest,
    name: String,
    surroundings: Box<dyn Environment>,
    /// The ids of records here, by their ids there.
    ids: BTreeMap<Digest, Digest>,
    /// The runs, by their names there.
    names: BTreeMap<RunName, Taken>,
    links_left_out: u64,
}

impl Taking<'_> {
    fn is_of_casebook(&self, run: &RunName) -> bool {
        casebook_name::is_of(&self.opened.store, run).unwrap_or(false)
    }

    /// Seals a record of a run as one of this store; `None` if it is here already.
    fn take(
        &mut self,
        store: &(impl Store + Clone + 'static),
        run: &RunName,
        record: &Record,
    ) -> Result<Option<Record>, Error> {
        if !self.names.contains_key(run) {
            let taken = self.begin(store, run)?;
            self.names.insert(run.clone(), taken);
        }
        let is_chain = matches!(record.header().kind, Kind::Transition | Kind::Run);
        let tick = match record.header().kind {
            Kind::Run => Some(0),
            _ => record.header().tick,
        };
        let body = self.body(run, record)?;
        if let Some(known) = self.names[run].known(record, &body)? {
            self.ids.insert(record.id(), known);
            return Ok(None);
        }
        let made = self.seal(run, record, body)?;
        let taken = &self.names[run];
        // A refusal follows the record that it was judged against, and here others follow that.
        if let (Some(_), Some(head)) = (&taken.there, made.header().head)
            && head != taken.run.tip
        {
            return Err(ForeignError::Late { run: taken.run.run.clone(), kind: made.header().kind }.into());
        }
        self.ids.insert(record.id(), made.id());
        let taken = self.names.get_mut(run).expect("begun above");
        if is_chain {
            taken.run.tip = made.id();
            taken.run.ticks = tick.unwrap_or(0).max(taken.run.ticks);
            taken.run.added += u64::from(record.header().kind == Kind::Transition);
        }
        Ok(Some(made))
    }

    fn begin(&self, store: &(impl Store + Clone + 'static), run: &RunName) -> Result<Taken, Error> {
        // A run that was foreign there has one mark all the same.
        let name = format!("{}/{}", self.name, run.as_str().replace(OF_STORE, "."));
        let name: RunName = name.parse().map_err(ForeignError::Name)?;
        let lost = verify::opening(self.opened).partial.get(run).copied();
        let made = ForeignRun {
            run: name.clone(),
            of: run.clone(),
            ticks: 0,
            was_here: false,
            added: 0,
            tip: Digest([0; 32]),
            lost,
        };
        if store.run(&name)?.is_none() {
            if let Some(lost) = lost.filter(|_| self.is_root_here(run)) {
                return Err(ForeignError::Partial { run: name, why: lost.words() }.into());
            }
            return Ok(Taken { run: made, there: None });
        }
        let there = Trace::open(&Arc::new(store.clone()), &name)?;
        let of = unfinished::foreign(there.start());
        let of = |name: &str| of.as_ref().and_then(|of| of.get(name)?.as_str().map(str::to_owned));
        let is_first = there.begins().len() == 1;
        if of("store") != Some(self.opened.bundle.store.to_string())
            || is_first && of("run").as_deref() != Some(run.as_str())
        {
            return Err(ForeignError::Exists(name).into());
        }
        if let Some(lost) = lost
            && self.adds(run, &there)?
        {
            return Err(ForeignError::Partial { run: name, why: lost.words() }.into());
        }
        let (ticks, tip) = (there.tip(), there.summary().head.id);
        Ok(Taken { run: ForeignRun { ticks, tip, was_here: true, ..made }, there: Some(there) })
    }

    /// Whether the run that a fork began in is here from another bundle: what this one lacks has no place on record then.
    fn is_root_here(&self, run: &RunName) -> bool {
        let root = Trace::open(&self.opened.store, run).ok().map(|trace| trace.lineage()[0].0.clone());
        root.and_then(|root| self.names.get(&root)).is_some_and(|root| root.there.is_some())
    }

    /// Whether the bundle has more records of a run than are here.
    fn adds(&self, run: &RunName, there: &Trace) -> Result<bool, Error> {
        let Some(summary) = self.opened.store.run(run)? else { return Ok(false) };
        let counts = |of: MissingRecords| [of.transitions, of.refusals, of.ends, of.erasures];
        let known = counts(MissingRecords::here(&**there.store(), there.summary())?);
        let own = counts(MissingRecords::here(&*self.opened.store, &summary)?);
        Ok(own.into_iter().zip(known).any(|(own, known)| own > known))
    }

    fn seal(&mut self, run: &RunName, record: &Record, body: Body) -> Result<Record, Error> {
        let header = record.header();
        let missing = |parent: Digest| Error::MissingPrefix { run: run.clone(), parent };
        let id = |id: Digest| self.ids.get(&id).copied().ok_or_else(|| missing(id));
        let (prev, head) = (header.prev.map(id).transpose()?, header.head.map(id).transpose()?);
        let known = |link: &Link| Some(Link { hash: *self.ids.get(&link.hash)?, ..*link });
        let mut links: Vec<Link> = header.links.iter().filter_map(known).collect();
        links.sort();
        self.links_left_out += (header.links.len() - links.len()) as u64;
        let name = self.names[run].run.run.clone();
        let header = Header { store: self.here, run: Some(name), prev, head, links, ..header.clone() };
        Ok(Record::seal(header, body)?)
    }

    /// The content of a record here. A fork names its parent, which has another name here.
    fn body(&mut self, run: &RunName, record: &Record) -> Result<Body, Error> {
        let header = record.header();
        let is_marker = header.type_name.as_ref().is_some_and(|name| name.as_str() == FORK.0);
        match (header.kind, header.prev) {
            (Kind::Run, None) => self.begin_body(run, record),
            (Kind::Run, Some(_)) => {
                let store = Value::from(self.here.to_string());
                Ok(self.with_parent(record, ["parent", "run"], Some(("store", store)))?)
            }
            _ if is_marker => self.with_parent(record, [FORK.1, "parent_run_id"], None),
            _ => Ok(record.body().clone()),
        }
    }

    /// The content of a record that names a run in a member of a member. One with a withheld value stays as it is.
    fn with_parent(
        &self,
        record: &Record,
        [outer, inner]: [&str; 2],
        more: Option<(&str, Value)>,
    ) -> Result<Body, Error> {
        let body = record.body();
        let is_open = body.fields().iter().all(|field| body.text(field).is_some());
        let (Value::Object(mut content), Some(seed), true) = (record.content(), body.seed(), is_open) else {
            return Ok(body.clone());
        };
        let mut about = content.get(outer).and_then(Value::as_object).cloned().unwrap_or_default();
        let named = about.get(inner).and_then(|name| name.as_str()?.parse::<RunName>().ok());
        if let Some(taken) = named.and_then(|named| self.names.get(&named)) {
            about.set(inner, Value::from(taken.run.run.as_str()));
            more.into_iter().for_each(|(name, value)| about.set(name, value));
            content.set(outer, Value::Object(about));
        }
        Ok(Body::commit(cut(&content), seed)?)
    }

    /// The content with which a foreign run begins. It is sealed anew, unless a value of it is withheld.
    fn begin_body(&mut self, run: &RunName, record: &Record) -> Result<Body, Error> {
        let about = self.about(run)?;
        let is_open = |field| record.body().text(field).is_some();
        if !record.body().fields().iter().all(is_open) {
            return with_field(record.body(), FOREIGN, &about);
        }
        let Value::Object(mut content) = record.content() else { return Ok(record.body().clone()) };
        let mut inputs = content.get(INPUTS).and_then(Value::as_object).cloned().unwrap_or_default();
        inputs.set(FOREIGN, about);
        content.set(INPUTS, Value::Object(inputs));
        Ok(Body::commit(cut(&content), self.surroundings.seed())?)
    }

    /// The place that a foreign run is from.
    fn about(&self, run: &RunName) -> Result<Value, Error> {
        let bundle = &self.opened.bundle;
        let trace = Trace::open(&self.opened.store, run)?;
        let mut ticks = Object::default();
        for (_, entry) in bundle.positions().filter(|(_, entry)| entry.kind == Kind::Run) {
            if let Some(run) = &entry.run {
                ticks.set(run.as_str(), Value::from(Trace::open(&self.opened.store, run)?.tip()));
            }
        }
        let mut partial = Object::default();
        for (of, lost) in &verify::opening(self.opened).partial {
            if let Some(summary) = self.opened.store.run(of)? {
                partial.set(of.as_str(), lost.to_value(&*self.opened.store, &summary)?);
            }
        }
        let although = Value::array(bundle.although.iter().map(|place| Value::from(place.as_str())));
        let members = [
            (ALTHOUGH, (!bundle.although.is_empty()).then_some(although)),
            ("bundle", Some(Value::from(self.sha256))),
            ("key", Some(Value::from(bundle.key.as_str()))),
            (PARTIAL, (!partial.is_empty()).then_some(Value::Object(partial))),
            ("root", self.opened.root.map(Value::from)),
            ("run", Some(Value::from(run.as_str()))),
            ("size", Some(Value::from(bundle.size))),
            ("store", Some(Value::from(bundle.store.to_string()))),
            (TICKS, Some(Value::Object(ticks))),
            ("tip", Some(Value::from(trace.summary().head.id))),
        ];
        Ok(Value::record(members.into_iter().filter_map(|(name, value)| Some((name, value?)))))
    }
}

impl Taken {
    /// Returns the record here that a record there is; `None` if it is not here yet.
    ///
    /// # Errors
    ///
    /// E0304 if another record has its place.
    fn known(&self, record: &Record, body: &Body) -> Result<Option<Digest>, Error> {
        let Some(there) = &self.there else { return Ok(None) };
        let found = match (record.header().kind, record.header().tick) {
            (Kind::Run, _) => return Ok(there.begins().last().map(Record::id)),
            (Kind::Transition, Some(tick)) if tick <= there.tip() => there.record(tick)?,
            (Kind::Transition, _) => return Ok(None),
            // A record off the chain is known by its content.
            _ => return self.beside(record),
        };
        if !is_same_content(found.body(), body) {
            let tick = record.header().tick.unwrap_or(0);
            return Err(ForeignError::Differs { run: self.run.run.clone(), tick }.into());
        }
        Ok(Some(found.id()))
    }

    /// Returns the record off the chain with the same commitments.
    fn beside(&self, record: &Record) -> Result<Option<Digest>, Error> {
        let Some(there) = &self.there else { return Ok(None) };
        let mut from = 0;
        loop {
            let batch = there.store().beside(&self.run.run, from, GROUP)?;
            let Some((last, _)) = batch.last() else { return Ok(None) };
            from = last + 1;
            for (position, _) in &batch {
                let Some(found) = there.store().get(*position)? else { continue };
                if found.header().kind == record.header().kind && is_same_content(found.body(), record.body())
                {
                    return Ok(Some(found.id()));
                }
            }
        }
    }
}

/// Whether two contents have the same commitments, whatever is withheld of them.
fn is_same_content(one: &Body, other: &Body) -> bool {
    let digests = |body: &Body| -> Vec<Digest> { body.fields().iter().map(|field| field.digest).collect() };
    digests(one) == digests(other)
}

/// A body with one field more, sealed by a salt of its own: the digest of its value, since that is no secret.
fn with_field(body: &Body, name: &str, value: &Value) -> Result<Body, Error> {
    let pointer = Pointer::of([name]);
    let mut text = Vec::new();
    json::write(value, &mut text);
    let salt = Salt(value.digest().0[..16].try_into().expect("16 of 32 bytes"));
    let mut parts: Vec<(Pointer, Part<'_>)> = Vec::new();
    for (index, field) in body.fields().iter().enumerate() {
        let part = match body.text(field) {
            Some(text) => Part::Open(text, body.salt(index)),
            None => Part::Closed(field.digest),
        };
        parts.push((field.pointer.clone(), part));
    }
    parts.push((pointer, Part::Open(&text, Some(salt))));
    parts.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Body::of_parts(parts, None)?)
}
