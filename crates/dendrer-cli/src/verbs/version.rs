//! `dendrer version`

use clap::Args;
use dendrer::kernel::step::KERNEL_VERSION;
use dendrer::store::contract::FORMAT;
use dendrer_object::Value;
use dendrer_object::record::FORMAT_VERSION;
use dendrer_view::document;

use crate::failure::Result;
use crate::out::Out;

/// `version`
#[derive(Debug, Args)]
pub(crate) struct Version {}

pub(crate) fn run(out: &mut Out) -> Result {
    let version = env!("CARGO_PKG_VERSION");
    if out.is_text() {
        out.line(format!("dendrer {version}"))?;
        out.line(format!(
            "formats   record {FORMAT_VERSION}, bundle 1, store {FORMAT}, kernel {KERNEL_VERSION}"
        ))?;
    } else {
        out.document(&document(
            "version",
            [
                ("version", Value::from(version)),
                ("record", Value::from(FORMAT_VERSION)),
                ("bundle", Value::from(1u64)),
                ("store", Value::from(FORMAT)),
                ("kernel", Value::from(KERNEL_VERSION)),
            ],
        ))?;
    }
    Ok(0)
}
