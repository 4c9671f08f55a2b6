//! The files of sub-agents beside a session file, as one stream of lines with it.
//!
//! Of `DIR/ID.jsonl` these are `DIR/ID/subagents/**/agent-*.jsonl`, with `agent-*.meta.json` beside each, and in older versions
//! `DIR/agent-*.jsonl` whose first line has the `sessionId` ID. Lines are merged by `timestamp`; a line without one follows the line
//! before it in its file. A line of a sub-agent becomes `{"subagent":{"file":..},"line":LINE}` with the members of the `.meta.json`.
//! Follows no links. Rule: the lines of each file keep their order, and no line is lost.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use dendrer_object::json::{VALUE_SIZE_MAX, parse_door, to_string};
use dendrer_object::{Value, value::Object};

use crate::foreign::GatheredLines;
use crate::import::error::ImportError;

/// How deep directories below `subagents` are looked through, and how many files there may be.
const DEPTH: usize = 4;
const FILES_MAX: usize = 10_000;

/// The largest `.meta.json` that is read.
const META_SIZE_MAX: u64 = 1 << 20;

/// After all timestamps: the line in which the session file ends.
const END: &str = "~";

/// Returns the lines of a session with those of its sub-agents; `None` if there are no files of sub-agents.
pub(super) fn gather(session: &Path) -> Result<Option<GatheredLines>, ImportError> {
    let mut files = Vec::new();
    let (Some(dir), Some(stem)) = (session.parent(), session.file_stem()) else { return Ok(None) };
    let own = dir.join(stem);
    look(&own.join("subagents"), &own, DEPTH, &mut files).map_err(ImportError::Io)?;
    let is_agent = session.file_name().is_some_and(is_agent_file);
    if files.is_empty() && !is_agent {
        older(dir, stem, &mut files).map_err(ImportError::Io)?;
    }
    if files.is_empty() {
        return Ok(None);
    }
    files.sort();
    let mut sources = vec![Source::open(session.to_owned(), None).map_err(ImportError::Io)?];
    let others = files.iter().map(|(_, path)| path.clone()).collect();
    for (name, path) in files {
        sources.push(Source::open(path, Some(name)).map_err(ImportError::Io)?);
    }
    let lines = Box::new(Merged { sources, out: Vec::new(), at: 0 });
    Ok(Some(GatheredLines { lines, files: others }))
}

fn is_agent_file(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("agent-") && name.ends_with(".jsonl"))
}

/// Collects the files of sub-agents in a directory, by their names below `own`.
fn look(dir: &Path, own: &Path, depth: usize, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() && depth > 0 {
            look(&path, own, depth - 1, files)?;
        } else if kind.is_file() && is_agent_file(&entry.file_name()) {
            if files.len() == FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files of sub-agents")));
            }
            let name = path.strip_prefix(own).unwrap_or(&path).to_string_lossy().into_owned();
            files.push((name, path));
        }
    }
    Ok(())
}

/// Collects the files of sub-agents that lie in the directory of the session, as older versions write them.
fn older(dir: &Path, stem: &OsStr, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let mut near = Vec::new();
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    look(dir, dir, 0, &mut near)?;
    for (name, path) in near {
        let mut first = Vec::new();
        let mut file = BufReader::new(File::open(&path)?.take(VALUE_SIZE_MAX as u64));
        file.read_until(b'\n', &mut first)?;
        let line = parse_door(first.trim_ascii()).ok();
        let session = line.as_ref().and_then(|line| line.get("sessionId")?.as_str());
        if session.map(OsStr::new) == Some(stem) {
            files.push((name, path));
        }
    }
    Ok(())
}

/// One file, with its next line.
struct Source {
    path: PathBuf,
    /// The file from the next line on; `None` until it is its turn.
    reader: Option<BufReader<File>>,
    offset: u64,
    /// The beginning of its lines, for a sub-agent.
    mark: Option<String>,
    head: Option<Vec<u8>>,
    /// The time of the next line.
    time: String,
}

impl Source {
    fn open(path: PathBuf, name: Option<String>) -> io::Result<Source> {
        let mark = name.map(|name| mark(&name, &path)).transpose()?;
        let mut source = Source { path, reader: None, offset: 0, mark, head: None, time: String::new() };
        source.advance()?;
        // There may be more files than can be open.
        source.reader = None;
        Ok(source)
    }

    /// Reads the next line.
    fn advance(&mut self) -> io::Result<()> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => {
                let mut file = File::open(&self.path)?;
                file.seek(SeekFrom::Start(self.offset))?;
                BufReader::new(file)
            }
        };
        let mut line = Vec::new();
        let size = (&mut reader).take(2 * VALUE_SIZE_MAX as u64).read_until(b'\n', &mut line)?;
        self.offset += size as u64;
        if size == 0 {
            self.head = None;
            return Ok(());
        }
        if size as u64 == 2 * VALUE_SIZE_MAX as u64 {
            let name = self.path.display();
            return Err(io::Error::other(format!("a line of {name} has more than {size} bytes")));
        }
        self.reader = Some(reader);
        let is_last = line.last() != Some(&b'\n');
        let parsed = parse_door(line.trim_ascii());
        let time = parsed.as_ref().ok().and_then(|line| line.get("timestamp")?.as_str());
        if let Some(time) = time.filter(|time| *time > self.time.as_str() && *time < END) {
            self.time = time.to_owned();
        }
        let is_blank = line.trim_ascii().is_empty();
        let is_cut = is_last && parsed.is_err() && !is_blank;
        self.head = Some(match &self.mark {
            _ if is_blank => Vec::new(),
            None if is_cut => {
                self.time = END.to_owned();
                line
            }
            Some(mark) if is_cut => {
                let text = Value::from(String::from_utf8_lossy(&line).into_owned());
                format!("{mark}\"cut\":{}}}\n", to_string(&text)).into_bytes()
            }
            Some(mark) if parsed.is_ok() => {
                [mark.as_bytes(), b"\"line\":", line.trim_ascii(), b"}\n"].concat()
            }
            _ => [line.trim_ascii_end(), b"\n"].concat(),
        });
        Ok(())
    }
}

/// Returns the beginning of the lines of a sub-agent: its file and the members of its `.meta.json`.
fn mark(name: &str, path: &Path) -> io::Result<String> {
    let mut about = Object::default();
    let meta = path.with_extension("meta.json");
    if fs::symlink_metadata(&meta).is_ok_and(|meta| meta.is_file() && meta.len() <= META_SIZE_MAX)
        && let Ok(Value::Object(members)) = parse_door(fs::read(&meta)?.trim_ascii())
    {
        about = members;
    }
    about.set("file", Value::from(name));
    Ok(format!("{{\"subagent\":{},", to_string(&Value::Object(about))))
}

/// The lines of several files in the order of their times.
struct Merged {
    sources: Vec<Source>,
    out: Vec<u8>,
    at: usize,
}

impl Read for Merged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            // Of equal times that of the session is first.
            let waiting = self.sources.iter_mut().filter(|source| source.head.is_some());
            let Some(next) = waiting.min_by(|a, b| a.time.cmp(&b.time)) else { return Ok(0) };
            self.out = next.head.take().unwrap_or_default();
            self.at = 0;
            next.advance()?;
        }
        let size = buffer.len().min(self.out.len() - self.at);
        buffer[..size].copy_from_slice(&self.out[self.at..self.at + size]);
        self.at += size;
        Ok(size)
    }
}
