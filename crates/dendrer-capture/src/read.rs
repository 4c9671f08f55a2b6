//! The bodies of requests and answers as values.

use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use crate::api;
use crate::body::{self, BodyFault};
use crate::exact;
use crate::exchange::AskedCall;
use crate::spoken::{Api, Said};
use crate::sse;
use crate::volatile::{self, VolatilePlace};

/// Reads the body of a request as an object.
///
/// # Errors
///
/// A word for the record: the body was not copied whole, does not inflate, or is no object.
pub(crate) fn request(asked: &AskedCall) -> Result<Object, &'static str> {
    if asked.body.left_out > 0 {
        return Err(BodyFault::TooLarge.word());
    }
    object(&asked.body.bytes, asked.encoding.as_deref())
}

/// Reads a body as an object; the errors are those of [`request`].
pub(crate) fn object(bytes: &[u8], encoding: Option<&str>) -> Result<Object, &'static str> {
    let plain = body::plain(bytes, encoding).map_err(|fault| fault.word())?;
    match json::parse_door(&plain) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err("no_json"),
    }
}

/// The bytes by which the same request is known again: its API, its method, its path and query but for keys,
/// and its body in canonical form without volatile places.
pub(crate) fn known(asked: &AskedCall, volatile: &[VolatilePlace]) -> Vec<u8> {
    let api = || api::of_path(&asked.method, &asked.path).map_or("http", |api| api.name);
    let body = match request(asked) {
        Ok(object) if volatile.is_empty() => json::to_vec(&Value::Object(object)),
        Ok(object) => json::to_vec(&Value::Object(volatile::without(object, api(), volatile))),
        Err(_) => asked.body.bytes.clone(),
    };
    let path = exact::without_keys(&asked.path);
    [asked.base.as_bytes(), b" ", asked.method.as_bytes(), b" ", path.as_bytes(), b"\n", &body].concat()
}

/// The mark of UTF-8 that some put before a text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// An answer as it was read.
pub(crate) enum ReadAnswer {
    /// It is whole.
    Said(Box<Said>),
    /// It is a value that is no answer of the API.
    Other(Value),
    /// It is a stream that was cut off, with the error that it ended with.
    Cut(Option<Value>),
    /// It cannot be read, for this reason.
    Unread(&'static str),
}

/// Reads an answer that came with success.
pub(crate) fn answer(api: &Api, bytes: &[u8], encoding: Option<&str>, kind: Option<&str>) -> ReadAnswer {
    let plain = match body::plain(bytes, encoding) {
        Ok(plain) => plain,
        Err(fault) => return ReadAnswer::Unread(fault.word()),
    };
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let events = if is_stream { sse::events(&plain) } else { Vec::new() };
    let value = match is_stream {
        true => (api.gather)(&events),
        false => json::parse_door(plain.strip_prefix(BOM).unwrap_or(&plain)).ok(),
    };
    let Some(value) = value else {
        let error =
            events.iter().rev().find(|event| event.get("error").is_some_and(|error| *error != Value::Null));
        return if is_stream { ReadAnswer::Cut(error.cloned()) } else { ReadAnswer::Unread("no_json") };
    };
    match (api.answer)(value.clone()) {
        Some(said) => ReadAnswer::Said(Box::new(said)),
        None => ReadAnswer::Other(value),
    }
}
