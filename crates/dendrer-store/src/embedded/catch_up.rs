//! Reading what was committed since the handle last looked: at open, before an append, on refresh.

use std::collections::BTreeSet;
use std::time::Duration;

use dendrer_object::Digest;

use super::vault::Torn;
use super::{Embedded, LogEnd};
use crate::disk::DiskFile;
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At, Fault};
use crate::layout::{self, SEGMENT_HEADER};
use crate::scan::{End, Item, Scanner, is_unfinished};
use crate::segments::{Read, place_name};
use crate::store::{FORMAT, GroupEnd, TreeHead};
use crate::tail::Row;

/// How often a reader looks again before it calls something damage that may be a write under way.
const LOOKS: usize = 4;

/// How many groups are taken in with one look at the tree behind them, and after how many rows no further one is: what is
/// taken in together is held twice.
const TOGETHER: usize = 256;
const ROWS_TOGETHER: usize = 4_096;

/// The content of one group.
#[derive(Default)]
struct Group {
    rows: Vec<Row>,
    /// The size and the root of the tree behind it, and behind each of those taken in together.
    ends: Vec<(u64, Digest)>,
    /// The tag of each, and where it begins.
    tags: Vec<GroupEnd>,
    shared: Vec<u64>,
    opened: Vec<(At, Digest)>,
    secrets: Vec<(Digest, At)>,
    damage: Vec<Damage>,
}

impl Group {
    /// Takes in the one behind it.
    fn append(&mut self, next: &mut Group) {
        // An erasure makes void what is known of chunks before it.
        if !next.opened.is_empty() {
            self.shared.clear();
        }
        self.rows.append(&mut next.rows);
        self.ends.append(&mut next.ends);
        self.tags.append(&mut next.tags);
        self.shared.append(&mut next.shared);
        self.opened.append(&mut next.opened);
        self.secrets.append(&mut next.secrets);
        self.damage.append(&mut next.damage);
    }
}

/// The next step after a group.
enum Next {
    Group,
    Segment,
    Stop,
    /// The bytes may be those of a write under way.
    Again,
}

impl Embedded {
    /// Takes in all groups that are whole. As the lock holder, cuts an unfinished end and finishes erasures.
    pub(crate) fn catch_up(&mut self, holder: bool) -> Result<(), StoreError> {
        if self.stuck {
            return Ok(());
        }
        let has_more = match self.length_beyond()? {
            Some(beyond) => beyond > 0,
            None => return Ok(()),
        };
        // No other process writes while this handle has the lock, so one look is enough then.
        let looks_max = if holder { 1 } else { LOOKS };
        let mut looks = looks_max;
        // Usually no other process has written, and there is nothing to read.
        if !has_more && !matches!(self.next_segment(holder, false)?, Next::Segment | Next::Again) {
            return if holder { self.finish_erasures() } else { Ok(()) };
        }
        let Some(mut scanner) = self.scanner()? else { return Ok(()) };
        loop {
            self.take_together(&mut scanner)?;
            let next = match self.take_group(&mut scanner, holder, looks == 1)? {
                Next::Segment => self.next_segment(holder, looks == 1)?,
                next => next,
            };
            match next {
                Next::Group => {
                    looks = looks_max;
                    continue;
                }
                Next::Stop => break,
                Next::Segment => looks = looks_max,
                Next::Again => {
                    looks -= 1;
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            self.room = scanner.into_room();
            match self.scanner()? {
                Some(next) => scanner = next,
                None => return self.caught_up(holder),
            }
        }
        self.room = scanner.into_room();
        self.caught_up(holder)
    }

    fn caught_up(&mut self, holder: bool) -> Result<(), StoreError> {
        self.judge_suspects(holder)?;
        if holder {
            self.finish_erasures()?;
        }
        Ok(())
    }

    /// Reads the groups that are whole and fit, and leaves the rest to [`Embedded::catch_up`] under the lock. While
    /// many processes wait for the lock, this does most of the reading.
    pub(crate) fn catch_up_meanwhile(&mut self) -> Result<(), StoreError> {
        if self.stuck || self.length_beyond()?.is_none_or(|beyond| beyond == 0) {
            return Ok(());
        }
        let Some(mut scanner) = self.scanner()? else { return Ok(()) };
        self.take_together(&mut scanner)?;
        self.room = scanner.into_room();
        Ok(())
    }

    fn scanner(&mut self) -> Result<Option<Scanner>, StoreError> {
        let at = At::new(self.end.segment, self.end.offset);
        let peaks = Some(self.end.peaks.clone());
        let scanner = Scanner::new(&self.segments, self.info.id, at, self.size(), peaks)?;
        Ok(scanner.map(|scanner| scanner.with_room(std::mem::take(&mut self.room))))
    }

    /// Returns how much longer the segment is than what this handle has read of it. `None` if it is shorter, which is
    /// a loss.
    fn length_beyond(&mut self) -> Result<Option<u64>, StoreError> {
        let segment = self.end.segment;
        let found = match self.segments.file(segment)? {
            Some(file) => Some(file.len().map_err(|error| self.segments.io("read", segment, error))?),
            None => None,
        };
        if let Some(beyond) = found.and_then(|len| len.checked_sub(self.end.offset)) {
            return Ok(Some(beyond));
        }
        let place = DamagePlace { file: place_name(segment), ..DamagePlace::default() };
        let expected = format!("{} bytes, as read before", self.end.offset);
        let found = found.map_or("no file".into(), |len| format!("{len} bytes"));
        let (kind, what) = (DamageKind::Loss, "length of the segment");
        self.set_trouble(Damage { kind, place, what, expected, found }.into());
        self.stuck = true;
        Ok(None)
    }

    /// Takes in the groups that are whole and fit, as far as there are some, with one look at the tree behind them. Leaves
    /// whatever is not so to [`Embedded::take_group`], which finds out what it is.
    fn take_together(&mut self, scanner: &mut Scanner) -> Result<(), StoreError> {
        loop {
            let begin = scanner.mark();
            let (mut all, mut group) = (Group::default(), Group::default());
            let (mut count, mut last, mut synced, mut is_last) = (0, None, 0, false);
            scanner.begin_together();
            while count < TOGETHER && all.rows.len() < ROWS_TOGETHER {
                let before = scanner.offset();
                match read_group(scanner, &mut group)? {
                    End::Commit { at, commit, end } => {
                        synced = synced.max(commit.synced);
                        last = Some((at, commit.root, end));
                        all.append(&mut group);
                        count += 1;
                    }
                    _ => {
                        scanner.rewind(before);
                        is_last = true;
                        break;
                    }
                }
            }
            scanner.end_together();
            let Some((at, root, end)) = last else { return Ok(()) };
            if scanner.peaks.as_ref().is_none_or(|peaks| peaks.root() != root) {
                scanner.return_to(begin);
                return Ok(());
            }
            self.durable.learn(synced);
            self.accept(all);
            self.stand_behind(scanner, at, end, root);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reads one group and takes it in if it is whole.
    fn take_group(
        &mut self,
        scanner: &mut Scanner,
        holder: bool,
        last_look: bool,
    ) -> Result<Next, StoreError> {
        let mut group = Group::default();
        let end = read_group(scanner, &mut group)?;
        let damage = match end {
            End::Commit { at, commit, end } => {
                self.durable.learn(commit.synced);
                self.accept(group);
                self.stand_behind(scanner, at, end, commit.root);
                return Ok(Next::Group);
            }
            End::Clean => return Ok(Next::Segment),
            End::Fault { group, offset, fault } => {
                if self.is_last_segment()? && self.is_unfinished(group, offset, &fault)? {
                    if holder && self.may_cut()? {
                        self.cut(group)?;
                    }
                    return Ok(Next::Stop);
                }
                scanner.fault_damage(offset, fault)
            }
            End::Damage(damage) => *damage,
        };
        if last_look { self.take_damaged(scanner, damage) } else { Ok(Next::Again) }
    }

    /// Reads past a frame that cannot be read and hides no leaf of the tree. Whether it is damage or an erasure that
    /// was interrupted shows when all of the log was read.
    fn take_damaged(&mut self, scanner: &mut Scanner, damage: Damage) -> Result<Next, StoreError> {
        if let Some(mut again) = self.scanner()? {
            again.tolerant = true;
            let mut group = Group::default();
            if let End::Commit { at, commit, end } = read_group(&mut again, &mut group)?
                && again.peaks.is_some()
            {
                self.durable.learn(commit.synced);
                self.suspects.append(&mut group.damage);
                self.accept(group);
                self.stand_behind(&again, at, end, commit.root);
                again.tolerant = false;
                *scanner = again;
                return Ok(Next::Group);
            }
        }
        self.set_trouble(damage.into());
        self.stuck = true;
        Ok(Next::Stop)
    }

    /// Tells damage of the log from frames that an erasure was about to overwrite, and from frames of the vault, which are no part
    /// of the log. The lock holder finishes those that were destroyed.
    fn judge_suspects(&mut self, holder: bool) -> Result<(), StoreError> {
        if self.suspects.is_empty() {
            return Ok(());
        }
        let doomed = self.doomed(&self.erasures)?;
        let mut destroyed = Vec::new();
        for damage in std::mem::take(&mut self.suspects) {
            let Some(at) = damage.frame_at() else {
                self.set_trouble(damage.into());
                continue;
            };
            if doomed.all.contains(&at) {
                continue;
            }
            let at = At::from_u64(at);
            match self.torn_secret(at)? {
                Some(Torn::Named(name, bytes)) => {
                    self.tail.put_secret(name, at);
                    destroyed.extend(layout::is_destroyed(&bytes).then_some(at));
                }
                Some(Torn::Destroyed) => destroyed.push(at),
                None => self.set_trouble(damage.into()),
            }
        }
        if holder && self.trouble.is_none() {
            let done = self.void_secrets(&destroyed);
            self.note_failed_sync(done)?;
        }
        Ok(())
    }

    fn accept(&mut self, mut group: Group) {
        self.durable.caught_up(&mut group.ends);
        group.tags.iter().for_each(|end| self.look_at(end));
        let summaries = self.summaries.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        for row in group.rows {
            if let Some(run) = &row.run {
                summaries.remove(run);
            }
            self.tail.push(row);
        }
        if !group.opened.is_empty() {
            self.chunks.clear();
            self.segments.forget();
        }
        for (at, record) in group.opened {
            self.tail.open(record, at);
            // This handle is still before the group.
            self.note_erasure(at, self.size() + 1);
        }
        self.chunks.see(group.shared);
        if !group.secrets.is_empty() {
            self.info.format = self.info.format.max(FORMAT);
        }
        group.secrets.into_iter().for_each(|(name, at)| self.tail.put_secret(name, at));
    }

    /// Moves this handle to the end of a group; the scanner knows the tree there, and checked that this is its root.
    fn stand_behind(&mut self, scanner: &Scanner, at: At, end: u64, root: Digest) {
        let peaks = scanner.peaks.clone().expect("only groups with a known tree are taken in");
        self.end = LogEnd { segment: at.segment, offset: end, root, peaks };
    }

    fn is_last_segment(&self) -> Result<bool, StoreError> {
        match self.segments.header(self.end.segment + 1) {
            // A next segment that never got its header holds nothing.
            Ok(None) => Ok(true),
            Ok(Some(_)) | Err(StoreError::Damaged(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_unfinished(&self, group: u64, offset: u64, fault: &Fault) -> Result<bool, StoreError> {
        let segment = self.end.segment;
        let Some(file) = self.segments.file(segment)? else { return Ok(false) };
        is_unfinished(&*file, group, offset, fault, self.size())
            .map_err(|error| self.segments.io("read", segment, error))
    }

    /// Whether an end that looks unfinished may go. If the index or the checkpoint knows more than the log, the end is a part
    /// of something acknowledged, and evidence.
    fn may_cut(&mut self) -> Result<bool, StoreError> {
        if self.trouble.is_none() {
            self.check_checkpoint()?;
        }
        Ok(self.trouble.is_none())
    }

    /// Removes an unfinished group. Bytes that are not on disk afterwards must not come back under a later write, so the cut is
    /// made durable first.
    fn cut(&mut self, group: u64) -> Result<(), StoreError> {
        let segment = self.end.segment;
        let Some(file) = self.segments.file(segment)? else { return Ok(()) };
        self.cut_file(&*file, segment, group)
    }

    pub(super) fn cut_file(&mut self, file: &dyn DiskFile, segment: u32, len: u64) -> Result<(), StoreError> {
        file.set_len(len).map_err(|error| self.segments.io("cut", segment, error))?;
        self.sync_file(file).map_err(|error| {
            // A later sync that succeeds would say nothing about it, nor about what else it was to write.
            let why = error.to_string();
            self.set_trouble(StoreError::SyncFailed { why: why.clone() });
            StoreError::SyncFailed { why }
        })
    }

    /// Moves on to the next segment, if there is one.
    fn next_segment(&mut self, holder: bool, last_look: bool) -> Result<Next, StoreError> {
        let number = self.end.segment + 1;
        // Usually there is no such file, and every append asks.
        if self.segments.file(number)?.is_none() {
            return Ok(Next::Stop);
        }
        let damage = match self.segments.header(number) {
            Ok(Some(header)) if header.start == self.size() => {
                self.end.segment = number;
                self.end.offset = SEGMENT_HEADER as u64;
                return Ok(Next::Segment);
            }
            // Both segments may have grown between our two looks.
            Ok(Some(_)) if !last_look => return Ok(Next::Again),
            Ok(Some(header)) => {
                let place =
                    DamagePlace { file: place_name(number), offset: Some(0), ..DamagePlace::default() };
                let (expected, found) = (self.size().to_string(), header.start.to_string());
                Damage { kind: DamageKind::Chain, place, what: "begin of the segment", expected, found }
                    .into()
            }
            Ok(None) => match self.check_headless(number, holder)? {
                None => return Ok(Next::Stop),
                // It may have been begun, and the one after it too, since we looked at its header.
                Some(_) if !last_look => return Ok(Next::Again),
                Some(damage) => damage.into(),
            },
            Err(error @ StoreError::Damaged(_)) => error,
            Err(error) => return Err(error),
        };
        self.set_trouble(damage);
        self.stuck = true;
        Ok(Next::Stop)
    }

    /// Deals with a next segment without a header: one that was being begun when the power went, or damage.
    fn check_headless(&mut self, number: u32, holder: bool) -> Result<Option<Damage>, StoreError> {
        let Some(file) = self.segments.file(number)? else { return Ok(None) };
        let io = |error| self.segments.io("read", number, error);
        let len = file.len().map_err(io)?;
        let mut from = if len > frame::UNFINISHED_MAX { len } else { 0 };
        while let Some((at, commit)) = frame::find_commit(&*file, from, self.size()).map_err(io)? {
            if commit.synced > self.size() {
                let place =
                    DamagePlace { file: place_name(number), offset: Some(0), ..DamagePlace::default() };
                let (expected, found) = ("a segment header".into(), "zeros".into());
                let (kind, what) = (DamageKind::File, "segment header");
                return Ok(Some(Damage { kind, place, what, expected, found }));
            }
            from = at + 1;
        }
        let later = self.segments.header(number + 1);
        if !matches!(later, Ok(None)) || len > frame::UNFINISHED_MAX {
            let place = DamagePlace { file: place_name(number), offset: Some(0), ..DamagePlace::default() };
            let (expected, found) = ("a segment header".into(), format!("{len} bytes without one"));
            let (kind, what) = (DamageKind::File, "segment header");
            return Ok(Some(Damage { kind, place, what, expected, found }));
        }
        if holder && len > 0 && self.may_cut()? {
            self.cut_file(&*file, number, 0)?;
        }
        Ok(None)
    }

    /// Finishes erasures that were committed but not carried out, or forgets those that were.
    pub(super) fn finish_erasures(&mut self) -> Result<(), StoreError> {
        if self.erasures.is_empty() || self.trouble.is_some() {
            return Ok(());
        }
        let (unfinished, overwritten) = self.carried_out(&self.erasures)?;
        // The process that overwrote the values, or that wrote the list of them, may have been killed before the
        // sync.
        let done = self.sync_segments(overwritten).and_then(|()| match unfinished.is_empty() {
            true => Ok(()),
            false => self.sync_now().and_then(|_| self.destroy(&unfinished)),
        });
        self.note_failed_sync(done)?;
        self.erasures.clear();
        Ok(())
    }

    /// Of erasures, by their opened frames: those that were not carried out, and the segments in which the others
    /// overwrote something.
    pub(super) fn carried_out(&self, erasures: &[At]) -> Result<(Vec<At>, BTreeSet<u32>), StoreError> {
        let (mut unfinished, mut overwritten) = (Vec::new(), BTreeSet::new());
        for at in erasures {
            let Some(replaced) = self.replaced_by(*at)? else { continue };
            match self.segments.read(replaced)? {
                Read::Frame(frame::VOID, _) => drop(overwritten.insert(replaced.segment)),
                _ => unfinished.push(*at),
            }
        }
        Ok((unfinished, overwritten))
    }
}

fn read_group(scanner: &mut Scanner, group: &mut Group) -> Result<End, StoreError> {
    let end = scanner.group(&mut |item| match item {
        Item::Record(found) => {
            group.rows.push(Row::new(found.values, found.frame.id, &found.frame.header));
        }
        Item::Opened { at, payload } => {
            if let Some((record, Some(_), _)) = layout::opened_head(payload) {
                group.opened.push((at, record));
            }
        }
        Item::Shared { at, .. } => group.shared.push(at.to_u64()),
        Item::Broken(damage) => group.damage.push(*damage),
        Item::Secret { at, name } => group.secrets.push((name, at)),
        Item::Values { .. } | Item::Void => {}
    })?;
    if let End::Commit { commit, .. } = &end {
        group.ends.push((commit.size, commit.root));
        let tree = TreeHead { size: commit.size, root: commit.root };
        group.tags.push(GroupEnd { begin: commit.size - u64::from(commit.count), tree, tag: commit.tag });
    }
    Ok(end)
}
