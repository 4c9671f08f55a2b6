//! The redactor of a pack, in this process.

use std::sync::Arc;

use dendrer_object::Value;

use crate::error::Error;
use crate::redact::{PackRules, RedactionProfile, Redactor, is_secret_name};

/// Makes the rules of a profile and a pack. Values of this process's environment are taken wherever they stand, if the name of their
/// variable says that they are secrets, or the pack does.
pub fn redactor(
    profile: RedactionProfile,
    pack: Option<&Value>,
    tag_key: Option<[u8; 32]>,
) -> Result<Arc<Redactor>, Error> {
    let wrong = |error: crate::redact::RuleError| Error::RedactionRule(error.to_string());
    let rules = pack.map_or_else(|| Ok(PackRules::default()), PackRules::of_pack).map_err(wrong)?;
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let known: Vec<String> = variables
        .filter(|(name, _)| is_secret_name(name) || rules.env.contains(name))
        .map(|(_, value)| value)
        .collect();
    Ok(Arc::new(Redactor::new(profile, &rules, &known, tag_key).map_err(wrong)?))
}
