//! Taking in what others committed: rows are compared with the tree before they count.

use std::collections::VecDeque;

use dendrer_object::Digest;
use dendrer_object::merkle::Peaks;
use dendrer_object::record::Kind;
use dendrer_store::{DamageKind, GroupEnd, LogWriter, ReadLog as _, StoreError, Tag, Tags, TreeHead};

use crate::local::Incoming;
use crate::rows::{Raw, RecordRow, damage, header_of};
use crate::store::Postgres;
use crate::wire::{Failed, Session, Which};

/// How many rows are read at once.
const BATCH: u64 = 2_048;

/// How many ends of groups are read at once.
const GROUPS: i64 = 1_024;

/// The row of the table `tree`.
#[derive(Debug, Clone)]
pub(crate) struct TreeRow {
    pub(crate) epoch: u64,
    pub(crate) size: u64,
    pub(crate) root: Vec<u8>,
    pub(crate) edge: Vec<u8>,
    pub(crate) tag: Vec<u8>,
}

const TREE: &str = "select epoch, size, root, edge, tag from tree";

/// The same, for the one that writes next.
pub(crate) const TREE_LOCKED: &str = "select epoch, size, root, edge, tag from tree for update";

pub(crate) fn tree_row(rows: &[tokio_postgres::Row]) -> Result<TreeRow, Failed> {
    let missing = || damage(DamageKind::Loss, "tree", None, "rows", ("one".into(), "none".into()));
    let row = rows.first().ok_or_else(missing)?;
    let (epoch, size): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let number = |number: i64| {
        u64::try_from(number).map_err(|_| {
            let sides = ("a count".into(), number.to_string());
            damage(DamageKind::Frame, "tree", None, "epoch and size", sides)
        })
    };
    Ok(TreeRow {
        epoch: number(epoch)?,
        size: number(size)?,
        root: row.try_get(2)?,
        edge: row.try_get(3)?,
        tag: row.try_get(4)?,
    })
}

/// Returns the peaks of a tree as the bytes of the column `edge`.
pub(crate) fn edge_of(peaks: &Peaks) -> Vec<u8> {
    peaks.peaks().iter().flat_map(|peak| peak.0).collect()
}

fn group_row(row: &tokio_postgres::Row) -> Result<GroupEnd, Failed> {
    let (size, begin): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let (root, tag): (Vec<u8>, Vec<u8>) = (row.try_get(2)?, row.try_get(3)?);
    let bad = || {
        let sides = ("a root and a tag of 32 bytes".into(), "others".into());
        damage(DamageKind::Frame, "group_end", u64::try_from(begin).ok(), "end of a group", sides)
    };
    let (root, tag) = (root.try_into().map_err(|_| bad())?, tag.try_into().map_err(|_| bad())?);
    let (size, begin) = (u64::try_from(size).map_err(|_| bad())?, u64::try_from(begin).map_err(|_| bad())?);
    Ok(GroupEnd { begin, tree: TreeHead { size, root: Digest(root) }, tag: Tag(tag) })
}

/// A row of `record` without its values, and how many bytes those have.
type Skim = (RecordRow, u64);

pub(crate) async fn skim_rows(session: &Session, from: u64, to: u64) -> Result<Vec<Skim>, Failed> {
    let sql = "select position, id, kind, run, tick, ts, header, octet_length(\"values\")::int8 from record \
               where position >= $1 and position < $2 order by position";
    let rows = session.query(sql, &[&(from as i64), &(to as i64)]).await?;
    let skim = |row: &tokio_postgres::Row| {
        let read = RecordRow {
            position: row.try_get::<_, i64>(0)? as u64,
            id: row.try_get(1)?,
            kind: row.try_get(2)?,
            run: row.try_get(3)?,
            tick: row.try_get(4)?,
            ts: row.try_get(5)?,
            header: row.try_get(6)?,
            seed: None,
            values: Vec::new(),
        };
        Ok((read, row.try_get::<_, i64>(7)? as u64))
    };
    rows.iter().map(skim).collect()
}

impl Postgres {
    pub(crate) fn read_tree(&self) -> Result<TreeRow, StoreError> {
        self.wire.run(Which::Work, |session| async move { tree_row(&session.query(TREE, &[]).await?) })
    }

    /// Takes in what others committed.
    pub(crate) fn catch_up(&mut self) -> Result<(), StoreError> {
        let tree = self.read_tree()?;
        self.catch_up_to(&tree)
    }

    /// Takes in the log up to a row of `tree`. Rows count group by group, each after its root was compared.
    pub(crate) fn catch_up_to(&mut self, tree: &TreeRow) -> Result<(), StoreError> {
        let own = self.peaks.size();
        if tree.size < own {
            let sides = (format!("{own} records, as this handle has seen"), format!("{} records", tree.size));
            return Err(damage(DamageKind::Loss, "tree", None, "size of the log", sides));
        }
        let mut groups = VecDeque::new();
        while self.peaks.size() < tree.size {
            if groups.is_empty() {
                groups.extend(self.groups_after(self.peaks.size(), tree.size)?);
            }
            let size = self.peaks.size();
            let Some(group) = groups.pop_front() else {
                let sides = (format!("one after size {size}"), "none".into());
                return Err(damage(DamageKind::Loss, "group_end", Some(size), "end of a group", sides));
            };
            self.take_group(group)?;
        }
        if self.peaks.root().0[..] != tree.root[..] {
            let found = Digest(tree.root.clone().try_into().unwrap_or([0; 32])).to_string();
            let sides = (format!("{} at size {}", self.peaks.root(), tree.size), found);
            return Err(damage(DamageKind::Root, "tree", None, "root of the log", sides));
        }
        if edge_of(&self.peaks) != tree.edge {
            let sides = ("the peaks of the root".into(), "others".into());
            return Err(damage(DamageKind::Root, "tree", None, "edge of the tree", sides));
        }
        let last = tree.size.checked_sub(1).map(|last| self.local.group_of(last)).transpose()?.flatten();
        if last.is_some_and(|last| last.tag.0[..] != tree.tag[..]) {
            let sides = ("that of the newest group".into(), "another".into());
            return Err(damage(DamageKind::Root, "tree", None, "tag of the tree", sides));
        }
        Ok(())
    }

    fn groups_after(&self, size: u64, to: u64) -> Result<Vec<GroupEnd>, StoreError> {
        self.wire.run(Which::Work, |session| async move {
            let sql = "select size, begin, root, tag from group_end where size > $1 and size <= $2 \
                       order by size limit $3";
            let rows = session.query(sql, &[&(size as i64), &(to as i64), &GROUPS]).await?;
            rows.iter().map(group_row).collect()
        })
    }

    fn take_group(&mut self, group: GroupEnd) -> Result<(), StoreError> {
        let size = self.peaks.size();
        let GroupEnd { begin, tree, tag } = group;
        if begin != size {
            let sides = (format!("one that begins at {size}"), format!("one at {begin}"));
            return Err(damage(DamageKind::Loss, "group_end", Some(size), "end of a group", sides));
        }
        let (wire, store) = (self.wire.clone(), self.info.id);
        let (mut from, mut is_key, mut is_erasure) = (size, false, false);
        let taken = self.local.take_in(
            &self.peaks,
            &mut || {
                let to = tree.size.min(from + BATCH);
                let rows =
                    wire.run(Which::Work, |session| async move { skim_rows(&session, from, to).await })?;
                let mut records = Vec::with_capacity(rows.len());
                for (row, bytes) in rows {
                    let position = from + records.len() as u64;
                    if row.position != position {
                        return Err(missing_row(position));
                    }
                    let header = header_of(&row, store)?;
                    is_key |= header.kind == Kind::Key;
                    is_erasure |= header.kind == Kind::Erase;
                    let id = <[u8; 32]>::try_from(&row.id[..]).map_err(|_| missing_row(position))?;
                    records.push(Incoming { id: Digest(id), header, bytes });
                }
                if records.len() as u64 != to - from {
                    return Err(missing_row(from + records.len() as u64));
                }
                from = to;
                Ok(records)
            },
            &mut |peaks| {
                if peaks.root() != tree.root {
                    let sides = (tree.root.to_string(), peaks.root().to_string());
                    return Err(damage(
                        DamageKind::Root,
                        "group_end",
                        Some(size),
                        "root with the records from this position on",
                        sides,
                    ));
                }
                Ok(GroupEnd { begin, tree, tag })
            },
        );
        let peaks = match taken {
            Ok(peaks) => peaks,
            // Some row differs; sealing the records finds out which.
            Err(StoreError::Damaged(found)) if found.kind == DamageKind::Root => {
                return Err(self.altered_row(size, tree.size)?.unwrap_or(StoreError::Damaged(found)));
            }
            Err(error) => return Err(error),
        };
        self.took(peaks, GroupEnd { begin, tree, tag }, is_key, is_erasure)
    }

    /// Counts a group that is in the lookups as seen.
    pub(crate) fn took(
        &mut self,
        peaks: Peaks,
        group: GroupEnd,
        is_key: bool,
        is_erasure: bool,
    ) -> Result<(), StoreError> {
        self.peaks = peaks;
        self.barrier.appended(group.tree);
        if is_key {
            *self.known_keys() = None;
        }
        if is_erasure {
            self.erased_at = group.tree.size;
            self.local.forget()?;
        }
        if let (Some(tags), Some(secret)) = (&mut self.tags, self.writer.secret()) {
            tags.look(secret, self.info.id, &group);
        }
        Ok(())
    }

    /// Looks for the first row of a range whose record is not the one it was filed as.
    fn altered_row(&self, from: u64, to: u64) -> Result<Option<StoreError>, StoreError> {
        for position in from..to {
            let rows = self.record_rows(vec![position])?;
            let Some(row) = rows.first() else { return Ok(Some(missing_row(position))) };
            let pieces = self.pieces(&rows)?;
            let sealed = Raw::of(row, self.info.id, &pieces).map(|raw| Raw::seal_each(vec![raw]).remove(0));
            if let Err(error @ StoreError::Damaged(_)) | Ok(Err(error @ StoreError::Damaged(_))) = sealed {
                return Ok(Some(error));
            }
        }
        Ok(None)
    }

    /// Sets who writes, and looks at the tags after the newest checkpoint.
    pub(crate) fn use_writer(&mut self, writer: LogWriter) -> Result<(), StoreError> {
        let keys = self.keys()?;
        self.writer = writer.under(keys.now());
        self.tags = None;
        let Some(secret) = self.writer.secret().cloned() else { return Ok(()) };
        let signed = self.read_note()?.and_then(|note| keys.open(&note).ok());
        let signed = signed.map_or(0, |signed| signed.size());
        let mut tags = Tags::default();
        tags.pass(signed.max(keys.changed_at()).max(self.adopted).min(self.peaks.size()));
        loop {
            let groups = self.local.groups(tags.looked_to(), GROUPS as usize)?;
            if groups.is_empty() {
                break;
            }
            for group in groups {
                tags.look(&secret, self.info.id, &group);
                // A group that a checkpoint cuts in two is left as it is.
                tags.leave(group.tree.size);
            }
        }
        self.tags = Some(tags);
        Ok(())
    }

    /// Fails where nothing may be written or signed.
    pub(crate) fn check_tags(&self) -> Result<(), StoreError> {
        match &self.writer {
            LogWriter::Missing => Err(StoreError::NoWriter),
            LogWriter::Secret(secret) if secret.key() != self.keys()?.now() => Err(StoreError::NoWriter),
            LogWriter::Secret(_) | LogWriter::Unchecked => match &self.tags {
                Some(tags) => tags.check(),
                None => Ok(()),
            },
        }
    }
}

pub(crate) fn missing_row(position: u64) -> StoreError {
    let sides = ("a row with an id of 32 bytes".into(), "none".into());
    damage(DamageKind::Loss, "record", Some(position), "row of the record", sides)
}
