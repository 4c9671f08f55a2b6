//! The version of the program and of the formats.

use dendrer::kernel::step::KERNEL_VERSION;
use dendrer::store::FORMAT;
use dendrer_object::Value;
use dendrer_object::record::FORMAT_VERSION;

use crate::answer::{Answer, Line, Page};
use crate::document;

/// The version of bundles that are written.
const BUNDLE: u64 = 1;

/// The version of a program, and of the formats that it reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct VersionAnswer<'v> {
    /// The version of the program.
    pub program: &'v str,
}

impl Answer for VersionAnswer<'_> {
    fn document(&self) -> Value {
        let members = [
            ("version", Value::from(self.program)),
            ("record", Value::from(FORMAT_VERSION)),
            ("bundle", Value::from(BUNDLE)),
            ("store", Value::from(FORMAT)),
            ("kernel", Value::from(KERNEL_VERSION)),
        ];
        document("version", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let formats = format!(
            "formats   record {FORMAT_VERSION}, bundle {BUNDLE}, store {FORMAT}, kernel {KERNEL_VERSION}"
        );
        vec![format!("dendrer {}", self.program).into(), formats.into()]
    }
}
