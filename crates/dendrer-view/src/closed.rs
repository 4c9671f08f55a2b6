//! Fields that were erased or withheld, as a line and as a document.

use dendrer::closed::Closed;
use dendrer_object::{Pointer, document};

use crate::{count, quote};

/// Writes which fields are not known, in one line; `None` if no field is closed.
pub fn line(closed: &Closed) -> Option<String> {
    let list = closed.0.iter().map(|(pointer, records)| {
        format!("{} of {}", quote::path(pointer), count(*records, "record", "records"))
    });
    let list: Vec<String> = list.collect();
    let list = (!list.is_empty()).then(|| list.join(", "))?;
    Some(format!("not known: {list} (erased or withheld), so what is listed and counted may lack something"))
}

document! {
    /// A field that was erased or withheld
    pub object ClosedField(field: &Pointer, number: u64) {
        /// The field
        path: &Pointer = field,
        /// The number of records in which it is not known
        records: u64 = number,
    }
}
