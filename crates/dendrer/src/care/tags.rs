//! Groups that a writer without the secret of the log appended: listed, adopted, or set aside.
//!
//! Rule: what is adopted is exactly what was listed; what is appended meanwhile is not. Test
//! `what_is_adopted_is_what_was_listed`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use dendrer_object::record::Kind;
use dendrer_object::{Record, Value};
use dendrer_store::embedded::Options;
use dendrer_store::prelude::*;
use dendrer_store::{SetAside, StoreError, TreeHead};

use crate::environment::seal_by_institution;
use crate::error::Error;
use crate::evidence::verify::facts::ADOPTED;
use crate::repo::{Repo, Signed, open_with_keys};

/// The records of groups without a tag.
#[derive(Debug, Clone, Default)]
pub struct Untagged {
    /// The position of the first; the size of the log without one.
    pub from: u64,
    /// The size of the log with the last.
    pub to: u64,
    /// How many groups they are in.
    pub groups: usize,
    /// How many there are.
    pub records: u64,
    /// How many of each run there are, and by whom. Records of no run have an empty name.
    pub runs: BTreeMap<String, UntaggedRun>,
}

/// The records of one run.
#[derive(Debug, Clone, Default)]
pub struct UntaggedRun {
    /// How many there are.
    pub records: u64,
    /// The authors that they name, and the agents.
    pub authors: BTreeSet<String>,
}

impl Untagged {
    /// Reads the records of the groups that a store lists.
    fn of(store: &dyn Store) -> Result<Untagged, Error> {
        let groups = store.untagged()?.ok_or(StoreError::NoWriter)?;
        let size = store.tree().size;
        let from = groups.first().map_or(size, |first| first.start);
        let to = groups.last().map_or(size, |last| last.end);
        let mut listed = Untagged { from, to, groups: groups.len(), ..Untagged::default() };
        for group in groups {
            store.scan(group, &mut |_, record| {
                listed.add(&record);
                ControlFlow::Continue(())
            })?;
        }
        Ok(listed)
    }

    fn add(&mut self, record: &Record) {
        let header = record.header();
        let name = header.run.as_ref().map(ToString::to_string).unwrap_or_default();
        let run = self.runs.entry(name).or_default();
        let agent = record.body().value("/agent_id");
        let agent = agent.as_ref().and_then(Value::as_str).map(|agent| format!(":{agent}"));
        run.authors.insert(format!("{}{}", header.author, agent.unwrap_or_default()));
        run.records += 1;
        self.records += 1;
    }
}

/// Groups that were adopted, or would be.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// The groups.
    pub untagged: Untagged,
    /// The position of the record of the adoption; `None` if nothing was done.
    pub record: Option<u64>,
}

/// Lists the groups without a tag.
///
/// # Errors
///
/// [`StoreError::NoWriter`] if neither the key of the log nor a writer's secret is here.
pub fn list(repo: &Repo) -> Result<Adopted, Error> {
    Ok(Adopted { untagged: Untagged::of(&*repo.reader()?)?, record: None })
}

/// Signs the groups without a tag knowingly, and records that with the reason. Without such a group nothing is done.
///
/// # Errors
///
/// [`StoreError::NoWriter`] if the key of the log is not here, and [`StoreError::Untagged`] if the last of them does not end at
/// the size that was listed.
pub fn adopt(repo: &Repo, to: u64, reason: &str) -> Result<Adopted, Error> {
    if repo.signing_key()?.is_none() {
        return Err(StoreError::NoWriter.into());
    }
    let mut writer = repo.writer()?.clone();
    writer.refresh()?;
    // One view: what is appended from here on follows this tree, and is not adopted.
    let (tree, untagged) = (writer.tree(), Untagged::of(&writer)?);
    if untagged.records == 0 {
        return Ok(Adopted { untagged, record: None });
    }
    if untagged.to != to {
        StoreError::refuse_untagged(&writer.untagged()?.unwrap_or_default())?;
    }
    let content = content(&untagged, tree, reason);
    let record = seal_by_institution(repo.info().id, Kind::Key, None, &content, &mut *repo.environment())?;
    writer.adopt(tree)?;
    let position = writer.commit(std::slice::from_ref(&record))?.start;
    if let Signed::UpTo { not_remembered: Some(error), .. } = repo.sign()? {
        return Err(Error::NotSigned(error));
    }
    Ok(Adopted { untagged, record: Some(position) })
}

fn content(untagged: &Untagged, tree: TreeHead, reason: &str) -> Value {
    Value::record([
        ("from", Value::from(untagged.from)),
        ("purpose", Value::from(ADOPTED)),
        ("reason", Value::from(reason)),
        ("records", Value::from(untagged.records)),
        ("root", Value::from(tree.root)),
        ("to", Value::from(untagged.to)),
    ])
}

/// Copies the groups without a tag to a new directory and cuts them off the log; without one only counts them.
///
/// # Errors
///
/// [`StoreError::NotSetAside`] where something of the key's holder follows; nothing is changed then.
pub fn set_aside(repo: &Repo, dir: Option<&Path>) -> Result<Option<SetAside>, Error> {
    let unsupported = StoreError::Unsupported("only of a store in a directory groups are set aside");
    let place = repo.dir().ok_or(unsupported)?;
    let mut store = open_with_keys(place, Options::write(), repo.key().cloned(), &**repo.trust())?;
    let head = repo.trust().head(repo.info().id)?;
    Ok(store.set_aside(dir, head)?)
}
