//! Places of requests whose value is another one each time, such as a time or a random id.
//!
//! Rule: a place is left out of a comparison because a user or a calibration named it, and never by a guess.

use std::borrow::Cow;

use dendrer::Trace;
use dendrer_object::value::Object;
use dendrer_object::{Pointer, Value};

use crate::api::APIS;

/// The token of a pointer for each item or member.
const EACH: &str = "*";

/// A place of the requests of an API, or of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolatilePlace {
    /// The name of the API; `None` for all.
    pub api: Option<String>,
    /// The place in the body; `*` is each item or member.
    pub path: Pointer,
}

/// Why a text names no place.
#[derive(Debug, thiserror::Error)]
#[error("a volatile place is API:POINTER, such as openai-chat:/messages/0/content, and not {0:?}")]
pub struct VolatileError(String);

impl VolatilePlace {
    /// Reads `API:POINTER`, or a pointer alone.
    ///
    /// # Errors
    ///
    /// There is no such API, or the rest is no JSON Pointer (RFC 6901) below the whole body.
    pub fn parse(text: &str) -> Result<VolatilePlace, VolatileError> {
        let bad = || VolatileError(text.to_owned());
        let (api, path) = match text.split_once(':').filter(|_| !text.starts_with('/')) {
            Some((api, path)) => (Some(api), path),
            None => (None, text),
        };
        let is_known = |name: &str| name == "http" || APIS.into_iter().any(|api| api.name == name);
        if api.is_some_and(|name| !is_known(name)) || !path.starts_with('/') {
            return Err(bad());
        }
        let path = Pointer::of_written(path).map_err(|_| bad())?;
        Ok(VolatilePlace { api: api.map(str::to_owned), path })
    }

    /// The places that a run was recorded with.
    pub fn of_run(trace: &Trace) -> Vec<VolatilePlace> {
        let meta = trace.start().body().value("/meta");
        let places = meta.as_ref().and_then(|meta| meta.get("capture")?.get("volatile")?.as_array().cloned());
        let places = places.unwrap_or_default();
        places.iter().filter_map(|place| VolatilePlace::parse(place.as_str()?).ok()).collect()
    }

    fn is_of(&self, api: &str) -> bool {
        self.api.as_deref().is_none_or(|name| name == api)
    }
}

impl std::fmt::Display for VolatilePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.api {
            Some(api) => write!(f, "{api}:{}", self.path.written()),
            None => f.write_str(&self.path.written()),
        }
    }
}

/// A request without the values at volatile places: null is there.
pub(crate) fn without(body: Object, api: &str, places: &[VolatilePlace]) -> Object {
    let mut body = Value::Object(body);
    for place in places.iter().filter(|place| place.is_of(api)) {
        let tokens: Vec<Cow<'_, str>> = place.path.tokens().collect();
        body = cleared(&body, &tokens);
    }
    match body {
        Value::Object(body) => body,
        _ => Object::default(),
    }
}

fn cleared(value: &Value, tokens: &[Cow<'_, str>]) -> Value {
    let Some((token, rest)) = tokens.split_first() else { return Value::Null };
    match value {
        Value::Array(items) => Value::array(items.iter().enumerate().map(|(index, item)| {
            match token == EACH || **token == *index.to_string() {
                true => cleared(item, rest),
                false => item.clone(),
            }
        })),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| match token == EACH || *token == **name {
                    true => (name.clone(), cleared(value, rest)),
                    false => (name.clone(), value.clone()),
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use dendrer_object::json;

    use super::*;

    #[test]
    fn a_place_is_of_an_api_or_of_all() {
        for text in ["openai-chat:/messages/0/content", "/seed", "http:/id", "anthropic:/metadata/*/id"] {
            assert_eq!(VolatilePlace::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "/", "seed", "openai:/seed", "openai-chat:", "openai-chat:seed", ":"] {
            let read = VolatilePlace::parse(text);
            assert!(read.is_err() || text == "/", "{text}");
        }
    }

    #[test]
    fn values_at_places_are_cleared_and_no_others() {
        let body = json::parse_door(br#"{"a":[{"t":1,"u":2},{"t":3}],"t":4}"#).unwrap();
        let body = body.as_object().unwrap();
        let clear = |texts: &[&str], api: &str| {
            let places: Vec<VolatilePlace> =
                texts.iter().map(|text| VolatilePlace::parse(text).unwrap()).collect();
            Value::Object(without(body.clone(), api, &places)).to_string()
        };
        assert_eq!(clear(&["/a/*/t"], "http"), r#"{"a":[{"t":null,"u":2},{"t":null}],"t":4}"#);
        assert_eq!(clear(&["/a/0", "/t", "/none/x"], "http"), r#"{"a":[null,{"t":3}],"t":null}"#);
        assert_eq!(clear(&["anthropic:/t"], "http"), r#"{"a":[{"t":1,"u":2},{"t":3}],"t":4}"#);
    }
}
