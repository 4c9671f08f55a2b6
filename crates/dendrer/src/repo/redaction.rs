//! The redactor of a pack, in this process.

use std::sync::Arc;

use dendrer_object::Value;

use crate::error::Error;
use crate::redact::{NotKnown, PackRules, RedactionProfile, Redactor, is_secret_name};

/// A variable of the environment with the name of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretVariable {
    /// The name.
    pub name: String,
    /// Why its value is not taken; `None` if it is.
    pub why: Option<NotKnown>,
}

/// A variable with its value, which no answer has.
struct KnownVariable {
    about: SecretVariable,
    value: String,
}

/// Makes the rules of a profile and a pack. Values of this process's environment are taken wherever they are, if their variable has
/// the name of a secret, or the pack names it ([`NotKnown`] has the exceptions).
pub fn redactor(
    profile: RedactionProfile,
    pack: Option<&Value>,
    tag_key: Option<[u8; 32]>,
) -> Result<Arc<Redactor>, Error> {
    let rules = rules_of(pack)?;
    let known = known_variables(&rules, pack).into_iter();
    let known: Vec<String> =
        known.filter(|variable| variable.about.why.is_none()).map(|variable| variable.value).collect();
    Ok(Arc::new(Redactor::new(profile, &rules, &known, tag_key).map_err(wrong)?))
}

/// Lists the variables of this process's environment whose values are secrets by their names, in order of the names. Under a pack:
/// with those that it names, and without the names of its tools and types.
///
/// # Errors
///
/// A rule of the pack that cannot be used.
pub fn secret_variables(pack: Option<&Value>) -> Result<Vec<SecretVariable>, Error> {
    let variables = known_variables(&rules_of(pack)?, pack);
    Ok(variables.into_iter().map(|variable| variable.about).collect())
}

fn wrong(error: crate::redact::RuleError) -> Error {
    Error::RedactionRule(error.to_string())
}

fn rules_of(pack: Option<&Value>) -> Result<PackRules, Error> {
    pack.map_or_else(|| Ok(PackRules::default()), PackRules::of_pack).map_err(wrong)
}

fn known_variables(rules: &PackRules, pack: Option<&Value>) -> Vec<KnownVariable> {
    let named = ["tools", "types"].into_iter().filter_map(|list| pack?.get(list)?.as_object());
    let names: Vec<Arc<str>> =
        named.flat_map(|list| list.iter().map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>()).collect();
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut known: Vec<KnownVariable> = variables
        .filter(|(name, _)| is_secret_name(name) || rules.env.contains(name))
        .map(|(name, value)| {
            let why = NotKnown::why(&value, names.iter().map(|name| &**name));
            KnownVariable { about: SecretVariable { name, why }, value }
        })
        .collect();
    known.sort_by(|a, b| a.about.name.cmp(&b.about.name));
    known
}
