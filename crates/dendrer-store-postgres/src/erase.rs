//! Destroying values: the record of the erasure and the rows without the values, in one transaction.
//!
//! The server keeps what a row had until it is vacuumed, and so do its archive and replicas: `doctor` of the program names that.
//!
//! Rule: a piece of a large value goes with the last row that uses it; test `a_piece_goes_with_the_last_value_that_uses_it`.

use std::collections::BTreeMap;

use dendrer_object::{Pointer, Record};
use dendrer_store::{EraseValues, ReadLog as _, StoreError, checks};

use crate::append::Sync;
use crate::rows::Columns;
use crate::store::Postgres;
use crate::wire::Which;

impl Postgres {
    /// Replaces a row by what is left of its record.
    fn put_left(&self, position: u64, left: &Record) -> Result<(), StoreError> {
        let columns = Columns::of(self.info.id, left);
        let keys: Vec<Vec<u8>> = columns.pieces.iter().map(|(key, _)| key.0.to_vec()).collect();
        let (seed, values) = (columns.seed, columns.values);
        self.wire.run(Which::Work, |session| async move {
            let position = position as i64;
            let row = "update record set seed = $2, \"values\" = $3 where position = $1";
            session.execute(row, &[&position, &seed, &values]).await?;
            let gone = "delete from chunk_use where position = $1 and not key = any($2) returning key";
            let gone = session.query(gone, &[&position, &keys]).await?;
            let gone = gone.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?;
            let unused = "delete from chunk where key = any($1) \
                          and not exists (select 1 from chunk_use where chunk_use.key = chunk.key)";
            session.execute(unused, &[&gone]).await?;
            Ok(())
        })
    }
}

impl EraseValues for Postgres {
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        checks::check_erase(record)?;
        let mut places: BTreeMap<u64, Vec<Pointer>> = BTreeMap::new();
        for (position, more) in targets {
            places.entry(*position).or_default().extend(more.iter().cloned());
        }
        let group = std::slice::from_ref(record);
        let positions = self.append_group(group, &[], Sync::Now, &mut |store| {
            for (position, places) in &places {
                let target = store.get(*position)?.ok_or(StoreError::NoPosition(*position))?;
                store.put_left(*position, &target.without(places))?;
            }
            Ok(())
        })?;
        Ok(positions.start)
    }
}
