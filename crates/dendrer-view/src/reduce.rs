//! Errors of rules, as documents.

use dendrer_object::Value;

/// Returns the ticks at which a rule failed, with the reasons.
pub fn errors_json(errors: &[(u64, String)]) -> Value {
    Value::array(errors.iter().map(|(tick, why)| {
        Value::record([("tick", Value::from(*tick)), ("message", Value::from(why.as_str()))])
    }))
}
