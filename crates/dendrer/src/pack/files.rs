//! The files that the text of a pack names: modules, which stand in the pack as bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use dendrer_kernel::pack::modules;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Code, Digest, Pointer, Value, tag};

use super::yaml::{Document, PackProblem};

/// The place from which the files that a text names are read.
#[derive(Debug, Clone, Copy)]
pub enum Files<'f> {
    /// Nowhere: it is not known where the text lies, so one that names a file is no pack.
    Nowhere,
    /// This directory: that of the file of the text.
    Beside(&'f Path),
    /// This pack, which is on record: its modules stand for those that the text names at the same places, whatever it calls
    /// them. No file is read.
    Of(&'f Value),
}

impl Files<'_> {
    /// Puts the bytes of each module where the text names its file, and tells of those that cannot be read.
    pub(crate) fn fill(self, mut document: Document) -> (Document, Vec<PackProblem>) {
        let (mut ops, mut problems) = (Vec::new(), Vec::new());
        for (place, named) in modules::places(&document.value) {
            let Some(name) = named.as_str() else { continue };
            match self.module(&place, name) {
                None => {}
                Some(Ok(module)) => ops.push(Op::set(place, module)),
                Some(Err(why)) => problems.push(PackProblem {
                    line: document.line(document.mark(&place, false, None)),
                    code: Code::E0108,
                    mark: document.mark(&place, false, None),
                    place: place.dotted(),
                    message: why,
                    hint: Some("a module is named by its path from the directory of the pack".to_owned()),
                }),
            }
        }
        let filled = Delta(ops).apply(&document.value);
        document.value = filled.expect("something stands at each of these places");
        (document, problems)
    }

    fn module(self, place: &Pointer, name: &str) -> Option<Result<Value, String>> {
        match self {
            Files::Nowhere => None,
            Files::Beside(dir) => Some(read(&dir.join(name)).map(|bytes| tag::bytes(&bytes))),
            Files::Of(pack) => {
                let recorded = place.get(pack).filter(|module| tag::as_bytes(module).is_some());
                Some(recorded.cloned().ok_or_else(|| "the pack has no module here".to_owned()))
            }
        }
    }
}

/// Reads no more of a file than shows that it is too long for a module. A pack comes from anywhere and may name anything:
/// what is no file with an end, such as a pipe that nobody writes into, is not opened.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let most = dendrer_wasm::MODULE_SIZE_MAX as u64 + 1;
    let open = || match path.metadata()?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    };
    let read = open().and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Writes the text of a pack that nobody wrote as it is: canonical JSON, which is YAML, too, with each module named by its
/// digest.
pub fn text_of(pack: &Value) -> Arc<str> {
    let named = modules::places(pack).into_iter().filter_map(|(place, module)| {
        let digest = Digest::of(&tag::as_bytes(module)?);
        Some(Op::set(place, Value::from(format!("{}.wasm", digest.hex()))))
    });
    let named = Delta(named.collect()).apply(pack).expect("something stands at each of these places");
    named.to_string().into()
}
