//! What the verbs that speak of the program itself take.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::offers;

/// `explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, like E0301; all of them if not given
    #[arg(add = ArgValueCompleter::new(offers::codes))]
    pub(crate) code: Option<String>,
}

/// `schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The document; a list if not given
    #[arg(add = ArgValueCompleter::new(offers::schema_names))]
    pub(crate) name: Option<String>,
}

/// `man`
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb; the program as a whole if not given
    pub(crate) verb: Option<String>,
}

/// `completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell: bash, zsh, fish, powershell, nushell or elvish
    #[arg(add = ArgValueCompleter::new(offers::shell_names))]
    pub(crate) shell: String,
}

/// `help`
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// A verb, or exit-codes
    pub(crate) topic: Option<String>,
}
