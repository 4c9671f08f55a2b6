//! The segment files of a store: named, opened and read by frame position.
//!
//! Never writes; appending is for the lock holder alone (`embedded`). Open files are few, whatever the number of
//! segments is.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dendrer_object::StoreId;

use crate::disk::{self, Disk, DiskFile, Open};
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::frame::{self, At, FrameHead, HEAD};
use crate::layout::{SEGMENT_HEADER, SegmentHeader};

/// How many segment files are open at most.
const OPEN_MAX: usize = 64;

/// How many bytes of frames are kept after reading, for values that share them.
const CACHE_BYTES: usize = 32 << 20;

/// How much is read at once where the size of a frame is not known yet: most values, and the record after them.
const GUESS: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    store: StoreId,
    writable: bool,
    /// The end of the log of a backup, whatever a later one that was interrupted left after it.
    limit: Option<(u32, u64)>,
    files: Mutex<BTreeMap<u32, Arc<dyn DiskFile>>>,
    cache: Mutex<Cache>,
}

/// Kind and payload of a chunk or list.
pub(crate) type Shared = Arc<(u8, Vec<u8>)>;

/// Frames read lately, in two generations: when the younger is full, the older one goes.
#[derive(Debug, Default)]
struct Cache {
    young: HashMap<u64, Shared>,
    old: HashMap<u64, Shared>,
    bytes: usize,
}

impl Cache {
    fn get(&mut self, at: u64) -> Option<Shared> {
        if let Some(found) = self.young.get(&at) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(&at)?;
        self.put(at, Arc::clone(&found));
        Some(found)
    }

    fn put(&mut self, at: u64, frame: Shared) {
        self.bytes += frame.1.len() + 64;
        self.young.insert(at, frame);
        if self.bytes > CACHE_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }
}

/// Returns the name of a segment file.
pub(crate) fn file_name(number: u32) -> String {
    format!("{number:08}.seg")
}

/// Returns the name by which findings call a segment file.
pub(crate) fn place_name(number: u32) -> String {
    format!("segments/{number:08}.seg")
}

/// A frame that was read, or the reason why there is no frame.
pub(crate) enum Read {
    Frame(u8, Vec<u8>),
    /// A bad checksum; the length may still be right.
    Broken(FrameHead, u32),
    /// The file ends before it.
    Short,
}

impl Segments {
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: PathBuf, store: StoreId, writable: bool) -> Segments {
        Segments { disk, dir, store, writable, limit: None, files: Mutex::default(), cache: Mutex::default() }
    }

    /// Lets the log end at a segment and an offset.
    pub(crate) fn limited(self, limit: Option<(u32, u64)>) -> Segments {
        Segments { limit, ..self }
    }

    fn is_beyond(&self, number: u32) -> bool {
        self.limit.is_some_and(|(last, _)| number > last)
    }

    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.dir.join(file_name(number))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lists the numbers of the segment files.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, StoreError> {
        let names = self.disk.list(&self.dir).map_err(|error| StoreError::io("list", &self.dir, error))?;
        let number = |name: &String| name.strip_suffix(".seg").filter(|name| name.len() >= 8)?.parse().ok();
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.retain(|number| !self.is_beyond(*number));
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns an open segment file; `None` if no segment has this number.
    pub(crate) fn file(&self, number: u32) -> Result<Option<Arc<dyn DiskFile>>, StoreError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&number) {
            return Ok(Some(Arc::clone(file)));
        }
        if self.is_beyond(number) {
            return Ok(None);
        }
        let path = self.path(number);
        let how = if self.writable { Open::Write } else { Open::Read };
        let file = match self.disk.open(&path, how) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("open", &path, error)),
        };
        let file = match self.limit {
            Some((last, len)) if last == number => disk::limited(file, len),
            _ => file,
        };
        if files.len() >= OPEN_MAX {
            // Any but the last, which every append needs; which one hardly matters.
            files.pop_first();
        }
        files.insert(number, Arc::clone(&file));
        Ok(Some(file))
    }

    /// Takes in a file that was just made.
    pub(crate) fn put_file(&self, number: u32, file: Arc<dyn DiskFile>) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(number, file);
    }

    /// Reads the header of a segment. `Ok(None)` if the file is missing, empty, short or all zeros there: a segment
    /// whose begin never reached the disk.
    pub(crate) fn header(&self, number: u32) -> Result<Option<SegmentHeader>, StoreError> {
        let Some(file) = self.file(number)? else { return Ok(None) };
        let mut bytes = [0; SEGMENT_HEADER];
        let read = disk::read_up_to(&*file, &mut bytes, 0).map_err(|e| self.io("read", number, e))?;
        if read < SEGMENT_HEADER || bytes == [0; SEGMENT_HEADER] {
            return Ok(None);
        }
        let damage = |what, expected: String, found: String| Damage {
            kind: DamageKind::File,
            place: DamagePlace { file: place_name(number), offset: Some(0), ..DamagePlace::default() },
            what,
            expected,
            found,
        };
        let header = SegmentHeader::parse(&bytes).ok_or_else(|| {
            damage("segment header", "a valid header".into(), dendrer_object::digest::hex(&bytes[..18]))
        })?;
        if header.store != self.store {
            let (expected, found) = (self.store.to_string(), header.store.to_string());
            return Err(damage("store of the segment", expected, found).into());
        }
        if header.number != number {
            let (expected, found) = (number.to_string(), header.number.to_string());
            return Err(damage("number of the segment", expected, found).into());
        }
        Ok(Some(header))
    }

    pub(crate) fn io(&self, action: &'static str, number: u32, error: std::io::Error) -> StoreError {
        StoreError::io(action, &self.path(number), error)
    }

    /// Reads the frame at a position.
    pub(crate) fn read(&self, at: At) -> Result<Read, StoreError> {
        Ok(self.read_with(at, &mut Vec::new())?.0)
    }

    /// Reads the frame at a position through a buffer that may hold more of the file after it. Returns also how many
    /// bytes of the buffer the frame took.
    fn read_with(&self, at: At, buffer: &mut Vec<u8>) -> Result<(Read, usize), StoreError> {
        let Some(file) = self.file(at.segment)? else { return Ok((Read::Short, 0)) };
        let io = |error| self.io("read", at.segment, error);
        buffer.resize(GUESS, 0);
        let read = disk::read_up_to(&*file, buffer, u64::from(at.offset)).map_err(io)?;
        buffer.truncate(read);
        let Some(head) = buffer.first_chunk::<HEAD>() else { return Ok((Read::Short, 0)) };
        let head = FrameHead::parse(head);
        if head.len as usize > frame::PAYLOAD_MAX {
            return Ok((Read::Short, 0));
        }
        let size = head.size() as usize;
        if size > buffer.len() {
            let len = file.len().map_err(io)?;
            if u64::from(at.offset) + head.size() > len {
                return Ok((Read::Short, 0));
            }
            let have = buffer.len();
            buffer.resize(size, 0);
            disk::read_exact(&*file, &mut buffer[have..], u64::from(at.offset) + have as u64).map_err(io)?;
        }
        Ok(match frame::open(&buffer[..size]) {
            Ok((kind, payload)) => (Read::Frame(kind, payload.to_vec()), size),
            Err(found) => (Read::Broken(head, found), size),
        })
    }

    /// Reads the frame at a position and the one after it.
    pub(crate) fn read_two(&self, at: At) -> Result<(Read, Read, At), StoreError> {
        let mut buffer = Vec::new();
        let (first, size) = self.read_with(at, &mut buffer)?;
        let next = At { segment: at.segment, offset: at.offset.saturating_add(size as u32) };
        if size == 0 {
            return Ok((first, Read::Short, next));
        }
        let rest = &buffer[size..];
        let second = match rest.first_chunk::<HEAD>().map(FrameHead::parse) {
            Some(head) if head.size() <= rest.len() as u64 => {
                match frame::open(&rest[..head.size() as usize]) {
                    Ok((kind, payload)) => Read::Frame(kind, payload.to_vec()),
                    Err(found) => Read::Broken(head, found),
                }
            }
            _ => self.read(next)?,
        };
        Ok((first, second, next))
    }

    /// Reads a chunk or list frame through the cache.
    pub(crate) fn read_shared(&self, at: u64) -> Result<Option<Shared>, StoreError> {
        if let Some(found) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(at) {
            return Ok(Some(found));
        }
        let Read::Frame(kind @ (frame::CHUNK | frame::LIST), payload) = self.read(At::from_u64(at))? else {
            return Ok(None);
        };
        let found = Arc::new((kind, payload));
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).put(at, Arc::clone(&found));
        Ok(Some(found))
    }

    /// Forgets cached frames, some of which were erased.
    pub(crate) fn forget(&self) {
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Cache::default();
    }

    /// Returns a reader of frames from a place on.
    pub(crate) fn reader(&self, at: At, window: usize) -> Result<Option<frame::Reader>, StoreError> {
        Ok(self.file(at.segment)?.map(|file| frame::Reader::new(file, u64::from(at.offset), window)))
    }
}
