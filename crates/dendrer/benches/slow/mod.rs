//! The file system of the machine with syncs that take a while, as on a disk that waits for its medium.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer::store::disk::{Disk, DiskFile, Open, Real};

/// A sync takes at least this long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slow(pub(crate) Duration);

#[derive(Debug)]
struct SlowFile(Arc<dyn DiskFile>, Duration);

impl Disk for Slow {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile(Real.open(path, how)?, self.0)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Real.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Real.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Real.remove(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Real.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        Real.sync_dir(path)
    }
}

impl DiskFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        let begin = Instant::now();
        self.0.sync()?;
        std::thread::sleep(self.1.saturating_sub(begin.elapsed()));
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}
