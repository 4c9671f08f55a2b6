//! The rules of `carl-core` 0.2.0 over values of the format ([`dendrer_chain::scrub`] has them over rows).

use std::sync::Arc;

use dendrer_chain::{REDACTED, is_secret_name, scrub_text};
use dendrer_object::Value;

use super::taken::TakenSecrets;

/// The text without its secrets; `None` if it has none.
pub(super) fn text(text: &str, taken: &mut TakenSecrets) -> Option<String> {
    scrub_text(text, &mut |kind| taken.count(&Arc::from(kind)))
}

/// A value without its secrets.
pub(super) fn value(value: &Value, taken: &mut TakenSecrets) -> Value {
    match value {
        Value::String(string) => text(string, taken).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => Value::array(items.iter().map(|item| self::value(item, taken))),
        Value::Object(members) => Value::record(members.iter().map(|(name, member)| {
            // A row that `carl-core` redacted has nothing to take.
            let is_marker = member.as_str() == Some(REDACTED);
            let made = match is_secret_name(name) && !is_marker {
                true => {
                    taken.count(&Arc::from("named"));
                    Value::from(REDACTED)
                }
                false => self::value(member, taken),
            };
            (Arc::<str>::from(&**name), made)
        })),
        other => other.clone(),
    }
}
