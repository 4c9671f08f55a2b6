//! Values as [`serde_json::Value`] and back (feature `serde_json`).
//!
//! Names are those of the source: a name that begins with `$` is stored with a second `$` and comes out with one. Tagged forms
//! (`{"$float":"NaN"}`, `{"$bytes":..}`) come out as they are stored; from `serde_json` they are ordinary objects of the user.

use dendrer_object::json::{self, DEPTH_MAX, JsonError};
use dendrer_object::{Object, Value, tag};

/// Why a value cannot cross the bridge.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// A number that `serde_json` would round.
    #[error("{number} at {path} has more digits than serde_json keeps")]
    NotExact {
        /// JSON pointer of the number.
        path: String,
        /// The number.
        number: String,
    },
    /// A number that the format does not take.
    #[error(transparent)]
    Number(#[from] JsonError),
    /// Arrays and objects are nested too deep.
    #[error("nested deeper than {DEPTH_MAX} levels at {path}")]
    TooDeep {
        /// JSON pointer of the value.
        path: String,
    },
}

/// Takes a value from `serde_json`.
pub fn from_serde(value: &serde_json::Value) -> Result<Value, BridgeError> {
    take(value, &mut Vec::new())
}

fn take(value: &serde_json::Value, path: &mut Vec<String>) -> Result<Value, BridgeError> {
    use serde_json::Value as Json;
    if path.len() > DEPTH_MAX {
        return Err(BridgeError::TooDeep { path: pointer(path) });
    }
    Ok(match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::from(*value),
        Json::String(text) => Value::from(text.as_str()),
        // By its text, which keeps the digits of every kind of number.
        Json::Number(number) => json::parse_door(number.to_string().as_bytes())?,
        Json::Array(items) => {
            let mut taken = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                taken.push(take(item, path)?);
                path.pop();
            }
            Value::array(taken)
        }
        Json::Object(members) => {
            let mut object = Object::default();
            for (name, member) in members {
                path.push(name.clone());
                object.set(&tag::stored_name(name), take(member, path)?);
                path.pop();
            }
            Value::Object(object)
        }
    })
}

/// Gives a value to `serde_json`.
pub fn to_serde(value: &Value) -> Result<serde_json::Value, BridgeError> {
    give(value, &mut Vec::new())
}

fn give(value: &Value, path: &mut Vec<String>) -> Result<serde_json::Value, BridgeError> {
    use serde_json::Value as Json;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::String(text) => Json::String(text.to_string()),
        Value::Number(_) => {
            let text = json::to_string(value);
            let not_exact = || BridgeError::NotExact { path: pointer(path), number: text.clone() };
            let number: Json = serde_json::from_str(&text).map_err(|_| not_exact())?;
            match json::parse_door(number.to_string().as_bytes()) {
                Ok(back) if back == *value => number,
                _ => return Err(not_exact()),
            }
        }
        Value::Array(items) => {
            let mut given = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                given.push(give(item, path)?);
                path.pop();
            }
            Json::Array(given)
        }
        Value::Object(members) => {
            let mut object = serde_json::Map::new();
            for (name, member) in members.iter() {
                let own = tag::user_name(name).to_owned();
                path.push(own.clone());
                object.insert(own, give(member, path)?);
                path.pop();
            }
            Json::Object(object)
        }
    })
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went() {
        let text = r#"{"a":[1,-2,0.5,1e21,true,null,"x"],"$ref":{"$$b":{}},"n":18446744073709551615}"#;
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let value = from_serde(&json).unwrap();
        assert_eq!(value, json::parse_door(text.as_bytes()).unwrap());
        assert_eq!(from_serde(&to_serde(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn digits_that_would_be_lost_are_an_error() {
        let value = json::parse_door(br#"{"a":[0,123456789012345678901234567890]}"#).unwrap();
        let error = to_serde(&value).unwrap_err();
        assert!(matches!(&error, BridgeError::NotExact { path, .. } if path == "/a/1"), "{error}");
    }

    #[test]
    fn depth_is_limited_as_at_the_door() {
        let mut json = serde_json::Value::Null;
        for _ in 0..=DEPTH_MAX {
            json = serde_json::Value::Array(vec![json]);
        }
        assert!(matches!(from_serde(&json), Err(BridgeError::TooDeep { .. })));
    }
}
