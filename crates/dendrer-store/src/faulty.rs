//! A disk in memory that fails on demand, and shows what a crash would leave.
//!
//! Everything that is done is recorded, so that [`Faulty::image`] can make the disk as a power cut at any moment would
//! leave it: what was synced is there, of the rest each sector is old or new, and sizes and names may be of any moment
//! since they were last synced. For tests; never used by a store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile, Open};

/// The unit in which unsynced writes are lost.
const SECTOR: usize = 512;

/// The fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// The call fails, and does nothing.
    Error(io::ErrorKind),
    /// A read or write does about half of what was asked, any other call fails with an I/O error. A write ends where a
    /// sector does, as systems take whole blocks; one within a sector is done.
    Short,
    /// A write does about half of what was asked, and the next one fails as the disk is full.
    Torn,
}

/// How much of what was not synced a crash leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Only the process dies: everything is there.
    Process,
    /// Nothing that was not synced is there.
    Everything,
    /// Of each sector, size and name, some state since the last sync, chosen by this seed.
    Random(u64),
}

#[derive(Debug, Clone)]
enum Event {
    Create { path: PathBuf, file: usize },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
    SyncDir { dir: PathBuf },
    Write { file: usize, offset: usize, bytes: Arc<[u8]> },
    SetLen { file: usize, len: usize },
    Sync { file: usize },
    Mark(u64),
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<PathBuf, usize>,
    files: Vec<Vec<u8>>,
    dirs: BTreeSet<PathBuf>,
    /// Which handle has the lock of a file.
    locks: BTreeMap<usize, u64>,
    handles: u64,
    history: Vec<Event>,
    calls: u64,
    fault: Option<(u64, DiskFault, bool)>,
    /// Whether the next sync fails, and whether all after it do.
    sync_fault: Option<bool>,
    /// Whether syncs wait, how many do, and what they sleep on.
    holds_syncs: bool,
    held: usize,
    changed: Arc<Condvar>,
}

/// A disk in memory. Clones share it.
#[derive(Clone, Default)]
pub struct Faulty(Arc<Mutex<State>>);

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl State {
    /// Counts a call, and fails if its time has come. `Ok(true)` asks for a short read or write.
    fn call(&mut self, can_be_short: bool) -> io::Result<bool> {
        let now = self.calls;
        self.calls += 1;
        let Some((at, fault, lasting)) = self.fault else { return Ok(false) };
        if now != at && !(lasting && now > at) {
            return Ok(false);
        }
        match fault {
            DiskFault::Error(kind) => Err(kind.into()),
            DiskFault::Short if can_be_short => Ok(true),
            DiskFault::Short => Err(io::ErrorKind::Other.into()),
            DiskFault::Torn if can_be_short => {
                self.fault = Some((now + 1, DiskFault::Error(io::ErrorKind::StorageFull), lasting));
                Ok(true)
            }
            DiskFault::Torn => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn id(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Faulty {
    /// Makes an empty disk.
    pub fn new() -> Faulty {
        Faulty::default()
    }

    /// Makes a disk with these files, all of them synced.
    pub fn with_files(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Faulty {
        let disk = Faulty::new();
        {
            let mut state = disk.state();
            for (path, content) in files {
                for dir in path.ancestors().skip(1) {
                    state.dirs.insert(dir.to_owned());
                }
                let file = state.files.len();
                state.files.push(content.clone());
                state.names.insert(path.clone(), file);
                let bytes = content.into();
                state.history.push(Event::Create { path, file });
                state.history.push(Event::Write { file, offset: 0, bytes });
                state.history.push(Event::Sync { file });
            }
            let dirs: Vec<_> = state.dirs.iter().cloned().collect();
            state.history.extend(dirs.into_iter().map(|dir| Event::SyncDir { dir }));
        }
        disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all files as they are.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        state.names.iter().map(|(path, file)| (path.clone(), state.files[*file].clone())).collect()
    }

    /// Makes the call number `at` from now on fail, and all after it if `lasting`.
    pub fn fail(&self, at: u64, fault: DiskFault, lasting: bool) {
        let mut state = self.state();
        state.fault = Some((state.calls + at, fault, lasting));
    }

    /// Makes the next sync of a file fail, of any handle, and all after it if `lasting`.
    pub fn fail_syncs(&self, lasting: bool) {
        self.state().sync_fault = Some(lasting);
    }

    /// Has syncs of files wait, or lets those that wait go on.
    pub fn hold_syncs(&self, holds: bool) {
        let mut state = self.state();
        state.holds_syncs = holds;
        state.changed.notify_all();
    }

    /// Returns how many syncs wait.
    pub fn held_syncs(&self) -> usize {
        self.state().held
    }

    /// Returns how many syncs of files succeeded.
    pub fn syncs(&self) -> usize {
        self.state().history.iter().filter(|event| matches!(event, Event::Sync { .. })).count()
    }

    /// Lets all calls succeed again.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.fault, state.sync_fault) = (None, None);
    }

    /// Tells whether the fault that was asked for is still to come.
    pub fn is_pending(&self) -> bool {
        let state = self.state();
        state.fault.is_some_and(|(at, ..)| at >= state.calls)
    }

    /// Returns how many calls there were.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Notes something in the history, such as a size that was acknowledged.
    pub fn mark(&self, value: u64) {
        self.state().history.push(Event::Mark(value));
    }

    /// Returns the length of the history: the moments at which a crash can be tried.
    pub fn moments(&self) -> usize {
        self.state().history.len()
    }

    /// Returns the marks that were set before a moment.
    pub fn marks(&self, moment: usize) -> Vec<u64> {
        let mark = |event: &Event| if let Event::Mark(value) = event { Some(*value) } else { None };
        self.state().history[..moment].iter().filter_map(mark).collect()
    }

    /// Makes the disk as a crash at a moment leaves it.
    pub fn image(&self, moment: usize, crash: Crash) -> Faulty {
        let state = self.state();
        let events = &state.history[..moment];
        let mut random = Random::new(crash);
        let mut contents = Vec::with_capacity(state.files.len());
        for file in 0..state.files.len() {
            contents.push(content_after(events, file, crash, &mut random));
        }
        let names = names_after(events, crash, &mut random);
        let files = names.into_iter().map(|(path, file)| (path, contents[file].clone()));
        let image = Faulty::with_files(files.collect::<Vec<_>>());
        image.state().dirs.extend(state.dirs.iter().cloned());
        image
    }

    /// Makes the disk as it is when a process dies at a moment and the machine runs on: everything is there, but what was
    /// not synced is still not on disk, and a power cut may take it later.
    pub fn killed(&self, moment: usize) -> Faulty {
        let state = self.state();
        let history = state.history[..moment].to_vec();
        let mut files = vec![Vec::new(); state.files.len()];
        for event in &history {
            if let Event::Write { file, .. } | Event::SetLen { file, .. } = event {
                apply(&mut files[*file], event, *file);
            }
        }
        let names = names_after(&history, Crash::Process, &mut Random::new(Crash::Process));
        let dirs = state.dirs.clone();
        Faulty(Arc::new(Mutex::new(State { names, files, dirs, history, ..State::default() })))
    }
}

/// How much of a write is done if it is cut short.
fn short_length(offset: usize, length: usize) -> usize {
    let half = (offset + length.div_ceil(2)).next_multiple_of(SECTOR) - offset;
    half.min(length)
}

/// A generator that always gives the same numbers for a seed.
struct Random(u64);

impl Random {
    fn new(crash: Crash) -> Random {
        let seed = if let Crash::Random(seed) = crash { seed } else { 0 };
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// How many of `count` steps are kept.
    fn steps(&mut self, count: usize, crash: Crash) -> usize {
        match crash {
            Crash::Process => count,
            Crash::Everything => 0,
            // All and nothing are likelier than anything between.
            Crash::Random(_) => match self.below(4) {
                0 => 0,
                1 => count,
                _ => self.below(count + 1),
            },
        }
    }
}

fn content_after(events: &[Event], file: usize, crash: Crash, random: &mut Random) -> Vec<u8> {
    let synced =
        events.iter().rposition(|event| matches!(event, Event::Sync { file: synced } if *synced == file));
    let (before, after) = events.split_at(synced.map_or(0, |at| at + 1));
    let mut base = Vec::new();
    for event in before {
        apply(&mut base, event, file);
    }
    let changes: Vec<&Event> = after
        .iter()
        .filter(|event| {
            matches!(event, Event::Write { file: at, .. } | Event::SetLen { file: at, .. } if *at == file)
        })
        .collect();
    // Every state that the file went through; each sector and the size may be of another one.
    let mut states = vec![base];
    for event in changes {
        let mut next = states.last().expect("there is the first one").clone();
        apply(&mut next, event, file);
        states.push(next);
    }
    let count = states.len() - 1;
    let size = states[random.steps(count, crash)].len();
    let mut content = vec![0; size];
    for (sector, part) in content.chunks_mut(SECTOR).enumerate() {
        let state = &states[random.steps(count, crash)];
        let known = state.get(sector * SECTOR..).unwrap_or_default();
        let length = known.len().min(part.len());
        part[..length].copy_from_slice(&known[..length]);
    }
    content
}

fn apply(content: &mut Vec<u8>, event: &Event, file: usize) {
    match event {
        Event::Write { file: at, offset, bytes } if *at == file => {
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset..end].copy_from_slice(bytes);
        }
        Event::SetLen { file: at, len } if *at == file => content.resize(*len, 0),
        _ => {}
    }
}

fn names_after(events: &[Event], crash: Crash, random: &mut Random) -> BTreeMap<PathBuf, usize> {
    let dir_of = |event: &Event| match event {
        Event::Create { path, .. } | Event::Remove { path } => path.parent().map(Path::to_owned),
        Event::Rename { to, .. } => to.parent().map(Path::to_owned),
        _ => None,
    };
    let is_synced = |at: usize, dir: &Path| {
        events[at..].iter().any(|event| matches!(event, Event::SyncDir { dir: synced } if synced == dir))
    };
    let changes: Vec<(usize, PathBuf)> =
        events.iter().enumerate().filter_map(|(at, event)| Some((at, dir_of(event)?))).collect();
    let loose = changes.iter().filter(|(at, dir)| !is_synced(*at, dir)).count();
    let mut kept = random.steps(loose, crash);
    let mut names = BTreeMap::new();
    for (at, dir) in changes {
        if !is_synced(at, &dir) {
            // Names change in order, as a journal has it.
            if kept == 0 {
                continue;
            }
            kept -= 1;
        }
        match &events[at] {
            Event::Create { path, file } => {
                names.insert(path.clone(), *file);
            }
            Event::Remove { path } => {
                names.remove(path);
            }
            Event::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            _ => {}
        }
    }
    names
}

impl Disk for Faulty {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.call(false)?;
        let file = match state.names.get(path) {
            Some(file) => *file,
            None if how == Open::Create => {
                let file = state.files.len();
                state.files.push(Vec::new());
                state.names.insert(path.to_owned(), file);
                state.history.push(Event::Create { path: path.to_owned(), file });
                file
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        state.handles += 1;
        let (disk, handle) = (self.clone(), state.handles);
        Ok(Arc::new(Handle { disk, file, handle, how }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(false)?;
        state.dirs.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(false)?;
        let file = state.id(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), file);
        state.history.push(Event::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(false)?;
        state.id(path)?;
        state.names.remove(path);
        state.history.push(Event::Remove { path: path.to_owned() });
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.call(false)?;
        let inside = |known: &PathBuf| {
            let name = known.strip_prefix(path).ok()?.iter().next()?;
            Some(name.to_string_lossy().into_owned())
        };
        let names: BTreeSet<String> = state.names.keys().chain(&state.dirs).filter_map(inside).collect();
        Ok(names.into_iter().collect())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(false)?;
        state.history.push(Event::SyncDir { dir: path.to_owned() });
        Ok(())
    }
}

struct Handle {
    disk: Faulty,
    file: usize,
    handle: u64,
    how: Open,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.file)
    }
}

impl Handle {
    fn check_writable(&self) -> io::Result<()> {
        if self.how == Open::Read { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.file) == Some(&self.handle) {
            state.locks.remove(&self.file);
        }
    }
}

impl DiskFile for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let short = state.call(true)?;
        let known = state.files[self.file].get(offset as usize..).unwrap_or_default();
        let mut length = known.len().min(buffer.len());
        if short {
            length = length.div_ceil(2);
        }
        buffer[..length].copy_from_slice(&known[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.check_writable()?;
        let mut state = self.disk.state();
        let short = state.call(true)?;
        let bytes = if short { &bytes[..short_length(offset as usize, bytes.len())] } else { bytes };
        let event = Event::Write { file: self.file, offset: offset as usize, bytes: bytes.into() };
        apply(&mut state.files[self.file], &event, self.file);
        state.history.push(event);
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call(false)?;
        while state.holds_syncs {
            state.held += 1;
            let changed = Arc::clone(&state.changed);
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.held -= 1;
        }
        if let Some(lasting) = state.sync_fault {
            state.sync_fault = lasting.then_some(true);
            return Err(io::Error::other("the disk did not answer"));
        }
        state.history.push(Event::Sync { file: self.file });
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.state();
        state.call(false)?;
        let event = Event::SetLen { file: self.file, len: len as usize };
        apply(&mut state.files[self.file], &event, self.file);
        state.history.push(event);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.call(false)?;
        Ok(state.files[self.file].len() as u64)
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        state.call(false)?;
        match state.locks.get(&self.file) {
            Some(owner) if *owner != self.handle => Ok(false),
            _ => {
                state.locks.insert(self.file, self.handle);
                Ok(true)
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call(false)?;
        if state.locks.get(&self.file) == Some(&self.handle) {
            state.locks.remove(&self.file);
        }
        Ok(())
    }
}
