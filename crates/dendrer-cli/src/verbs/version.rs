//! `dendrer version`

use clap::Args;
use dendrer_view::version::VersionAnswer;

use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `version`
#[derive(Debug, Args)]
pub(crate) struct Version {}

pub(crate) fn run(_: &Global, _: &Version, out: &mut Out) -> Result {
    out.answer(&VersionAnswer { program: env!("CARGO_PKG_VERSION") })
}
