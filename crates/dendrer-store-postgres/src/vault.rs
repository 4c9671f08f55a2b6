//! Encrypted bytes under opaque names: the condition and the change in one transaction, under the lock on the order.

use std::collections::BTreeSet;
use std::ops::Range;

use dendrer_object::{Digest, Record, RunName};
use dendrer_store::{Given, Head, KeepSecrets, NewSecrets, StoreError, checks};

use crate::append::Sync;
use crate::store::Postgres;
use crate::wire::Which;

/// How many bytes are sent in one statement.
const SENT_TOGETHER: usize = 8 << 20;

fn names_of(names: &[Digest]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.0.to_vec()).collect()
}

impl Postgres {
    /// Returns which of some names have bytes.
    fn names_there(&self, names: &[Digest]) -> Result<BTreeSet<Digest>, StoreError> {
        let names = names_of(names);
        let found = self.wire.run(Which::Work, |session| async move {
            let rows = session.query("select name from secret where name = any($1)", &[&names]).await?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?)
        })?;
        Ok(digests(found).collect())
    }

    /// Whether what was given holds. The caller has the lock.
    fn holds(&self, given: Given<'_>) -> Result<bool, StoreError> {
        let asked: Vec<Digest> = given.there.iter().chain(given.absent).copied().collect();
        let there = if asked.is_empty() { BTreeSet::new() } else { self.names_there(&asked)? };
        given.holds(&mut |name| Ok(there.contains(name)), &mut || self.all_names())
    }

    fn all_names(&self) -> Result<Vec<Digest>, StoreError> {
        let found = self.wire.run(Which::Work, |session| async move {
            let rows = session.query("select name from secret order by name", &[]).await?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?)
        })?;
        Ok(digests(found).collect())
    }

    /// Puts bytes under names. A role that only records may put new names, and change none.
    fn put_locked(&self, secrets: &[(Digest, Vec<u8>)]) -> Result<(), StoreError> {
        let mut rest = secrets;
        while !rest.is_empty() {
            let mut bytes = 0;
            let count = rest.iter().take_while(|(_, secret)| {
                bytes += secret.len();
                bytes <= SENT_TOGETHER
            });
            let (batch, after) = rest.split_at(count.count().max(1));
            rest = after;
            let names: Vec<Digest> = batch.iter().map(|(name, _)| *name).collect();
            let mut known = self.names_there(&names)?;
            for (name, secret) in batch {
                let is_known = !known.insert(*name);
                let (name, secret) = (name.0.to_vec(), secret.clone());
                self.wire.run(Which::Work, |session| async move {
                    let sql = match is_known {
                        true => "update secret set bytes = $2 where name = $1",
                        false => "insert into secret (name, bytes) values ($1, $2)",
                    };
                    session.execute(sql, &[&name, &secret]).await?;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Changes the vault, if what was given holds, in a transaction of its own.
    fn change_secrets(
        &mut self,
        given: Given<'_>,
        change: &dyn Fn(&Postgres) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        self.check_writable()?;
        self.lock(Sync::Now)?;
        let changed = self.check_tags().and_then(|()| {
            let holds = self.holds(given)?;
            if holds {
                change(self)?;
                self.commit_transaction()?;
            }
            Ok(holds)
        });
        if !matches!(changed, Ok(true)) {
            self.unlock();
        }
        changed
    }
}

fn digests(names: Vec<Vec<u8>>) -> impl Iterator<Item = Digest> {
    names.into_iter().filter_map(|name| name.try_into().ok().map(Digest))
}

impl KeepSecrets for Postgres {
    fn append_with(
        &mut self,
        records: &[Record],
        heads: &[(RunName, Head)],
        secrets: &NewSecrets,
    ) -> Result<Range<u64>, StoreError> {
        checks::check_new(&secrets.items)?;
        let given = Given { there: &secrets.there, ..Given::default() };
        self.append_group(records, heads, Sync::Later, &mut |store| match store.holds(given)? {
            true => store.put_locked(&secrets.items),
            false => Err(StoreError::SecretGone),
        })
    }

    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError> {
        checks::check_sizes(secrets)?;
        self.change_secrets(given, &|store| store.put_locked(secrets))
    }

    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let name = name.0.to_vec();
        self.wire.run(Which::Work, |session| async move {
            let rows = session.query("select bytes from secret where name = $1", &[&name]).await?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
        })
    }

    fn remove_secrets(&mut self, names: &[Digest], given: Given<'_>) -> Result<bool, StoreError> {
        let names = names_of(names);
        self.change_secrets(given, &|store| {
            let names = names.clone();
            store.wire.run(Which::Work, |session| async move {
                session.execute("delete from secret where name = any($1)", &[&names]).await?;
                Ok(())
            })
        })
    }

    fn secrets(&self) -> Result<Vec<Digest>, StoreError> {
        self.all_names()
    }
}
