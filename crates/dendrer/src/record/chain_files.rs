//! Files of chains in a directory, as `carl-core` keeps them at `~/.carl/interactions` (witness-log paper 2.3).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use dendrer_chain::{ChainFiles, last_line};

/// A directory with a file for each chain. Programs that append at once take turns.
#[derive(Debug, Clone)]
pub struct ChainDirectory(pub PathBuf);

impl ChainDirectory {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// How much is read at the end of a file to find its last line.
const TAIL: u64 = 1 << 16;

/// The last line of a file, with the newline that ends it.
fn tail(file: &mut File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let mut from = size.saturating_sub(TAIL);
    loop {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let line = last_line(&bytes);
        // A line that fills all that was read may begin before it.
        if line.len() < bytes.len() || from == 0 {
            return Ok(line.to_vec());
        }
        from = from.saturating_sub(bytes.len() as u64);
    }
}

impl ChainFiles for ChainDirectory {
    type Error = io::Error;

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut file = match File::open(self.path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.lock_shared()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn append(&mut self, name: &str, more: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(self.path(name))?;
        file.lock()?;
        let line = tail(&mut file)?;
        file.write_all(&more(&line))?;
        file.sync_data()
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let mut made = tempfile_in(&self.0)?;
        made.1.write_all(bytes)?;
        made.1.sync_all()?;
        fs::rename(&made.0, self.path(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn remove(&mut self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A new file beside the others, of a name that is no chain's.
fn tempfile_in(directory: &std::path::Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0;
    loop {
        let path = directory.join(format!(".making-{}-{number}", std::process::id()));
        match OpenOptions::new().create_new(true).write(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
