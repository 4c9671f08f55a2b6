//! Sources of an import: a file or a pipe, inflated where it is compressed, kept where it can be read more than once.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dendrer::watch::Watch;
use dendrer_object::Code;
use dendrer_wire::inflate::{self, Frames};
use flate2::read::MultiGzDecoder;

use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::files;
use crate::progress::Progress;

/// The source: a file, or bytes of a pipe, kept where they can be read more than once.
pub(super) struct Source {
    file: File,
    pub(super) name: Option<String>,
    /// How many bytes were read of it.
    read: Arc<AtomicU64>,
}

impl Source {
    /// Opens a file or the standard input.
    pub(super) fn open(path: &str) -> Result<Source> {
        let (mut file, name) = match path {
            "-" => (spool(&mut io::stdin())?, None),
            _ => {
                let mut file = files::open(path)?;
                let about = file.metadata().map_err(|error| files::cannot_read(path, &error))?;
                if about.is_dir() {
                    let text = format!("{path} is a directory; name one file of it");
                    return Err(Failure::new(Code::E0108, text));
                }
                if !about.is_file() {
                    file = spool(&mut file)?;
                }
                let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
                (file, name)
            }
        };
        let mut head = [0; 4];
        let size = file.read(&mut head).map_err(|error| files::cannot_read(path, &error))?;
        file.rewind().map_err(|error| files::cannot_read(path, &error))?;
        let file = match &head[..size] {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(utf_16(path)),
            [0x1f, 0x8b, ..] => inflated(path, &file, |read| Ok(Box::new(MultiGzDecoder::new(read))))?,
            [0x28, 0xb5, 0x2f, 0xfd] => inflated(path, &file, |read| Ok(Box::new(Frames::new(read))))?,
            _ => file,
        };
        let name = name.map(|name| {
            let stem = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end));
            stem.unwrap_or(&name).to_owned()
        });
        Ok(Source { file, name, read: Arc::default() })
    }

    /// Takes other bytes in place of those of the file.
    pub(super) fn replace(&mut self, bytes: &mut dyn Read) -> Result<()> {
        self.file = spool(bytes)?;
        Ok(())
    }

    /// Shows from now on how much of it was read.
    pub(super) fn watched(&mut self, global: &Global, unit: &'static str) -> Progress {
        let size = self.file.metadata().map(|about| about.len()).ok();
        let progress = Progress::start(global, "import", unit, size);
        self.read = progress.counter();
        progress
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Watch::counting(Arc::clone(&self.read)).reader(&mut self.file).read(buffer)
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn spool(input: &mut dyn Read) -> Result<File> {
    let spooled = tempfile::tempfile().and_then(|mut file| {
        io::copy(input, &mut file)?;
        file.rewind()?;
        Ok(file)
    });
    spooled.map_err(|error| {
        Failure::new(Code::E0801, "cannot keep the source to read it twice").at("cause", error.to_string())
    })
}

fn utf_16(path: &str) -> Failure {
    Failure::new(Code::E0206, format!("{path} is UTF-16, and a trace is UTF-8"))
        .note("nothing was imported")
        .note("iconv -f UTF-16 -t UTF-8 converts it")
}

type Compressed<'f> = BufReader<Counted<&'f File>>;

/// Inflates a file into one of its own.
fn inflated<'f>(
    path: &str,
    file: &'f File,
    decoder: impl FnOnce(Compressed<'f>) -> io::Result<Box<dyn Read + 'f>>,
) -> Result<File> {
    let counter = Arc::new(AtomicU64::new(0));
    let read = Counted { read: file, counter: Arc::clone(&counter) };
    let fail = |error: io::Error| {
        Failure::new(Code::E0201, format!("{path} cannot be inflated: {error}")).note("nothing was imported")
    };
    let mut decoder = decoder(BufReader::new(read)).map_err(fail)?;
    let cannot_keep = |error: io::Error| {
        Failure::new(Code::E0801, "cannot keep the inflated source").at("cause", error.to_string())
    };
    let mut kept = tempfile::tempfile().map_err(cannot_keep)?;
    let mut buffer = vec![0; 64 << 10];
    let mut size = 0;
    loop {
        let count = decoder.read(&mut buffer).map_err(fail)?;
        if count == 0 {
            break;
        }
        size += count as u64;
        let from = counter.load(std::sync::atomic::Ordering::Relaxed);
        if inflate::is_too_large(size, from) {
            let text = format!("{path} inflates to more than {} times its size", inflate::TIMES);
            return Err(Failure::new(Code::E0205, text).note("nothing was imported"));
        }
        kept.write_all(&buffer[..count]).map_err(cannot_keep)?;
    }
    kept.rewind().map_err(cannot_keep)?;
    Ok(kept)
}

/// Counts the bytes that are read.
struct Counted<R> {
    read: R,
    counter: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read.read(buffer)?;
        self.counter.fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(count)
    }
}
