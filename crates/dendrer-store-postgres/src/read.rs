//! Reading records: found by the lookups of the handle, read from the server, sealed again and compared.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

use dendrer_object::keys::LogKeys;
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, Record, RunName};
use dendrer_store::fence::Log as _;
use dendrer_store::{DamageKind, ReadLog, RunSummary, StoreError, StoreInfo, TreeHead, checks};

use crate::rows::{Raw, RecordRow, damage, pieces_of};
use crate::store::Postgres;
use crate::tree::missing_row;
use crate::wire::Which;

/// How many records, and how many bytes of values, are read at once.
const ROWS: usize = 256;
const BYTES: u64 = 8 << 20;

/// How many pieces of large values are read at once.
const PIECES: usize = 64;

/// How many records of no run are listed at once.
const LISTED: usize = 1_024;

impl Postgres {
    /// Reads rows of `record`, in order of position.
    pub(crate) fn record_rows(&self, positions: Vec<u64>) -> Result<Vec<RecordRow>, StoreError> {
        let positions: Vec<i64> = positions.into_iter().map(|position| position as i64).collect();
        self.wire.run(Which::Work, |session| async move {
            let sql = "select position, id, kind, run, tick, ts, header, seed, \"values\" from record \
                       where position = any($1) order by position";
            let rows = session.query(sql, &[&positions]).await?;
            let row = |row: &tokio_postgres::Row| {
                Ok(RecordRow {
                    position: row.try_get::<_, i64>(0)? as u64,
                    id: row.try_get(1)?,
                    kind: row.try_get(2)?,
                    run: row.try_get(3)?,
                    tick: row.try_get(4)?,
                    ts: row.try_get(5)?,
                    header: row.try_get(6)?,
                    seed: row.try_get(7)?,
                    values: row.try_get(8)?,
                })
            };
            rows.iter().map(row).collect()
        })
    }

    /// Reads the pieces that rows name.
    pub(crate) fn pieces(&self, rows: &[RecordRow]) -> Result<BTreeMap<Digest, Vec<u8>>, StoreError> {
        let mut keys: Vec<Digest> = rows.iter().flat_map(pieces_of).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut pieces = BTreeMap::new();
        for keys in keys.chunks(PIECES) {
            let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.0.to_vec()).collect();
            let found = self.wire.run(Which::Work, |session| async move {
                let rows =
                    session.query("select key, bytes from chunk where key = any($1)", &[&keys]).await?;
                let pair = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
                rows.iter().map(pair).collect::<Result<Vec<(Vec<u8>, Vec<u8>)>, _>>()
            })?;
            for (key, bytes) in found {
                if let Ok(key) = key.try_into() {
                    pieces.insert(Digest(key), bytes);
                }
            }
        }
        Ok(pieces)
    }

    /// Seals and compares the records at positions, of rows in order. Stops after the first that cannot be read, with its error.
    fn sealed(
        &self,
        positions: &[u64],
        rows: &[RecordRow],
    ) -> Result<(Vec<Record>, Option<StoreError>), StoreError> {
        let pieces = self.pieces(rows)?;
        let (mut raws, mut failure) = (Vec::with_capacity(rows.len()), None);
        let mut rows = rows.iter();
        for position in positions {
            let raw = match rows.next().filter(|row| row.position == *position) {
                Some(row) => Raw::of(row, self.info.id, &pieces),
                None => Err(missing_row(*position)),
            };
            match raw {
                Ok(raw) => raws.push(raw),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        drop(pieces);
        let mut records = Vec::with_capacity(raws.len());
        for (sealed, position) in Raw::seal_each(raws).into_iter().zip(positions) {
            match sealed.and_then(|record| self.compared(*position, record)) {
                Ok(record) => records.push(record),
                Err(error) => return Ok((records, Some(error))),
            }
        }
        Ok((records, failure))
    }

    /// Compares a record with the entry of the tree at its position.
    fn compared(&self, position: u64, record: Record) -> Result<Record, StoreError> {
        let entry = self.local.entry(position)?.ok_or(StoreError::NoPosition(position))?;
        if entry == record.log_entry() {
            return Ok(record);
        }
        let sides = (entry.hash.to_string(), record.id().to_string());
        Err(damage(DamageKind::Content, "record", Some(position), "record at its position", sides))
    }
}

/// Returns how many of the first rows are read together: their pieces are held at once.
fn few_pieces(rows: &[RecordRow]) -> usize {
    let mut pieces = 0;
    let few = rows.iter().take_while(|row| {
        pieces += pieces_of(row).len();
        pieces <= PIECES
    });
    few.count()
}

impl ReadLog for Postgres {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn tree(&self) -> TreeHead {
        TreeHead { size: self.peaks.size(), root: self.peaks.root() }
    }

    fn trouble(&self) -> Option<Arc<StoreError>> {
        self.trouble.clone()
    }

    fn refresh(&mut self) -> Result<u64, StoreError> {
        self.catch_up().map_err(|error| self.stopped_at(error))?;
        Ok(self.peaks.size())
    }

    fn get(&self, position: u64) -> Result<Option<Record>, StoreError> {
        if position >= self.peaks.size() {
            return Ok(None);
        }
        match self.sealed(&[position], &self.record_rows(vec![position])?)? {
            (mut records, None) => Ok(records.pop()),
            (_, Some(error)) => Err(error),
        }
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (mut from, end) = (range.start, range.end.min(self.peaks.size()));
        while from < end {
            let (mut bytes, mut positions) = (0, Vec::new());
            for (position, size) in self.local.sizes(from..end, ROWS)? {
                bytes += size;
                if bytes > BYTES && !positions.is_empty() {
                    break;
                }
                positions.push(position);
            }
            let mut rows = &self.record_rows(positions.clone())?[..];
            let mut positions = &positions[..];
            while !positions.is_empty() {
                let count = few_pieces(rows).min(positions.len()).max(1);
                let (records, failure) = self.sealed(&positions[..count], &rows[..count.min(rows.len())])?;
                for record in records {
                    let flow = f(from, record);
                    from += 1;
                    if flow.is_break() {
                        return Ok(());
                    }
                }
                if let Some(failure) = failure {
                    return Err(failure);
                }
                (positions, rows) = (&positions[count..], &rows[count.min(rows.len())..]);
            }
        }
        Ok(())
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.local.entries(range.start..range.end.min(self.peaks.size()), f)
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        self.local.find(id)
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        self.local.find_prefix(hex, limit)
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        self.local.at(run, tick)
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.local.summary(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.local.runs(from, limit)
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        self.local.positions(run, ticks, limit)
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.local.beside(run, from, limit)
    }

    fn beside_runs(&self, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        self.local.beside_runs(from, limit)
    }

    fn keys(&self) -> Result<LogKeys, StoreError> {
        if let Some(keys) = self.known_keys().clone() {
            return Ok(keys);
        }
        let mut keys = LogKeys::new(self.info.id, self.info.key.clone());
        let mut from = 0;
        loop {
            let batch = self.local.beside_runs(from, LISTED)?;
            let Some((last, _)) = batch.last() else { break };
            from = last + 1;
            for (position, _) in batch.iter().filter(|(_, kind)| *kind == Kind::Key) {
                let mut root_of = |size| self.root_of(size);
                checks::take_key(&mut keys, *position, self.get(*position), &mut root_of)?;
            }
        }
        *self.known_keys() = Some(keys.clone());
        Ok(keys)
    }

    fn covers_log(&self) -> bool {
        true
    }

    fn root_of(&self, size: u64) -> Result<Option<Digest>, StoreError> {
        match size {
            0 => Ok(Some(dendrer_object::merkle::empty_root())),
            size => self.local.root_of(size),
        }
    }

    fn extends(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        // The root of every group was compared on the way to the tree of this handle.
        match self.root_of(size)? {
            Some(found) => Ok(found == root),
            None if size >= self.peaks.size() => Ok(false),
            None => self.extends_within_group(size, root),
        }
    }

    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        // Entries count once they were compared with the root, and each record is compared with its entry.
        self.get(position)
    }
}

impl Postgres {
    /// Whether the log begins with a tree that ends within a group.
    fn extends_within_group(&self, size: u64, root: Digest) -> Result<bool, StoreError> {
        let mut peaks = dendrer_object::merkle::Peaks::new();
        self.local.entries(0..size, &mut |_, entry| {
            peaks.push(dendrer_object::merkle::leaf_hash(&entry.text()));
            ControlFlow::Continue(())
        })?;
        Ok(peaks.size() == size && peaks.root() == root)
    }
}
