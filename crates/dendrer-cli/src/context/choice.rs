//! Flags that choose which intents are proposed again.

use clap::Args;
use dendrer_object::TypeName;

/// Which intents are proposed again.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// Leave out an intent that does not fit and go on behind it; its results and what names it are left out as well
    #[arg(long)]
    pub(crate) skip: bool,
    /// Take intents of these types alone; ends at one that names something left out, unless --skip
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) only: Vec<TypeName>,
}

impl Choice {
    /// The types as a question takes them.
    pub(crate) fn types(&self) -> Vec<String> {
        self.only.iter().map(ToString::to_string).collect()
    }
}
