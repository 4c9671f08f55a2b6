//! Chains by their id, a file each (witness-log paper 2.3). The host decides on the place of the files.

use std::collections::BTreeMap;

use crate::chain::InteractionChain;
use crate::chain_file::{ChainFile, ChainIdError, check_chain_id};
use crate::row::RowValue;
use crate::step::{StartedAt, Step, content_hash_of, hashed, header_hash};

/// Files that a host keeps, by name.
pub trait ChainFiles {
    /// Why a file could not be read or written.
    type Error;

    /// The bytes of a file; `None` without such a file.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Calls `more` with the last line of a file, with the newline that ends it, and appends durably what it returns. The line of a
    /// new file is empty. No other writer changes the file meanwhile.
    fn append(&mut self, name: &str, more: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Result<(), Self::Error>;

    /// Writes a whole file in the place of the one that is there.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), Self::Error>;

    /// The names of all files.
    fn names(&self) -> Result<Vec<String>, Self::Error>;

    /// Removes a file; whether there was one.
    fn remove(&mut self, name: &str) -> Result<bool, Self::Error>;
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles(BTreeMap<String, Vec<u8>>);

impl ChainFiles for MemoryFiles {
    type Error = std::convert::Infallible;

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(self.0.get(name).cloned())
    }

    fn append(&mut self, name: &str, more: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Result<(), Self::Error> {
        let bytes = self.0.entry(name.to_owned()).or_default();
        let more = more(last_line(bytes));
        bytes.extend(more);
        Ok(())
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, Self::Error> {
        Ok(self.0.keys().cloned().collect())
    }

    fn remove(&mut self, name: &str) -> Result<bool, Self::Error> {
        Ok(self.0.remove(name).is_some())
    }
}

/// Why a chain could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InteractionStoreError<E> {
    /// The id names no file.
    #[error(transparent)]
    Id(ChainIdError),
    /// The files could not be read or written.
    #[error("the files of chains could not be read or written")]
    Files(E),
}

/// A chain that was read, and the lines that are not in it.
#[derive(Debug, Clone)]
pub struct LoadedChain {
    /// The chain. A file that is missing or has no header is a chain without steps.
    pub chain: InteractionChain,
    /// Lines that are no steps, by their number, each with what is wrong.
    pub skipped: Vec<(usize, String)>,
}

/// Chains in files, `ID.jsonl` each.
#[derive(Debug, Clone, Default)]
pub struct InteractionStore<F> {
    files: F,
}

const SUFFIX: &str = ".jsonl";

impl<F: ChainFiles> InteractionStore<F> {
    /// A store over the host's files.
    pub fn new(files: F) -> InteractionStore<F> {
        InteractionStore { files }
    }

    /// The name of the file of a chain.
    pub fn path_for(chain_id: &str) -> Result<String, InteractionStoreError<F::Error>> {
        check_chain_id(chain_id).map_err(InteractionStoreError::Id)?;
        Ok(format!("{chain_id}{SUFFIX}"))
    }

    /// Appends a step to the file of a chain, which begins with a header of its own if none is given.
    pub fn append(
        &mut self,
        chain_id: &str,
        step: &Step,
        header: Option<&RowValue>,
    ) -> Result<(), InteractionStoreError<F::Error>> {
        let name = Self::path_for(chain_id)?;
        let write = &mut |last: &[u8]| {
            let mut out = String::new();
            let mut prev = hash_of_line(last);
            if last.is_empty() {
                let begun = || InteractionChain::begun(chain_id, step.started_at.clone()).header();
                let header = header.cloned().unwrap_or_else(begun).to_string();
                prev = Some(header_hash(&header));
                out = header + "\n";
            } else if !last.ends_with(b"\n") {
                // The last line was cut. It stays, and this one is not joined to it.
                out.push('\n');
            }
            let row = hashed(step.to_row(), prev.as_deref());
            out.push_str(&row.to_string());
            out.push('\n');
            out.into_bytes()
        };
        self.files.append(&name, write).map_err(InteractionStoreError::Files)
    }

    /// Writes a whole chain in the place of its file. Any step that is in the file alone is lost.
    pub fn append_chain(&mut self, chain: &InteractionChain) -> Result<(), InteractionStoreError<F::Error>> {
        let name = Self::path_for(chain.chain_id())?;
        let text = chain.to_jsonl() + "\n";
        self.files.replace(&name, text.as_bytes()).map_err(InteractionStoreError::Files)
    }

    /// Reads a chain; what is no step is passed over and named.
    pub fn load(&self, chain_id: &str) -> Result<LoadedChain, InteractionStoreError<F::Error>> {
        let name = Self::path_for(chain_id)?;
        let bytes = self.files.read(&name).map_err(InteractionStoreError::Files)?.unwrap_or_default();
        let epoch = StartedAt::of(dendrer_object::time::Timestamp::from_ms(0));
        let file = match ChainFile::read(&bytes) {
            Ok(file) => file,
            Err(error) => {
                let skipped = if bytes.is_empty() { Vec::new() } else { vec![(1, error.to_string())] };
                return Ok(LoadedChain { chain: InteractionChain::begun(chain_id, epoch), skipped });
            }
        };
        let mut chain = InteractionChain::begun(chain_id, file.started_at().unwrap_or(epoch));
        if let Some(context) = file.header.as_ref().and_then(|header| header.get("context")) {
            chain.context = context.clone();
        }
        let mut skipped = Vec::new();
        for row in file.rows {
            match row.step {
                Some(step) => {
                    chain.append(step, None);
                }
                None => {
                    skipped.push((row.line, row.faults.first().map(ToString::to_string).unwrap_or_default()))
                }
            }
        }
        Ok(LoadedChain { chain, skipped })
    }

    /// The ids of all chains, sorted.
    pub fn list_chains(&self) -> Result<Vec<String>, InteractionStoreError<F::Error>> {
        let names = self.files.names().map_err(InteractionStoreError::Files)?;
        let mut ids: Vec<String> =
            names.iter().filter_map(|name| name.strip_suffix(SUFFIX)).map(str::to_owned).collect();
        ids.sort();
        Ok(ids)
    }

    /// Removes a chain; whether there was one.
    pub fn delete(&mut self, chain_id: &str) -> Result<bool, InteractionStoreError<F::Error>> {
        let name = Self::path_for(chain_id)?;
        self.files.remove(&name).map_err(InteractionStoreError::Files)
    }
}

/// The last line of a file, with the newline that ends it.
pub fn last_line(bytes: &[u8]) -> &[u8] {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let begin = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &bytes[begin..]
}

/// The hash that the row behind a line names: what a row says of itself, or that of the header. A line that is cut has none.
fn hash_of_line(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let row = RowValue::parse(text).ok()?;
    match row.get("action") {
        Some(_) => content_hash_of(&row).map(str::to_owned),
        None => Some(header_hash(text)),
    }
}
