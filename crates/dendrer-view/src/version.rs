//! The version of the program and of the formats.

use dendrer::kernel::step::KERNEL_VERSION;
use dendrer::store::FORMAT;
use dendrer_object::record::FORMAT_VERSION;
use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};

/// The version of bundles that are written.
const BUNDLE: u64 = 1;

/// The version of a program, and of the formats that it reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct VersionAnswer<'v> {
    /// The version of the program.
    pub program: &'v str,
}

document! {
    /// Versions
    pub object VersionDocument: "version" (program: &str) {
        /// The version of the program
        version: &str = program,
        ..FormatsObject = FormatsObject::of(),
    }

    /// The versions of the formats that are written
    pub(crate) object FormatsObject() {
        /// The version of records that are written
        record: u64 = FORMAT_VERSION,
        /// The version of bundles that are written
        bundle: u64 = BUNDLE,
        /// The version of the files of a store
        store: u64 = FORMAT,
        /// The version of the rules of the kernel
        kernel: u64 = KERNEL_VERSION,
    }
}

impl Answer for VersionAnswer<'_> {
    fn document(&self) -> Value {
        VersionDocument::of(self.program).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let formats = format!(
            "formats   record {FORMAT_VERSION}, bundle {BUNDLE}, store {FORMAT}, kernel {KERNEL_VERSION}"
        );
        vec![format!("dendrer {}", self.program).into(), formats.into()]
    }
}
