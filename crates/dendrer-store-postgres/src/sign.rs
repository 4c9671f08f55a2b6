//! Signing the log, and the epoch that a store has after records were lost.

use dendrer_object::note::{Checkpoint, NoteError, SignedNote, SigningKey};
use dendrer_store::{DamageKind, LastRecord, LogWriter, MaySign, ReadLog as _, SignLog, StoreError};

use crate::append::Sync;
use crate::rows::damage;
use crate::store::Postgres;
use crate::wire::Which;

fn bad(kind: DamageKind, what: &'static str, expected: String, found: String) -> StoreError {
    damage(kind, "checkpoint", None, what, (expected, found))
}

impl Postgres {
    /// Reads the newest note.
    pub(crate) fn read_note(&self) -> Result<Option<SignedNote>, StoreError> {
        let bytes = self.wire.run(Which::Work, |session| async move {
            let rows = session.query("select note from checkpoint order by size desc limit 1", &[]).await?;
            Ok(rows.first().map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?)
        })?;
        let note = bytes.map(|bytes| SignedNote::parse(&bytes)).transpose();
        note.map_err(|error| bad(DamageKind::File, "checkpoint", "a signed note".into(), error.to_string()))
    }

    /// Checks that the log extends the newest checkpoint.
    pub(crate) fn check_signed(&self) -> Result<(), StoreError> {
        let Some(note) = self.read_note()? else { return Ok(()) };
        let signed = Checkpoint::parse(note.text()).map_err(|error| {
            bad(DamageKind::File, "checkpoint", "a signed note".into(), error.to_string())
        })?;
        let origin = self.info.id.origin();
        if signed.origin() != origin {
            let found = signed.origin().to_owned();
            return Err(bad(DamageKind::File, "origin of the checkpoint", origin, found));
        }
        let keys: Vec<_> = self.keys()?.spans().iter().map(|span| span.key.clone()).collect();
        match note.verify(&keys) {
            // Which key signs at its size is checked by the verification of the store.
            Ok(_) | Err(NoteError::NoKnownSignature) => {}
            Err(error) => {
                let expected = "one by the key of the store".into();
                return Err(bad(DamageKind::Signature, "signature", expected, error.to_string()));
            }
        }
        let size = self.peaks.size();
        if signed.size() > size {
            let expected = format!("{} records, as was signed", signed.size());
            return Err(bad(DamageKind::Loss, "size of the log", expected, format!("{size} records")));
        }
        match self.extends(signed.size(), signed.root())? {
            true => Ok(()),
            false => {
                let expected = format!("{}, as was signed for {} records", signed.root(), signed.size());
                Err(bad(DamageKind::Loss, "root of the log", expected, "another".into()))
            }
        }
    }

    /// Keeps a note. Two notes of one size that say different things cannot both be kept.
    fn keep_note(&self, size: u64, note: &SignedNote) -> Result<SignedNote, StoreError> {
        let bytes = note.to_string().into_bytes();
        let kept = self.wire.run(Which::Work, |session| async move {
            session.batch("begin; set local synchronous_commit = on").await?;
            let sql = "insert into checkpoint (size, note) values ($1, $2) on conflict do nothing";
            session.execute(sql, &[&(size as i64), &bytes]).await?;
            let rows =
                session.query("select note from checkpoint where size = $1", &[&(size as i64)]).await?;
            session.batch("commit").await?;
            Ok(rows.first().map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?)
        });
        let kept = kept.inspect_err(|_| self.unlock())?;
        let kept = kept.and_then(|bytes| SignedNote::parse(&bytes).ok());
        match kept {
            Some(kept) if kept.text() == note.text() => Ok(kept),
            kept => {
                let found = kept.map_or("no note".into(), |kept| kept.text().replace('\n', " "));
                let expected = note.text().replace('\n', " ");
                Err(bad(DamageKind::Loss, "checkpoint of this size", expected, found))
            }
        }
    }

    /// Begins a new epoch of the store, for a reason that is put on record: servers and handles of the old one write no more. The
    /// log of this server must have what was signed.
    ///
    /// # Errors
    ///
    /// As [`AppendLog::append`](dendrer_store::AppendLog::append) does; [`StoreError::ReadOnly`] for a role that only records.
    pub fn begin_epoch(&mut self, reason: &str) -> Result<u64, StoreError> {
        self.check_writable()?;
        self.lock(Sync::Now)?;
        let checked = self.check_tags().and_then(|()| self.check_signed());
        checked.inspect_err(|_| self.unlock())?;
        let (old, new) = (self.epoch as i64, self.epoch + 1);
        let (size, root) = (self.peaks.size() as i64, self.peaks.root().0.to_vec());
        let reason = reason.to_owned();
        let done = self.wire.run(Which::Work, |session| async move {
            let epoch = "insert into epoch (number, size, root, reason) values ($1, $2, $3, $4)";
            session.execute(epoch, &[&(new as i64), &size, &root, &reason]).await?;
            session.execute("update tree set epoch = $1 where epoch = $2", &[&(new as i64), &old]).await?;
            Ok(())
        });
        done.inspect_err(|_| self.unlock())?;
        self.commit_transaction()?;
        self.epoch = new;
        Ok(new)
    }
}

impl SignLog for Postgres {
    fn sign_after(
        &mut self,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        self.check_writable()?;
        self.lock(Sync::Now)?;
        let checked = self.check_tags().and_then(|()| self.check_signed());
        if let Err(error) = checked {
            self.unlock();
            return Err(self.stopped_at(error));
        }
        let is_another = self.keys().inspect_err(|_| self.unlock())?.now() != key.verifier_key();
        match last(self).inspect_err(|_| self.unlock())? {
            Some(record) => {
                // A new key tags the group of the record that brings it.
                let writer = if is_another { LogWriter::of(key) } else { self.writer.clone() };
                let before = std::mem::replace(&mut self.writer, writer);
                let appended = self.append_locked(std::slice::from_ref(&record), &[], &mut |_| Ok(()));
                if let Err(error) = appended {
                    self.writer = before;
                    return Err(error);
                }
            }
            None => self.unlock(),
        }
        if is_another {
            if self.keys()?.now() != key.verifier_key() {
                return Err(StoreError::NoWriter);
            }
            self.use_writer(LogWriter::of(key))?;
        }
        // Groups of others that came since are not in this tree: it is signed as it was under the lock.
        let tree = self.tree();
        self.barrier.cover(tree.size)?;
        let checkpoint = Checkpoint::new(&self.info.id.origin(), tree.size, tree.root)?;
        let note = checkpoint.sign(key)?;
        if !may(self, &checkpoint)? {
            return Ok(None);
        }
        let note = self.keep_note(tree.size, &note).map_err(|error| self.stopped_at(error))?;
        if let Some(tags) = &mut self.tags {
            tags.pass(tree.size);
        }
        Ok(Some(note))
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        self.read_note()
    }
}
