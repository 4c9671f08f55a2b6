//! By which rules secrets are taken out of what a command records.

use std::sync::Arc;

use clap::Args;
use dendrer::redact::{RedactionProfile, Redactor};
use dendrer::repo::{self, Repo};
use dendrer_object::Value;

use crate::failure::Result;
use crate::global::profile_arg;

/// Flags of verbs that record what others wrote.
#[derive(Debug, Clone, Args)]
pub(crate) struct RedactionArgs {
    /// By which rules secrets are taken out: default, carl/1 or none; as the store was made if not given
    #[arg(long, value_name = "RULES", value_parser = profile_arg)]
    pub(crate) redact: Option<RedactionProfile>,
}

impl RedactionArgs {
    /// Makes the rules for a run under a pack.
    pub(crate) fn redactor(&self, repo: &Repo, pack: Option<&Value>) -> Result<Arc<Redactor>> {
        Ok(repo.redactor_of(self.redact, pack)?)
    }

    /// Makes the rules where there is no store: without tags.
    pub(crate) fn redactor_alone(&self, pack: Option<&Value>) -> Result<Arc<Redactor>> {
        Ok(repo::redactor(self.redact.unwrap_or_default(), pack, None)?)
    }
}
